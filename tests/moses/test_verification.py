"""Which lines of a table are looked at, and whether its ini fits it."""

from pathlib import Path

import pytest

from moses_rnn.errors import InputError
from moses_rnn.moses.decoder import Dictionary, check_ini, choose_lines, verify
from tests.moses.decoding import false_moses


def test_a_table_that_no_source_can_be_taken_of(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| ||| 0.5\n ||| b ||| 0.5\n")
    with pytest.raises(InputError, match="expected a line with words on both sides and no non-terminals, found none"):
        choose_lines(str(tmp_path / "t"), 20, seed=1)


def test_the_sample_has_all_lines_of_its_sources_and_some_low_scores(tmp_path):
    lines = [b"s%03d ||| t%d ||| 0.5\n" % (i, j) for i in range(300) for j in range(3)]
    lines[601] = lines[601].replace(b"0.5", b"1e-40")
    (tmp_path / "t").write_bytes(b"".join(lines))
    chosen = choose_lines(str(tmp_path / "t"), 20, seed=3)
    sources = {line.source for line in chosen}
    assert b"s200" in sources
    assert 15 <= len(sources) <= 21
    assert len(chosen) == 3 * len(sources)
    assert [line.number for line in chosen] == sorted(line.number for line in chosen)
    assert chosen == choose_lines(str(tmp_path / "t"), 20, seed=3)
    assert chosen != choose_lines(str(tmp_path / "t"), 20, seed=4)


def test_the_dictionary_of_an_ini_is_found_and_every_line_looked_at(tmp_path):
    table, ini = tmp_path / "t", tmp_path / "ini"
    table.write_bytes(b"a ||| b ||| 0.5 1 ||| 0-0\nb ||| c ||| 0.5 1 ||| 0-0\n")
    (tmp_path / "t.minphr").touch()  # a binary dictionary may be anywhere
    ini.write_text("[feature]\nPhraseDictionaryCompact name=T num-features=2 path=t.minphr\n[weight]\nT= 0.2 0.3\n")
    holds, dictionary = check_ini(str(table), str(ini))
    assert len(holds) == 3
    assert dictionary == Dictionary("PhraseDictionaryCompact", tmp_path / "t.minphr", 2)
    ini.write_text(ini.read_text().replace(".minphr", ""))
    (tmp_path / "t.minphr").rename(tmp_path / "u.minphr")  # Moses appends the suffix
    (tmp_path / "u").touch()
    ini.write_text(ini.read_text().replace("path=t", "path=u"))
    assert check_ini(str(table), str(ini))[1].path == tmp_path / "u.minphr"
    table.write_bytes(table.read_bytes() + b"c ||| d ||| 0.5\n")
    with pytest.raises(InputError, match="t:3: expected 2 scores as on line 1, found 1"):
        check_ini(str(table), str(ini))


def test_a_decoder_that_fails_is_named_with_what_it_printed(tmp_path):
    (tmp_path / "t").write_bytes(b"a ||| b ||| 0.5\n")
    moses = false_moses(tmp_path, "moses", "test -s $2 && echo no memory >&2\nexit 7")
    (comparison,) = verify(str(tmp_path / "t"), moses, ["text"], print)
    assert comparison.failure.endswith("ended with code 7:\n    no memory")


def test_one_of_two_dictionaries_is_checked(tmp_path):
    lines = [
        "PhraseDictionaryMemory name=A num-features=1 path=t",
        "PhraseDictionaryCompact name=B num-features=2 path=u",
    ]
    (tmp_path / "ini").write_text("\n".join(["[feature]", *lines, "[weight]", "A= 0.2", "B= 0.2 0.2"]))
    for name in ("u", "u.minphr"):
        (tmp_path / name).touch()
    table, other, ini = (str(tmp_path / name) for name in ("t", "two", "ini"))
    Path(table).write_bytes(b"a ||| b ||| 0.5\n")
    Path(other).write_bytes(b"a ||| b ||| 0.5 1\n")
    assert check_ini(table, ini)[1].type == "PhraseDictionaryMemory"
    with pytest.raises(
        InputError, match=r"expected one phrase dictionary for .*two, found 0 \(in the file: A, B\)\n.*--feature"
    ):
        check_ini(other, ini)
    assert check_ini(other, ini, "B")[1] == Dictionary("PhraseDictionaryCompact", tmp_path / "u.minphr", 2)
    with pytest.raises(InputError, match="ini:2: expected num-features=2, the number of scores"):
        check_ini(other, ini, "A")
