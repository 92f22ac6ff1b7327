"""Decoding that is held to a grammar, token by token, and that ends in time."""

import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ModelError, require
from sensorium.llm.local.grammars import CALL_OPENS
from sensorium.llm.local.loading import LocalTokenizer
from sensorium.llm.local.requests import RequestError

_CLOSING_TOKENS = 512
"""A completion longer than that is not looked for."""
_LOOKOUT_TOKENS = 16
"""After so many tokens the way to the end is looked at again."""
_TAIL_TOKENS = 24
"""Among how many last tokens the beginning of a call is looked for; it has 11 characters."""
_UNLIMITED = 2**31
_CLOSES, _ORDINARY = 0, 200
"""Ranks of closing brackets and of tokens without a meaning of their own."""
_COMPILED = 64
"""Grammars that are kept for further requests."""


class Grammars:
    """Compiles grammars for one vocabulary, and keeps them.

    Args:
        tokenizer: Whose tokens are masked.

    Raises:
        MissingDependencyError: ``llguidance`` is not installed.
    """

    def __init__(self, tokenizer: LocalTokenizer) -> None:
        self.tokenizer = tokenizer
        self.library = require("llguidance", extra="language", purpose="answers that follow a JSON schema")
        hf = require("llguidance.hf", extra="language", purpose="answers that follow a JSON schema")
        self.size = tokenizer.size
        self.ends = sorted(tokenizer.end_ids)
        self.vocabulary = hf.from_tokenizer(tokenizer.tokenizer, n_vocab=self.size, eos_token=self.ends)
        pieces = [self.vocabulary.decode_bytes([token]) for token in range(self.size)]
        self._ranks = np.asarray([_closing_rank(piece) for piece in pieces], dtype=np.int64)
        self._ranks_in_text = np.where(self._ranks == _CLOSES, _ORDINARY, self._ranks)
        self._brackets = [place for place, piece in enumerate(pieces) if piece in (b"}", b"]")]
        self._lock = threading.Lock()
        self._compile = lru_cache(maxsize=_COMPILED)(self._compiled)

    def matcher(self, grammar: str) -> Any:
        """A matcher at the beginning of a grammar.

        Raises:
            RequestError: The grammar cannot be enforced; the message says which keyword of the schema.
        """
        with self._lock:
            return self._compile(grammar).deep_copy()

    def _compiled(self, grammar: str) -> Any:
        matcher = self.library.LLMatcher(self.vocabulary, grammar, log_level=0)
        if matcher.is_error():
            reason = matcher.get_error().partition("\n")[0]
            raise RequestError(f"The schema cannot be enforced in decoding: {reason}.")
        return matcher

    def closing_token(self, matcher: Any) -> int | None:
        """The token that seems to bring an answer to its end soonest; None when none may come."""
        may_come = _bits(matcher, self.size)
        allowed = np.nonzero(may_come)[0]
        if len(allowed) == 0:
            return None
        # Both brackets may come only inside a text, where they close nothing.
        ranks = self._ranks_in_text if may_come[self._brackets].all() else self._ranks
        return int(allowed[np.argmin(ranks[allowed])])


class JsonGuide:
    """An answer that follows a grammar from its first token on.

    When few tokens are left, each token is taken only if the answer can still be completed after it; so a
    length limit ends an answer early, but does not cut it, unless it is shorter than any answer.

    Args:
        grammars: Of the vocabulary.
        matcher: At its beginning, or as far as the answer has come.
    """

    is_free = False

    def __init__(self, grammars: Grammars, matcher: Any) -> None:
        self._grammars = grammars
        self._matcher = matcher
        self._path: list[int] | None = None
        self._num_taken = 0
        self._longest = 0
        self._watched = self._watch()

    def begin(self, most: int) -> tuple[int, ...]:
        """Go on by the tokens that come in any case, unless they are more than `most`.

        Returns:
            Those tokens, but for the last, so that there is one left to sample.
        """
        forced: list[int] = self._matcher.compute_ff_tokens()[:-1]
        if len(forced) > most:
            return ()
        for token in forced:
            self.accept(token, _UNLIMITED)
        return tuple(forced)

    @property
    def is_finished(self) -> bool:
        """Whether nothing can follow."""
        return bool(self._matcher.is_stopped()) or self._path == []

    def mask(self) -> NDArray[np.bool_]:
        """Which tokens may come, (vocabulary,)."""
        if self._path:
            allowed = np.zeros(self._grammars.size, dtype=np.bool_)
            allowed[self._path[0]] = True
            return allowed
        return _bits(self._matcher, self._grammars.size)

    def accept(self, token: int, remaining: int) -> int:
        """Go on by a token, see `Guide.accept`.

        Raises:
            ModelError: The grammar became too complex to follow.
        """
        if self._path is None and remaining < self._watched and token not in self._grammars.ends:
            ahead = self._matcher.deep_copy()
            if not ahead.consume_token(token) or self._completion(ahead, remaining) is None:
                here = self._completion(self._matcher, remaining + 1)
                if here is not None:
                    self._path = here or [self._grammars.ends[0]]
        taken = self._path.pop(0) if self._path else token
        if not self._matcher.consume_token(taken):
            raise ModelError(f"The constraint of an answer cannot be followed: {self._matcher.get_error()}")
        self._num_taken += 1
        if self._num_taken % _LOOKOUT_TOKENS == 0 and self._path is None:
            self._watched = self._watch()
        return taken

    def _watch(self) -> int:
        """With how many tokens left every token is looked at; 0 where no way to the end was ever found.

        The way may get as long again as it ever was within a few tokens: when another call is opened.
        """
        shortest = self._completion(self._matcher, _CLOSING_TOKENS)
        self._longest = max(self._longest, len(shortest or ()))
        return 2 * (_LOOKOUT_TOKENS + self._longest) if self._longest else 0

    def _completion(self, matcher: Any, limit: int) -> list[int] | None:
        """A short way to the end, at most `limit` tokens; None when none was found."""
        ahead = matcher.deep_copy()
        path: list[int] = []
        while not ahead.is_accepting():
            forced = ahead.compute_ff_tokens()
            if not forced:
                token = self._grammars.closing_token(ahead)
                if token is None:
                    return None
                forced = [token]
            path += forced
            if len(path) > limit or not ahead.consume_tokens(forced):
                return None
        return path


class CallGuide:
    """An answer that is free until it opens a call of a tool, and then follows the grammar of calls.

    Args:
        grammars: Of the vocabulary.
        matcher: At the beginning of what follows the opening mark.
    """

    def __init__(self, grammars: Grammars, matcher: Any) -> None:
        self._grammars = grammars
        self._beginning = matcher
        self._call: JsonGuide | None = None
        self._recent: list[int] = []

    @property
    def is_free(self) -> bool:
        """Whether no call has been opened."""
        return self._call is None

    @property
    def is_finished(self) -> bool:
        """Whether calls were made and nothing can follow."""
        return self._call is not None and self._call.is_finished

    def mask(self) -> NDArray[np.bool_] | None:
        """Which tokens may come, (vocabulary,); None: any."""
        return None if self._call is None else self._call.mask()

    def accept(self, token: int, remaining: int) -> int:
        """Go on by a token, see `Guide.accept`."""
        if self._call is not None:
            return self._call.accept(token, remaining)
        self._recent = [*self._recent[1 - _TAIL_TOKENS :], token]
        _, opens, rest = self._grammars.tokenizer.decode(self._recent).partition(CALL_OPENS)
        if opens:
            self._recent = []
            matcher = self._beginning.deep_copy()
            said = self._grammars.vocabulary.tokenize_str(rest) if rest else []
            if matcher.try_consume_tokens(said) == len(said):
                self._call = JsonGuide(self._grammars, matcher)
        return token


def _bits(matcher: Any, size: int) -> NDArray[np.bool_]:
    packed = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").astype(np.bool_)


def _closing_rank(piece: bytes) -> int:
    """Closing brackets come first, then quotation marks, separators, short values, text, new values."""
    if not piece:
        return 1000
    first, rest = piece[:1], piece.strip(b'"}] \n')
    if first in b"}]" and not rest:
        return _CLOSES
    if first == b'"' and not rest:
        return 1
    if piece in (b"null", b"true", b"false", b",", b", "):
        return 2  # after a number a separator may come only where nothing can close
    if piece.isdigit():
        return 3
    if piece.isalpha() and piece.isascii():
        return 100 - min(len(piece), 50)  # long ones fill a least length sooner
    if piece in (b":", b": ", b"-", b"n", b"t", b"f"):
        return 4
    return _ORDINARY if first not in b"{[" else 300
