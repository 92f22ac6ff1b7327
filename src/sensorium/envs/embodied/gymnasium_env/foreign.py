"""What other people's Gymnasium environments have in common: packages, names of actions, and pygame."""

import importlib
import inspect
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium

PYGAME = threading.RLock()
"""pygame draws most environments and is one for the whole process: worlds in different threads take turns."""

_PACKAGES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""Beginning of an id -> the module that registers it."""


def load_package_of(env_id: str) -> None:
    """Import the package that registers an id, for those whose ids are known by their beginning.

    Raises:
        ImportError: It is not installed.
    """
    for beginning, package in _PACKAGES.items():
        if env_id.startswith(beginning):
            importlib.import_module(package)


def draw_without_screen() -> None:
    """Tell pygame that a picture needs neither screen nor loudspeaker, unless somebody has chosen some."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


@contextmanager
def pygame_kept() -> Iterator[None]:
    """Let environments close as they do, without quitting pygame: others are still drawing with it."""
    with PYGAME:
        pygame: Any = sys.modules.get("pygame")
        if pygame is None:
            yield
            return
        before = pygame.quit, pygame.display.quit
        try:
            pygame.quit = pygame.display.quit = _nothing
            yield
        finally:
            pygame.quit, pygame.display.quit = before


def _nothing() -> None:
    """Takes the place of what must not be done."""


def action_names(env: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """Names that an environment has for its discrete actions itself; empty where it has none."""
    space, inner = env.action_space, env.unwrapped
    if not isinstance(space, gymnasium.spaces.Discrete):
        return ()
    meanings = getattr(inner, "get_action_meanings", None)
    kinds = getattr(inner, "actions", None)
    if callable(meanings):
        names = tuple(str(name).lower() for name in meanings())
    elif inspect.isclass(kinds) and hasattr(kinds, "__members__"):
        names = tuple(kinds.__members__)
    else:
        return ()
    return names if len(names) == space.n and len(set(names)) == len(names) else ()
