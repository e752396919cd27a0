"""Moses's programs: found or named, run, their failures quoted, their translations read."""

import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.moses.decoder import Dictionary, translate_singly
from tests.moses.decoding import false_moses


def test_a_program_that_fails_is_quoted(tmp_path):
    moses = false_moses(tmp_path, "mert", "seq 20 >&2; exit 7")
    with pytest.raises(MosesRnnError) as caught:
        moses.run([str(tmp_path / "bin" / "mert"), "-x"], tmp_path)
    lines = [f"    {i}" for i in range(13, 21)]
    assert str(caught.value).split("\n") == [f"{tmp_path}/bin/mert -x", "  ended with code 7:", *lines]


LIST = """\
0 ||| t ||| PhrasePenalty0= 1 TranslationModel0= -1 -2 ||| -100.3
0 ||| t u ||| PhrasePenalty0= 2 TranslationModel0= -1 -2 ||| -200.3
0 ||| x ||| PhrasePenalty0= 1 TranslationModel0= 0 0 ||| -200
1 ||| y ||| PhrasePenalty0= 1 TranslationModel0= 0 0 ||| -100
"""


def test_translations_by_one_phrase_of_the_table(tmp_path):
    script = f'cp "$2" {tmp_path}/used.ini; cat > {tmp_path}/input; echo "$@" > {tmp_path}/arguments; cat {tmp_path}/list > "$4"'
    (tmp_path / "list").write_text(LIST)
    moses = false_moses(tmp_path, "moses", script)
    here = tmp_path / "here"
    here.mkdir()
    lines = translate_singly(moses, Dictionary("ProbingPT", tmp_path / "t", 2), [b"a", b"b c"], 9, here)
    assert [(line.sentence, line.hypothesis) for line in lines] == [(0, b"t"), (1, b"y")]
    assert (tmp_path / "input").read_bytes() == b"a\nb c\n"
    arguments = (tmp_path / "arguments").read_text()
    assert f"-n-best-list {here}/nbest 9 -max-phrase-length 1000 " in arguments
    assert "-beam-threshold 0" in arguments
    ini = (tmp_path / "used.ini").read_text()
    assert f"ProbingPT name=TranslationModel0 num-features=2 path={tmp_path}/t input-factor=0" in ini
    assert "PhrasePenalty0= -100\n" in ini
    assert "\nTranslationModel0= 0.05 0.05\n" in ini


def test_rules_come_with_a_glue_grammar(tmp_path):
    script = f'cp "$2" {tmp_path}/used.ini; echo "0 ||| t ||| PhrasePenalty0= 4 TranslationModel0= -1 ||| -400" > "$4"'
    moses = false_moses(tmp_path, "moses", script)
    here = tmp_path / "here"
    here.mkdir()
    rules = Dictionary("PhraseDictionaryMemory", tmp_path / "t", 1, factors=(2, 1), labels=(b"[NP]", b"[X]"))
    assert [line.hypothesis for line in translate_singly(moses, rules, [b"a"], 1, here)] == [b"t"]
    glue = (here / "glue-grammar").read_text()
    assert glue.count("\n") == 4
    assert "[X][S] [X][NP] [X] ||| [X][S] [X][NP] [S] ||| 2.718 ||| 0-0 1-1 ||| 0 ||| |||\n" in glue
    ini = (tmp_path / "used.ini").read_text()
    assert "[search-algorithm]\n3\n" in ini
    assert "[input-factors]\n0\n1\n" in ini
