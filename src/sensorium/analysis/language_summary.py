"""What a run of a language model's agent came to: its `summary.json`."""

from pydantic import Field

from sensorium.analysis.run_directory import Finite, RunDirectory, Share
from sensorium.core.config import Config


class LanguageSummary(Config):
    """The content of `summary.json`."""

    task: str
    """Name of the environment, e.g. ``"lookup"``."""
    model: str
    """Name of the model."""
    algorithm: str
    """Name and version of the algorithm, e.g. ``"grpo-1"``."""
    unit: str
    """What is compared: ``trajectory``, ``step`` or ``gigpo``."""
    seed: int
    """Seed of the run."""
    updates: int = Field(ge=0)
    """Rounds of collecting and learning."""
    wall_s: Finite = Field(ge=0)
    """Seconds of training, of all sessions together when the run was resumed."""
    sampled_tokens: int = Field(ge=0)
    """Tokens of all answers that were learnt from."""
    success_rate: Share | None
    """In the last evaluation, on tasks that were not trained on; None when no task could be judged."""
    success_ci95: tuple[Share, Share] | None
    """95 % Wilson interval of `success_rate`."""
    first_success_rate: Share | None = None
    """The same before the first update; None when that was not asked for (`evaluation.at_start`)."""
    episodes: int = Field(ge=0)
    """Evaluation episodes behind `success_rate`; those that failed for a reason beside the agent are left
    out."""
    mean_return: Finite | None
    """Mean undiscounted return of the same episodes."""
    first_return: Finite | None
    """Mean return of the training episodes of the first update; None when nothing was collected."""
    last_return: Finite | None
    """The same of the last update."""


def read_language_summary(run: RunDirectory) -> LanguageSummary:
    """Read what a run came to.

    Raises:
        RunDirectoryError: `summary.json` is missing, or a field is missing, unknown or out of range.
    """
    return run.read_summary(LanguageSummary, made_by="sensorium train PRESET --on-existing resume")
