"""moses-rnn-nmt restore: words in place of what stands for rare ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_rnn.cli.command import CONTEXT, Program, reports_errors, say, takes
from moses_rnn.cli.nmt_options import NEED_LEXICON, LexiconOptions, lexicon_options, open_lexicon, warn_of_columns
from moses_rnn.errors import FormatError, InputError, shown
from moses_rnn.formats.rare_words import COPYABLE, KINDS, NOALIGN, RareWords

if TYPE_CHECKING:
    from moses_rnn.formats.rare_words import Restored, WordFor

Restoring = Callable[[list[bytes], list[bytes]], "Restored"]  # of a source's words and its translation's

EPILOG = """\b
Example: what a network wrote with pointers to rare words, as text; and <unk> of any translator with its alignment:
  moses-rnn-nmt restore test.out --source test.en --kind posunk --unknown dictionary --dictionary words.en-fr > test.fr
  moses-rnn-nmt restore moses.out --source test.en --alignment moses.out.links > test.fr

Rare words that nothing points to stay <unk>, and are counted. Exit codes: 0 done, 1 failure, 2 wrong command line, 3
texts or model rejected.
"""


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(LexiconOptions):
    """Options of `restore`."""

    translations: str
    source: str
    kind: str | None
    model: Path | None
    shortlist: str | None
    alignment: str | None
    unknown: str | None
    output: str
    force: bool
    quiet: bool


@click.command(cls=Program, context_settings=CONTEXT, epilog=EPILOG)
@click.argument("translations")
@click.option("--source", required=True, help="The text that was translated, before it was annotated")
@click.option("--kind", type=click.Choice(KINDS), help="How rare words were annotated")
@click.option("--model", type=click.Path(path_type=Path), help="The model that wrote the translations says how")
@click.option(
    "--shortlist",
    metavar="FILE",
    help="Of noalign and copyable: the source words that are not rare, one a line",
)
@click.option("--alignment", metavar="FILE", help="Replace <unk> by this alignment of source and translations")
@click.option(
    "--unknown",
    type=click.Choice(["copy", "dictionary", "lowercase"]),
    help="Write the source word, its translation by --lexicon or --dictionary, or that of lower-case words alone "
    "[default: the translation, or without a lexicon the word]",
)
@lexicon_options
@click.option("-o", "--output", default="-", show_default=True, help="Compressed if its suffix says so")
@click.option("--force", is_flag=True, help="Replace an existing output")
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr")
@reports_errors
@takes(RestoreOptions)
def restore(given: RestoreOptions) -> None:
    """Put words in place of what stands for rare ones in TRANSLATIONS, a line for each of --source."""
    _check(given)
    from moses_rnn.cli.files import check_inputs, output_to, text_of
    from moses_rnn.files.streams import existing_input
    from moses_rnn.formats.phrase_forms import words
    from moses_rnn.translation.unknown_words import word_for

    lexicon = open_lexicon(given, needed_by=f"--unknown {given.unknown}" if given.unknown in NEED_LEXICON else "")
    check_inputs(*_inputs(given), given.model)
    rule = given.unknown or ("copy" if lexicon is None else "dictionary")
    sources, translations = text_of(given.source), text_of(given.translations)
    if len(sources) != len(translations):
        raise InputError(
            f"{existing_input(given.translations)}: expected as many lines as {existing_input(given.source)} has, "
            f"{len(sources):,}, found {len(translations):,}"
        )
    warn_of_columns(given, lexicon, {word for source in sources for word in words(source)})
    restorers = _restorers(given, word_for(rule, lexicon), sources, translations)
    replaced = left = 0
    with output_to(given.output, given.force, _inputs(given)) as file:
        lines = []
        for restoring, source, written in zip(restorers, sources, translations, strict=False):
            restored = restoring(words(source), words(written))
            replaced, left = replaced + restored.replaced, left + restored.left
            lines.append(b" ".join(restored.words) + b"\n")
        file.append(b"".join(lines))
        file.commit()
    if not given.quiet:
        say(f"{len(lines):,} lines; {replaced:,} rare words restored, {left:,} stay <unk>")


def _inputs(given: RestoreOptions) -> tuple[str, ...]:
    from moses_rnn.cli.files import inputs_of

    texts = given.translations, given.source, given.alignment
    return inputs_of(*texts, given.shortlist, given.lexicon, given.dictionary)


def _check(given: RestoreOptions) -> None:
    """Refuse what says nothing or several things."""
    ways = [name for name in ("kind", "model", "alignment") if getattr(given, name) is not None]
    if len(ways) != 1:
        raise click.UsageError("give one of --kind, --model and --alignment: they say what belongs where")
    if given.kind in (NOALIGN, COPYABLE) and given.shortlist is None:
        raise click.UsageError(f"--kind {given.kind} needs --shortlist, or give --model")
    if given.shortlist is not None and given.kind not in (NOALIGN, COPYABLE):
        raise click.UsageError("--shortlist is for --kind noalign and copyable")
    if given.unknown == "copy" and (given.lexicon or given.dictionary):
        raise click.UsageError("--unknown copy writes source words: it has no use for translations of words")


def _restorers(
    given: RestoreOptions, chosen: WordFor, sources: list[bytes], translations: list[bytes]
) -> Iterator[Restoring]:
    """How each line is restored."""
    if given.alignment is not None:
        yield from _by_links(given.alignment, chosen, sources, translations)
        return
    from moses_rnn.files.streams import existing_input
    from moses_rnn.formats.phrase_forms import words

    rare, shortlist = _annotation(given)
    for number, line in enumerate(translations, 1):
        token = rare.foreign_token(words(line))
        if token is not None:
            expected = f"what a network with rare words by {rare.kind} writes"
            raise FormatError(existing_input(given.translations), number, expected, f"{shown(token)} of another kind")
    for _ in sources:
        yield lambda source, written: rare.restore(written, source, shortlist, chosen)


def _by_links(alignment: str, chosen: WordFor, sources: list[bytes], translations: list[bytes]) -> Iterator[Restoring]:
    from moses_rnn.files.streams import existing_input, read_lines
    from moses_rnn.formats.alignments import Links, read_links_between
    from moses_rnn.translation.unknown_words import replace_by_links

    def restoring(links: Links) -> Restoring:
        return lambda source, written: replace_by_links(source, written, links, chosen)

    name = existing_input(alignment)
    for links in read_links_between(read_lines(name), name, sources, translations):
        yield restoring(links)


def _annotation(given: RestoreOptions) -> tuple[RareWords, frozenset[bytes]]:
    """How rare words were annotated, and the source words that are not rare."""
    if given.model is None:
        assert given.kind is not None
        return RareWords(given.kind), _words_of(given.shortlist)
    from moses_rnn.producers.annotated import shortlists_of
    from moses_rnn.producers.open import open_model

    model = open_model(given.model)
    if model.rare is None:
        raise InputError(f"{given.model}: expected a model that was trained with --rare, found one without")
    return model.rare, shortlists_of(model, model.rare).read


def _words_of(shortlist: str | None) -> frozenset[bytes]:
    from moses_rnn.cli.files import text_of

    return frozenset(text_of(shortlist)) if shortlist is not None else frozenset()
