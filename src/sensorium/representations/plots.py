"""A summary of a long table or array together with a small plot, for models that take pictures."""

import base64
from collections.abc import Sequence

from sensorium.core import MissingDependencyError
from sensorium.llm.base import TokenCounter
from sensorium.llm.messages import AnyBlock, ImageBlock
from sensorium.observations.values import ArrayValue, TableValue
from sensorium.representations.base import Level
from sensorium.representations.config import PipelineConfig
from sensorium.representations.media.plot import SIZE, small_plot
from sensorium.representations.subjects import Candidate, Serve, Subject

PLOT_RETAINED = 0.3
"""Share of what a summary leaves out that the plot tells: the course of a column, the pattern of a matrix."""
MAX_SHARE = 0.5
"""A plot that would cost more than this share of the whole part is not drawn."""


def with_plot(
    subject: Subject,
    summaries: Sequence[Candidate],
    config: PipelineConfig,
    counter: TokenCounter,
    serve: Serve | None,
) -> list[Candidate]:
    """The summaries of a table or array, each once more with a plot; nothing where a plot says no more.

    Args:
        subject: Whose summaries they are.
        summaries: Candidates; those of other levels are passed over.
        config: `multimodal.table.plot` and `multimodal.image.encoding`.
        counter: Counts tokens.
        serve: Registers the picture, for ``encoding: url``.
    """
    limits = config.multimodal
    if (
        not isinstance(subject.part.value, TableValue | ArrayValue)
        or limits.table.plot == "never"
        or limits.image.encoding == "words"
    ):
        return []
    short = [candidate for candidate in summaries if candidate.level is Level.SUMMARY]
    cost = counter.image(*SIZE)
    if not short or cost > MAX_SHARE * subject.tokens:
        return []
    try:
        png = small_plot(subject.part)
    except MissingDependencyError:
        return []  # without Pillow the numbers have to do
    if png is None:
        return []
    block = ImageBlock(url=_address(png, config, serve), width=SIZE[0], height=SIZE[1])
    return [_joined(candidate, block, cost, subject.within_limits) for candidate in short]


def _joined(candidate: Candidate, plot: ImageBlock, cost: int, within_limits: float) -> Candidate:
    def write() -> tuple[AnyBlock, ...]:
        return (*candidate.write(), plot)

    return candidate._replace(
        tokens=candidate.tokens + cost,
        retained=min(0.999, candidate.retained + PLOT_RETAINED * (1.0 - candidate.retained * within_limits)),
        why=f"{candidate.why}, and a plot",
        write=write,
        is_fixed=True,
    )


def _address(png: bytes, config: PipelineConfig, serve: Serve | None) -> str:
    if config.multimodal.image.encoding == "url" and serve is not None:
        return serve(png, "image/png")
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
