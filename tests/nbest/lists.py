"""Lists as numbers, their BLEU from its definition, and lists as lines."""

import math

import numpy as np

from moses_rnn.moses.nbest import parse_nbest
from moses_rnn.nbest.bleu import smoothed_bleu
from moses_rnn.nbest.lists import TunableList, read_tunable
from moses_rnn.nbest.weights import Weights

# lengths of hypothesis and reference; matches; n-grams that there are
GOOD = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1]
FAIR = [5, 5, 4, 3, 2, 1, 5, 4, 3, 2]
BAD = [4, 4, 0, 0, 0, 0, 4, 3, 2, 1]
OF_FAIR = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)


def listed(features, statistics, present=None):
    """Lists of sentences × hypotheses; the features are named A_0, B_0, …"""
    features = np.array(features, np.float64)
    names = tuple(f"{chr(65 + k)}_0" for k in range(features.shape[2]))
    present = np.ones(features.shape[:2], bool) if present is None else np.array(present, bool)
    return TunableList(names, features, np.array(statistics, np.int64), present, np.zeros(present.shape))


def random_list(seed, sentences=4, hypotheses=5, weights=3, whole=False):
    """Any features, statistics as sentences have them; `whole` numbers make many ties."""
    rng = np.random.default_rng(seed)
    shape = (sentences, hypotheses)
    features = rng.integers(-2, 3, (*shape, weights)) if whole else rng.standard_normal((*shape, weights))
    length = rng.integers(5, 12, shape)
    totals = length[..., None] - np.arange(4)
    matches = np.minimum.accumulate(rng.integers(1, totals + 1), axis=-1)
    reference = np.broadcast_to(rng.integers(5, 12, (sentences, 1)), shape)
    return listed(features, np.concatenate([length[..., None], reference[..., None], matches, totals], -1))


def telling_list(seed, sentences=40, hypotheses=8):
    """Lists with a feature A that knows the best hypotheses, one B that does not, and one C that differs by sentence."""
    points = random_list(seed, sentences, hypotheses)
    rng = np.random.default_rng(seed)
    quality = smoothed_bleu(points.statistics)
    constant = np.broadcast_to(np.arange(sentences)[:, None], quality.shape)
    return listed(np.stack([quality, rng.standard_normal(quality.shape), constant], -1), points.statistics)


def plain_bleu(sums):
    """BLEU from its definition, one corpus at a time."""
    length, reference, *counts = map(int, sums)
    if 0 in counts[:4]:
        return 0.0
    precision = math.prod(counts[n] / counts[n + 4] for n in range(4)) ** 0.25
    return precision * math.exp(min(0, 1 - reference / length))


REFERENCE = ["le chat dort ici", "un chien court"]
LINES = [
    b"0 ||| le chat dort la  ||| LM0= -4 TM0= -1.5 -2e-3 ||| -4.5 ||| 0-0\n",
    b"1 ||| un chien  ||| LM0= -3 TM0= -1 0 ||| -3.5\n",
    b"0 ||| le chat dort ici  ||| LM0= -5 TM0= 0 -1 ||| -5.25\n",
]
NAMES = ("LM0_0", "TM0_0", "TM0_1")


def read(lines=LINES, references=(REFERENCE,), **options):
    return read_tunable(parse_nbest(lines, "n"), references, name="n", **options)


def weights_of(of_ini, name="ini"):
    """Weights by label; those with an underscore are sparse."""
    dense = {label: values for label, values in of_ini.items() if "_" not in label}
    return Weights([name], dense, sparse={label: of_ini[label][0] for label in of_ini.keys() - dense})


def nbest(features, hypothesis=b"le chat", sentence=0, total=b"0"):
    return b"%d ||| %b ||| %b ||| %b\n" % (sentence, hypothesis, features, total)


SPARSE = [nbest(b"LM0= -4 LM0_a= 2 TM0_x|y= -1"), nbest(b"LM0_a= 1 LM0_a= 3 LM0= -5")]


def two_features():
    return read([nbest(b"A= 1 B= 2 C= 5", b"le chat dort"), nbest(b"A= 2 B= 1 C= 5", b"le chat dort ici")])
