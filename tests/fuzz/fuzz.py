"""Coverage-guided fuzzing of what reads untrusted data: ``python tests/fuzz/fuzz.py TARGET CORPUS [libFuzzer options]``.

Each target states an invariant: what is read is given back byte for byte but for what was added, or refused with one of
this package's errors; nothing else may come out. `make fuzz` runs all of them.
"""

import contextlib
import gzip
import io
import json
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["moses_rnn"]):
    from moses_rnn.errors import CheckpointError, FormatError, InputError
    from moses_rnn.files.streams import read_lines
    from moses_rnn.models.open import finish_saving, open_model, save_model
    from moses_rnn.moses.arpa import parse_arpa
    from moses_rnn.moses.ini import MosesIni
    from moses_rnn.moses.ini_editing import IniEdit, extend_ini
    from moses_rnn.moses.nbest import alignment_of, parse_nbest_line
    from moses_rnn.networks.encdec import ENCDEC, EncDec, EncDecConfig
    from moses_rnn.networks.vocabulary import Vocabulary
    from moses_rnn.table.line_warnings import LineWarnings
    from moses_rnn.table.phrase_table import parse_table
    from moses_rnn.table.phrases import PLAIN, PhraseForm, words
    from tests.networks.checkpoints import encdec_checkpoint
    from tests.table.test_table_blocks import assert_as_c_writes, assert_equal_ids, assert_read_alike

PLACE = Path(tempfile.mkdtemp(prefix="moses-rnn-fuzz-"))
CONFIGURED = ("config.json", ".config.json.new", "model.safetensors", "source.vocab")
TABLE = b"! &quot; ||| ! ||| 0.71 0.61 1e-05 .75 ||| 0-0 1-0 ||| 7 5 5 ||| f 1 ||| {{Counts 1 ||| 2}}\n"
ODD = b" a\t ||| b]  ||| 1  0.5 1 1 \r\n\xff ||| c ||| 1 1 1 1\n\n"
RULES = b"le [X][X] a|b [X] ||| the [X][X] [X] ||| 0.5 1 ||| 0-0 1-1 3-2 ||| 1 1 1 ||| |||\n"
INI = b"""# comment
[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=T0 num-features=4 path=/d/t.gz input-factor=0 tuneable-components=1,1,1,1 # mine
PhraseDictionaryGroup members=A,B num-features=8
[weight-overwrite]
LM0= 1
[weight]
T0= 0.1 -0.3 2e-1 .2   # four
"""
ARPA = b"""\\data\\
ngram 1=2
ngram 2=1

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.30103

\\2-grams:
-2e-1 <s> caf\\
-.5\t<s> <unk>\t0

\\end\\
"""
NBEST = b"0 ||| le chat  ||| Distortion0= 0 LM0= -43.02 TM0= -1.5 -2e-3 W_a= 1 ||| -4.456 ||| 0-0 1-1 \n"


def table(data: bytes) -> None:
    """Lines, columns and oddities of a phrase table, plain or factored, are the same one by one and at once."""
    for form in (PLAIN, PhraseForm(0, 1)):
        odd = LineWarnings("t", thorough=True)
        odd.look(parse_table(io.BytesIO(data), "t", lambda *_: None, form))
        list(odd.messages())
        assert_read_alike(data, (3,), form)
    assert_equal_ids([phrase for line in data.split(b"\n") for phrase in line.split(b"|||")])
    assert_as_c_writes(np.frombuffer(data[: len(data) // 8 * 8]))


def ini(data: bytes) -> None:
    """The ini editor changes two lines or refuses."""
    try:
        (PLACE / "moses.ini").write_bytes(data)
        feature = MosesIni(data, "moses.ini").choose(table="/d/t.gz")
        new = extend_ini(IniEdit(ini=str(PLACE / "moses.ini"), table="/d/t.rnn.gz"), "/d/t.gz", 4, 1)
    except InputError:
        return
    old_lines, new_lines = data.split(b"\n"), new.content.split(b"\n")
    assert len(old_lines) == len(new_lines)
    assert sum(a != b for a, b in zip(old_lines, new_lines, strict=True)) == 2
    again = MosesIni(new.content, "new.ini")
    (edited,) = [other for other in again.phrase_dictionaries if other.line == feature.line]
    assert (edited.options["num-features"], edited.options["path"]) == ("5", "/d/t.rnn.gz")
    assert len(again.weights(edited)) == 5


def nbest(data: bytes) -> None:
    """Features are added to an n-best list and nothing else."""
    try:
        line = parse_nbest_line(data, "n", 1)
    except FormatError:
        return
    assert line.with_features([]) == data
    again = parse_nbest_line(line.with_features([("Z9", [b"-1.5"])]), "n", 1)
    assert (again.sentence, again.hypothesis, again.total) == (line.sentence, line.hypothesis, line.total)
    assert again.values("Z9")[-1] == -1.5
    with contextlib.suppress(FormatError):
        links = alignment_of(line, "n")
        assert alignment_of(again, "n") == links


def arpa(data: bytes) -> None:
    """The n-grams of a model are as long as their section says, and written again they are the same."""
    try:
        n_grams = list(parse_arpa(io.BytesIO(data), "a"))
    except FormatError:
        return
    written = [b"\\data\\\n"]
    for n_gram in n_grams:
        assert words(b" ".join(n_gram)) == list(n_gram)
        written.append(b"\\%d-grams:\n-1\t%b\t0\n" % (len(n_gram), b" ".join(n_gram)))
    assert list(parse_arpa([*io.BytesIO(b"".join(written)), b"\\end\\"], "b")) == n_grams


def stream(data: bytes) -> None:
    """Any file is read as lines or refused."""
    path = PLACE / "stream"
    path.write_bytes(data)
    with contextlib.suppress(InputError):
        for line in read_lines(str(path), max_line_bytes=1000):
            assert line
            assert b"\n" not in line[:-1]


def config(data: bytes) -> None:
    """Any content of any file of a model folder is loaded or refused; the first byte chooses the file."""
    folder = PLACE / "model"
    name = CONFIGURED[data[0] % len(CONFIGURED)] if data else CONFIGURED[0]
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    (folder / name).write_bytes(data[1:])
    if name not in CONFIGURED[:2]:  # without hashes the content itself is looked at
        unhashed = {**json.loads(kept[folder / "config.json"]), "files": {}}
        (folder / "config.json").write_text(json.dumps(unhashed))
    try:
        finish_saving(folder, ENCDEC)
        with contextlib.suppress(CheckpointError):
            open_model(folder)
    finally:
        for path in folder.iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)


def config_seeds() -> list[bytes]:
    """Each file of a sound folder, which is left in its place."""
    folder = PLACE / "model"
    vocabulary = Vocabulary([b"<unk>", b"</s>", b"a"])
    save_model(folder, encdec_checkpoint(EncDec(EncDecConfig(3, 3, 2, 2, 2, 2), seed=1), vocabulary, vocabulary))
    names = (name.removeprefix(".").removesuffix(".new") for name in CONFIGURED)
    return [bytes([i]) + (folder / name).read_bytes() for i, name in enumerate(names)]


TARGETS = {"table": table, "ini": ini, "nbest": nbest, "arpa": arpa, "config": config, "stream": stream}


def seeds(target: str) -> list[bytes]:
    """Sound inputs to begin with."""
    if target == "config":
        return config_seeds()
    compressed = [pack(TABLE) for pack in (bytes, gzip.compress)]
    return {
        "table": [TABLE * 2, TABLE * 5 + ODD + TABLE, RULES * 2, RULES.replace(b" [X] |||", b" |||")],
        "ini": [INI],
        "nbest": [NBEST],
        "arpa": [ARPA],
        "stream": compressed,
    }[target]


if __name__ == "__main__":
    target, corpus, *options = sys.argv[1:]
    Path(corpus).mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds(target)):
        (Path(corpus) / f"seed{i}").write_bytes(seed)
    atheris.Setup([sys.argv[0], corpus, *options], TARGETS[target])
    atheris.Fuzz()
