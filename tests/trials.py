"""A plan of trials, and programs that stand in for Moses and for those that train and score: milliseconds each.

Source and target texts are the same, so that a translation is a copy. The baseline gets a word wrong; a system with
networks gets it right, unless its options name a dropout of 0.9.
"""

import textwrap

TEXT = ["the old man sleeps here .", "a dog runs over the hill .", "two women walk home together ."] * 8
PLAN = """
work = "PLACE/work"
seeds = [1, 2]

[pipeline]
MOSES_ROOT = "PLACE/moses"
SRC = "en"
TRG = "fr"
TOKENISED = "yes"
DEV = "PLACE/data/dev"
TEST = ["PLACE/data/one", "PLACE/data/two"]
PHRASE_TABLE = "PLACE/data/phrase-table.gz"
BASELINE_INI = "PLACE/data/moses.ini"

[every]
train = {hidden-size = 64}

[[trial]]
name = "plain"

[[trial]]
name = "drop"
grid = {train = {dropout = [0.5, 0.9]}}

[[trial]]
name = "pair"
networks = [1, 2]
inverse = true
"""
INI = "[feature]\nKENLM name=LM0\n[weight]\nLM0= 0.5\nTranslationModel0= 0.1 0.2\n"
BIN = {
    "moses-rnn-ini": 'cp "$1" "$4"',
    "moses-rnn-train": """
        echo "$*" >> "$0.log"
        case "$*" in *--dropout=0.7*) echo "no such luck"; exit 3 ;; esac
        mkdir -p "$3/training"
        echo '{"seconds": 60, "nats_per_token": 2.0}' > "$3/training/log.jsonl"
        echo '{"seconds": 120, "nats_per_token": 1.5}' >> "$3/training/log.jsonl"
        echo '{}' > "$3/config.json"
        """,
    "moses-rnn-score": """
        echo "$*" >> "$0.log"
        while [ $# -gt 0 ]; do
            case $1 in -o) table=$2 ;; --output-ini) new=$2 ;; --moses-ini) ini=$2 ;; --model) first=${first:-$2} ;; esac
            shift
        done
        touch "$table"
        { echo "# scored"; grep 0.9 "$first/../../settings.json" || true; cat "$ini"; } > "$new"
        """,
    "sacrebleu": "exit 1",
}
MOSES = {
    "bin/moses": """
        ini=$2
        if grep -q scored "$ini" && ! grep -q 'dropout=0.9' "$ini"; then cat; else sed s/runs/ran/; fi |
            awk '{ print $0 " |0-" NF - 1 "|" }'
        """,
    "bin/mert": "exit 1",
    "bin/extractor": "exit 1",
    "bin/kbmira": "exit 1",
    "scripts/training/filter-model-given-input.pl": 'mkdir "$1"; cp "$2" "$1/moses.ini"',
    "scripts/training/mert-moses.pl": """
        echo "$*" >> "$0.log"
        ini=$4
        while [ "$1" != --working-dir ]; do shift; done
        mkdir -p "$2"; cp "$ini" "$2/moses.ini"
        """,
    "scripts/training/train-model.perl": "exit 1",
    "scripts/training/clean-corpus-n.perl": "exit 1",
}


def write_programs(folder, programs):
    """Shell scripts, by name."""
    for name, text in programs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nset -e\n{textwrap.dedent(text)}\n")
        path.chmod(0o755)


def write_place(folder, plan=PLAN):
    """Programs in ``bin`` and ``moses``, texts in ``data``, and the plan ``plan.toml``, whose work goes to ``work``."""
    write_programs(folder / "bin", BIN)
    write_programs(folder / "moses", MOSES)
    data = folder / "data"
    data.mkdir()
    for name in ("dev", "one", "two"):
        for language in ("en", "fr"):
            (data / f"{name}.{language}").write_text("".join(line + "\n" for line in TEXT))
    (data / "moses.ini").write_text(INI)
    (data / "phrase-table.gz").touch()
    return write_plan(folder, plan)


def write_plan(folder, plan):
    """The plan for a folder."""
    path = folder / "plan.toml"
    path.write_text(plan.replace("PLACE", str(folder)))
    return path


def calls_of(program):
    """How a program that stands in for another was called."""
    log = program.with_name(program.name + ".log")
    return log.read_text().splitlines() if log.exists() else []
