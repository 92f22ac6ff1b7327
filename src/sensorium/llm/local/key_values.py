"""Keys and values of requests that decode together, and which join and leave in mid-run.

Rows are aligned at their end: the next token of every request goes into the same column, and requests of
different lengths begin at different columns. What lies left of a request's beginning is masked. As the
distance of two columns is the distance of two tokens, sliding windows come out right, too.
"""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

_SLACK = 128
"""Columns that are allocated beyond what is needed."""

Layers = list[tuple[Tensor, Tensor] | None]
"""Keys and values of one request, (heads, tokens, width) each; None for a layer that has none of its own."""


class RowsLayer(CacheLayerMixin):  # type: ignore[misc]  # transformers has no types
    """One layer's keys and values, inside buffers with room for more columns and rows."""

    is_sliding = False

    def __init__(self, rows: "KeyValueRows") -> None:
        super().__init__()
        self.rows = rows
        self.keys: Any
        self.values: Any
        self.is_initialized = True  # as far as transformers is concerned
        self.is_allocated = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate buffers for states of shape (requests, heads, tokens, width)."""
        self.keys = self.allocate(key_states)
        self.values = self.allocate(value_states)
        self.is_allocated = True

    def allocate(self, like: Tensor) -> Tensor:
        """An empty buffer for states of a shape; zeros, as what is masked must still be finite."""
        shape = (self.rows.row_capacity, like.shape[1], self.rows.column_capacity, like.shape[3])
        return like.new_zeros(shape)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the states of new tokens at the end; returns all that the requests have."""
        if not self.is_allocated:
            self.lazy_initialization(key_states, value_states)
        rows = self.rows
        end = rows.end + key_states.shape[-2]
        self.keys[: rows.num_rows, :, rows.end : end] = key_states
        self.values[: rows.num_rows, :, rows.end : end] = value_states
        window = (slice(rows.num_rows), slice(None), slice(rows.begin, end))
        return self.keys[window], self.values[window]

    def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
        """Columns that a query sees, and where they begin."""
        num_queries = query_length if isinstance(query_length, int) else query_length.shape[0]
        return self.rows.width + num_queries, 0

    def get_seq_length(self) -> int:
        """Columns that are filled."""
        return self.rows.width

    def get_max_length(self) -> int:
        """There is no limit."""
        return -1

    get_max_cache_shape = get_max_length
    """Its name in earlier versions of transformers."""


class KeyValueRows:
    """The cache of a batch of requests.

    Args:
        num_layers: Layers of the model.
        columns: Tokens to have room for.
        rows: Requests, without a token yet.

    Attributes:
        lengths: Tokens of every request.
        begin: First column that is in use.
        end: Column of the next token.
    """

    def __init__(self, num_layers: int, columns: int, rows: int = 1) -> None:
        self.lengths: list[int] = [0] * rows
        self.begin = 0
        self.end = 0
        self.row_capacity = rows
        self.column_capacity = columns + _SLACK
        self._layers = [RowsLayer(self) for _ in range(num_layers)]
        self.cache = Cache(layers=self._layers)

    @property
    def num_rows(self) -> int:
        """Requests."""
        return len(self.lengths)

    @property
    def width(self) -> int:
        """Columns in use."""
        return self.end - self.begin

    @property
    def num_bytes(self) -> int:
        """Memory of all buffers."""
        layers = [layer for layer in self._layers if layer.is_allocated]
        return sum(
            buffer.numel() * buffer.element_size()
            for layer in layers
            for buffer in (layer.keys, layer.values)
        )

    @property
    def bytes_per_token(self) -> float:
        """Memory of one token of one request; 0 before the first token."""
        return self.num_bytes / (self.row_capacity * self.column_capacity)

    def mask(self, num_queries: int, device: torch.device) -> Int[Tensor, "requests columns"] | None:
        """1 where a request has a token, new ones included; None when all requests fill all columns."""
        starts = [self.width - length for length in self.lengths]
        if not any(starts):
            return None
        columns = torch.arange(self.width + num_queries, device=device)
        return (columns >= torch.tensor(starts, device=device)[:, None]).long()

    def reserve(self, num_tokens: int) -> None:
        """Make room for new tokens of every request, before the model is called."""
        if self.end + num_tokens > self.column_capacity:
            grown = max(self.width + num_tokens + _SLACK, 3 * self.width // 2)
            self._rebuild(self.row_capacity, front=0, columns=grown)

    def advance(self, num_tokens: int) -> None:
        """Count new tokens of every request, after the model was called."""
        self.end += num_tokens
        self.lengths = [length + num_tokens for length in self.lengths]

    def join(self, other: "KeyValueRows", count: int = 1) -> None:
        """Add the one request of another cache as the last rows, so many times."""
        length, row = other.lengths[0], self.num_rows
        front, rows = max(0, length - self.width), self.num_rows + count
        if rows > self.row_capacity or front > self.begin:
            capacity = max(rows, 2 * self.row_capacity) if rows > self.row_capacity else self.row_capacity
            columns = 3 * max(length, self.width) // 2 + _SLACK
            self._rebuild(capacity, front=front, columns=columns)
        for mine, its in zip(self._layers, other._layers, strict=True):
            if its.is_allocated:
                there, here = slice(self.end - length, self.end), slice(other.begin, other.end)
                mine.keys[row:rows, :, there] = its.keys[0, :, here]
                mine.values[row:rows, :, there] = its.values[0, :, here]
        self.lengths += [length] * count
        self.begin = min(self.begin, self.end - length)

    def leave(self, rows: Collection[int]) -> list[int]:
        """Take requests away; the last ones that stay take their places.

        Returns:
            Where the rows that stay come from, by their new number.
        """
        order = list(range(self.num_rows))
        stays = self.num_rows - len(rows)
        holes = sorted(row for row in rows if row < stays)
        movers = [row for row in range(stays, self.num_rows) if row not in rows]
        if holes:
            for layer in self._layers:
                if layer.is_allocated:
                    layer.keys[holes] = layer.keys[movers]
                    layer.values[holes] = layer.values[movers]
        for hole, mover in zip(holes, movers, strict=True):
            order[hole] = mover
        del order[stays:]
        self.lengths = [self.lengths[row] for row in order]
        self.begin = self.end - max(self.lengths, default=0)
        return order

    def copy(self, row: int, num_tokens: int) -> Layers:
        """Keys and values of the first tokens of a request, in memory of their own."""
        start = self.end - self.lengths[row]
        columns = slice(start, start + num_tokens)
        return [
            (layer.keys[row, :, columns].clone(), layer.values[row, :, columns].clone())
            if layer.is_allocated
            else None
            for layer in self._layers
        ]

    def load(self, layers: Sequence[tuple[Tensor, Tensor] | None], num_tokens: int) -> None:
        """Begin every request of an empty cache with the first tokens of a copy."""
        for layer, states in zip(self._layers, layers, strict=True):
            if states is not None:
                keys, values = (state[None, :, :num_tokens] for state in states)
                layer.lazy_initialization(keys, values)
                layer.keys[:, :, :num_tokens] = keys
                layer.values[:, :, :num_tokens] = values
        self.advance(num_tokens)

    def _rebuild(self, rows: int, front: int, columns: int) -> None:
        """Move to new buffers, with free columns in front of those in use."""
        begin, end, used = self.begin, self.end, self.num_rows
        self.row_capacity, self.column_capacity = rows, front + columns
        self.begin, self.end = front, front + end - begin
        for layer in self._layers:
            if not layer.is_allocated:
                continue
            for name in ("keys", "values"):
                old = getattr(layer, name)
                new = layer.allocate(old)
                new[:used, :, self.begin : self.end] = old[:used, :, begin:end]
                setattr(layer, name, new)
