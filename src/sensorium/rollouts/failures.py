"""Why rollouts fail: one vocabulary, NeMo Gym's where it has a word; which failures are worth another try."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast, get_args

from sensorium.envs.episode import Failure, Stage
from sensorium.rollouts import row_names as names

_STAGES = get_args(Stage)
_MAX_REASON_CHARS = 2000
_PREFIX = "sensorium"
_NAMESPACED = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")


class Kind(NamedTuple):
    """One word of the vocabulary."""

    says: str
    """What went wrong."""
    again: bool = True
    """Whether another try may do better."""
    shared: bool = True
    """Whether NeMo Gym has the same word; otherwise it is written ``sensorium:<kind>``."""
    counts: bool = True
    """Whether it uses up one of the rollout's attempts on a resumed run; what was not begun, or was stopped
    from outside, does not."""


KINDS: dict[str, Kind] = {
    "transport_unreachable": Kind("the server could not be reached", counts=False),
    "transport_peer_drop": Kind("the server broke the connection off"),
    "transport_timeout": Kind("the server did not answer in time"),
    "transport_local_resource": Kind("this machine ran out of sockets, memory or disk"),
    "agent_run_error": Kind("the agent's server answered with an error"),
    "agent_request_failed": Kind(
        "the rollout was not begun: too busy, or something in front of the server", counts=False
    ),
    "agent_timeout": Kind("the episode took too long"),
    "agent_command_not_allowed": Kind("the agent may not do that", again=False),
    "judge_failed": Kind("the judge gave no verdict"),
    "judge_unparseable": Kind("the judge's verdict could not be read"),
    "verifier_error": Kind("the environment could not judge the episode"),
    "provider_unavailable": Kind("the sandbox could not be had"),
    "provider_quota_exhausted": Kind("no more sandboxes may be had"),
    "provider_oom_killed": Kind("the sandbox was out of memory"),
    "session_lost": Kind("the environment's server does not know the session any more"),
    "session_expired": Kind("the session was idle for too long"),
    "session_release_failed": Kind("the session could not be given back"),
    "cancelled": Kind("the episode was stopped", counts=False),
    "kill_shaped": Kind("the process was killed", counts=False),
    "shutdown": Kind("the server was shutting down", counts=False),
    "persistence_failed": Kind("the result could not be written"),
    "cohort_incomplete": Kind("the group of the rollout is not complete"),
    "env_crashed": Kind("the environment broke", shared=False),
    "env_timeout": Kind("the environment took too long", shared=False),
    "tool_crashed": Kind("a tool of the environment broke", shared=False),
    "observation_too_large": Kind("the state does not fit the token budget", again=False, shared=False),
    "context_overflow": Kind("the prompt does not fit the model", again=False, shared=False),
    "model_failed": Kind("the model could not be asked", shared=False),
    "task_invalid": Kind("the task cannot be set up from the row", again=False, shared=False),
    "session_conflict": Kind("the session is one of another task", again=False, shared=False),
    "episode_over": Kind("the episode was over already", again=False, shared=False),
    "step_out_of_order": Kind("a step was sent out of its order", again=False, shared=False),
    "answer_unreadable": Kind("the server's answer is no result", again=False, shared=False),
}
"""Every word: failures are counted and told apart by it."""


def wire_kind(kind: str) -> str:
    """The name under which NeMo Gym takes a kind: its own, else in our namespace."""
    known = KINDS.get(kind)
    if (known is not None and known.shared) or _NAMESPACED.fullmatch(kind):
        return kind
    return f"{_PREFIX}:{re.sub('[^a-z0-9_]', '_', kind.lower()) or 'unknown'}"


def plain_kind(wire: str) -> str:
    """The kind behind a name on the wire."""
    return wire.removeprefix(f"{_PREFIX}:")


def worth_retrying(failure: Failure) -> bool:
    """Whether another try may do better."""
    known = KINDS.get(plain_kind(failure.kind))
    return not failure.terminal and (known is None or known.again)


def counts_as_attempt(kind: str) -> bool:
    """Whether a failure uses up one of the rollout's attempts on a resumed run."""
    known = KINDS.get(plain_kind(kind))
    return known is None or known.counts


def known_stage(stage: object) -> Stage:
    """The stage that a server says; that of the agent for a word that is none."""
    return cast(Stage, stage) if stage in _STAGES else "agent"


def failure_fields(failure: Failure | None) -> dict[str, Any]:
    """The fields that make a row a failed attempt; it must have no reward."""
    failure = failure or Failure(
        kind="env_crashed", reason="The episode has no reward, and no reason is given."
    )
    reason = failure.reason[:_MAX_REASON_CHARS]
    kind = wire_kind(failure.kind)
    return {
        names.FAILURE_CLASS: kind,
        names.FAILURE_TERMINAL: not worth_retrying(failure),
        names.FAILURE_STAGE: failure.stage,
        names.FAILURE_MESSAGE: reason,
        names.FAILURE_KIND: kind,
        names.FAILURE_REASON: reason,
    }


def failure_of(row: Mapping[str, Any]) -> Failure | None:
    """What went wrong in a failed attempt, of ours or of NeMo Gym; None for a row with a result."""
    wire = row.get(names.FAILURE_CLASS)
    if wire is None:
        return None
    said = row.get(names.FAILURE_MESSAGE) or row.get(names.FAILURE_REASON) or row.get("error") or ""
    kind = row.get(names.FAILURE_KIND)
    return Failure(
        kind=plain_kind(kind if isinstance(kind, str) and kind else str(wire)),
        reason=str(said)[:_MAX_REASON_CHARS],
        stage=known_stage(row.get(names.FAILURE_STAGE)),
        terminal=bool(row.get(names.FAILURE_TERMINAL, False)),
    )
