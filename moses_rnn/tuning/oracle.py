"""The best that could be chosen from n-best lists if the references were known."""

from __future__ import annotations

import numpy as np

from moses_rnn.tuning.bleu import Integers, corpus_bleu, smoothed_bleu
from moses_rnn.tuning.tunable import TunableList, statistics_of


def oracle(points: TunableList) -> Integers:
    """A choice of hypotheses that no change of a single one improves in the corpus's BLEU.

    It begins with the best smoothed BLEU of each sentence and then goes through the sentences until none changes; the
    true oracle may be better still. Of equally good hypotheses the first in the list.

    Returns:
        The index of a hypothesis for each sentence; 0 where there is none.
    """
    # Padding repeats the first hypothesis, which comes before it.
    statistics = np.where(points.present[:, :, None], points.statistics, points.statistics[:, :1])
    chosen: Integers = smoothed_bleu(statistics).argmax(1)
    total = statistics_of(points, chosen)
    changed = True
    while changed:
        changed = False
        for sentence, of_sentence in enumerate(statistics):
            sums = total - of_sentence[chosen[sentence]] + of_sentence  # hypotheses × 10
            bleus = corpus_bleu(sums)
            best = bleus.argmax()
            if bleus[best] > bleus[chosen[sentence]]:
                chosen[sentence], total, changed = best, sums[best], True
    return chosen
