"""Random lists of every form that Moses prints: `add`, `rerank` and `tune` against a plain reference.

`MOSES_RNN_CASES=10000 pytest tests/cli/nbest/test_random_lists.py` tries more of them.
"""

import math
import os
import random
import re
from collections import Counter

import pytest
from click.testing import CliRunner

from moses_rnn.cli.nbest import main
from moses_rnn.scorers.open import open_model
from moses_rnn.table.table_blocks import Pairs
from tests.scorers.pairs import TARGET
from tests.tuning.lists import plain_bleu

CASES = int(os.environ.get("MOSES_RNN_CASES", "200"))
SOURCE_WORDS = ["s2", "s3", "s4", "s5", "s9", "a-b", "1-2", "0=0"]
TARGET_WORDS = ["t2", "t3", "t4", "t5", "t6", "t7", "t8", "x", "well-known", "0-1", "0=0"]
SPARSE = ["wt_s2~t2", "word-pairs_a=b", "LM0_x", "9_9", "wt_é|f"]
NO_WORDS = 2**64 - 1  # how Moses prints the last word of a phrase without words at the beginning


class Case:
    """A list, its source, reference and ini, and what a user expects of them; `wrong` names what is refused."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.layout = rng.choice(["plain", "segments", "links", "segments links", "segments links input", "links tree"])
        self.segmented = "segments" in self.layout
        wrong = ["marks", "factors", "markup", "no dense", "label"]
        wrong += ["long source", "short source"] if self.segmented else []
        self.wrong = rng.choice(wrong) if rng.random() < 0.5 else None
        self.components = rng.choice([None, None, "1,0,1", "true,no,Y", "0,0,1"])
        shown = [word in ("1", "true", "Y") for word in (self.components or "1,1,1").split(",")]
        self.sparse = rng.sample(SPARSE, rng.randint(0, 3))
        self.dense = {"LM0": [rng.uniform(-1, 1)], "TM0": [rng.uniform(-1, 1) for _ in range(3)]}
        self.printed = self.dense | {
            "TM0": [w for w, is_shown in zip(self.dense["TM0"], shown, strict=True) if is_shown]
        }
        self.sources = [[rng.choice(SOURCE_WORDS) for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(1, 3))]
        self.lists = [[self.hypothesis(source) for _ in range(rng.randint(1, 4))] for source in self.sources]
        self.references = [" ".join(rng.choice(each)["words"]) or "t2" for each in self.lists]
        self.places = {label: rng.choice(["weight", "file", "both", "none"]) for label in self.sparse}
        self.weights = {label: rng.uniform(-2, 2) for label in self.sparse}

    def hypothesis(self, source):
        rng, phrases, begin = self.rng, [], 0
        while begin < len(source):
            end = rng.randint(begin + 1, len(source))
            phrases.append((begin, end, [rng.choice(TARGET_WORDS) for _ in range(rng.choice([0, 1, 1, 2, 3]))]))
            begin = end
        rng.shuffle(phrases)
        return {
            "phrases": phrases,
            "words": [word for _, _, target in phrases for word in target],
            "dense": {label: [rng.uniform(-9, 0) for _ in weights] for label, weights in self.printed.items()},
            "sparse": {label: rng.uniform(-2, 2) for label in self.sparse if rng.random() < 0.7},
        }

    def line(self, number, hypothesis, odd):
        text = " ".join(hypothesis["words"])
        if odd and self.wrong == "marks":
            text = " ".join([*hypothesis["words"], "|0-1|"])
        elif odd and self.wrong == "factors":
            text = " ".join([f"{word}|N" for word in hypothesis["words"]] or ["x|N"])
        dense = " ".join(f"{label}= {' '.join(map(repr, values))}" for label, values in hypothesis["dense"].items())
        sparse = " ".join(f"{label}= {value!r}" for label, value in hypothesis["sparse"].items())
        features = f"{dense} {sparse}"
        if self.wrong == "no dense":
            features = sparse
        elif odd and self.wrong == "label":
            features += " no-label= 1"
        fields = [f"{number} ", f" {text}  ", f" {features} ", f" {self.rng.uniform(-9, 0)!r} "]
        segments, begin = [], 0
        for first, last, target in hypothesis["phrases"]:
            end = begin + len(target) - 1 if target or begin else NO_WORDS
            read = f"{first}-{last - 1}" if last - 1 > first else f"{first}"
            segments.append(f"{read}={begin}-{end}" if end > begin else f"{read}={begin}")
            begin += len(target)
        source = self.sources[number]
        written = {
            "segments": f" {' '.join(segments)} ",
            "links": " " + "".join(f"{i}-{j} " for i in range(len(source)) for j in range(begin) if (i + j) % 3 == 0),
            "input": f" {' '.join(source)} ",
            "tree": f" [S {text}] ",
        }
        return "|||".join(fields + [written[part] for part in self.layout.split() if part in written])

    def write(self, folder):
        texts = [" ".join(source) for source in self.sources]
        spoiled = self.rng.randrange(len(texts))
        if self.wrong == "long source":
            texts[spoiled] += " s2"
        elif self.wrong == "short source":
            texts[spoiled] = texts[spoiled].rpartition(" ")[0]
        elif self.wrong == "markup":
            texts[spoiled] = f'<n translation="t2">{texts[spoiled]}</n>'
        lines = [(i, hypothesis) for i, each in enumerate(self.lists) for hypothesis in each]
        self.odd = self.rng.randrange(len(lines))
        self.spoiled = 1 + next(k for k, (i, _) in enumerate(lines) if i == spoiled)
        listed = [self.line(i, hypothesis, k == self.odd) + "\n" for k, (i, hypothesis) in enumerate(lines)]
        weights = [f"{label}= {' '.join(map(repr, values))}" for label, values in self.dense.items()]
        weights += [
            f"{label}= {self.weights[label]!r}" for label, place in self.places.items() if place in ("weight", "both")
        ]
        components = f" tuneable-components={self.components}" if self.components else ""
        features = f"KENLM name=LM0 path=lm\nPhraseDictionaryMemory name=TM0 num-features=3 path=pt{components}\n"
        of_file = [
            f"{label} {self.weights[label] + (place == 'both')!r}"
            for label, place in self.places.items()
            if place in ("file", "both")
        ]
        files = {
            "list": "".join(listed),
            "source": "".join(text + "\n" for text in texts),
            "reference": "".join(text + "\n" for text in self.references),
            "ini": f"[feature]\n{features}[weight-file]\nfile\n[weight]\n" + "\n".join(weights) + "\n",
            "file": "".join(line + "\n" for line in ["# sparse", *of_file]),
        }
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        self.of_sparse = {label: self.weights[label] for label, place in self.places.items() if place != "none"}
        self.lines = [hypothesis for _, hypothesis in lines]


def score(hypothesis, dense, sparse):
    """Σ weight · value, as the decoder has it."""
    values = [
        (w, v) for label, of_label in dense.items() for w, v in zip(of_label, hypothesis["dense"][label], strict=True)
    ]
    values += [(sparse.get(label, 0.0), v) for label, v in hypothesis["sparse"].items()]
    return math.fsum(w * v for w, v in values)


def bests(case, dense, sparse):
    """Of each sentence the words of the best hypotheses: several if rounding could choose either."""
    for each in case.lists:
        scores = [score(hypothesis, dense, sparse) for hypothesis in each]
        yield [h["words"] for h, s in zip(each, scores, strict=True) if s > max(scores) - 1e-6]


def bleu(case, chosen):
    sums = [0] * 10
    for words, reference in zip(chosen, case.references, strict=True):
        other = reference.split(" ")
        grams = [
            [Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)) for n in range(1, 5)]
            for text in (words, other)
        ]
        of_sentence = [len(words), len(other)]
        of_sentence += [(a & b).total() for a, b in zip(*grams, strict=True)] + [a.total() for a in grams[0]]
        sums = [a + b for a, b in zip(sums, of_sentence, strict=True)]
    return 100 * plain_bleu(sums)


def refused(done, place):
    return done.exit_code == 3 and f": {place}: expected " in done.stderr and not done.stdout


@pytest.fixture(scope="module")
def pair_score(models):
    scorers, known = {name: open_model(models / name).make_scorer() for name in ("rnn", "search")}, {}

    def scored(name, source, target):
        key = (name, " ".join(source).encode(), " ".join(target).encode())
        if key not in known:
            known[key] = float(scorers[name].log_probs(Pairs([key[1]], [key[2]]))[0])
        return known[key]

    return scored


def check_added(case, done, pair_score):
    if case.wrong in ("marks", "factors", "label", "long source", "short source", "markup"):
        assert refused(
            done, f"list:{case.spoiled if case.wrong in ('markup', 'long source', 'short source') else case.odd + 1}"
        )
        return
    assert done.exit_code == 0, done.stderr
    numbers = re.compile(r" (?:RNN|SEARCH)0= (\S+) WP0= (\S+)(?= *\|\|\|)")
    listed = done.stdout.split("\n")[:-1]
    assert len(listed) == len(case.lines)
    assert numbers.sub("", done.stdout) == case.content
    sources = [source for source, each in zip(case.sources, case.lists, strict=True) for _ in each]
    for line, hypothesis, source in zip(listed, case.lines, sources, strict=True):
        value, penalty = map(float, numbers.search(line).groups())
        if case.segmented:
            expected = sum(pair_score("rnn", source[i:j], target) for i, j, target in hypothesis["phrases"])
        else:
            expected = pair_score("search", source, hypothesis["words"])
        assert value == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert penalty == -sum(word.encode() not in TARGET.words for word in hypothesis["words"])


def check_reranked(case, done):
    if case.wrong in ("no dense", "label"):
        assert refused(done, f"list:{1 if case.wrong == 'no dense' else case.odd + 1}")
        return
    assert done.exit_code == 0, done.stderr
    if case.wrong not in ("marks", "factors"):
        found = [line.split() for line in done.stdout.split("\n")[:-1]]
        expected = list(bests(case, case.printed, case.of_sparse))
        assert len(found) == len(expected)
        assert all(one in several for one, several in zip(found, expected, strict=True))


def check_tuned(case, done):
    if case.wrong in ("no dense", "label", "marks", "factors"):
        assert refused(done, f"list:{1 if case.wrong == 'no dense' else case.odd + 1}")
        return
    assert done.exit_code == 0, done.stderr
    before, after = map(float, re.search(r"BLEU (\S+) before, (\S+) after", done.stderr).groups())
    assert after >= before
    tuned = {line.split("=")[0]: line for line in done.stdout.split("\n")[1:-1]}
    written = {
        label: [float(word) for word in line.split()[1:]] for label, line in tuned.items() if label in case.printed
    }
    sparse = {
        label: float(re.search(rf"^{re.escape(label)}= (\S+)$", done.stdout, re.M)[1]) for label in case.of_sparse
    }
    for bleu_said, dense, of_sparse in ((before, case.printed, case.of_sparse), (after, written, sparse)):
        expected = list(bests(case, dense, of_sparse))
        if all(len(several) == 1 for several in expected):
            assert bleu_said == pytest.approx(bleu(case, [one for (one,) in expected]), abs=0.0051)


def test_random_lists(models, tmp_path, monkeypatch, pair_score):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOSES_ROOT", raising=False)
    ended = Counter()

    def run(*arguments):
        done = CliRunner().invoke(main, [*map(str, arguments)])
        assert done.exception is None or isinstance(done.exception, SystemExit), (seed, arguments)
        ended[arguments[0], done.exit_code] += 1
        return done

    for seed in range(CASES):
        case = Case(seed)
        case.write(tmp_path)
        case.content = (tmp_path / "list").read_text(encoding="utf-8")
        features = [
            "--add",
            models / ("rnn" if case.segmented else "search"),
            "--word-penalty",
            models / "words",
            "--allow-misfit",
            "--threads",
            "1",
            "-q",
        ]
        try:
            check_added(case, run("add", "list", "--source", "source", *features), pair_score)
            check_reranked(case, run("rerank", "list", "ini"))
            tuning = ["--reference", "reference", "--weights", "ini", "--optimiser", "mert"]
            check_tuned(case, run("tune", "list", *tuning))
        except AssertionError as error:
            raise AssertionError(f"case {seed}, {case.layout}, wrong: {case.wrong}") from error
    assert all(ended[command, code] > CASES / 10 for command in ("add", "rerank", "tune") for code in (0, 3))
