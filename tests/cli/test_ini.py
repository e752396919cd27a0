"""moses-rnn ini: an ini for a scored table, of any type of dictionary."""

import pytest

from tests.cli.scored import INI
from tests.commands import run


def ini_of(system, *options, ini="moses.ini"):
    done = run("ini", ini, *options, "-o", "-", cwd=system)
    return done.stdout, done.stderr


BINARY = {
    "PhraseDictionaryCompact": (
        "scored.minphr",
        "processPhraseTableMin -nscores 6 -rankscore 2 -encoding None -in scored.gz -out scored.minphr",
    ),
    "ProbingPT": ("scored.probing", "CreateProbingPT --num-scores 6 --input-pt scored.gz --output-dir scored.probing"),
    "PhraseDictionaryOnDisk": ("scored.ondisk", "CreateOnDiskPt 1 1 6 100 2 scored.gz scored.ondisk"),
}


@pytest.mark.parametrize("kind", BINARY)
def test_another_type_and_how_to_make_it(system, kind):
    path, command = BINARY[kind]
    text, said = ini_of(system, "--table", "scored.gz", "--type", kind)
    assert f"{kind} name=TranslationModel0 num-features=6 path={path} input-factor=0" in text
    assert f"make the dictionary with: $MOSES_ROOT/bin/{command}\n" in said
    # and an ini of that type stays one
    (system / "binary.ini").write_text(INI.format(table="old").replace("PhraseDictionaryMemory", kind))
    assert path in ini_of(system, "--table", "scored.gz", ini="binary.ini")[0]


def test_a_dictionary_named_after_its_type_keeps_the_name_of_its_weights(system):
    text = (
        INI.format(table="phrase-table.gz")
        .replace("name=TranslationModel0 ", "")
        .replace("TranslationModel0=", "PhraseDictionaryMemory0=")
    )
    (system / "unnamed.ini").write_text(text)
    edited, _ = ini_of(system, "--table", "scored.gz", "--type", "ProbingPT", ini="unnamed.ini")
    assert (
        "ProbingPT num-features=6 path=scored.probing input-factor=0 output-factor=0 name=PhraseDictionaryMemory0\n"
        in edited
    )


@pytest.mark.parametrize(("given", "weights"), [([], "0.2 0.2"), (["0.1"], "0.1 0.1"), (["0.1", "-3"], "0.1 -3")])
def test_starting_weights(system, given, weights):
    options = [option for weight in given for option in ("--weight", weight)]
    assert f"TranslationModel0= 0.2 0.2 0.2 0.2 {weights}\n" in ini_of(system, "--table", "scored.gz", *options)[0]


def test_a_table_with_no_more_scores_changes_the_path_only(system):
    (system / "other.gz").write_bytes((system / "phrase-table.gz").read_bytes())
    text, said = ini_of(system, "--table", "other.gz")
    assert text == INI.format(table="other.gz")
    assert "other.gz has as many scores as TranslationModel0 had: only its path changes" in said


def test_paths_as_mert_needs_them(system):
    text, said = ini_of(system, "--absolute-paths")
    assert text == INI.format(table=system / "phrase-table.gz")
    assert said == ""
    text, _ = ini_of(system, "--table", "scored.gz", "--path", "elsewhere/t.gz", "--absolute-paths")
    assert f"path={system}/elsewhere/t.gz " in text


@pytest.mark.parametrize("path", ["/a/link/../b", "/corpus/", ""])
def test_absolute_paths_stay_as_they_are(system, path):
    (system / "moses.ini").write_text(INI.format(table=path))
    assert ini_of(system, "--absolute-paths") == (INI.format(table=path), "")


def test_the_command_knows_factors_and_alignments(system):
    (system / "factored").write_text("a|x b|y ||| c|z|w ||| 0.5 0.5 0.5 0.5 0.25 ||| 0-0\n")
    _, said = ini_of(system, "--table", "factored", "--type", "PhraseDictionaryOnDisk")
    assert "CreateOnDiskPt 2 3 5 100 2 factored factored.ondisk" in said
    _, said = ini_of(system, "--table", "factored", "--type", "PhraseDictionaryCompact")
    assert "-rankscore 2 -in factored -out factored.minphr" in said


def test_one_of_several_dictionaries(system):
    glue = "PhraseDictionaryMemory name=TranslationModel1 num-features=1 path=glue tuneable=true\n"
    text = (
        INI.format(table="phrase-table.gz").replace("Distortion\n", glue + "Distortion\n", 1) + "TranslationModel1= 1\n"
    )
    (system / "two.ini").write_text(text)
    edited, _ = ini_of(system, "--table", "scored.gz", "--feature", "TranslationModel0", ini="two.ini")
    assert glue in edited
    assert "num-features=6 path=scored.gz" in edited
    done = run("ini", "two.ini", "--table", "scored.gz", "-o", "-", cwd=system, check=False)
    assert "found 0 (in the file: TranslationModel0, TranslationModel1)" in done.stderr
