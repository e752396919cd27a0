"""Figures that papers have published, each with its source; they stand beside ours and are never mixed with them."""

from __future__ import annotations

from typing import NamedTuple

CHO_2014 = "Cho et al. (2014), arXiv:1406.1078v3, Table 1: WMT'14 English–French"


class PublishedBleu(NamedTuple):
    """BLEU of a system on a paper's development and test set, 0 to 100."""

    dev: float
    test: float
    source: str


# by the column `published` of moses_configs/systems
PUBLISHED = {
    "baseline": PublishedBleu(30.64, 33.30, CHO_2014),
    "rnn": PublishedBleu(31.20, 33.87, CHO_2014),
    "cslm-rnn": PublishedBleu(31.48, 34.64, CHO_2014),
    "cslm-rnn-wp": PublishedBleu(31.50, 34.54, CHO_2014),
}
