"""A small scored table with all that a page must escape, and what reads the page."""

from html.parser import HTMLParser

import numpy as np

NAMES = [
    "facts", "training", "coverage", "costs", "targets", "samples", "preferences", "scores", "words", "phrases", "gates",
    "explained",
]  # fmt: skip


LIMITS = {"SOURCES": 1, "SAMPLES": 5, "PHRASES": 20, "POINTS": 8}  # of what is shown
SIGNATURE = {
    "program": "moses_rnn <b>",
    "lines": 9,
    "odd": {"a": [1]},
    "added_columns": [{"index": 4, "name": "RNN", "floor": -5.0, "floored": 1}, "odd"],
    "models": [{"sha256": {}}, 3],
}


def line(source, target, direct, rnn, counts):
    return b"%b ||| %b ||| .1 .1 %g .1 %g ||| 0-0 ||| %b ||| |||\n" % (source, target, direct, rnn, counts)


TABLE = [
    *(line(b"a b c <script>alert(1)</script>", target, 0.2 + 0.01 * i, 0.3 - 0.01 * i, b"9 40 %d" % (5 + i))
      for i, target in enumerate([b"u \xff", b"v", b"w", b"<img/src=x> &amp;", b"\xe2\x80\xaex"])),
    *(line(b"b c d e", target, 0.33, 0.001, b"9 3 1") for target in [b"u", b"v", b"w"]),
    line(b"c d e f g", b"u v", 1, 0.2, b"9 1 1"),
]  # fmt: skip


class Scorer:
    name, meaning = "RNN", "minus bytes and a half"
    unbounded = False

    def log_probs(self, pairs, tally=None):
        return -np.array([0.5 + len(target) for target in pairs.targets])


class Reader(HTMLParser):
    """Notes what a page fetches, and that all its elements end in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses, self.ids, self.metas, self.texts = [], set(), [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert not {"style", "onclick", "onload", "onerror", "srcset"} & set(given)
        self.tags.add(tag)
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag == "meta":
            self.metas[given.get("name") or given.get("http-equiv")] = given.get("content")
        elif tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def _run(seed, near, far, **more):
    return {"seed": seed, "near_BLEU": near, "far_BLEU": far, **more}


def _row(near, far, *runs):
    return {"runs": list(runs), "near_BLEU": {"mean": near, "sd": 0.1}, "far_BLEU": {"mean": far, "sd": 0.1}}


WEIGHTS = {"LM0": [0.5], "TranslationModel0": [0.1, 0.1, 0.1, 0.1, 0.07]}
RESULTS = {
    "tests": ["near", "far"],
    "systems": {
        "baseline": _row(58.5, 50.75, _run("1", 58.4, 50.7), _run("2", 58.6, 50.8)),
        "rnn": _row(
            59.0,
            51.0,
            _run("1", 58.9, 51.0, near_p=0.01, far_p=0.2, p=0.03, weights=WEIGHTS),
            _run("2", 59.1, 51.0, near_p=0.02, far_p=0.3, p=0.04, weights=WEIGHTS),
        ),
    },
}
