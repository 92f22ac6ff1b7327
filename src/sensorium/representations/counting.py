"""Tokens of pieces of a message by themselves."""

from collections.abc import Iterable, Sequence

from sensorium.llm.base import TokenCounter, count_message
from sensorium.llm.estimate import EstimateCounter
from sensorium.llm.messages import AnyBlock, Message, TextBlock


def count_blocks(counter: TokenCounter, blocks: Sequence[AnyBlock]) -> int:
    """Tokens of blocks, without what a message costs beside them; 0 of none."""
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if len(texts) == len(blocks):
        return counter.text("\n".join(texts)) if texts else 0
    return count_message(counter, Message(role="user", content=tuple(blocks))) - counter.message_overhead


def count_ahead(counter: TokenCounter, texts: Iterable[str]) -> None:
    """Announce texts that will be counted one by one, where the counter is faster with many at once."""
    if isinstance(counter, EstimateCounter):
        counter.count_ahead(texts)
