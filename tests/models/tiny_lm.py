"""Small language models for tests: n-gram models with a scalar reading of their own, and an untrained CSLM."""

import math

import numpy as np

from moses_rnn.networks.cslm import CslmConfig
from moses_rnn.networks.vocabulary import Vocabulary
from tests.networks.checkpoints import cslm_checkpoint
from tests.networks.networks import cslm_network

NBSP = "10\u00a0km"


class BackoffModel:
    """A backoff model from its definition: p(w | h) = p_seen(w | h), or b(h) · p(w | h') where w was not seen after h.

    `unigrams` are p(w) and sum to 1; `seen` are p(w | h) by context h, which is an n-gram itself.
    """

    def __init__(self, unigrams, seen):
        self.unigrams, self.seen = unigrams, seen
        self.order = 1 + max(map(len, seen))
        self.backoff = {}
        for context in sorted(seen, key=len):
            left = 1 - sum(seen[context].values())
            self.backoff[context] = left / (1 - sum(self.p(word, context[1:]) for word in seen[context]))

    def p(self, word, context):
        """p(w | h); words that are none of the model's are <unk>."""
        context = tuple(context)[-(self.order - 1) :]
        while context and context not in self.seen:  # a word that is not known ends the context too
            context = context[1:]
        if not context:
            return self.unigrams.get(word, self.unigrams["<unk>"])
        if word in self.seen[context]:
            return self.seen[context][word]
        return self.backoff[context] * self.p(word, context[1:])

    def log_probs(self, sentence):
        """log p of every word and of the end, natural."""
        words = [*sentence.split(" "), "</s>"] if sentence else ["</s>"]
        return [math.log(self.p(word, ["<s>", *words[:i]])) for i, word in enumerate(words)]

    def arpa(self):
        sections = [{(word,): p for word, p in [("<s>", 1e-99), *self.unigrams.items()]}]
        for length in range(1, self.order):
            contexts = {context: after for context, after in self.seen.items() if len(context) == length}
            sections.append({(*context, word): p for context, after in contexts.items() for word, p in after.items()})
        lines = ["\\data\\", *(f"ngram {n}={len(section)}" for n, section in enumerate(sections, start=1)), ""]
        for n, section in enumerate(sections, start=1):
            lines += [f"\\{n}-grams:", *(self._line(n_gram, p) for n_gram, p in section.items()), ""]
        return "\n".join([*lines, "\\end\\", ""]).encode()

    def _line(self, n_gram, p):
        weight = f"\t{math.log10(self.backoff[n_gram]):.7f}" if n_gram in self.backoff else ""
        return f"{math.log10(p):.7f}\t{' '.join(n_gram)}{weight}"

    def write(self, folder):
        path = folder / "lm.arpa"
        path.write_bytes(self.arpa())
        return path


SMALL = BackoffModel(
    {"<unk>": 0.1, "</s>": 0.2, "le": 0.2, "chat": 0.15, "rare": 0.15, NBSP: 0.2},
    {
        ("<s>",): {"le": 0.5, "rare": 0.25},
        ("le",): {"chat": 0.25, "rare": 0.375, "</s>": 0.125},
        ("rare",): {NBSP: 0.5, "</s>": 0.25},
        ("<s>", "le"): {"rare": 0.75, "</s>": 0.0625},
        ("le", "rare"): {NBSP: 0.125, "</s>": 0.5},
        ("<s>", "le", "rare"): {NBSP: 0.625},
    },
)
SHORTLIST = ("le", "chat", "neuf")  # `neuf` is none of the model's words; `rare` and the kilometres are outside
SENTENCES = ["le chat", "le rare " + NBSP, "rare rare le rare", "jamais vu le", "neuf " + NBSP, "le", ""]
CORPUS = [sentence.encode() for sentence in SENTENCES]


def random_model(seed, pruned=0.0):
    """Contexts of up to three words, some seen after others; `pruned` says how often an n-gram's suffix is none."""
    random = np.random.default_rng(seed)
    words = ["<unk>", "</s>", *SHORTLIST[:2], *(f"w{i}" for i in range(6))]
    unigrams = dict(zip(words, random.dirichlet(np.ones(len(words))).tolist(), strict=True))
    seen, contexts = {}, [("<s>",), *((word,) for word in words[2:])]
    while contexts:
        context = contexts.pop(0)
        suffixes = words if len(context) == 1 else seen.get(context[1:], ())
        chosen = [word for word in words[1:] if random.random() < (0.6 if word in suffixes else pruned)]
        if not chosen:
            continue
        shares = random.dirichlet(np.ones(len(chosen) + 1)).tolist()
        seen[context] = dict(zip(chosen, shares, strict=False))
        if len(context) < 3:
            contexts += [(*context, word) for word in chosen if word != "</s>"]
    return BackoffModel(unigrams, seen)


def checkpoint(order=3, scale=50.0):
    """A CSLM whose weights are large enough for the layers to matter."""
    words = [b"<unk>", b"</s>", *(word.encode() for word in SHORTLIST)]
    config = CslmConfig(len(words), order, embedding_size=4, first_size=8, second_size=4)
    return cslm_checkpoint(cslm_network(config, scale), Vocabulary(words))
