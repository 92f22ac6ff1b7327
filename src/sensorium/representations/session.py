"""One episode of an agent: what it was shown, what it did, and what it may fetch."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from sensorium.core import ObservationError
from sensorium.llm.messages import AnyBlock
from sensorium.metrics import ObservationMeter, ObservationSample
from sensorium.representations.adaptive import Adaptive, AdaptiveState
from sensorium.representations.base import Record, Representation
from sensorium.representations.history import History
from sensorium.representations.pipeline import ObservationPipeline, Trace


class SessionState(Record):
    """Everything a session knows: the same state gives the same prompts, here or on another machine."""

    task: str
    system: str = ""
    history: History = Field(default_factory=History)
    adaptive: AdaptiveState = Field(default_factory=AdaptiveState)


class Session:
    """Observes and remembers for one episode.

        session = Session(pipeline, "Why does the regression fail?")
        shown = session.observe(notebook)          # messages for the model
        session.acted("run cell 3", outcome="KeyError: 'price'")

    Args:
        pipeline: Shared by any number of sessions.
        task: The original instruction.
        system: A system prompt.
        state: To go on from (`state`), instead of the beginning.
        meter: Counts tokens, retained information and latencies; written when the agent has acted.
        keep_states: Whether the history keeps what was shown; an agent that keeps the conversation itself
            needs only to know which parts were.
    """

    def __init__(
        self,
        pipeline: ObservationPipeline,
        task: str,
        *,
        system: str = "",
        state: SessionState | None = None,
        meter: ObservationMeter | None = None,
        keep_states: bool = True,
    ) -> None:
        self._meter, self._keep_states = meter, keep_states
        self._pipeline = pipeline
        self._state = state or SessionState(task=task, system=system)
        self._adaptive = Adaptive(pipeline.config.adaptive, self._state.adaptive)
        self._trace: Trace | None = None
        self._fetched: list[str] = []

    @property
    def state(self) -> SessionState:
        """To store or send; `SessionState.model_validate_json` reads it back."""
        return self._state.model_copy(update={"adaptive": self._adaptive.state})

    @property
    def history(self) -> History:
        """Steps so far."""
        return self._state.history

    def observe(self, raw: Any) -> Representation:
        """Represent the present state.

        Raises:
            ObservationError: The instruction alone does not fit the budget.
        """
        weights = self._adaptive.weights if self._pipeline.config.adaptive.enabled else None
        self._trace = self._pipeline.trace(
            raw,
            task=self._state.task,
            history=self._state.history,
            system=self._state.system,
            weights=weights,
        )
        self._fetched = []
        if self._meter is not None:
            account = self._trace.representation.account.model_dump()
            self._meter.add(ObservationSample.of_account(account, extraction_ms=self._trace.latencies))
        return self._trace.representation

    def fetch(self, arguments: Mapping[str, Any]) -> tuple[AnyBlock, ...]:
        """Answer a call of the fetch tool (`references.fetch_tool`) on the present state.

        Raises:
            ObservationError: Nothing was observed yet.
        """
        trace = self._present("fetch a part")
        self._fetched.append(str(arguments.get("ref", "")).removeprefix("ref:"))
        return self._pipeline.references(trace).call(arguments)

    def acted(self, action: str, *, outcome: str = "", reward: float | None = None) -> dict[str, float]:
        """Record what the agent did on what `observe` showed.

        Returns:
            Kind of part -> how much the action used it, in [0, 1]; empty unless budgets adapt.

        Raises:
            ObservationError: Nothing was observed yet.
        """
        trace = self._present("record an action")
        history = self._state.history.after(
            action,
            trace.representation,
            observation=trace.observation,
            outcome=outcome,
            reward=reward,
            keep_state=self._keep_states,
        )
        self._state = self._state.model_copy(update={"history": history})
        self._trace = None
        if self._meter is not None:
            self._meter.write(len(history.steps))
        if not self._pipeline.config.adaptive.enabled:
            return {}
        return self._adaptive.acted(trace.observation, trace.representation, action, tuple(self._fetched))

    def finished(self, success: float) -> None:
        """End the episode; what was useful carries over to the next one through `state.adaptive`.

        Args:
            success: In [0, 1].
        """
        if self._pipeline.config.adaptive.enabled:
            self._adaptive.finished(success)

    def _present(self, purpose: str) -> Trace:
        if self._trace is None:
            raise ObservationError(f"Cannot {purpose}: call observe(...) for this step first.")
        return self._trace
