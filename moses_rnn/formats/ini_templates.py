"""Templates of moses.ini for the systems that are compared, with a comment on every column."""

from __future__ import annotations

from dataclasses import dataclass

from moses_rnn.formats.moses_ini import DEFAULT_WEIGHT

OLD_COLUMNS = ("p(source|target)", "lex(source|target)", "p(target|source)", "lex(target|source)")
UNKNOWN_WORDS = (
    "The decoder takes the logarithm of each: the fifth feature is log p(target|source) of the network, the sixth is "
    "-n for",
    "n target words outside its shortlist. If that is 0 on every line, moses-rnn-score warns: leave the column out "
    "then.",
)


@dataclass(frozen=True)
class Template:
    """What is particular about a system's ini; `head` and `remarks` are comments."""

    head: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """The whole ini."""
        count = len(self.columns)
        lines = [
            *(f"# {line}" for line in self.head),
            "# (Moses paths may hold neither blanks nor number signs.)",
            *("", "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]", "6", "", "[feature]"),
            *("UnknownWordPenalty", "WordPenalty", "PhrasePenalty"),
            f"# {count} columns: {'  '.join(self.columns)}",
            *(f"# {line}" for line in self.remarks),
            f"PhraseDictionaryMemory name=TranslationModel0 num-features={count} path=/path/to/{self.table} "
            "input-factor=0 output-factor=0",
            "LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff "
            "input-factor=0 output-factor=0 path=/path/to/reordering-table",
            "Distortion",
            "KENLM name=LM0 factor=0 path=/path/to/lm.binary order=5",
            *("", "# Starting weights; tune them with mert-moses.pl.", "[weight]"),
            *("UnknownWordPenalty0= 1", "WordPenalty0= -1", "PhrasePenalty0= 0.2"),
            f"TranslationModel0={f' {DEFAULT_WEIGHT:g}' * count}",
            "LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3",
            *("Distortion0= 0.3", "LM0= 0.5"),
        ]
        return "".join(line + "\n" for line in lines)


TEMPLATES = {
    "baseline": Template(
        (
            "The paper's baseline: a phrase-based system as train-model.perl writes it. "
            "Put your paths in place of /path/to.",
        ),
        "phrase-table.gz",
        OLD_COLUMNS,
    ),
    "rnn": Template(
        (
            "Baseline + RNN: the table of `moses-rnn-score phrase-table.gz`.",
            "Put your paths in place of /path/to.",
        ),
        "phrase-table.rnn.gz",
        (*OLD_COLUMNS, "RNN p(target|source)"),
        ("The decoder takes the logarithm of each, so the fifth feature is log p(target|source) of the network.",),
    ),
    "rnn-wp": Template(
        (
            "Baseline + RNN + WP: the table of `moses-rnn-score phrase-table.gz --word-penalty`.",
            "Put your paths in place of /path/to.",
        ),
        "phrase-table.rnn.gz",
        (*OLD_COLUMNS, "RNN p(target|source)", "exp(-n)"),
        UNKNOWN_WORDS,
    ),
}
