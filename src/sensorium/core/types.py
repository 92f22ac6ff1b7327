"""The words of the project, one meaning each.

task        one serialisable problem                 episode     one run of a task
step        one action and what came back            trajectory  the record of an episode
rollout     the act of collecting                    group       trajectories that share a task
policy      chooses actions                          agent       policy + tools + context rules
trainer     changes a policy                         part / features / representation   the three layers
modality    a kind of sense                          sensor      an instance of a modality
"""

from enum import StrEnum


class Modality(StrEnum):
    """A kind of sense."""

    TEXT = "text"
    CODE = "code"
    NOTEBOOK = "notebook"
    TABLE = "table"
    IMAGE = "image"
    DEPTH = "depth"
    AUDIO = "audio"
    PROPRIO = "proprio"


class EpisodeStatus(StrEnum):
    """How an episode ended; kept apart from its reward, so that a failure is never a score of 0."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    """The task ended and was not solved."""
    TRUNCATED = "truncated"
    """The step limit was reached; the value of the last observation is bootstrapped."""
    ERROR = "error"
    """The environment broke (a worker died, an engine crashed): no reward, excluded from statistics."""


class ActionKind(StrEnum):
    """What an action is made of."""

    DISCRETE = "discrete"
    CONTINUOUS = "continuous"
    HYBRID = "hybrid"
    """One discrete option and continuous parameters in one action."""
