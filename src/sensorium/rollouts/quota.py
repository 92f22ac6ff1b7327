"""How often is tried again, and when trying is of no use any more."""

from collections import Counter, deque

from pydantic import Field

from sensorium.core import Config
from sensorium.envs.episode import Failure
from sensorium.rollouts.failures import worth_retrying

_FIRST_FAILURES = 20
_HOPELESS_SHARE = 0.9


class RetryConfig(Config):
    """How failed rollouts are tried again."""

    max_attempts: int = Field(default=3, ge=1)
    """Of one rollout, the first one included."""
    max_retry_share: float = Field(default=0.5, ge=0.0)
    """Second and further attempts of the whole run, as a share of its rollouts; 16 are always allowed."""
    first_delay_s: float = Field(default=0.5, ge=0.0)
    """Before the second attempt; doubles with each further one."""
    max_delay_s: float = Field(default=30.0, ge=0.0)
    window: int = Field(default=40, ge=4)
    """The run is given up when nine tenths of the last so many attempts failed, or the first 20 of them."""


class Quota:
    """Counts the attempts of one run.

    Args:
        config: How failed rollouts are tried again.
        num_rollouts: Of the run.
        concurrency: Rollouts under way at the same time: so many may fail for one and the same cause.
    """

    def __init__(self, config: RetryConfig, num_rollouts: int, concurrency: int) -> None:
        self._config = config
        self._retries_left = max(16, round(config.max_retry_share * num_rollouts))
        self._window: deque[bool] = deque(maxlen=max(config.window, concurrency))
        self._succeeded = 0
        self._failed = 0
        self._reasons: Counter[str] = Counter()

    def succeeded(self) -> None:
        """A rollout has a result."""
        self._succeeded += 1
        self._window.append(True)

    def failed(self, failure: Failure) -> None:
        """An attempt failed."""
        self._failed += 1
        self._window.append(False)
        self._reasons[f"{failure.kind}: {failure.reason}"] += 1

    def allows(self, failure: Failure, attempts: int) -> bool:
        """Whether to try again; takes one from the run's quota if so.

        Args:
            failure: Of the last attempt.
            attempts: So far.
        """
        if not worth_retrying(failure) or attempts >= self._config.max_attempts or self._retries_left <= 0:
            return False
        self._retries_left -= 1
        return True

    def delay_s(self, attempts: int) -> float:
        """Seconds to wait before the next attempt."""
        return min(self._config.max_delay_s, self._config.first_delay_s * 2.0 ** (attempts - 1))

    @property
    def hopeless(self) -> str | None:
        """Why going on is of no use; None while it is."""
        if self._succeeded == 0 and self._failed >= _FIRST_FAILURES:
            said = f"the first {self._failed} attempts all failed"
        elif len(self._window) == self._window.maxlen:
            failed = self._window.count(False)
            if failed < _HOPELESS_SHARE * len(self._window):
                return None
            said = f"{failed} of the last {len(self._window)} attempts failed"
        else:
            return None
        reason, times = self._reasons.most_common(1)[0]
        return f"{said}; {times} of them with {reason.rstrip('.')}"
