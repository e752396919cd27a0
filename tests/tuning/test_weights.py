"""The weights of an ini, as Moses reads them."""

import pytest

from moses_rnn.errors import InputError
from moses_rnn.tuning.weights import read_weights

INI = b"""[feature]
PhraseDictionaryMemory name=TM0 num-features=3 path=pt tuneable-components=1,No,TRUE
UnknownWordPenalty
LexicalReordering num-features=2 tuneable-components=0,1 # unnamed: LexicalReordering0
[weight-file]
sparse # of the decoder
[weight-add]
Old0= 7
[weight]
TM0= 9 9 9
TM0= 0.1 0.2 0.3
LexicalReordering0= 5 6
Both_x= 0.5
Two_x= 1 2
[weight-overwrite]
TM0= x 0.25 x LM0= 4
"""
SPARSE = b"# sparse\n\nBoth_x -9\nFile_\xe9|y\t1e-3\r\nLM0 8\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "moses.ini").write_bytes(INI)
    (tmp_path / "sparse").write_bytes(SPARSE)
    return tmp_path


def test_dense_weights_are_moses_s(folder):
    weights = read_weights(str(folder / "moses.ini"))
    assert weights.dense == {"Old0": [7], "TM0": [0.1, 0.25, 0.3], "LexicalReordering0": [5, 6], "LM0": [4]}
    assert weights.of("TM0", 3) == [0.1, 0.25, 0.3]
    assert (weights.of("TM0", 2), weights.of("LexicalReordering0", 1)) == ([0.1, 0.3], [6])  # what a list shows
    for label, count in (("TM0", 1), ("LexicalReordering0", 3), ("None0", 1)):
        with pytest.raises(InputError, match=f"moses.ini: expected {count} weights of {label}, as the n-best list has"):
            weights.of(label, count)


def test_sparse_weights_come_from_either_place_and_the_ini_wins(folder):
    ini = str(folder / "moses.ini")
    assert read_weights(ini).sparse == pytest.approx(
        {"Both_x": 0.5, "Two_x": float("nan"), "File_\udce9|y": 1e-3, "LM0": 8}, nan_ok=True
    )
