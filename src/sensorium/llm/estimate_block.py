"""Estimates of many lines at once: the rules of `estimate`, worked out on arrays instead of piece by piece.

A text that was never seen has hundreds of pieces. To cut them out one after the other would take most of the
time that is spent on the text; on arrays, with tables for all that can stand side by side, it takes little.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Costs = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]

_LINE_END, _LOWER, _UPPER, _DIGIT, _SIGN, _SPACE, _TAB, _OTHER = range(8)
_CHARACTERS = {
    _LINE_END: (10,),
    _LOWER: range(97, 123),
    _UPPER: range(65, 91),
    _DIGIT: range(48, 58),
    _SIGN: (*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)),
    _SPACE: (32,),
    _TAB: (9,),
}
"""Kind -> characters; all others of ASCII are of the last kind."""
_KINDS, _ASCII, _BYTES = 8, 128, 256
_ENDLESS = 1_000_000
"""More than what any piece costs."""


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

    A text is a row of runs that begin with a letter or a sign. What its first character costs by itself, and
    how rare its characters may be at no cost, depends on four kinds of characters: the one before it, its own
    and the two behind it. They make one of 4,096 codes, by which the answers are looked up. How rare a
    character is depends on itself and the one before it, which make one of 32,768 codes.

    Args:
        rules: Costs; those of pairs and signs are below 256.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        kinds = bytearray([_OTHER]) * _BYTES
        for kind, characters in _CHARACTERS.items():
            for character in characters:
                kinds[character] = kind
        self._kinds = bytes(kinds)
        self._rarity = _rarity(rules, np.frombuffer(kinds, np.uint8)[:_ASCII])
        before, own, behind, second = np.indices((_KINDS,) * 4).reshape(4, -1)
        is_letter = (own == _LOWER) | (own == _UPPER)
        follows_letter = is_letter & ((before == _LOWER) | (before == _UPPER))
        is_capital_anew = (own == _UPPER) & ((before == _LOWER) | (behind == _LOWER))
        begins_word = (is_letter & ~follows_letter) | (follows_letter & is_capital_anew)
        self._is_hump = follows_letter & is_capital_anew
        """Whether a word begins right behind another one, whose letters do not matter to it."""
        begins_signs = (own == _SIGN) & (before != _SIGN)
        self._begins = begins_word | begins_signs
        # A sign belongs to a word behind it: to small letters, or one capital in front of them.
        takes_sign = (behind == _LOWER) | ((behind == _UPPER) & (second == _LOWER))
        joins = begins_signs & takes_sign & (before != _SPACE)
        # Control characters, and spaces that nothing behind them takes; runs of spaces and tabs.
        is_alone = (own == _OTHER) | ((own == _SPACE) & np.isin(behind, (_DIGIT, _TAB, _OTHER, _LINE_END)))
        is_alone |= (own == _SPACE) & (behind == _SPACE) & (before != _SPACE)
        is_alone |= (own == _TAB) & (before != _TAB)
        is_alone |= (own == _DIGIT) & (rules.digits_per_token == 1)
        first = np.where(is_alone | self._begins, rules.unit, 0)
        first[joins] = rules.sign_before
        self._first = first.astype(np.int32)
        capitals = begins_word & (own == _UPPER) & (behind != _LOWER)
        free = np.where(capitals, rules.free_capitals, rules.free)
        free[begins_signs] = rules.unit - rules.sign_run
        free[joins] = _ENDLESS
        self._free = free.astype(np.int32)

    def __call__(self, lines: Sequence[str]) -> list[int]:
        """What every line costs by itself, in hundredths of a token.

        Args:
            lines: At least one; all characters are of ASCII, none is a line end.
        """
        encoded = "\n".join(["", *lines, "", "", ""]).encode("ascii")
        size = len(encoded) - 3  # without the first line end, and those that only stand behind something
        kinds = np.frombuffer(encoded.translate(self._kinds), np.uint8)
        pairs = ((kinds[:-1] << 3) | kinds[1:]).astype(np.intp)
        codes = (pairs[:size] << 6) | pairs[2:]
        costs: Costs = self._first.take(codes)
        starts = self._begins.take(codes).nonzero()[0]
        if len(starts):
            # Two bytes side by side as one number, read at every place.
            neighbours = np.ndarray((size,), "<u2", encoded, strides=(1,))
            rarity: Bytes = self._rarity.take(neighbours)
            rarity[self._is_hump.take(codes)] = 0
            sums = np.add.reduceat(rarity, starts, dtype=np.int32) - self._free.take(codes.take(starts))
            costs[starts] += np.maximum(sums, 0)
        self._add_long_runs(encoded, kinds[1 : size + 1], costs)
        begins = (kinds[:size] == _LINE_END).nonzero()[0][: len(lines)]  # costs leave out the first line end
        counted: list[int] = np.add.reduceat(costs, begins).tolist()
        return counted

    def _add_long_runs(self, encoded: bytes, kinds: Bytes, costs: Costs) -> None:
        """Long runs of spaces but for the last one and of tabs, and all of digits that share tokens."""
        rules = self._rules
        spaces, tabs = rules.spaces_per_token, rules.tabs_per_token
        if b" " * (spaces + 2) in encoded:
            taken = kinds == _SPACE
            taken[:-1] &= taken[1:]
            starts, lengths = _runs(taken)
            costs[starts] = rules.unit * (1 + (lengths - 1) // spaces)
        if b"\t" * (tabs + 1) in encoded:
            starts, lengths = _runs(kinds == _TAB)
            costs[starts] = rules.unit * (1 + (lengths - 1) // tabs)
        if rules.digits_per_token > 1:
            starts, lengths = _runs(kinds == _DIGIT)
            pieces, rest = np.divmod(lengths, rules.digits_per_piece)
            whole = -(-rules.digits_per_piece // rules.digits_per_token)
            costs[starts] = rules.unit * (pieces * whole + -(-rest // rules.digits_per_token))


def _rarity(rules: Rules, kinds: Bytes) -> Bytes:
    """At ``256 * own + before`` of two characters: how rare the second is as a letter, how new as a sign."""
    code = np.arange(_ASCII)
    is_letter = (kinds == _LOWER) | (kinds == _UPPER)
    letters = np.where(is_letter, code & 31, 0)  # the low five bits of a letter number it from 1 on
    pairs = np.zeros((27, 27), np.uint8)
    pairs[1:, 1:] = np.array(rules.pairs)[:26, :26]
    signs = np.where(code[:, None] == code, rules.sign_same, rules.sign_new)
    found = np.where(kinds[:, None] == _SIGN, signs, pairs[letters[None, :], letters[:, None]])
    table = np.zeros((_ASCII, _BYTES), np.uint8)
    table[:, :_ASCII] = found
    return table.ravel()


def _runs(taken: Flags) -> tuple[Places, Places]:
    """Where runs of taken places begin, and how long they are."""
    at = np.flatnonzero(taken)
    if not len(at):
        return at, at
    edges = np.ones(len(at) + 1, np.bool_)
    np.not_equal(at[1:] - at[:-1], 1, out=edges[1:-1])
    bounds = np.flatnonzero(edges)
    return at[bounds[:-1]], bounds[1:] - bounds[:-1]
