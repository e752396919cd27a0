"""moses-rnn analyse lengths: BLEU by the length of the source, of any systems."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moses_rnn.analysis.grids import PICTURES
from moses_rnn.cli.analyse.options import Layout, kind_of, named_files, optional_output
from moses_rnn.cli.command import check_inputs, command, print_out
from moses_rnn.cli.options import text_of
from moses_rnn.options import Argument, Force, Option

if TYPE_CHECKING:
    from moses_rnn.networks.vocabulary import Vocabulary

EPILOG = """\b
Example: two systems, also on the sentences whose words a network all knows, and their curves:
  moses-rnn analyse lengths test.en test.fr search.out moses.out --model search -o lengths.svg

Texts are line by line translations of each other, tokenised; BLEU is sacreBLEU's, without tokenisation. No UNK are the
sentences without a word, in source or reference, that is unknown to the model. Exit codes: 0 done, 1 failure, 2 wrong
command line, 3 texts or model rejected.
"""


@dataclass(frozen=True, kw_only=True)
class LengthsRequest:
    """What the command line asks for."""

    source: str
    reference: str
    outputs: Annotated[tuple[str, ...], Argument("OUTPUT...")]
    model: Annotated[
        Path | None, Option("Also compare where this network knows all words", "--model", metavar="FOLDER")
    ] = None
    output: Annotated[str | None, Option("Draw the curves: .svg or .png (needs matplotlib)", "-o --output")] = None
    layout: Layout = "text"
    force: Force = False


@command(EPILOG)
def lengths(request: LengthsRequest) -> None:
    """Compare translations OUTPUT by BLEU on short and on long sentences of SOURCE."""
    check_inputs(request.source, request.reference, *request.outputs, request.model)
    from moses_rnn.analysis.grids import LAYOUTS
    from moses_rnn.analysis.lengths import as_grid, compare_lengths
    from moses_rnn.analysis.plots import lengths_figure, picture

    kind = kind_of(request.output, PICTURES, "the table needs nothing") if request.output else ""
    texts = (request.source, request.reference, *request.outputs)
    with optional_output(request.output, *texts, force=request.force) as file:
        outputs = {name: text_of(path) for name, path in named_files(request.outputs).items()}
        known = _known_words(request.model) if request.model else None
        scores = compare_lengths(text_of(request.source), text_of(request.reference), outputs, known)
        file.commit(picture(lengths_figure, scores, kind=kind) if kind else b"")
    print_out(LAYOUTS[request.layout](as_grid(scores)))


def _known_words(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """The words of a network by the language of the texts, not by what it reads and writes."""
    from moses_rnn.scorers.open import open_model

    model = open_model(folder)
    sides = model.source_vocabulary, model.target_vocabulary
    return sides[::-1] if model.inverse else sides
