"""Estimates of many lines at once: the rules of `estimate`, worked out on arrays instead of piece by piece.

A text that was never seen has hundreds of pieces. To cut them out one after the other takes most of the time
that is spent on the text; on arrays the same sums take about half of it.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint16]
Costs = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]

_LOWER, _UPPER, _DIGIT, _SIGN, _SPACE, _TAB, _OTHER = range(1, 8)
_CHARACTERS = {
    _LOWER: range(97, 123),
    _UPPER: range(65, 91),
    _DIGIT: range(48, 58),
    _SIGN: (*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)),
    _SPACE: (32,),
    _TAB: (9,),
}
"""Kind -> characters; all others of ASCII are of the last kind."""
_LINE_END = 10


class Rules(NamedTuple):
    """What the pieces of a text cost, in hundredths of a token."""

    unit: int
    """Hundredths of one token."""
    free: int
    """By which the letters of a word may be rare before it costs more than one token."""
    free_capitals: int
    """The same of words in capitals."""
    sign_before: int
    """Of a sign joined to the word behind it."""
    sign_run: int
    """Of a run of signs, beside the signs in it."""
    sign_new: int
    """Of a sign in a run."""
    sign_same: int
    """Of one that is the same as the one before it."""
    spaces_per_token: int
    tabs_per_token: int
    digits_per_piece: int
    """Digits that are cut off as one piece."""
    digits_per_token: int
    pairs: tuple[tuple[int, ...], ...]
    """For two letters side by side: row the first, column the second; a to z."""


class BlockCosts:
    """Counts many lines of ASCII in one go.

    What a character costs depends on its own kind and on those of its neighbours. The three make one of 512
    codes, by which the answers are looked up.

    Args:
        rules: Costs.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        kinds = bytearray([_OTHER]) * 256
        for kind, characters in _CHARACTERS.items():
            for character in characters:
                kinds[character] = kind
        self._kinds = bytes(kinds)
        pairs = np.zeros((32, 32), np.int32)  # the low five bits of a letter number it from 1 on
        pairs[1:27, 1:27] = np.array(rules.pairs)[:26, :26]
        self._pairs = pairs.ravel()
        self._alone = np.array(_by_code(self._cost_alone), np.int32)
        self._begins_word = np.array(_by_code(_begins_word), np.bool_)
        self._free = np.array(_by_code(self._free_of), np.int32)

    def __call__(self, lines: Sequence[str]) -> list[int]:
        """What every line costs by itself, in hundredths of a token.

        Args:
            lines: At least one; all characters are of ASCII, none is a line end.
        """
        encoded = "\n".join([*lines, ""]).encode("ascii")
        text = np.frombuffer(encoded, np.uint8)
        kinds = np.frombuffer(encoded.translate(self._kinds), np.uint8)
        wide = kinds.astype(np.uint16)
        codes = wide << np.uint16(3)
        codes[1:] += wide[:-1] << np.uint16(6)
        codes[:-1] += wide[1:]
        codes[0] += _OTHER << 6  # in front of the first and behind the last character are line ends
        codes[-1] += _OTHER
        costs = self._alone.take(codes)
        self._add_words(text, kinds, codes, costs)
        self._add_signs(text, kinds, codes, costs)
        self._add_runs(kinds, codes, costs)
        ends = np.flatnonzero(text == _LINE_END)
        costs[ends] = 0
        sums = np.cumsum(costs)[ends]
        sums[1:] -= sums[:-1].copy()
        counted: list[int] = sums.tolist()
        return counted

    def _cost_alone(self, before: int, own: int, behind: int) -> int:
        """Of what makes a piece of its own: control characters, and spaces that nothing behind them takes."""
        is_space = own == _SPACE and behind in (_DIGIT, _TAB, _OTHER)
        is_digit = own == _DIGIT and self._rules.digits_per_token == 1
        return self._rules.unit if own == _OTHER or is_space or is_digit else 0

    def _free_of(self, before: int, own: int, behind: int) -> int:
        """Rarity that a word may have which begins with this letter."""
        return self._rules.free_capitals if own == _UPPER and behind != _LOWER else self._rules.free

    def _add_words(self, text: Bytes, kinds: Bytes, codes: Codes, costs: Costs) -> None:
        """Words: small letters, perhaps with a capital in front, or capitals alone."""
        at = np.flatnonzero(kinds <= _UPPER)
        if not len(at):
            return
        own = codes.take(at)
        begins = self._begins_word.take(own)
        letters = text.take(at).astype(np.intp) & 31
        rarity = np.zeros(len(at), np.int32)
        rarity[1:] = self._pairs.take((letters[:-1] << 5) + letters[1:])
        rarity[begins] = 0
        starts = np.flatnonzero(begins)
        sums = np.add.reduceat(rarity, starts) - self._free[own[starts]]
        costs[at[starts]] = self._rules.unit + np.maximum(sums, 0)

    def _add_signs(self, text: Bytes, kinds: Bytes, codes: Codes, costs: Costs) -> None:
        """Runs of signs; a single one may belong to the word behind it."""
        at = np.flatnonzero(kinds == _SIGN)
        if not len(at):
            return
        rules, own, signs = self._rules, codes.take(at), text.take(at)
        begins = (own >> 6) != _SIGN
        each = np.full(len(at), rules.sign_new, np.int32)
        each[1:][(signs[1:] == signs[:-1]) & ~begins[1:]] = rules.sign_same
        starts = np.flatnonzero(begins)
        runs = np.maximum(np.add.reduceat(each, starts) + rules.sign_run, rules.unit)
        first, around = at[starts], own[starts]
        following = around & 7
        # A capital in front of a small letter begins a word that a sign may belong to, other capitals do not.
        second = codes[first + 1] & 7
        joins = (following == _LOWER) | ((following == _UPPER) & (second == _LOWER))
        joins &= (around >> 6) != _SPACE
        runs[joins] = rules.sign_before
        costs[first] = runs

    def _add_runs(self, kinds: Bytes, codes: Codes, costs: Costs) -> None:
        """Runs of spaces but for the last one, of tabs, and of digits that share tokens."""
        rules = self._rules
        # A space with another one behind it; what stands before does not matter.
        spaces = (codes & 63) == (_SPACE << 3) + _SPACE
        for taken, width in ((spaces, rules.spaces_per_token), (kinds == _TAB, rules.tabs_per_token)):
            starts, lengths = _runs(taken)
            costs[starts] = rules.unit * (1 + (lengths - 1) // width)
        if rules.digits_per_token > 1:
            starts, lengths = _runs(kinds == _DIGIT)
            pieces, rest = np.divmod(lengths, rules.digits_per_piece)
            whole = -(-rules.digits_per_piece // rules.digits_per_token)
            costs[starts] = rules.unit * (pieces * whole + -(-rest // rules.digits_per_token))


def _begins_word(before: int, own: int, behind: int) -> bool:
    """Whether a letter is the first of a word: after what is none, or a capital that begins anew."""
    if own not in (_LOWER, _UPPER):
        return False
    return before not in (_LOWER, _UPPER) or (own == _UPPER and _LOWER in (before, behind))


def _by_code(answer: Callable[[int, int, int], int]) -> list[int]:
    """Answers for every code: kind before, own kind, kind behind."""
    return [answer(*kinds) for kinds in product(range(8), repeat=3)]


def _runs(taken: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
    """Where runs of taken places begin, and how long they are."""
    at = np.flatnonzero(taken)
    if not len(at):
        return at, at
    edges = np.ones(len(at) + 1, np.bool_)
    np.not_equal(at[1:] - at[:-1], 1, out=edges[1:-1])
    bounds = np.flatnonzero(edges)
    return at[bounds[:-1]], bounds[1:] - bounds[:-1]
