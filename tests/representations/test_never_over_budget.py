"""The promise that everything else stands on: no representation is larger than its budget."""

import re

import pytest
from drawn_states import COUNTER, Case, count, draw_case

from sensorium.core import ObservationError
from sensorium.representations.base import Representation
from sensorium.representations.pipeline import ObservationPipeline


def represent(case: Case, max_tokens: int | None = None) -> Representation:
    config = case.config
    if max_tokens is not None:
        changed = {"max_tokens": max_tokens, "context_window": None}
        config = config.model_copy(update={"observation": config.observation.model_copy(update=changed)})
    pipeline = ObservationPipeline(config, counter=COUNTER)
    return pipeline(case.observation, task=case.task, history=case.history, system=case.system)


def check(number: int) -> bool:
    """Check one case; returns whether its instruction fitted."""
    case = draw_case(number)
    limits = case.config.observation
    try:
        shown = represent(case)
    except ObservationError as error:
        found = re.search(r"Raise it to at least ([\d,]+) \(([\d,]+) leaves", str(error))
        assert found is not None, str(error)
        for named in found.groups():
            enough = int(named.replace(",", ""))
            assert enough > limits.max_tokens, number
            assert represent(case, enough).num_tokens <= enough, number
        with pytest.raises(ObservationError, match="alone takes"):
            represent(case, int(found[1].replace(",", "")) - 1)
        return False
    account = shown.account
    total = count(shown.messages)
    assert total == shown.num_tokens, number
    assert total <= limits.max_tokens, number
    assert 0 <= account.state_tokens <= account.state_limit <= limits.max_tokens, number
    assert account.instruction_tokens + account.history_tokens + account.state_tokens == total, number
    return True


def test_ten_thousand_states_budgets_and_histories():
    fitted = sum(check(number) for number in range(10_000))
    assert fitted > 5_000


@pytest.mark.slow
def test_larger_states():
    for number in range(1_000_000, 1_000_500):
        case = draw_case(number, max_parts=60, max_lines=400)
        try:
            shown = represent(case)
        except ObservationError:
            continue
        assert count(shown.messages) == shown.num_tokens <= case.config.observation.max_tokens, number
        assert shown.account.state_tokens <= shown.account.state_limit, number
