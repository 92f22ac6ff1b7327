"""A Gymnasium environment that counts, breaks and dawdles as its tests ask: ``strange_gym:Strange-v0``."""

import threading
import time
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

BREAK, DAWDLE, NOT_SENDABLE = 7, 8, 9


class Strange(gymnasium.Env):
    open: ClassVar[set] = set()
    threads: ClassVar[set] = set()

    def __init__(self, length=3, render_mode=None):
        self.render_mode = render_mode
        self.observation_space = spaces.Dict(
            {
                "count": spaces.Box(-np.inf, np.inf, (2,), np.float64),
                "said": spaces.Text(40, charset="abcdefghijklmnopqrstuvwxyz 0123456789"),
                "pair": spaces.Tuple([spaces.Discrete(5), spaces.MultiBinary(2)]),
            }
        )
        self.action_space = spaces.Discrete(10)
        self._length = length
        type(self).open.add(id(self))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        type(self).threads.add(threading.current_thread().name)
        self._steps, self._drawn = 0, float(self.np_random.random())
        return self._seen("begun"), {"seed": -1 if seed is None else seed, "options": dict(options or {})}

    def step(self, action):
        if action == BREAK:
            raise ZeroDivisionError("a secret of the environment")
        if action == DAWDLE:
            time.sleep(1.0)
        self._steps += 1
        info = {"path": ["a", self._steps], "about": {"deep": np.arange(2)}, "thing": object()}
        seen = self._seen(f"step {self._steps}")
        if action == NOT_SENDABLE:
            seen["said"] = object()
        return seen, float(self._steps), self._steps == self._length, False, info

    def close(self):
        type(self).open.discard(id(self))

    def _seen(self, said):
        pair = (np.int64(self._steps), np.array([0, 1], np.int8))
        return {"count": np.array([self._steps, self._drawn]), "said": said, "pair": pair}


gymnasium.register("Strange-v0", entry_point=Strange, disable_env_checker=True)
