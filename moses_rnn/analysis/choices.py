"""What there is to choose from in an analysis; no library is loaded here, so that --help can show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from moses_rnn.options import Force, ModelBeside, Option

SEED = 1  # of all that is drawn
CRITERIA = ("rnn", "direct", "both")  # by which pairs are pruned
METHODS = ("tsne", "pca")  # by which maps are laid out
Column = Annotated[
    int | None, Option("The RNN's score, from 0; -1 is the last [default: as the signature beside the table says]")
]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the command line asks of a report, and how much it shows and looks at."""

    phrase_table: str
    model: ModelBeside = None
    output: Annotated[str, Option("The page, one file of HTML", "-o --output")]
    source_text: Annotated[
        str | None, Option("Draw where a network with attention looks in its first lines", metavar="FILE")
    ] = None
    results: Annotated[str | None, Option("results.json of `make results`: what tuning gained", metavar="FILE")] = None
    column: Column = None
    force: Force = False
    sources: ClassVar[int] = 3  # of each kind in Table 2
    samples: ClassVar[int] = 50  # of each source in Table 3
    phrases: ClassVar[int] = 2000  # to draw for the gates
    points: ClassVar[int] = 500  # of either map
