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
