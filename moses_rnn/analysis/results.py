"""The paper's Table 1: tuned systems by BLEU, with significance, weights, and how often they choose other phrases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from moses_rnn.errors import FormatError, InputError, number_of
from moses_rnn.files.shipped import shipped_file
from moses_rnn.files.streams import BYTE_ORDER_MARK, parse_json, reading
from moses_rnn.moses.ini import MosesIni
from moses_rnn.nbest.bleu import WordNumbers

Json = dict[str, Any]
TINY = 1e-3  # times the largest weight: MERT gives less to a feature that does not help
UNTUNED = "UnknownWordPenalty"  # MERT leaves its weight at 1
UNTUNED_RUN = "no round of tuning beat the starting weights on dev, so they were kept: try another tuner"
DEV = "dev"
BASELINE = "baseline"
PREFERRED = "rnn", "rnn2", "rnn-wp"  # systems with the score, those with nothing else first
COLUMNS = 6  # in a row of moses_configs/systems
SPAN = re.compile(r"\|([0-9]+)-([0-9]+)\|")
FIRST_ROUND = b"# We were before running iteration 1"  # in an ini with the starting weights
ON_LISTS = (
    "* The CSLM (and WP) and sentence networks rescored n-best lists of the system without them; everything else was "
    "in the decoder."
)
EXTENDED = (
    "the table and the weights of the system before extension, plus phrase pairs that the network proposed for each "
    "text."
)
BY_THEMSELVES = (
    "without Moses; seeds are those of training, because nothing is tuned "
    "(an ensemble has the same networks for all seeds)."
)

WHITE_SPACE = (
    "Some words contain white space other than blanks and tabs, such as U+00A0. As in Moses, words end at blanks and "
    "tabs only; sacreBLEU ends them there too, so it gives another BLEU for these texts."
)


class System(NamedTuple):
    """A row of moses_configs/systems. That file explains the kinds; pipeline.mk reads it too."""

    kind: str
    title: str  # its name in tables of results


def read_systems() -> dict[str, System]:
    """Read the systems that the pipeline builds, by name, in the order of the file."""
    path = shipped_file("systems")
    systems = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        columns = line.split()
        if not columns or line.startswith("#"):
            continue
        if len(columns) != COLUMNS:
            raise FormatError(str(path), number, f"{COLUMNS} columns", str(len(columns)))
        systems[columns[0]] = System(columns[1], columns[-1])
    return systems


class SystemRun(NamedTuple):
    """One tuning of one system, and its translations. A network that translates by itself has only translations.

    `phrases` are the phrase pairs in the translations of the test sets: set, sentence, first and last source word,
    target. Hierarchical systems do not report them.
    """

    system: str
    seed: str
    hypotheses: Mapping[str, list[str]]  # by set
    weights: Mapping[str, list[float]] = {}
    on_lists: bool = False  # whether features were added to n-best lists, not to the decoder
    phrases: frozenset[tuple[str, int, int, int, str]] | None = None
    is_untuned: bool = False  # whether the starting weights were better on dev than those of every round


def _read_run(folder: Path, target: str, sizes: Mapping[str, int], system: str, seed: str) -> SystemRun:
    """Read a run. `sizes` are the numbers of lines of all sets."""
    row = read_systems().get(system)
    path = folder / "tune" / f"{system}.{seed}" / "moses.ini"
    tuned = None if row is not None and row.kind == "self" else _read(path)
    stem = str(folder / "decode" / f"{system}.{seed}")
    hypotheses = {name: _lines(Path(f"{stem}.{name}.{target}"), size) for name, size in sizes.items()}
    if tuned is None:
        return SystemRun(system, seed, hypotheses)
    ini = MosesIni(tuned, str(path))
    segments = {name: _lines(Path(f"{stem}.{name}.segments"), size) for name, size in sizes.items() if name != DEV}
    phrases = frozenset(one for name, lines in segments.items() for one in _chosen_phrases(name, lines))
    is_untuned = FIRST_ROUND in tuned.splitlines()
    return SystemRun(system, seed, hypotheses, ini.all_weights(), not ini.has_features, phrases or None, is_untuned)


def _chosen_phrases(text: str, lines: Sequence[str]) -> Iterator[tuple[str, int, int, int, str]]:
    """Yield the phrase pairs of a translation with ``-report-segmentation``: ``target words |0-1| more |2-2|``."""
    for number, line in enumerate(lines):
        end = 0
        for span in SPAN.finditer(line):
            yield text, number, int(span[1]), int(span[2]), line[end : span.start()].strip()
            end = span.end()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: expected a file that the pipeline made, found none") from None


def _lines(path: Path, expected: int | None = None) -> list[str]:
    """Read the lines of a text, which end at line feeds only. Raise InputError if their number is not as expected."""
    lines = _read(path).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    if expected is not None and len(lines) != expected:
        raise InputError(
            f"{path}: expected {number_of(expected, 'line')}, as the references have, found {len(lines):,}"
        )
    return lines


def compare_systems(
    folder: Path, target: str, tests: Sequence[str], systems: Sequence[str], seeds: Sequence[str], samples: int = 1000
) -> Json:
    """Compare systems with the first one, by a paired bootstrap. Each system was tuned once with each seed.

    `folder` is the pipeline's, with weights, translations and phrase pairs; `target` is the suffix of the target
    language. Returns figures for `format_table`, as JSON. Raises InputError if a file is missing or does not have as
    many lines as the references.
    """
    for what, values in (("system", systems), ("seed", seeds), ("set", (DEV, *tests))):
        if len({*values}) < len(values):
            raise InputError(f"expected each {what} once, found {' '.join(map(str, values))}")
    references = {name: _lines(folder / "corpus" / f"{name}.{target}") for name in (DEV, *tests)}
    for name, lines in references.items():
        if lines == [""]:
            raise InputError(f"{folder}/corpus/{name}.{target}: expected sentences, found none")
    sizes = {name: len(lines) for name, lines in references.items()}
    runs = [[_read_run(folder, target, sizes, system, seed) for seed in seeds] for system in systems]
    numbers = WordNumbers()
    scored = [_compare_runs(list(of_seed), references, tests, samples, numbers) for of_seed in zip(*runs, strict=True)]
    return {
        "sentences": sizes,
        "tests": list(tests),
        "seeds": list(seeds),
        "signatures": scored[0][1],
        "white_space_in_words": numbers.contain_white_space,
        "bootstrap_samples": samples,
        "systems": {
            system: _summary(runs[i], runs[0], [of_seed[i] for of_seed, _ in scored], tests)
            for i, system in enumerate(systems)
        },
    }


def _compare_runs(
    runs: Sequence[SystemRun],
    references: Mapping[str, list[str]],
    tests: Sequence[str],
    samples: int,
    numbers: WordNumbers,
) -> tuple[list[Json], Json]:
    """Score the runs of all systems with one seed. Return the scores and the metrics' signatures.

    The scores of a run are its seed and, for each set, ``SET_BLEU`` and ``SET_chrF``. All runs except the first also
    have p-values: ``SET_p`` for each test set, and ``p`` for all test sets together.
    """
    bleu, chrf = open_bleu(), CHRF()
    scored: list[Json] = [{"seed": run.seed} for run in runs]
    judged, *numbered = [numbers.of_texts(texts) for texts in (references, *(run.hypotheses for run in runs))]
    for name in references:
        for record, run, texts in zip(scored, runs, numbered, strict=True):
            record[f"{name}_BLEU"] = bleu.corpus_score(texts[name], [judged[name]]).score
            record[f"{name}_chrF"] = chrf.corpus_score(run.hypotheses[name], [references[name]]).score
    signatures = {label: str(metric.get_signature()) for label, metric in (("BLEU", bleu), ("chrF", chrf))}
    if len(runs) > 1:
        for key, names in {**{f"{name}_p": [name] for name in tests}, "p": tests}.items():
            named: list[Any] = [
                (f"{i} {run.system}", _joined(texts, names))
                for i, (run, texts) in enumerate(zip(runs, numbered, strict=True))
            ]
            test = PairedTest(named, {"BLEU": bleu}, [_joined(judged, names)], "bs", n_samples=samples)
            compared: list[list[Any]] = [values for label, values in test()[1].items() if label != "System"]
            for record, result, (_, lines) in zip(scored[1:], compared[0][1:], named[1:], strict=True):
                record[key] = result.p_value if lines != named[0][1] else 1.0  # where sacreBLEU says 1 / samples
    return scored, signatures


def open_bleu() -> BLEU:
    """Return BLEU of tokenised text."""
    return BLEU(tokenize="none", force=True)


def _joined(texts: Mapping[str, list[str]], names: Sequence[str]) -> list[str]:
    """Join the lines of several sets."""
    return [line for name in names for line in texts[name]]


def _summary(runs: list[SystemRun], baselines: list[SystemRun], scores: list[Json], tests: Sequence[str]) -> Json:
    summary: Json = {"on_lists": runs[0].on_lists, "runs": scores}
    for key in [f"{name}_{label}" for name in runs[0].hypotheses for label in ("BLEU", "chrF")]:
        values = [record[key] for record in scores]
        summary[key] = {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else None}
    for record, run, baseline in zip(scores, runs, baselines, strict=True):
        texts = (_joined(one.hypotheses, tests) for one in (run, baseline))
        record["weights"] = {
            name: [weight if math.isfinite(weight) else None for weight in values]
            for name, values in run.weights.items()
        }
        record["warnings"] = [*([UNTUNED_RUN] if run.is_untuned else []), *odd_weights(run.weights)]
        record["phrases_chosen_differently"] = None
        if run.phrases is not None and baseline.phrases is not None:
            record["phrases_chosen_differently"] = len(run.phrases - baseline.phrases) / max(len(run.phrases), 1)
        record["sentences_different"] = mean(a != b for a, b in zip(*texts, strict=True))
    return summary


def odd_weights(weights: Mapping[str, list[float]]) -> Iterator[str]:
    """Yield reasons to doubt a tuning."""
    tuned = [w for name, values in weights.items() if not name.startswith(UNTUNED) for w in values]
    largest = max((abs(w) for w in tuned if math.isfinite(w)), default=0.0)
    for name, values in weights.items():
        for i, weight in enumerate(values):
            if not math.isfinite(weight):
                yield f"{name} {i}: weight {weight}: this tuning failed"
            elif abs(weight) <= TINY * largest:
                yield f"{name} {i}: weight {weight:.2g}: tuning hardly uses it, or it is constant"


def list_warnings(results: Json) -> Iterator[str]:
    """Yield reasons to doubt the results."""
    for name, system in results["systems"].items():
        for record in system["runs"]:
            yield from (f"{name}, seed {record['seed']}: {text}" for text in record["warnings"])


def format_table(results: Json) -> Iterator[str]:
    """Yield the lines of the table and of the text below it, given the figures of `compare_systems`."""
    rows, systems = read_systems(), results["systems"]
    titles = {name: rows[name].title if name in rows else name for name in systems}
    baseline = titles[next(iter(systems))]
    header, *lines = (list(_columns(titles, systems, name, results["tests"])) for name in systems)
    yield f"| {' | '.join(title for title, _ in header)} |"
    yield "|" + "---|" * len(header)
    for cells in (header, *lines):
        yield f"| {' | '.join(cell for _, cell in cells)} |"
    yield ""
    sentences = [f"{count:,}" for count in results["sentences"].values()]
    yield (
        f"Mean ± standard deviation of {number_of(len(results['seeds']), 'tuning')}; p: paired bootstrap of "
        f"{results['bootstrap_samples']:,} samples against {baseline} with the same seed; "
        f"{', '.join(sentences[:-1])} and {sentences[-1]} sentences; {results['signatures']['BLEU']}"
    )
    if results["white_space_in_words"]:
        yield WHITE_SPACE
    if any(system["on_lists"] for system in systems.values()):
        yield ON_LISTS
    for kind, text in (("extended", EXTENDED), ("self", BY_THEMSELVES)):
        if named := [titles[name] for name in systems if name in rows and rows[name].kind == kind]:
            yield f"{', '.join(named)}: {text}"


def _columns(titles: Mapping[str, str], systems: Json, name: str, tests: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the header and the text of each cell of a system. Systems are compared with the first one."""
    system, (baseline, first) = systems[name], next(iter(systems.items()))
    is_compared = any("p" in record for record in system["runs"])
    yield "system", f"{titles[name]}*" if system["on_lists"] else titles[name]
    yield "dev BLEU", _spread(system["dev_BLEU"])
    for test in tests:
        difference = system[f"{test}_BLEU"]["mean"] - first[f"{test}_BLEU"]["mean"]
        yield f"{test} BLEU", _spread(system[f"{test}_BLEU"])
        yield f"against {titles[baseline]}", f"{difference:+.2f}" if is_compared else ""
        yield "p by seed", _ps(system, f"{test}_p")
    if len(tests) > 1:
        yield "p, all sets", _ps(system, "p")
    yield "chrF", ", ".join(_spread(system[f"{test}_chrF"]) for test in tests)
    shares = [record["phrases_chosen_differently"] for record in system["runs"]]
    yield "phrases chosen differently", f"{mean(shares):.0%}" if is_compared and None not in shares else ""


def _ps(system: Json, key: str) -> str:
    """Format p of all runs. The baseline has none."""
    return ", ".join(f"{record[key]:.3f}" for record in system["runs"] if key in record)


def _spread(value: Mapping[str, float | None]) -> str:
    sd = value["sd"]
    return f"{value['mean']:.2f}" + (f" ± {sd:.2f}" if sd is not None else "")


class Gain(NamedTuple):
    """What the score gains on a test set."""

    name: str
    before: float  # mean BLEU of all tunings, without the score
    after: float
    p: tuple[float, ...]  # one for each tuning

    @property
    def gain(self) -> float:
        """Difference in BLEU."""
        return self.after - self.before


class Tuning(NamedTuple):
    """A system compared with the baseline."""

    system: str
    sets: tuple[Gain, ...]
    gains: tuple[float, ...]  # of each tuning: the gain in BLEU, summed over the test sets
    overall_p: tuple[float, ...]  # of each tuning: p over all sets together
    weights: tuple[Mapping[str, Any], ...]  # of each tuning: weights by feature


def read_tuning(path: str) -> Tuning:
    """Read BLEU and weights from a results.json of `moses-rnn analyse results`."""
    with reading(path):
        data = Path(path).read_bytes()
    try:
        record = parse_json(data)
        systems = record["systems"]
        name = next(name for name in (*PREFERRED, *systems) if name in systems and name != BASELINE)
        before_and_after = systems[BASELINE]["runs"], (runs := systems[name]["runs"])
        sets, gains = [], [0.0] * len(runs)
        for test in record["tests"]:
            before, after = (_finite(systems[which][f"{test}_BLEU"]["mean"]) for which in (BASELINE, name))
            sets.append(Gain(test, before, after, _every(runs, f"{test}_p")))
            bleu = (_every(which, f"{test}_BLEU") for which in before_and_after)
            gains = [gain + b - a for gain, a, b in zip(gains, *bleu, strict=True)]
        weights = tuple(dict(run.get("weights") or {}) for run in runs)
        return Tuning(name, tuple(sets), tuple(gains), _every(runs, "p"), weights)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{path}: expected results of a baseline and of a system with the score, found {type(error).__name__}: "
            f"{error}",
            advice="`moses-rnn pipeline results` writes such a file.",
        ) from error


def _every(runs: Iterable[Mapping[str, Any]], key: str) -> tuple[float, ...]:
    return tuple(_finite(run[key]) for run in runs if key in run)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a number that is not finite, {number}")
    return number
