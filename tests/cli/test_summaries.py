"""--json: what a command prints for people, for programs."""

import json

import pytest

from moses_rnn.cli.command import print_json
from moses_rnn.cli.verify import verification_record
from moses_rnn.moses.decoder import Comparison
from tests.commands import run


def test_numbers_that_json_does_not_know_are_null(capfd):
    print_json({"a": [float("inf"), 0.5], "b": {"c": float("nan")}, "d": "é\udcff"})
    assert capfd.readouterr().out == '{"a": [null, 0.5], "b": {"c": null}, "d": "\\u00e9\\udcff"}\n'


def test_what_a_decoder_saw():
    pair = b"a", b"b"
    good, bad = (
        Comparison("text", 3, 12, 1e-7),
        Comparison("compact", 3, 12, missing=[pair], wrong=[(pair, (0,), (1,))]),
    )
    record = verification_record("t", [], [good, bad])
    assert not record["good"]
    assert [(kind["kind"], kind["good"], kind["missing"], kind["wrong"]) for kind in record["kinds"]] == [
        ("text", True, 0, 0),
        ("compact", False, 1, 1),
    ]


@pytest.mark.moses
def test_a_decoders_dictionary(moses_root, table):
    done = run("verify", table, "--kind", "text", "--sources", "2", "--json")
    (kind,) = json.loads(done.stdout)["kinds"]
    assert kind["good"]
    assert kind["pairs"] > 0
