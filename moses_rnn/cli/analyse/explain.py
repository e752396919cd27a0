"""moses-rnn-analyse explain: all that is known of one phrase pair."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moses_rnn.cli.analyse.options import force_option, is_inverse, model_argument, model_blocks, seed_option
from moses_rnn.cli.command import CONTEXT, Program, put, reports_errors
from moses_rnn.errors import InputError

if TYPE_CHECKING:
    from moses_rnn.analysis.explain import Weights

EXPLAIN_EPILOG = """\b
Example:
  moses-rnn-analyse explain phrase-table.rnn-model phrase-table.rnn.gz "far from the ||| loin de la" \\
      --moses-ini tuned/moses.ini

A pair that is not in the table is explained too. Log-probabilities are natural, with the end symbols of both sides.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EXPLAIN_EPILOG)
@model_argument
@click.argument("phrase_table")
@click.argument("pair")
@click.option("--moses-ini", help="With tuned weights of the table's scores: rank by the weighted sum too")
@click.option("--feature", help="Which phrase dictionary of the ini is meant, if several could be")
@click.option(
    "--table-limit",
    type=click.IntRange(0),
    help="Targets of a source that Moses keeps; 0 is all [default: the ini's, else 20]",
)
@click.option("--nearest", type=click.IntRange(0), default=5, show_default=True, help="Phrases near by to show")
@click.option("--phrases", type=click.IntRange(1), default=5000, show_default=True, help="To sample them from")
@seed_option
@click.option("-o", "--output", help="Write the explanation as JSON")
@force_option
@reports_errors
def explain(model: Path, phrase_table: str, pair: str, output: str | None, *, force: bool, **options: Any) -> None:
    """Say all that the network MODEL, PHRASE_TABLE and the weights of a moses.ini know of a PAIR.

    PAIR is "source ||| target", in the table's words, or a whole line of it.
    """
    from moses_rnn.analysis.explain import Explainer, as_json, as_text
    from moses_rnn.analysis.lookup import look_up, parse_pair
    from moses_rnn.files.outputs import NoOutput, OutputFile
    from moses_rnn.files.streams import existing_input
    from moses_rnn.formats.signatures import read_signature, recorded_names
    from moses_rnn.producers.open import open_model

    inputs = (phrase_table, options["moses_ini"] or "")
    with OutputFile(output, force=force, inputs=inputs) if output else NoOutput() as file:
        opened = open_model(model)
        checkpoint = opened.checkpoint
        asked = parse_pair(os.fsencode(pair), opened.form)
        weights = _weights(options["moses_ini"], options["feature"], phrase_table, options["table_limit"])
        scorer = opened.make_producer()
        found = look_up(
            model_blocks(phrase_table, checkpoint),
            phrase_table,
            asked,
            inverse=is_inverse(checkpoint),
            others=options["phrases"],
            seed=options["seed"],
        )
        added = recorded_names(read_signature(existing_input(phrase_table)) or {})
        explainer = Explainer(checkpoint, scorer.log_probs, scorer.name, added, weights, options["nearest"])
        explanation = explainer(found)
        file.commit(as_json(explanation).encode())
    put("\n".join(as_text(explanation)))


def _weights(moses_ini: str | None, feature: str | None, table: str, limit: int | None) -> Weights | None:
    """The weights and the table limit that an ini has for a table."""
    from moses_rnn.analysis.explain import TABLE_LIMIT, Weights
    from moses_rnn.formats.moses_ini import MosesIni

    if moses_ini is None:
        if limit is not None or feature is not None:
            raise click.UsageError("--table-limit and --feature are about a --moses-ini")
        return None
    try:
        ini = MosesIni(Path(moses_ini).read_bytes(), moses_ini)
    except OSError as error:
        raise InputError(f"{moses_ini}: cannot be read: {error.strerror}") from error
    found = ini.choose(name=feature, table=table)
    if limit is None:
        own = found.options.get("table-limit", "")
        limit = int(own) if own.isdecimal() else TABLE_LIMIT
    return Weights(ini.weights(found), moses_ini, limit)
