"""The real decoder reads the factors that a parse gives words; MOSES_ROOT names a built Moses."""

import subprocess
import sys

import pytest

from tests.conftest import EXAMPLES
from tests.moses.decoding import decode

pytestmark = pytest.mark.moses

WORDS = "a saw saw me\nme saw a saw\na|b\n"
ACTIONS = "SH SH LA:det SH LA:nsubj SH RA:obj RA:root\nSH SH LA:nsubj SH SH LA:det RA:obj RA:root\nSH RA:x|y\n"
TABLE = {
    "a|det": "une",
    "me|nsubj": "je",
    "me|obj": "me",
    "saw|nsubj": "scie",
    "saw|obj": "scie",
    "saw|root": "vit",
    "a&#124;b|x&#124;y": "barre",
}
INI = """[input-factors]
0
1

[mapping]
0 T 0

[distortion-limit]
0

[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=1 path={path} input-factor=0,1 output-factor=0
Distortion

[weight]
UnknownWordPenalty0= 1
WordPenalty0= 0
TranslationModel0= 1
Distortion0= 1
"""


def test_a_relation_decides_how_a_word_is_translated(moses_root, tmp_path):
    (tmp_path / "words").write_text(WORDS)
    (tmp_path / "actions").write_text(ACTIONS)
    arguments = ["rebuild", "actions", "--words", "words", "--as", "factors"]
    program = [sys.executable, EXAMPLES / "parsing" / "parsing.py"]
    done = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
    table = tmp_path / "table"
    table.write_text("".join(f"{source} ||| {target} ||| 1 ||| 0-0\n" for source, target in sorted(TABLE.items())))
    (tmp_path / "moses.ini").write_text(INI.format(path=table))
    lines = decode(moses_root, tmp_path, "moses.ini", done.stdout.splitlines())
    assert [line.strip() for line in lines] == ["une scie vit me", "je vit une scie", "barre"]
