"""The kinds of phrase dictionaries that can be verified, apart from how: --help lists them without a library."""

KINDS = {  # by name: the type in an ini, and the decoder that loads it
    "text": ("PhraseDictionaryMemory", "moses"),
    "compact": ("PhraseDictionaryCompact", "moses"),
    "on-disk": ("PhraseDictionaryOnDisk", "moses"),
    "probing": ("ProbingPT", "moses"),
    "moses2": ("ProbingPT", "moses2"),
}
OF_RULES = ("text", "on-disk")  # what rules can be; CreateProbingPT --scfg ends on those of train-model.perl
