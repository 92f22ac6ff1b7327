"""The rollouts of a run, one after the other; the next one may be collected while the last is learnt from."""

import copy
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait

import torch

from sensorium.core import derive_seed
from sensorium.envs.embodied import MultiModalVectorEnv
from sensorium.policies.embodied import ActorCritic
from sensorium.representations.tensors import TensorRepresenter
from sensorium.rollouts.embodied.collector import Collector
from sensorium.rollouts.embodied.rollout import Rollout


class RolloutSource:
    """Hands out rollouts, collected in turn with learning or meanwhile.

    Collecting meanwhile uses cores that one of the two would leave idle: a thread acts with a copy of the
    policy, taken when the rollout began, and has randomness of its own, so that a run is as deterministic as
    one that takes turns. Such a rollout is learnt from by a policy that is one update newer; its
    log-probabilities are those of the copy, around which the ratio is clipped.

    Args:
        env: The worlds.
        policy: The one that learns.
        representer: Turns observations into tensors.
        generator: Source of the actions' randomness where acting and learning take turns.
        num_steps: Steps per world and rollout.
        max_staleness: Updates by which a rollout's policy may be older than the one that learns from it: 0
            takes turns, 1 collects meanwhile.
    """

    def __init__(
        self,
        env: MultiModalVectorEnv,
        policy: ActorCritic,
        representer: TensorRepresenter,
        generator: torch.Generator,
        *,
        num_steps: int,
        max_staleness: int = 0,
    ) -> None:
        self._learning, self._num_steps = policy, num_steps
        self._acting = copy.deepcopy(policy) if max_staleness else policy
        self._own_generator = torch.Generator() if max_staleness else None
        self._collector = Collector(env, self._acting, representer, self._own_generator or generator)
        self._thread = ThreadPoolExecutor(1, "collecting") if max_staleness else None
        self._under_way: Future[tuple[Rollout, float]] | None = None
        self.seconds: dict[str, float] = {}
        """Of the last rollout: `collect`, what it took, and `wait`, how much of that learning waited for."""

    def restart(self, seed: int) -> None:
        """Start new episodes everywhere; no rollout may be under way."""
        assert self._under_way is None, "take(more=False) comes before restart()"
        if self._own_generator is not None:
            self._own_generator.manual_seed(derive_seed(seed, "actions"))
        self._collector.restart(seed)

    def take(self, *, more: bool) -> Rollout:
        """The next rollout, from the policy as it is now or, of those collected meanwhile, one update ago.

        Args:
            more: Whether another will follow before `restart`; it may begin at once.

        Raises:
            Exception: Whatever acting or the worlds raised.
        """
        started = time.perf_counter()
        rollout, collect_s = self._collect() if self._under_way is None else self._under_way.result()
        self._under_way = None
        self.seconds = {"collect": collect_s, "wait": time.perf_counter() - started}
        if more and self._thread is not None:
            self._copy_weights()
            self._under_way = self._thread.submit(self._timed)
        return rollout

    def settle(self) -> None:
        """Wait until no world is being stepped; what is under way is kept for `take`."""
        if self._under_way is not None:
            wait([self._under_way])

    def close(self) -> None:
        """Wait for what is under way, drop it and end the thread."""
        self.settle()
        if self._thread is not None:
            self._thread.shutdown()

    def _collect(self) -> tuple[Rollout, float]:
        self._copy_weights()
        return self._timed()

    def _timed(self) -> tuple[Rollout, float]:
        started = time.perf_counter()
        rollout = self._collector.collect(self._num_steps)
        return rollout, time.perf_counter() - started

    def _copy_weights(self) -> None:
        if self._acting is not self._learning:
            self._acting.load_state_dict(self._learning.state_dict())
