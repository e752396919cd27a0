"""moses-rnn nmt: translations are scored as they were searched."""

import pytest
from click.testing import CliRunner

import moses_rnn
from moses_rnn.cli.nmt import main
from moses_rnn.moses.nbest import parse_nbest
from tests.translation.sentences import saved_model, sentences, text


def nmt(*arguments):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("score", ["sum", "mean"])
@pytest.mark.parametrize("direction", ["source-to-target", "target-to-source"])
def test_the_score_of_a_translation_is_that_of_the_search(tmp_path, score, direction):
    """A model of the inverse direction reads the table's targets, and its pairs are given in the table's order."""
    model = saved_model(tmp_path / "model", direction=direction)
    (tmp_path / "in").write_bytes(text(line for line in sentences(50) if line))
    beam = "--beam", 4, "--length-score", score, "--n-best", 1, tmp_path / "list"
    nmt("translate", tmp_path / "in", "--model", model, "-o", tmp_path / "out", *beam, "--quiet")
    sides = [tmp_path / "in", tmp_path / "out"][:: 1 if direction == "source-to-target" else -1]
    pairs = zip(*(side.read_bytes().splitlines() for side in sides), strict=True)
    forced = moses_rnn.load(model).score(pairs)
    with (tmp_path / "list").open("rb") as lines:
        searched = list(parse_nbest(lines, "list"))
    sources = (tmp_path / "in").read_bytes().splitlines()
    pairs = [
        (float(line.total), value)
        for source, line, value in zip(sources, searched, forced, strict=True)
        if len(line.hypothesis.split()) < 3 * (len(source.split()) + 1)  # what met the limit has no end to be scored
    ]
    assert [total for total, _ in pairs] == pytest.approx([value for _, value in pairs], rel=1e-4)
    assert len(pairs) > 10


def test_a_list_longer_than_the_beam_is_a_warning(tmp_path):
    model = saved_model(tmp_path / "model")
    (tmp_path / "in").write_text("s2\n")
    given = "translate", tmp_path / "in", "--model", model, "--beam", 2, "--quiet", "--n-best", 3, tmp_path / "list"
    warning = "warning: each list has at most 2 translations: give --beam 3 for more\n"
    assert warning in nmt(*given, "-o", tmp_path / "out").stderr
    assert warning not in nmt(*given, "-o", tmp_path / "out", "--force", "--length-score", "sum").stderr


def test_an_estimate_trains_nothing(tmp_path):
    for side, word in (("en", "a"), ("fr", "b")):
        (tmp_path / f"t.{side}").write_text("".join(f"{word} {word}{i % 7} {word}{i % 5}\n" for i in range(300)))
    options = "train", tmp_path / "t", "--source", "en", "--target", "fr", "--model", tmp_path / "m", "--device", "cpu"
    done = nmt(*options, "--estimate", "--hidden-size", 8, "--embedding-size", 8, "--max-epochs", 3)
    assert "pairs/s here" in done.stdout
    assert "3.0 passes" in done.stdout
    assert not (tmp_path / "m").exists()
