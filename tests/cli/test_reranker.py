"""moses-rnn reranker: built with a stub in Moses's place, and used."""

import gzip
import json
import os
import signal
import subprocess

import pytest

import moses_rnn
from moses_rnn.nbest.reranker import Settings, decoder_files
from tests.cli.nbest.lists import REFERENCE, SOURCE
from tests.commands import kill_group, start, zygote
from tests.nbest.stub_moses import hypotheses, put_stub
from tests.score.saved_models import save_models

INI = "[feature]\nKENLM name=LM0 path=lm.arpa order=3 factor=0\n[weight]\nLM0= 1\n"
MADE = ["train", "moses.ini", "--dev", "dev", "--source", "en", "--target", "fr", "-o", "made"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    put_stub(tmp_path)
    monkeypatch.setenv("MOSES_ROOT", str(tmp_path / "moses"))
    for name, text in (("moses.ini", INI), ("lm.arpa", "none")):
        (tmp_path / name).write_text(text)
    (tmp_path / "dev.en").write_bytes(SOURCE)
    (tmp_path / "dev.fr").write_bytes(REFERENCE)
    return tmp_path


def reranker(here, *arguments, code=0, given=b""):
    done = zygote("reranker", *arguments, cwd=here, given=given)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def made(here, models):
    """A reranker whose one feature is a language model's."""
    reranker(here, *MADE, "--add", models / "cslm", "--quiet")
    return here / "made"


def test_a_reranker_is_built_and_says_what_it_brings(here, models):
    done = reranker(here, *MADE, "--add", models / "cslm", "--test", "dev")
    assert "dev: BLEU " in done.stderr
    assert done.stderr.endswith("next: moses-rnn reranker translate made < new.en > new.fr\n")
    results = json.loads((here / "made" / "results.json").read_bytes())
    assert results["test"] == {key: results["dev"][key] for key in ("before", "after", "oracle", "p")}


def test_nothing_is_repeated_unless_it_is_outdated(here, models):
    command = [*MADE, "--add", models / "cslm"]
    first = reranker(here, *command)
    weights = (here / "made" / "weights.ini").read_bytes()
    assert [line for line in first.stderr.splitlines() if line.endswith(" …")] == [
        "decode dev …",
        "add dev …",
        "tune …",
    ]
    again = reranker(here, *command).stderr.splitlines()
    assert again[:3] == ["decode dev: done", "add dev: done", "tune: done"]
    (here / "dev.fr").write_bytes(REFERENCE + b"t2\n")
    (here / "dev.en").write_bytes(SOURCE + b"s2\n")
    changed = reranker(here, *command).stderr.splitlines()
    assert changed[:3] == ["decode dev …", "add dev …", "tune …"]
    (here / "made" / "weights.ini").unlink()
    assert reranker(here, *command).stderr.splitlines()[:3] == ["decode dev: done", "add dev: done", "tune …"]
    assert weights.startswith(b"[weight]\nLM0= ")
    (here / "made" / "weights.ini").write_bytes(b"[weight]\nLM0= 9\nCSLM0= 0\n")
    assert reranker(here, *command).stderr.splitlines()[:3] == ["decode dev: done", "add dev: done", "tune …"]
    assert (here / "made" / "weights.ini").read_bytes() == weights


def test_a_folder_that_has_moved_with_its_texts_is_not_outdated(here, models):
    (here / "old").mkdir()
    for name in ("dev.en", "dev.fr", "moses.ini", "lm.arpa"):
        (here / name).rename(here / "old" / name)
    command = [*MADE, "--add", models / "cslm"]
    reranker(here / "old", *command)
    (here / "old").rename(here / "new")
    again = reranker(here / "new", *command).stderr.splitlines()
    assert again[:3] == ["decode dev: done", "add dev: done", "tune: done"]


def test_each_label_keeps_its_model_when_the_order_changes(here, models):
    reranker(here, *MADE, "--add", models / "cslm", "--add", models / "search", "--quiet")
    reranker(here, *MADE, "--add", models / "search", "--add", models / "cslm", "--quiet")
    features = Settings.read(here / "made").features
    assert features == {"SEARCH0": str(models / "search"), "CSLM0": str(models / "cslm")}


def test_an_n_gram_model_may_be_named_without_gz(here, models):
    pytest.importorskip("kenlm")
    (here / "n.arpa.gz").write_bytes(gzip.compress((models / "lm.arpa").read_bytes()))
    command = [*MADE, "--add", "n.arpa", "--quiet"]
    refused = reranker(here, *command, code=3)
    assert "--allow-misfit" in refused.stderr
    reranker(here, *command, "--allow-misfit")
    (here / "n.arpa.gz").write_bytes(gzip.compress((models / "lm.arpa").read_bytes() + b"\n"))
    assert "n.arpa.gz: changed" in reranker(here, "translate", "made", given=b"s2\n", code=3).stderr


def test_what_moses_reads_beside_the_tables_is_noticed(here, models):
    (here / "moses.ini").write_text(f"{INI}[weight-file]\nsparse\n")
    (here / "sparse").write_text("TWI_t2 0.5\n")
    for suffix in ("", ".gz", ".minphr"):
        (here / f"table{suffix}").touch()
    ini = here / "table.ini"
    ini.write_text("[feature]\nPhraseDictionaryCompact name=TM0 path=table\n[weight]\nTM0= 1\n")
    assert [path.name for path in decoder_files(str(ini))] == ["table.ini", "table", "table.gz", "table.minphr"]
    ini.write_text("[feature]\nWordTranslationFeature name=WT source-path=lm.arpa target-path=sparse\n")
    assert [path.name for path in decoder_files(str(ini))] == ["table.ini", "lm.arpa", "sparse"]
    reranker(here, *MADE, "--add", models / "cslm", "--quiet")
    (here / "sparse").write_text("TWI_t2 -9.5\n")
    assert "sparse: changed" in reranker(here, "translate", "made", given=b"s2\n", code=3).stderr
    again = reranker(here, *MADE, "--add", models / "cslm").stderr.splitlines()
    assert again[:3] == ["decode dev …", "add dev: done", "tune …"]


def test_paths_may_have_any_character(here, models):
    (here / "p\U0001f600").mkdir()
    for name in ("moses.ini", "lm.arpa"):
        (here / name).rename(here / "p\U0001f600" / name)
    command = [*MADE, "--add", models / "cslm", "--quiet"]
    command[1] = "p\U0001f600/moses.ini"
    reranker(here, *command)
    assert reranker(here, "translate", "made", given=b"s2\n").stdout == b"t2\n"


@pytest.mark.parametrize("name", ["dev", "test"])
def test_texts_of_different_lengths_are_refused_before_anything_runs(here, models, name):
    for side, text in (("en", SOURCE), ("fr", REFERENCE)):
        (here / f"test.{side}").write_bytes(text)
    (here / f"{name}.fr").write_bytes(REFERENCE + b"t2\n")
    done = reranker(here, *MADE, "--add", models / "cslm", "--test", "test", code=3)
    assert f"{name}.fr: expected as many lines as {name}.en has" in done.stderr
    assert not (here / "made").exists()


def test_a_wrong_model_or_flag_is_refused_before_anything_runs(here, models):
    assert "typo" in reranker(here, *MADE, "--add", "typo", code=3).stderr
    done = reranker(here, *MADE, "--add", models / "cslm", "--decoder-flags", "'-x", code=2)
    assert "No closing quotation" in done.stderr


def test_a_feature_without_a_weight_is_found_before_the_training(here):
    (here / "moses.ini").write_text(INI.replace("LM0= 1", "TM0= 1"))
    for side, text in (("en", SOURCE), ("fr", REFERENCE)):
        (here / f"train.{side}").write_bytes(text)
    done = reranker(here, *MADE, "--texts", "train", code=3)
    assert "moses.ini: expected 1 weight of LM0" in done.stderr
    assert not (here / "made" / "models" / "transformer").exists()


def test_moses_may_die_of_the_last_line(here, models):
    for side, last in (("en", b"[X] s2\n"), ("fr", b"t2\n")):
        with (here / f"dev.{side}").open("ab") as file:
            file.write(last)
    done = reranker(here, *MADE, "--add", models / "search")
    assert "dev.en: 1 line without a list" in done.stderr
    (here / "list").write_bytes(b"".join(b"%d ||| t2 ||| LM0= 1 ||| 1\n" % i for i in range(5)))
    command = [*MADE, "--add", models / "search", "--allow-misfit"]
    reranker(here, *command, "--lists", "list", "--test", "dev")  # of the test, ours are the lists


def test_a_list_may_come_from_elsewhere(here, models, monkeypatch):
    monkeypatch.delenv("MOSES_ROOT")
    line = b"%d ||| %b ||| LM0= %d ||| %d ||| 0=0\n"
    (here / "list").write_bytes(
        b"".join(line % (i, text, lm, lm) for i in range(4) for text, lm in ((b"t9", -1), (b"t2", -2)))
    )
    (here / "dev.en").write_bytes(b"s2\n" * 4)
    (here / "dev.fr").write_bytes(b"t2\n" * 4)
    done = reranker(here, *MADE, "--add", models / "cslm", "--lists", "list")
    assert "decode" not in done.stderr
    assert (here / "made" / "weights.ini").exists()
    os.mkfifo(here / "pipe")
    for side, text in (("en", SOURCE), ("fr", REFERENCE)):
        (here / f"train.{side}").write_bytes(text)
    refused = reranker(here, *MADE[:-1], "new", "--texts", "train", "--lists", "pipe", code=3)
    assert "pipe: expected a regular file" in refused.stderr
    assert not (here / "new").exists()


def test_features_that_the_decoder_lacks_are_refused(here, models):
    """Such a list's weights would be those of no other list."""
    reranker(here, *MADE, "--add", models / "cslm")
    command = [*MADE[:-1], "other", "--add", models / "nplm", "--lists", "made/lists/dev.more.gz"]
    refused = reranker(here, *command, "--test", "dev", code=3)
    assert "test.more.gz: expected all features for which the weights were tuned, found none of CSLM0" in refused.stderr
    reranker(here, *command)
    refused = reranker(here, "translate", "other", given=b"s2\n", code=3)
    assert "the decoder's list: expected all features" in refused.stderr


def test_a_path_that_the_settings_cannot_hold_is_refused_before_the_work(here, models):
    name = os.fsdecode(b"tw\xff")
    (here / name).symlink_to(models / "cslm")
    refused = reranker(here, *MADE, "--add", name, code=3)
    assert "expected a path in UTF-8" in refused.stderr
    assert not (here / "made").exists()


ODD = (
    b's2 s3 s4\n\n[X] s2\nnone at all\ns2 | s3\ns2 ||| s3\n<x translation="s2">s3</x>\n\x01 s2\x85\r\n\xff\n'
    + b"s2 " * 1200
    + b"\ns3 s4"
)


def by_hand(here, models, text):
    """What the steps choose, one command after the other."""
    (here / "text").write_bytes(text)
    command = [here / "moses" / "bin" / "moses", "-n-best-list", "-", "200", "distinct"]
    (here / "list").write_bytes(subprocess.run(command, input=text, capture_output=True, check=True).stdout)
    added = zygote("nbest", "add", "list", "--source", "text", "--add", models / "cslm", "--allow-misfit", cwd=here)
    (here / "more").write_bytes(added.stdout)
    return zygote("nbest", "rerank", "more", "made/weights.ini", cwd=here).stdout


def test_the_choice_is_that_of_the_steps(here, made, models):
    text = b"".join(b"s%d s%d s%d\n" % (i % 9, i % 7, i % 5) for i in range(300))
    translated = reranker(here, "translate", "made", given=text).stdout
    assert translated == by_hand(here, models, text)
    assert b"x" not in translated


def best_by_reference(model, weights, source, hypotheses):
    """The best of (LM0, words) by Σ weight · feature, each hypothesis scored alone."""

    def score(lm, words):
        # a list has six digits of each value
        return weights["LM"] * lm + weights["RNN"] * float(f"{model.score([(source, words)])[0]:.6g}")

    return max(hypotheses, key=lambda one: score(*one))[1]


def test_the_choice_is_that_of_an_independent_reference(here, models):
    reranker(here, *MADE, "--add", models / "search", "--quiet")
    weights = {}
    for line in (here / "made" / "weights.ini").read_text().splitlines()[1:]:
        name, value = line.split("= ")
        weights["LM" if name == "LM0" else "RNN"] = float(value)
    assert weights["RNN"]
    text = [f"s{i % 9} s{i % 7} s{i % 5}" for i in range(200)]
    model = moses_rnn.load(models / "search")
    expected = []
    for source in text:
        read = [word.encode() for word in source.split()]
        lists = [(score, b" ".join(words).decode()) for score, words in hypotheses(read)]
        expected.append(best_by_reference(model, weights, source, lists))
    done = reranker(here, "translate", "made", given="".join(f"{line}\n" for line in text).encode())
    assert done.stdout.decode().splitlines() == expected


@pytest.mark.release  # it trains twice
def test_a_killed_training_continues_to_the_same_weights(here):
    words = [b"s%d s%d s%d s%d\n" % (i % 9, i % 7, i % 5, i % 3) for i in range(300)]
    (here / "train.en").write_bytes(b"".join(words))
    (here / "train.fr").write_bytes(b"".join(words).replace(b"s", b"t"))
    command = [*MADE[:-1], "whole", "--texts", "train", "--subwords", 40, "--quiet"]
    reranker(here, *command)
    command[command.index("whole")] = "killed"
    running = start("reranker", *command, cwd=here, start_new_session=True)
    log = here / "killed" / "models" / "transformer" / "training" / "log.jsonl"
    while running.poll() is None and not log.exists():
        pass
    kill_group(running)
    assert not (here / "killed" / "weights.ini").exists()
    reranker(here, *command)
    for name in ("weights.ini", "models/transformer/model.safetensors"):
        assert (here / "killed" / name).read_bytes() == (here / "whole" / name).read_bytes(), name
    learned = log.read_bytes()
    reranker(here, *command, "--max-minutes", "90")
    assert log.read_bytes() == learned  # a longer training continues; this one has had all its epochs


@pytest.mark.release  # it trains twice
def test_a_training_on_changed_texts_starts_anew_even_if_it_is_killed_at_once(here):
    lines = [b"s%d s%d s%d s%d\n" % (i % 9, i % 7, i % 5, i % 3) for i in range(63)]
    (here / "train.en").write_bytes(b"".join(lines))
    (here / "train.fr").write_bytes(b"".join(lines).replace(b"s", b"t"))
    command = [*MADE, "--texts", "train", "--threads", 1]
    reranker(here, *command)
    weights = here / "made" / "models" / "transformer" / "model.safetensors"
    first = weights.read_bytes()
    (here / "train.fr").write_bytes(b"".join(reversed(lines)).replace(b"s", b"t"))
    refused = reranker(here, *command, code=3)
    assert "made/models/transformer: expected a network of these texts and options" in refused.stderr
    assert weights.read_bytes() == first
    running = start("reranker", *command, "--force", "--quiet", cwd=here, start_new_session=True)
    steps = here / "made" / "steps.json"
    while running.poll() is None and "value" in json.loads(steps.read_bytes())["train transformer"]:
        pass
    kill_group(running)
    reranker(here, *command)
    assert weights.read_bytes() != first


def test_odd_lines_shift_nothing(here, made):
    done = reranker(here, "translate", "made", given=ODD)
    lines = done.stdout.split(b"\n")
    assert len(lines) == 12
    assert lines[:4] == [b"t2 t3 t4", b"", b"", b""]
    assert lines[10:] == [b"t3 t4", b""]
    assert "line 3: Moses ended at this line; left empty" in done.stderr
    assert "line 5: " in done.stderr
    assert lines[9].startswith(b"t2 x t2")  # the decoder's choice


def test_an_empty_text_is_no_text(here, made):
    assert reranker(here, "translate", "made").stdout == b""


def test_all_outputs(here, made):
    arguments = ["-o", "out", "--n-best", "2", "best.gz", "--alignments", "links"]
    reranker(here, "translate", "made", "dev.en", *arguments)
    assert (here / "out").read_bytes() == reranker(here, "translate", "made", "dev.en").stdout
    best = gzip.decompress((here / "best.gz").read_bytes()).split(b"\n")
    assert [line.split(b" ||| ")[0] for line in best[:-1]] == [b"0", b"0", b"1", b"1", b"2", b"2", b"3"]
    assert best[0].startswith(b"0 ||| t2 t3 t4 t5  ||| LM0= -2 CSLM0= -")
    assert (here / "links").read_bytes().split(b"\n")[0] == b"0-0 1-1 2-2 3-3"
    shown = reranker(here, "translate", "made", "dev.en", "--json").stdout.split(b"\n")
    record = json.loads(shown[0])
    assert (record["translation"], record["decoder"]) == ("t2 t3 t4 t5", "t2 x t4 t5")
    assert set(record["features"]) == {"LM0", "CSLM0"}


def test_raw_text_is_tokenised_and_detokenised(here, made):
    done = reranker(here, "translate", "made", "--raw", given="s2, S3 (l\u2019été | \u20ac)\n".encode())
    assert done.stdout.decode().count("\n") == 1
    assert b"&#124;" not in done.stdout


def test_changed_files_are_refused(here, made):
    (here / "lm.arpa").write_text("other")
    done = reranker(here, "translate", "made", code=3, given=b"s2\n")
    assert "lm.arpa: changed or missing since the weights of made were tuned" in done.stderr
    assert reranker(here, "translate", "made", "--allow-changed", given=b"s2\n").stdout == b"t2\n"


def test_weights_that_are_not_those_of_the_settings_are_refused(here, made):
    """Such weights remain if a second build ends between its tuning and its last step."""
    weights = made / "weights.ini"
    weights.write_bytes(weights.read_bytes() + b"SEARCH0= 0.5\n")
    done = reranker(here, "translate", "made", code=3, given=b"s2\n")
    assert "weights.ini: changed or missing since the weights of made were tuned" in done.stderr


def test_without_moses_nothing_is_left(here, made, monkeypatch):
    monkeypatch.delenv("MOSES_ROOT")
    before = sorted(here.iterdir())
    assert "MOSES_ROOT" in reranker(here, "translate", "made", "dev.en", "-o", "out", "--resume", code=3).stderr
    assert sorted(here.iterdir()) == before


def test_a_compressed_stream_is_refused(here, made):
    done = reranker(here, "translate", "made", given=gzip.compress(b"s2\n"), code=3)
    assert "standard input:1: expected UTF-8, found gzip data" in done.stderr
    assert done.stdout == b""


def test_each_line_is_answered_before_the_next_is_given(here, made):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    running = start("reranker", "translate", "made", cwd=here, env=environment, **pipes)
    for number in (2, 3):
        running.stdin.write(b"s%d\n" % number)
        running.stdin.flush()
        assert running.stdout.readline() == b"t%d\n" % number
    running.communicate()
    assert running.returncode == 0


def killed_translation(here):
    """Kill a translation of 3,000 lines; return the command."""
    text = b"".join(b"s%d s%d s%d\n" % (i % 9, i % 7, i % 5) for i in range(3000))
    (here / "text").write_bytes(text)
    command = ["translate", "made", "text", "-o", "out", "--resume", "--quiet"]
    running = start("reranker", *command, cwd=here, stdin=-3, start_new_session=True)
    state = here / ".out.state"
    while running.poll() is None and b'"lines"' not in (state.read_bytes() if state.exists() else b""):
        pass
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not (here / "out").exists()
    return command


def test_a_killed_run_is_resumed(here, made):
    command = killed_translation(here)
    reranker(here, *command)
    assert (here / "out").read_bytes() == reranker(here, "translate", "made", "text").stdout


def test_a_finished_translation_is_that_of_its_text_and_options(here, made, models):
    (here / "a").write_bytes(b"s2 s3\ns4\n")
    (here / "b").write_bytes(b"s5 s3\ns4\n")
    for name in ("a", "b"):
        os.utime(here / name, (1, 1))
    command = ["translate", "made", "-o", "out", "--resume"]
    reranker(here, *command, "a")
    reranker(here, *MADE, "--add", models / "cslm", "--quiet")  # which changes nothing
    assert "out: already complete" in reranker(here, *command, "a").stderr
    reranker(here, *command[:2], "-o", "j", "--resume", "--json", "--n-best", 2, "n", "a")
    assert (
        "j: already complete"
        in reranker(here, *command[:2], "-o", "j", "--resume", "--json", "--n-best", 2, "n", "a").stderr
    )
    for other, found in (
        (["b"], ", but this run writes other lines"),
        (["a", "--json"], ", but this run writes other lines"),
        ([], "; use --force to replace it"),
    ):
        assert f"out: already exists{found}" in reranker(here, *command, *other, code=1).stderr
    (here / "made" / "reranker.toml").touch()
    assert "reranker.toml has changed since" in reranker(here, *command, "a", code=1).stderr


def test_a_killed_run_is_not_resumed_with_other_weights(here, made, models):
    command = killed_translation(here)
    (here / "dev.fr").write_bytes(REFERENCE.replace(b"t2", b"x"))
    reranker(here, *MADE, "--add", models / "cslm", "--quiet")
    for given in (command, [*command, "--allow-changed"]):
        expected = "out: expected the inputs and options of the interrupted run, found others: weights.ini "
        assert expected in reranker(here, *given, code=1).stderr
    assert not (here / "out").exists()
