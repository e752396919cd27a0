"""Many probabilities as text at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Characters = npt.NDArray[np.uint8]

DIGITS = 9
LEAST_EXPONENT = -99  # two digits
LEAST_PLAIN_EXPONENT = -4  # below it, C writes 1.2e-05
POWERS = 10.0 ** np.arange(DIGITS - 1 - LEAST_EXPONENT + 1)
WIDTH = DIGITS + 6  # blank, point, e-05
MARGIN = 1e-4  # from the middle between two numbers; products by powers of ten are exact to 1e-6
ZERO, POINT, MINUS, BLANK, E = b"0.- e"


def nine_digits(values: Floats) -> list[bytes]:
    """Probabilities as C's ``%.9g`` writes them, a blank before each; five times as fast as one by one.

    Args:
        values: from 1e-99 to 1; others are written too, but slower.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log10(values))
    usual = (exponents >= LEAST_EXPONENT) & (exponents < 0)
    exponents = np.where(usual, exponents, -1).astype(np.int64)
    scaled = np.where(usual, values, 0.5) * POWERS[DIGITS - 1 - exponents]
    rounded = np.rint(scaled)
    whole = rounded.astype(np.uint32)
    text, last_digit = _text(whole, exponents)
    # Left to C: what is too near the middle, was rounded up to one more digit, or ends with zeros, which C leaves out.
    usual &= (np.abs(scaled - rounded) < 0.5 - MARGIN) & (last_digit != 0)
    usual &= (whole >= 10 ** (DIGITS - 1)) & (whole < 10**DIGITS)
    written: list[bytes] = text.view(f"S{WIDTH}").ravel().tolist()
    for i in np.flatnonzero(~usual).tolist():
        written[i] = b" %.9g" % values[i]
    return written


def rows_as_text(values: Floats) -> list[bytes]:
    """Each row's numbers as ``%.9g``, a blank before each; rows × columns."""
    columns = [nine_digits(column) for column in values.T]
    return columns[0] if len(columns) == 1 else list(map(b"".join, zip(*columns, strict=True)))


def _text(whole: npt.NDArray[np.uint32], exponents: npt.NDArray[np.int64]) -> tuple[Characters, Characters]:
    """Digits with a point and, below 1e-04, an exponent, as rows of characters; and the last digit of each."""
    digits = np.empty((DIGITS, len(whole)), np.uint8)
    left = whole
    for i in reversed(range(DIGITS)):
        tens = left // 10
        digits[i] = left - tens * 10
        left = tens
    last = digits[-1].copy()
    digits += ZERO
    text = np.zeros((len(whole), WIDTH), np.uint8)  # what is left zero is no part of the text
    text[:, 0] = BLANK
    for exponent in range(LEAST_PLAIN_EXPONENT, 0):
        rows = np.flatnonzero(exponents == exponent)
        text[rows, 1 : -exponent + 2] = ZERO
        text[rows, 2] = POINT
        text[rows, 2 - exponent : 2 - exponent + DIGITS] = digits[:, rows].T
    rows = np.flatnonzero(exponents < LEAST_PLAIN_EXPONENT)
    text[rows, 1] = digits[0, rows]
    text[rows, 2] = POINT
    text[rows, 3 : DIGITS + 2] = digits[1:, rows].T
    text[rows, DIGITS + 2 : DIGITS + 4] = E, MINUS
    text[rows, DIGITS + 4 :] = np.stack(np.divmod(-exponents[rows], 10), 1) + ZERO
    return text, last
