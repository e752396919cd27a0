"""moses-rnn reranker: build one, translate with it, serve it."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from moses_rnn.cli.command import (
    CONTEXT,
    STOPPED,
    ProgramGroup,
    StopRequest,
    check_inputs,
    choose_device,
    command,
    print_err,
    warn,
)
from moses_rnn.cli.inputs import parallel_texts
from moses_rnn.cli.progress import duration
from moses_rnn.cli.training import TrainingDisplay
from moses_rnn.errors import MosesRnnError, number_of
from moses_rnn.nbest.request import Material, RerankingRequest, ServingOptions
from moses_rnn.options import Option

if TYPE_CHECKING:
    from moses_rnn.moses.decoding import ListStream

SECONDS_BETWEEN_LOOKS = 0.1  # for a request to stop

EPILOG = """\b
Example: build a reranker for a tuned Moses system, and translate with it:
  moses-rnn reranker train tuned/moses.ini --texts train --dev dev --source en --target fr -o reranker
  moses-rnn reranker translate reranker < new.en > new.fr
  moses-rnn reranker serve reranker
"""


@click.group(cls=ProgramGroup, context_settings=CONTEXT, epilog=EPILOG)
def main() -> None:
    """Choose better translations from Moses's n-best lists, with networks as features."""


TRAIN_EPILOG = f"""\b
Examples: train a network and tune; use finished models instead; start from a list of another decoder:
  moses-rnn reranker train tuned/moses.ini --texts train --dev dev --source en --target fr -o reranker
  moses-rnn reranker train tuned/moses.ini --dev dev --source en --target fr --add search --add cslm -o reranker
  moses-rnn reranker train tuned/moses.ini --dev dev --source en --target fr --add search --lists dev.nbest -o reranker

This trains a network on TEXTS, decodes DEV with the Moses in MOSES_ROOT, and adds log p of each hypothesis to the
lists. It then tunes all weights three times, with different seeds, and takes the mean. It uses kbmira if MOSES_ROOT
has it, otherwise MERT from this package. At the end, it prints BLEU before, after and at best (the oracle).

After any interruption, run the same command again. It repeats only the steps whose inputs have changed. Exit codes: 0
done, 1 failure, 2 usage error, 3 input refused, {STOPPED} stopped and resumable.
"""


@command(TRAIN_EPILOG)
def train(
    given: Material,
    *,
    estimate: Annotated[bool, Option("Estimate how long training and decoding take here; build nothing")] = False,
) -> None:
    """Build a reranker for a tuned Moses system. INI is its moses.ini."""
    if bool(given.texts) == bool(given.add):
        raise click.UsageError("give either --texts to train a network on, or finished models with --add")
    if given.both_orders and given.add:
        raise click.UsageError("--both-orders trains networks; it excludes --add")
    prefixes = filter(None, (given.texts, given.dev, given.test))
    texts = [f"{prefix}.{side}" for prefix in prefixes for side in (given.source, given.target)]
    check_inputs(given.ini, given.lists, *texts)
    for prefix in filter(None, (given.dev, given.test)):
        parallel_texts(f"{prefix}.{given.source}", f"{prefix}.{given.target}")
    from moses_rnn.nbest.building import Builder

    stop = StopRequest()
    display = TrainingDisplay(quiet=given.quiet)
    given = replace(given, device=choose_device(given.device, given.threads))
    builder = Builder(given, (lambda _: None) if given.quiet else print_err, display, stop)
    if estimate:
        print_err(f"about {duration(builder.estimate())}")
        return
    results = builder.build()
    for name in ("dev", "test"):
        if name in results:
            print_err(_result(name, results[name]))
    folder, new = str(given.output), shlex.quote(f"new.{given.source}")
    if not given.quiet:
        print_err(f"next: moses-rnn reranker translate {shlex.quote(folder)} < {new} > new.{given.target}")


def _result(name: str, bleu: dict[str, Any]) -> str:
    figures = f"BLEU {bleu['before']:.2f} before, {bleu['after']:.2f} after, {bleu['oracle']:.2f} at best (oracle)"
    return f"{name}: {figures}; p = {bleu['p']:.3g}"


def _device_beside_moses(wanted: str, threads: int | None) -> str:
    """Choose the device, and let networks have half of the threads."""
    import torch

    # On cores that Moses uses, threads that wait for each other take ten times the seconds of one
    return choose_device(wanted, max((threads or torch.get_num_threads()) // 2, 1))


TRANSLATE_EPILOG = f"""\b
Examples: a stream; raw text; a large text that can be resumed, with lists:
  moses-rnn reranker translate reranker < new.en > new.fr
  moses-rnn reranker translate reranker --raw < letter.txt
  moses-rnn reranker translate reranker big.en -o big.fr --n-best 10 big.nbest.gz --resume

INPUT must be text as the decoder reads it, tokenised and escaped, unless you give --raw. Each line gives one line, in
order, as soon as it is ready. If a line cannot be scored, the output is the decoder's own choice; if Moses fails, an
empty line. Both print a warning. Exit codes: 0 done, 1 failure, 2 usage error, 3 input refused, {STOPPED}
stopped and resumable.
"""


@command(TRANSLATE_EPILOG)
def translate(request: RerankingRequest) -> None:
    """Translate a text with Moses and a reranker. FOLDER is the reranker, INPUT a file, or - for stdin."""
    if request.resume and request.output == "-":
        raise click.UsageError("--resume needs -o: output on stdout cannot be resumed")
    if "-" in request.outputs[1:]:
        raise click.UsageError("--n-best and --alignments need a file: stdout is for the translations")
    check_inputs(request.input)
    from moses_rnn.nbest.reranker import Reranker, Settings
    from moses_rnn.nbest.rewriting import translate_text

    settings = Settings.read(request.folder)
    if not request.allow_changed:
        settings.check_unchanged(request.folder)
    request = replace(request, device=_device_beside_moses(request.device, request.threads))
    reranker = Reranker(request.folder, settings, device=request.device, threads=request.threads)
    lines, problems = translate_text(request, settings, reranker, StopRequest(), warn)
    if not request.quiet:
        print_err(number_of(lines, "line") + (f", {problems:,} of them not reranked" if problems else ""))


SERVE_EPILOG = """\b
Example: serve, and translate as a client of mosesserver would, or by JSON:
  moses-rnn reranker serve reranker --port 8080
  curl --data '{"text": "a man rides a bicycle"}' localhost:8080/translate

Texts must be tokenised. Clients of mosesserver work unchanged: XML-RPC at /RPC2, method translate, with a struct of
text and, if wanted, nbest, nbest-distinct, align, word-align, add-score-breakdown and report-all-factors. The answer
has the reranked text, nbest in the new order, and decoder-text. GET /health says whether the server works.

The server runs Moses, and starts it again if it dies. With --moses-server, it takes the lists from a mosesserver
instead. After SIGTERM, it finishes its current requests and stops. Exit codes: 0 stopped, 1 failure, 2 usage error, 3
input refused.
"""


@command(SERVE_EPILOG)
def serve(given: ServingOptions) -> None:
    """Serve a reranker as mosesserver serves Moses. FOLDER is the reranker."""
    from moses_rnn.moses.decoding import ServerClient
    from moses_rnn.nbest.reranker import Reranker, Settings
    from moses_rnn.nbest.serving import Limits, Server, Service

    settings = Settings.read(given.folder)
    if not given.allow_changed:
        settings.check_unchanged(given.folder)
    device = _device_beside_moses(given.device, given.threads)
    reranker = Reranker(given.folder, settings, device=device, threads=given.threads)
    stop = StopRequest(quiet=True)
    if given.moses_server:
        decoder: ListStream = ServerClient(given.moses_server, settings.size, given.max_seconds)
    else:
        decoder = settings.open_decoder(given.folder, given.threads, allow_changed=given.allow_changed)
    with decoder:
        service = Service(decoder, reranker, Limits(given.max_bytes, given.max_words, given.max_seconds))
        try:
            server = Server((given.host, given.port), service)
        except OSError as error:
            raise MosesRnnError(f"{given.host}:{given.port}: cannot listen: {error.strerror}") from error
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if not given.quiet:
            print_err(f"listening on http://{given.host}:{server.server_port}")
        while not stop() and not service.failure:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        server.shutdown()
        server.server_close()  # waits for the requests that have begun
        if service.failure:
            raise MosesRnnError(f"the decoder has ended: {service.failure}")


for subcommand in (train, translate, serve):
    main.add_command(subcommand)
