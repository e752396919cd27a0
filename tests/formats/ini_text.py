"""A moses.ini, extended by a score, and what that changed."""

from moses_rnn.formats.ini_extension import Extension, extend_ini
from moses_rnn.formats.moses_ini import MosesIni

INI = b"""\
# comment with PhraseDictionaryMemory name=Other num-features=9
[input-factors]
0

[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=/data/phrase-table.gz input-factor=0 # mine
Distortion
KENLM name=LM0 factor=0 path=/data/lm.arpa order=3

[weight]
# not optimised
UnknownWordPenalty0= 1
TranslationModel0= 0.1 -0.3 0.2 0.2   # four
LM0= 0.5
"""
NEW_FEATURE = b"PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/new/t.rnn.gz input-factor=0 # mine"
NEW_WEIGHT = b"TranslationModel0= 0.1 -0.3 0.2 0.2 0.2   # four"


def extend(data, **changes):
    ini = MosesIni(data, "moses.ini")
    extension = Extension(**{"table": "/new/t.rnn.gz", "old_columns": 4, "added_columns": 1, **changes})
    return extend_ini(ini, ini.choose(name="TranslationModel0"), extension)[0]


def changed_lines(before, after):
    lines = zip(before.split(b"\n"), after.split(b"\n"), strict=True)
    return [(old, new) for old, new in lines if old != new]
