"""From an id to an environment, or to a sentence that says why there is none."""

import importlib
import logging
import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, find_highest_version, get_env_id, parse_env_id

from sensorium.core import ConfigError, MissingDependencyError, SensoriumError
from sensorium.envs.embodied.gymnasium_env.config import GymnasiumOptions
from sensorium.envs.embodied.gymnasium_env.foreign import (
    draw_without_screen,
    load_package_of,
    pygame_kept,
)

_LOG = logging.getLogger(__name__)

AnyEnv = gymnasium.Env[Any, Any]

PREFIX = "gym/"
"""What stands before Gymnasium's id in the name of a task."""

_INSTALLED_BY = {"minigrid": "pip install 'sensorium[grid]'"}
"""Module -> how to install it, where that is not ``pip install MODULE`` with "-" for "_"."""


def env_id_of(task: str) -> str:
    """Gymnasium's id in the name of a task.

    Example:
        >>> env_id_of("gym/ALE/Pong-v5")
        'ALE/Pong-v5'
    """
    return task.removeprefix(PREFIX)


def registered(env_id: str) -> EnvSpec:
    """How an id is registered with Gymnasium; imports the module that ``module:id`` names.

    Raises:
        ConfigError: It is not registered; says what comes close.
        MissingDependencyError: The module, or one that it imports, is not installed.
    """
    module, _, name = env_id.rpartition(":")
    if ":" in module:
        raise ConfigError(f"A task is written {PREFIX}ID or {PREFIX}MODULE:ID; found {PREFIX}{env_id}.")
    if module:
        _import(module, PREFIX + env_id)
    try:
        load_package_of(name)
    except ImportError as error:
        raise _not_installed(PREFIX + env_id, error) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return gymnasium.spec(_versioned(name))
    except gymnasium.error.Error as error:
        own = (
            ""
            if module
            else (f" If a module of your own registers it, name that too: {PREFIX}MODULE:{name or 'ID'}.")
        )
        raise ConfigError(f"Gymnasium has no environment {name!r}: {error}{own}") from error


def _versioned(name: str) -> str:
    """An id without a version means the newest, as for `gymnasium.make`.

    Raises:
        gymnasium.error.Error: The id is malformed.
    """
    namespace, base, version = parse_env_id(name)
    newest = (
        find_highest_version(namespace, base) if version is None and name not in gymnasium.registry else None
    )
    return name if newest is None else get_env_id(namespace, base, newest)


def make_env(env_id: str, options: GymnasiumOptions, render_mode: str | None) -> AnyEnv:
    """Make an environment without its time limit, inside the wrappers of the options.

    Args:
        env_id: Of Gymnasium; may begin with the module that registers it.
        options: Arguments and wrappers.
        render_mode: ``"rgb_array"`` or None.

    Raises:
        ConfigError: It is not registered, or cannot be made with these options.
        MissingDependencyError: A package that it needs is not installed.
    """
    spec = registered(env_id)
    mode = {} if render_mode is None else {"render_mode": render_mode}
    if render_mode is not None:
        draw_without_screen()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Gymnasium finds odd about foreign environments
            env: AnyEnv = gymnasium.make(
                spec, max_episode_steps=-1, disable_env_checker=True, **mode, **options.kwargs
            )
    except SensoriumError:
        raise
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingDependencyError(f"{PREFIX}{env_id} needs a package that is missing: {error}") from error
    except ImportError as error:
        raise _not_installed(PREFIX + env_id, error) from error
    except Exception as error:  # whatever a foreign constructor raises
        given = f"with the arguments {options.kwargs}" if options.kwargs else "without arguments"
        raise ConfigError(
            f"{PREFIX}{env_id} cannot be made {given}: {type(error).__name__}: {error}. Its arguments are "
            f"given as --env.backend_options '{{kwargs: {{NAME: VALUE}}}}'."
        ) from error
    for name, arguments in options.named_wrappers:
        env = _wrapped(env, name, arguments)
    return env


def close_env(env: AnyEnv) -> None:
    """Close an environment while others go on drawing; one that cannot be closed is given up."""
    try:
        with pygame_kept():
            env.close()
    except Exception as error:  # whatever a foreign environment raises
        _LOG.warning("closing %s raised %s: %s", env, type(error).__name__, error)


def _wrapped(env: AnyEnv, name: str, arguments: dict[str, Any]) -> AnyEnv:
    module, _, attribute = name.partition(":")
    wrapper = getattr(_import(module, f"the wrapper {name}"), attribute, None)
    if not callable(wrapper):
        raise ConfigError(f"The wrapper {name} does not exist: {module} has no {attribute!r}.")
    try:
        wrapped = wrapper(env, **arguments)
    except Exception as error:  # whatever a foreign constructor raises
        raise ConfigError(
            f"The wrapper {name} cannot be put around {env} with the arguments {arguments}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(wrapped, gymnasium.Env):
        raise ConfigError(f"The wrapper {name} returned a {type(wrapped).__name__}, not a gymnasium.Env.")
    return wrapped


def _import(module: str, needed_by: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _not_installed(needed_by, error, asked=module) from error
    except Exception as error:  # a module may do anything when it is imported
        raise ConfigError(
            f"Importing {module} for {needed_by} failed: {type(error).__name__}: {error}"
        ) from error


def _not_installed(needed_by: str, error: ImportError, asked: str = "") -> MissingDependencyError:
    module = str(error.name or asked)
    if not module:  # a package that says in words what it lacks
        return MissingDependencyError(f"{needed_by} needs something that cannot be imported: {error}")
    package = module.partition(".")[0]
    how = _INSTALLED_BY.get(package, f"pip install {package.replace('_', '-')}")
    own = f", or, where it is a file of your own, put its folder on PYTHONPATH ({asked})" if asked else ""
    return MissingDependencyError(
        f"{needed_by} needs the module {module}, which cannot be imported ({error}). Install it, e.g. with: "
        f"{how}{own}."
    )
