"""Judge the findings of a report, in words that claim no more than the figures show."""

from __future__ import annotations

import math
import shlex

from moses_rnn.analysis.agreement import Literalness, Preferences, Summary
from moses_rnn.analysis.findings import Findings
from moses_rnn.analysis.results import Tuning
from moses_rnn.errors import number_of
from moses_rnn.table.signatures import FLOORED_REFUSAL, UNKNOWN_REFUSAL, UNKNOWN_WARNING, records_of
from moses_rnn.training.learning_curves import verdict

GOOD, DOUBTFUL, BAD = "good", "doubtful", "bad"
LITTLE = 0.01  # share of scores at the floor that does no harm
TOLERANCE = 0.1  # nats between a score in the table and the model's own; bfloat16 may be off by hundredths
DECISIVE = 0.05  # a gain counts if p is below
CLEAR = 0.55  # a tendency is clear if a larger share of the sources with a difference point the same way,
DEVIATIONS = 2.0  # and if that exceeds an even split by more standard deviations of a fair coin
FEWEST = 30  # sources or pairs; with fewer, there is no verdict
WEAK, MODERATE, STRONG = 0.1, 0.3, 0.5  # least absolute values of Spearman's correlation
STRENGTHS = ((STRONG, "a strong"), (MODERATE, "a moderate"), (WEAK, "a weak"), (0.0, "practically no"))
HOLDS, PARTLY, FAILS, UNSEEN = "Holds here", "Holds in part", "Does not hold here", "Not seen here"
UNCLEAR, OPEN = "No clear tendency", "Cannot be decided here"
TRAINING = {  # for each verdict on the learning curve: how good it is, and the answer
    "converged": (GOOD, "Yes"),
    "overfitting": (GOOD, "Yes, but longer than needed"),
    "still falling": (DOUBTFUL, "Not fully"),
    "learned nothing": (BAD, "No"),
}

Answer = tuple[str, str, str]  # GOOD, DOUBTFUL or BAD; the answer; its reasons


def cards(findings: Findings) -> dict[str, Answer]:
    """Return the questions at the top of a report with their answers."""
    return {
        "Is the network well trained?": judge_training(findings),
        "Does it fit this table?": judge_fit(findings),
        "What did tuning gain?": judge_tuning(findings.tuning),
    }


def judge_training(findings: Findings) -> Answer:
    """Judge the training by the held-out costs that the model's folder records."""
    model = findings.model
    history = [step for step in records_of(model.provenance, "history") if "nats_per_token" in step]
    if not history:
        return DOUBTFUL, "Not recorded", "The model's folder has no history of its training."
    best, unigram = model.held_out_cost, model.unigram_nats
    judged = verdict(history, unigram)
    kind, answer = TRAINING.get(judged.name, (DOUBTFUL, "Not known"))
    text = f"{str(judged)[:1].upper()}{str(judged)[1:]}."
    if best is not None:
        beside = "" if unigram is None else f"; a unigram model costs {unigram:.3f}"
        text += f" The network costs {best:.3f} nats per held-out target token{beside}."
    return kind, answer, text


def judge_fit(findings: Findings) -> Answer:
    """Judge the fit by unknown words, equal scores and the table's signature."""
    pairs, signature = findings.scatter.groups[0], findings.table.signature
    unknown, floored = findings.coverage.pairs_unknown / pairs.pairs, pairs.at_floor / pairs.pairs
    text = (
        f"{unknown:.1%} of the pairs have a word that the network reads as <unk>; {floored:.1%} of the scores are at "
        "the floor, where pairs cannot be told apart."
    )
    lines = signature.record.get("lines")
    if signature and not signature.names_model(findings.model.hashes):
        return BAD, "Another model scored it", f"The signature beside the table says so. {_remedy(findings)}"
    for _, explanation in findings.disputes:
        in_table = explanation.columns[findings.table.column].log
        if abs(max(explanation.log_prob, findings.scatter.floor) - in_table) > TOLERANCE:
            why = "The table's scores are not those that this model gives."
            return BAD, "Another model scored it", f"{why} {_remedy(findings)}"
    if floored >= FLOORED_REFUSAL or unknown > UNKNOWN_REFUSAL:
        return BAD, "No", text
    if isinstance(lines, int) and lines != pairs.pairs:
        told = (
            f"The signature beside the table describes {number_of(lines, 'line')}, but the table has {pairs.pairs:,}."
        )
        return DOUBTFUL, "In part", f"{told} {text}"
    if unknown > UNKNOWN_WARNING or floored > LITTLE:
        return DOUBTFUL, "In part", f"{text} The network may have learned from another table, or too few words."
    return GOOD, "Yes", text


def _remedy(findings: Findings) -> str:
    table, folder = (shlex.quote(str(path)) for path in (findings.table.path, findings.model.folder))
    return (
        f"Name that model: `moses-rnn analyse report {table} --model FOLDER -o report.html`. "
        f"Or score the original table with this model: `moses-rnn-score TABLE --model {folder} -o {table} --force`."
    )


def judge_tuning(tuning: Tuning | None) -> Answer:
    """Judge a tuning by BLEU on the test sets. A gain counts if most tunings gained more than chance explains."""
    if tuning is None:
        how = "`make results` measures it; `--results results.json` then shows it here."
        return DOUBTFUL, "Not measured", f"Only tuning shows what a score is worth in BLEU. {how}"
    sets = ", ".join(f"{one.gain:+.2f} on {one.name}" for one in tuning.sets)
    overall = f"; p over all sets {', '.join(f'{p:.3f}' for p in tuning.overall_p)}" if tuning.overall_p else ""
    tunings = number_of(len(tuning.weights), "tuning")
    text = f"BLEU of {tuning.system} compared with the baseline, mean of {tunings}: {sets}{overall}."
    gains = [one.gain for one in tuning.sets]
    gained = sum(p < DECISIVE and gain > 0 for p, gain in zip(tuning.overall_p, tuning.gains, strict=False))
    if min(gains, default=0.0) > 0 and gained * 2 > len(tuning.gains):
        return GOOD, "It gained", text
    return (BAD, "Nothing", text) if max(gains, default=0.0) <= 0 else (DOUBTFUL, "No gain beyond chance", text)


def shorter(figures: Preferences) -> str:
    """Whether the RNN prefers shorter targets, as its best targets show."""
    if figures.sources < FEWEST:
        return OPEN
    of_all = _decided((figures.shorter or 0) * figures.sources, (figures.longer or 0) * figures.sources)
    apart = _decided((figures.shorter_apart or 0) * figures.apart, (figures.longer_apart or 0) * figures.apart)
    if of_all == apart:
        return of_all
    return PARTLY if HOLDS in (of_all, apart) else FAILS  # to hold, both must


def literal(counts: Literalness) -> str:
    """Whether the RNN prefers literal targets, as measured by the lexical weight."""
    return OPEN if counts.sources < FEWEST else _decided(counts.rnn_more, counts.rnn_less)


def _decided(for_it: float, against: float) -> str:
    """Whether one side clearly has more sources, and more than chance explains (sign test)."""
    both, difference = for_it + against, for_it - against
    if max(for_it, against) <= CLEAR * both or abs(difference) <= DEVIATIONS * math.sqrt(both):
        return UNCLEAR
    return HOLDS if difference > 0 else FAILS


def ignores_counts(summary: Summary) -> str:
    """Whether the RNN's score does not correlate with the counts of pairs."""
    if summary.counted < FEWEST or summary.rnn_over_pairs is None:
        return OPEN
    strongest = max(abs(summary.rnn_over_pairs), abs(summary.classes[0].rnn_with_count or 0.0))
    return HOLDS if strongest < WEAK else PARTLY if strongest < MODERATE else UNSEEN


def strength(correlation: float) -> str:
    """Describe a rank correlation in words."""
    return next(words for least, words in STRENGTHS if abs(correlation) >= least)
