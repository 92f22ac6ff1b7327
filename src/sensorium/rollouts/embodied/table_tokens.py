"""Tokens of table rows, encoded once however often they are referred to."""

from collections.abc import Mapping

from sensorium.nn.tokens import Tokens
from sensorium.policies.embodied import ActorCritic
from sensorium.representations.tensors import TableRows


class TableTokens:
    """Remembers what the encoders make of a representer's table rows.

    Args:
        policy: Its encoders are used; call `forget` when they have changed, or the tables have begun anew.
    """

    def __init__(self, policy: ActorCritic) -> None:
        self._perception = policy.perception
        self._tokens: dict[str, Tokens] = {}

    def forget(self) -> None:
        """Encode everything again from the next call on."""
        self._tokens = {}

    def __call__(self, tables: Mapping[str, TableRows]) -> Mapping[str, Tokens]:
        """Tokens of every row so far; encodes those that were added since the last call."""
        for name, table in tables.items():
            old = self._tokens.get(name)
            known = 0 if old is None else len(old.summary)
            if known < len(table.values):
                added = TableRows(table.values[known:], table.mask[known:])
                new = self._perception.encode_tables({name: added})[name]
                self._tokens[name] = new if old is None else old.joined(new)
        return dict(self._tokens)
