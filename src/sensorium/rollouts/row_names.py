"""Names of fields in rows of NeMo Gym's files, and the identity of a row."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sensorium.core import ConfigError

PARAMS = "responses_create_params"
"""The request to the model: ``input``, ``tools``, sampling."""
RESPONSE = "response"
"""The whole trajectory as one response: messages, calls and their outputs."""
REWARD = "reward"
REWARD_COMPONENTS = "reward_components"
AGENT = "agent_ref"
"""``{"name": ...}``: which agent runs the row."""
MASK = "mask_sample"
"""True: the reward is no measurement; the row is kept and counts nowhere."""
FAILURE_KIND = "failure_kind"
FAILURE_REASON = "failure_reason"
OURS = "sensorium"
"""Everything of ours that NeMo Gym has no name for."""

TASK_INDEX = "_ng_task_index"
"""Equal for rows of the same task."""
ROLLOUT_INDEX = "_ng_rollout_index"
"""Counts the repeats of a task."""
ATTEMPT_INDEX = "_ng_attempt_index"
"""Failed attempts before this one; absent for the first."""
ROLLOUT_ID = "_ng_rollout_id"
ENVIRONMENT_SERVER = "_ng_environment_server"
"""Instance that ran the row."""
RESULT_TYPE = "_ng_result_type"
"""Implementation of that instance."""
TASK_ID = "_ng_task_id"

FAILURE_CLASS = "_ng_failure_class"
"""Its presence makes a row a failed attempt, which has no reward."""
FAILURE_TERMINAL = "_ng_failure_terminal"
FAILURE_STAGE = "_ng_failure_stage"
FAILURE_MESSAGE = "_ng_failure_message"
NO_PERSIST = "_ng_no_persist"
"""True: the row is written nowhere, and is run again."""

RESERVED = frozenset({PARAMS, RESPONSE, REWARD, REWARD_COMPONENTS, AGENT, MASK, FAILURE_KIND, OURS})
"""Top-level names that a metric cannot have."""
MATERIALISED_TASK = "task_id"
"""Of a row in the form of an episode request: ``{"taskset", "task_id"}`` beside ``task_input``."""


class RowKey(NamedTuple):
    """Which rollout a row is of."""

    task: int
    rollout: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "RowKey":
        """The key of a materialised or finished row.

        Raises:
            ConfigError: It has none, so it is no row of a run.
        """
        return cls(_index(row, TASK_INDEX), _index(row, ROLLOUT_INDEX))


def _index(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(
            f"A row has no {name} that is a whole number (found {value!r}), so it is no rollout. "
            "Is it a file of `sensorium rollout` or of NeMo Gym's collector?"
        )
    return value


def section(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object in a row; empty where there is none."""
    found = row.get(name)
    return found if isinstance(found, Mapping) else {}


def is_failure(row: Mapping[str, Any]) -> bool:
    """Whether a row is a failed attempt."""
    return row.get(FAILURE_CLASS) is not None


def is_episode_request(row: Mapping[str, Any]) -> bool:
    """Whether an input row is one of NeMo Gym's materialised tasks."""
    return isinstance(row.get(MATERIALISED_TASK), Mapping) and "task_input" in row


def agent_name(row: Mapping[str, Any]) -> str | None:
    """Which agent a row asks for."""
    name = section(row, AGENT).get("name")
    return name if isinstance(name, str) and name else None
