"""moses-rnn-nmt train: two texts in, the folder of a network that reads whole sentences out."""

from __future__ import annotations

from pathlib import Path

import click

from moses_rnn.cli.command import CONTEXT, STOPPED, FiniteFloat, Program, reports_errors, takes
from moses_rnn.cli.files import check_inputs
from moses_rnn.cli.training_options import learning_options, preset_option, run_options, shown_presets
from moses_rnn.cli.training_ranks import of_rank, stop_request, together
from moses_rnn.training.sentence_config import ARCHITECTURES, SentenceRequest

PRESETS = {f"{name}, {preset}": ARCHITECTURES[name][preset] for name in ARCHITECTURES for preset in ("paper", "small")}
EPILOG = f"""\b
Example: at most an hour on a laptop, then a feature of n-best lists, and translations:
  moses-rnn-nmt train corpus/train --source en --target fr --dev corpus/dev --model search
  moses-rnn-nbest dev.100best.gz --source corpus/dev.en --add search -o dev.search.gz
  moses-rnn-nmt translate search < corpus/test.en > test.fr
By all GPUs of a machine (docs/training.md):
  torchrun --standalone --nproc-per-node gpu --no-python moses-rnn-nmt train corpus/train --source en --target fr \\
    --dev corpus/dev --model search

{shown_presets(PRESETS)}
The texts are tokenised and escaped as Moses sees them. Run the same command again after any interruption, kill -9
included, and it continues where it was. Exit codes: 0 done, 1 failure, 2 wrong command line, 3 texts or model rejected,
{STOPPED} stopped and resumable.
"""


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("prefix")
@click.option("--source", required=True, help="The source text is PREFIX.SOURCE, plain or compressed")
@click.option("--target", required=True, help="The target text is PREFIX.TARGET, line by line its translation")
@click.option("--model", type=click.Path(path_type=Path), required=True, help="Model folder")
@click.option(
    "--architecture",
    type=click.Choice(list(ARCHITECTURES)),
    default="rnnsearch",
    show_default=True,
    help="rnnsearch: with attention (Bahdanau et al.); seq2seq: deep LSTMs (Sutskever et al.); rnnenc: the phrase "
    "model's network, on sentences",
)
@preset_option({"paper": None, "small": None})
@click.option("--inverse", is_flag=True, help="Learn p(source | target) instead")
@click.option("--dev", help="Held-out texts, DEV.SOURCE and DEV.TARGET [default: some of the pairs]")
@click.option(
    "--held-out",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Without --dev: about this many pairs, chosen by source sentence, are never trained on",
)
@click.option(
    "--phases", type=click.Choice(["paper", "groundhog"]), help="Switch of rnnsearch: the paper's text or its code"
)
@click.option(
    "--source-order", type=click.Choice(["reversed", "forward"]), help="Switch of seq2seq: how it reads [reversed]"
)
@click.option("--peepholes/--no-peepholes", default=None, help="Switch of seq2seq: gates see the memory [they do]")
@click.option("--layers", type=click.IntRange(1, 64), help="Layers of seq2seq, in the encoder and in the decoder")
@click.option("--hidden-size", type=click.IntRange(1), help="Hidden units H")
@click.option("--embedding-size", type=click.IntRange(1), help="Embedding dimensions E")
@click.option("--alignment-size", type=click.IntRange(1), help="Units A of the alignment")
@click.option("--maxout-size", type=click.IntRange(1), help="Maxout units M")
@click.option("--output-rank", type=click.IntRange(0), help="Rank R of the output matrix; 0: one matrix")
@click.option(
    "--initial-deviation", type=FiniteFloat(0, min_open=True), help="Of the initial weights; seq2seq: their bound"
)
@click.option("--source-words", type=click.IntRange(1), help="Shortlist of the source; other words are <unk>")
@click.option("--target-words", type=click.IntRange(1), help="Shortlist of the target")
@click.option("--min-count", type=click.IntRange(1), help="Words seen less often are <unk>")
@click.option(
    "--partition-words",
    type=click.IntRange(3),
    help="For large shortlists: learn by stretches of the corpus with at most N distinct target words, which alone are "
    "normalised over (Jean et al.)",
)
@click.option("--reshuffle", is_flag=True, help="Partitions: a new order in each epoch, and so new ones")
@click.option(
    "--rare",
    type=click.Choice(["noalign", "copyable", "posall", "posunk"]),
    help="Annotate words outside the shortlists, so that they can be restored in translations (Luong et al.)",
)
@click.option("--rare-window", type=click.IntRange(1, 1000), help="How far such a word is pointed to at most [7]")
@click.option("--alignment", metavar="FILE", help="Word alignment of the texts, a line for each pair: 0-0 1-2 …")
@click.option("--dev-alignment", metavar="FILE", help="The same of DEV.SOURCE and DEV.TARGET")
@click.option("--max-length", type=click.IntRange(0), help="Leave out training pairs with a longer side; 0: none")
@learning_options("Sentence pairs", "texts", evaluated=" [default: once a pass]")
@run_options
@reports_errors
@takes(SentenceRequest)
def train(request: SentenceRequest) -> None:
    """Train a network that reads whole sentences on PREFIX.SOURCE and PREFIX.TARGET."""
    try:
        request.chosen_preset()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for prefix in filter(None, (request.prefix, request.dev)):
        check_inputs(f"{prefix}.{request.source}", f"{prefix}.{request.target}")
    check_inputs(request.alignment, request.dev_alignment)
    from moses_rnn.cli.training_display import TrainingDisplay, say_end, say_next
    from moses_rnn.training.sentence_run import train_sentence_model

    with together() as ranks:
        request = of_rank(request, ranks)
        display = TrainingDisplay(quiet=request.quiet)
        outcome = train_sentence_model(request, request.model, display, stop_request(ranks), ranks)
    display.close()
    say_end(outcome, request.model, "pairs", quiet=request.quiet, leads=ranks.leads)
    text = f"{request.dev or request.prefix}.{request.target if request.inverse else request.source}"
    say_next("moses-rnn-nmt", "translate", request.model, text, quiet=request.quiet)
