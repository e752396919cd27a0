from tests.cli.scored import INI
from tests.commands import run


def test_every_option_reaches_the_ini(system):
    glue = "PhraseDictionaryMemory name=TranslationModel1 num-features=1 path={}glue tuneable=true\nDistortion\n"
    text = INI.format(table="phrase-table.gz") + "TranslationModel1= 1\n"
    (system / "two.ini").write_text(text.replace("Distortion\n", glue.format(""), 1))
    options = ["--table", "scored.gz", "--feature", "TranslationModel0", "--absolute-paths"]
    options += ["--type", "PhraseDictionaryOnDisk", "--path", "made", "--weight", "0.1", "--weight", "-3"]
    done = run("ini", "two.ini", *options, "-o", "-", cwd=system)
    new = text.replace("PhraseDictionaryMemory", "PhraseDictionaryOnDisk").replace("0.2\n", "0.2 0.1 -3\n")
    new = new.replace("=4 path=phrase-table.gz", f"=6 path={system}/made")
    assert done.stdout == new.replace("Distortion\n", glue.format(f"{system}/"), 1)
    assert (
        f"make the dictionary with: $MOSES_ROOT/bin/CreateOnDiskPt 1 1 6 1000000 2 scored.gz {system}/made\n"
        in done.stderr
    )
