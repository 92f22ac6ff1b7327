"""A summary of a long table or array together with a small plot, for models that take pictures."""

import base64
from collections.abc import Sequence

from sensorium.core import MissingDependencyError
from sensorium.core.byte_cache import ByteCache
from sensorium.llm.messages import AnyBlock, ImageBlock
from sensorium.observations.base import Part
from sensorium.observations.values import ArrayValue, TableValue
from sensorium.representations.base import Level
from sensorium.representations.media.plot import SIZE, small_plot
from sensorium.representations.subjects import Candidate, Context, Subject

PLOT_RETAINED = 0.3
"""Share of what a summary leaves out that the plot tells: the course of a column, the pattern of a matrix."""
MAX_SHARE = 0.5
"""A plot that would cost more than this share of the whole part is not drawn."""
_PLOTS = ByteCache[bytes](8_000_000, lambda png: 64 + len(png))


def with_plot(subject: Subject, summaries: Sequence[Candidate], context: Context) -> list[Candidate]:
    """The summaries of a table or array, each once more with a plot; nothing where a plot says no more.

    Args:
        subject: Whose summaries they are.
        summaries: Candidates; those of other levels are passed over.
        context: With `multimodal.table.plot` and `multimodal.image.encoding`.
    """
    limits = context.config.multimodal
    if (
        not isinstance(subject.part.value, TableValue | ArrayValue)
        or limits.table.plot == "never"
        or limits.image.encoding == "words"
    ):
        return []
    short = [candidate for candidate in summaries if candidate.level is Level.SUMMARY]
    cost = context.counter.image(*SIZE)
    if not short or cost > MAX_SHARE * subject.tokens:
        return []
    png = _plot(subject.part)
    if not png:
        return []
    block = ImageBlock(url=_address(png, context), width=SIZE[0], height=SIZE[1])
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


def _plot(part: Part) -> bytes:
    """A PNG, empty where a plot says no more; drawn once for what an agent meets step after step."""
    png = _PLOTS.get(part.digest)
    if png is None:
        try:
            png = small_plot(part) or b""
        except MissingDependencyError:
            return b""  # without Pillow the numbers have to do
        _PLOTS.put(part.digest, png)
    return png


def _address(png: bytes, context: Context) -> str:
    if context.config.multimodal.image.encoding == "url" and context.serve is not None:
        return context.serve(png, "image/png")
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
