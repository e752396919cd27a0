"""Shards of lists, laid end to end, are what comes out as a whole."""

from tests.commands import run
from tests.same_scores import check_same_scores
from tests.translation.sentences import saved_model, sentences, text


def test_shards_of_a_list_are_the_whole(tmp_path):
    here, model = tmp_path, saved_model(tmp_path / "network")
    (here / "text").write_bytes(text(sentences(600)))
    run(
        "nmt",
        "translate",
        "text",
        "--model",
        model,
        "-o",
        "out",
        "--n-best",
        "3",
        "whole.list",
        "--beam",
        "4",
        cwd=here,
    )
    options = ["nbest", "whole.list", "--source", "text", "--add", model]
    run(*options, "-o", "list.whole", cwd=here)
    for number in (1, 2):
        run(*options, "-o", f"list.{number}", "--shard", f"{number}/2", cwd=here)
    whole = (here / "list.whole").read_bytes()
    assert b"RNN1=" in whole
    check_same_scores(b"".join((here / f"list.{n}").read_bytes() for n in (1, 2)), whole)
