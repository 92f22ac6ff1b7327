"""Tokens of a piece of a message by itself."""

from collections.abc import Sequence

from sensorium.llm.base import TokenCounter, count_message
from sensorium.llm.messages import AnyBlock, Message, TextBlock


def count_blocks(counter: TokenCounter, blocks: Sequence[AnyBlock]) -> int:
    """Tokens of blocks, without what a message costs beside them; 0 of none."""
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if len(texts) == len(blocks):
        return counter.text("\n".join(texts)) if texts else 0
    return count_message(counter, Message(role="user", content=tuple(blocks))) - counter.message_overhead
