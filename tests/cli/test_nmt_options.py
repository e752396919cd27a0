"""What the commands of moses-rnn-nmt share."""

import click
import pytest
from click.testing import CliRunner

from moses_rnn.cli.command import takes
from moses_rnn.cli.nmt_options import (
    ComputeOptions,
    LexiconOptions,
    compute_options,
    make_compute,
    open_lexicon,
    open_models,
    warn_of_columns,
    warn_of_unit,
)
from moses_rnn.errors import FormatError
from moses_rnn.producers.base import Compute
from moses_rnn.producers.open import OpenModel
from tests.models.saved import checkpoint
from tests.translation.sentences import save_model


@click.command()
@compute_options
@takes(ComputeOptions)
def show(given):
    click.echo((make_compute(given), given.output, given.force, given.quiet))


def test_options_become_where_and_how_to_compute():
    assert CliRunner().invoke(show, ["--device", "cpu"]).output == f"({Compute()}, '-', False, False)\n"
    done = CliRunner().invoke(show, ["--device", "cpu", "--precision", "fp64", "-o", "out", "--force", "-q"])
    assert done.output == f"({Compute(precision='fp64')}, 'out', True, True)\n"


def test_several_models_are_combined_geometrically_unless_another_way_is_named(tmp_path):
    folders = [save_model(tmp_path / name) for name in ("one", "two")]
    assert open_models(folders, None).combination == "geometric"
    assert open_models(folders, "arithmetic").combination == "arithmetic"
    assert open_models(folders[:1], None).folder == folders[0]
    with pytest.raises(click.UsageError, match="--combine needs several models, found .*one alone"):
        open_models(folders[:1], "geometric")


@pytest.mark.parametrize(("unit", "warns"), [("sentences", False), ("phrases", True)])
def test_who_learned_from_phrases_is_named(capsys, unit, warns):
    warn_of_unit(OpenModel("m", checkpoint(provenance={"unit": unit})))
    warning = "warning: m learned from phrases (its unit), and is to score sentences\n"
    assert capsys.readouterr().err == warning * warns


def test_a_lexicon_is_read_in_the_order_of_its_option(tmp_path):
    path = tmp_path / "words"
    path.write_bytes(b"chat cat 0.5\n")
    assert open_lexicon(LexiconOptions(lexicon=str(path), dictionary=None)).best(b"cat") == b"chat"
    assert open_lexicon(LexiconOptions(lexicon=None, dictionary=str(path))).best(b"chat") == b"cat"
    assert open_lexicon(LexiconOptions(lexicon=None, dictionary=None)) is None
    path.write_bytes(b"chat cat 0.5 \nchat\n")
    with pytest.raises(FormatError, match=r"words:2: expected target source p\(target \| source\), as in lex.f2e, "):
        open_lexicon(LexiconOptions(lexicon=str(path), dictionary=None))


def test_one_lexicon_is_enough_and_may_be_needed():
    with pytest.raises(click.UsageError, match="--lexicon and --dictionary are two forms of one thing"):
        open_lexicon(LexiconOptions(lexicon="a", dictionary="b"))
    with pytest.raises(click.UsageError, match="--candidates needs --lexicon or --dictionary"):
        open_lexicon(LexiconOptions(lexicon=None, dictionary=None), needed_by="--candidates")


COLUMNS = {
    "right": ("words", [b"cat", b"dog", b"Paris"], ""),
    "reversed": (
        "words",
        [b"chat", b"chien", b"un"],
        "warning: words: of 3 source words 0 have translations in it, 2 are translations themselves: give it as "
        "--lexicon, not --dictionary?\n",
    ),
    "of other words": ("words", [b"eins", b"zwei"], ""),
    "none": (None, [b"chat"], ""),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_in_the_other_order_are_noticed(tmp_path, monkeypatch, capfd, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words").write_bytes(b"cat chat 1\ndog chien 1\nParis Paris 1\n")
    file, words, message = COLUMNS[case]
    given = LexiconOptions(lexicon=None, dictionary=file)
    warn_of_columns(given, open_lexicon(given), words)
    assert capfd.readouterr().err == message


def test_of_a_lexicon_likewise(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lex.f2e").write_bytes(b"chat cat 1\nNULL dog 1\nchien NULL 1\n")
    given = LexiconOptions(lexicon="lex.f2e", dictionary=None)
    warn_of_columns(given, open_lexicon(given), [b"cat", b"dog"])
    assert capfd.readouterr().err == ""
    warn_of_columns(given, open_lexicon(given), [b"chat", b"chien"])
    assert "0 have translations in it, 1 are translations themselves: give it as --dictionary, not --lexicon?" in (
        capfd.readouterr().err
    )
