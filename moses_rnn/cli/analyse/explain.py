"""moses-rnn analyse explain: everything that is known about one phrase pair."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moses_rnn.cli.analyse.options import open_phrase_network, optional_output, progress
from moses_rnn.cli.command import check_inputs, command, print_out
from moses_rnn.cli.options import choose_model
from moses_rnn.errors import InputError
from moses_rnn.options import Force, ModelBeside, Option

if TYPE_CHECKING:
    from moses_rnn.analysis.explain import Weights

EXPLAIN_EPILOG = """\b
Example:
  moses-rnn analyse explain phrase-table.rnn.gz "far from the ||| loin de la" --moses-ini tuned/moses.ini

A pair that is not in the table is explained too. Log-probabilities are natural, with the end symbols of both sides.
"""


@dataclass(frozen=True, kw_only=True)
class Explain:
    """What the command line asks for."""

    phrase_table: str
    pair: str
    model: ModelBeside = None
    moses_ini: Annotated[
        str | None, Option("With tuned weights of the table's scores: also rank by their weighted sum")
    ] = None
    output: Annotated[str | None, Option("Write the explanation as JSON", "-o --output")] = None
    force: Force = False


@command(EXPLAIN_EPILOG)
def explain(request: Explain) -> None:
    """Print everything that a network, PHRASE_TABLE and the weights of a moses.ini say about a PAIR.

    PAIR is "source ||| target", in the table's words, or a whole line of it.
    """
    folder = choose_model(request.model, request.phrase_table)
    check_inputs(folder, request.phrase_table, request.moses_ini)
    from moses_rnn.analysis.explain import as_json, as_text, explain_in_table, parse_pair

    inputs = (request.phrase_table, request.moses_ini or "")
    with optional_output(request.output, *inputs, force=request.force) as file:
        model = open_phrase_network(folder)
        pair, weights = parse_pair(os.fsencode(request.pair), model.form), _weights(request)
        with progress() as advanced:
            found = explain_in_table(model, model.make_scorer(), pair, request.phrase_table, weights, advanced)
        file.commit(as_json(found).encode())
    print_out("\n".join(as_text(found)))


def _weights(request: Explain) -> Weights | None:
    """The weights and the table limit that an ini has for a table."""
    from moses_rnn.analysis.explain import TABLE_LIMIT, Weights
    from moses_rnn.moses.ini import MosesIni

    if request.moses_ini is None:
        return None
    try:
        ini = MosesIni(Path(request.moses_ini).read_bytes(), request.moses_ini)
    except OSError as error:
        raise InputError(f"{request.moses_ini}: cannot be read: {error.strerror}") from error
    feature = ini.choose(table=request.phrase_table)
    own = feature.options.get("table-limit", "")
    limit = int(own) if own.isdecimal() else TABLE_LIMIT
    return Weights(ini.weights(feature), request.moses_ini, limit)
