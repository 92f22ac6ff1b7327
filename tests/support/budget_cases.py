"""One case of the property that no representation is larger than its budget."""

import re

from drawn_states import COUNTER, Case, count, draw_case

from sensorium.core import ObservationError
from sensorium.representations.base import Representation
from sensorium.representations.pipeline import ObservationPipeline


def represent(case: Case, max_tokens: int | None = None) -> Representation:
    """Run the case, with another budget if one is given."""
    config = case.config
    if max_tokens is not None:
        changed = {"max_tokens": max_tokens, "context_window": None}
        config = config.model_copy(update={"observation": config.observation.model_copy(update=changed)})
    pipeline = ObservationPipeline(config, counter=COUNTER)
    return pipeline(case.observation, task=case.task, history=case.history, system=case.system)


def check_case(number: int, **size: int) -> bool:
    """Assert that the case of a number keeps its budget; returns whether its instruction fitted."""
    case = draw_case(number, **size)
    limits = case.config.observation
    try:
        shown = represent(case)
    except ObservationError as error:
        _check_advice(case, str(error), number)
        return False
    account = shown.account
    total = count(shown.messages)
    assert total == shown.num_tokens, number
    assert total <= limits.max_tokens, number
    assert 0 <= account.state_tokens <= account.state_limit <= limits.max_tokens, number
    assert account.instruction_tokens + account.history_tokens + account.state_tokens == total, number
    return True


def _check_advice(case: Case, message: str, number: int) -> None:
    """The sizes that the message names really work, and one token less than the smaller does not."""
    found = re.search(r"Raise it to at least ([\d,]+) \(([\d,]+) leaves", message)
    assert found is not None, message
    sizes = [int(named.replace(",", "")) for named in found.groups()]
    assert case.config.observation.max_tokens < sizes[0] <= sizes[1], number
    for enough in sizes:
        assert represent(case, enough).num_tokens <= enough, number
    try:
        represent(case, sizes[0] - 1)
    except ObservationError:
        return
    raise AssertionError(f"{number}: {sizes[0] - 1} tokens are enough, too")
