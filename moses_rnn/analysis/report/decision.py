"""The answers at the top of a report: whether the network is trained, fits its table, and gained by tuning."""

from __future__ import annotations

from dataclasses import dataclass

from moses_rnn.analysis.report.findings import Findings
from moses_rnn.analysis.report.tuning import Tuning
from moses_rnn.formats.signatures import FLOORED_REFUSAL, UNKNOWN_REFUSAL, UNKNOWN_WARNING, records_of
from moses_rnn.networks.learning_curves import verdict

GOOD, DOUBTFUL, BAD = "good", "doubtful", "bad"
TRAINED, FITS, TUNED = "Is the network trained well?", "Does it fit this table?", "What did tuning gain?"
LITTLE = 0.01  # share at the floor that does no harm


@dataclass(frozen=True)
class Answer:
    """To one question: `kind` is GOOD, DOUBTFUL or BAD; the figures behind it stand in `text`."""

    question: str
    kind: str
    word: str
    text: str


def decide(findings: Findings) -> list[Answer]:
    """The answers, by the figures of a report."""
    return [_trained(findings), _fits(findings), _tuned(findings.tuning)]


def _trained(findings: Findings) -> Answer:
    model = findings.model
    history = [step for step in records_of(model.provenance, "history") if "nats_per_token" in step]
    if not history:
        return Answer(TRAINED, DOUBTFUL, "Not recorded", "The model's folder has no history of its training.")
    judged = verdict(history, model.unigram_nats)
    kind, word = {
        "converged": (GOOD, "Yes"),
        "overfitting": (GOOD, "Yes, and longer than it should have been"),
        "still falling": (DOUBTFUL, "Not to its end"),
        "learned nothing": (BAD, "No"),
    }.get(judged.name, (DOUBTFUL, "Not known"))
    best, unigram = model.held_out_nats, model.unigram_nats
    figures = f" It costs {best:.3f} nats a held-out target token" if best is not None else ""
    beside = f", words by their frequency alone {unigram:.3f}" if figures and unigram is not None else ""
    return Answer(TRAINED, kind, word, f"{_sentence(str(judged))}.{figures}{beside}{'.' * bool(figures)}")


def _fits(findings: Findings) -> Answer:
    counted, pairs = findings.coverage, findings.scatter.groups[0]
    unknown = counted.pairs_unknown / counted.lines if counted.lines else 0.0
    floored = pairs.at_floor / pairs.pairs if pairs.pairs else 0.0
    text = (
        f"{unknown:.1%} of the pairs have a word that the network reads as <unk>, {floored:.1%} of the scores are at "
        "the floor, where pairs cannot be told apart."
    )
    models = [model.get("sha256") for model in records_of(findings.signature, "models")]
    if findings.signature and dict(findings.model.hashes) not in models:
        return Answer(FITS, BAD, "Another model scored it", f"So the signature beside the table says. {text}")
    if floored >= FLOORED_REFUSAL or unknown > UNKNOWN_REFUSAL:
        return Answer(FITS, BAD, "No", text)
    if unknown > UNKNOWN_WARNING or floored > LITTLE:
        return Answer(FITS, DOUBTFUL, "In part", f"{text} It may have learned from another table, or too few words.")
    return Answer(FITS, GOOD, "Yes", text)


def _tuned(tuning: Tuning | None) -> Answer:
    if tuning is None:
        how = "Give `--results results.json` of `make results` to have it stand here."
        return Answer(
            TUNED, DOUBTFUL, "Not measured", f"Nats are no BLEU: only tuning tells what a score is worth. {how}"
        )
    sets = "; ".join(
        f"{one.name}: {one.before:.2f} → {one.after:.2f} ({one.gain:+.2f}; p {one.shown_p})" for one in tuning.sets
    )
    together = f"; p over all sets {', '.join(f'{p:.3f}' for p in tuning.overall_p)}" if tuning.overall_p else ""
    text = f"BLEU of {tuning.system} beside the baseline, means of {len(tuning.weights)} tunings: {sets}{together}."
    gains = [one.gain for one in tuning.sets]
    if min(gains) > 0 and tuning.decisive:
        return Answer(TUNED, GOOD, "It gained", text)
    if max(gains) <= 0:
        return Answer(TUNED, BAD, "Nothing", text)
    return Answer(TUNED, DOUBTFUL, "No gain that is beyond chance", text)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
