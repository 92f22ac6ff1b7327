"""One of our servers under the real NeMo Gym, whose launcher says by environment variables what to serve.

Its ``app.py`` is one line: ``from sensorium.servers.nemo import main; main()``.
"""

import asyncio
import os

import yaml

from sensorium.core import ConfigError, parse_config, set_passive_threads
from sensorium.servers.build import build_instance
from sensorium.servers.config import KINDS
from sensorium.servers.launch import set_up_logging
from sensorium.servers.layout import Instance, config_type
from sensorium.servers.runtime import Runtime
from sensorium.servers.serving import Served, bind, run, serve, stop_on_signals

CONFIG = "NEMO_GYM_CONFIG_DICT"
NAME = "NEMO_GYM_CONFIG_PATH"
_IMPLEMENTATION = "SENSORIUM_IMPLEMENTATION"


def read_instance(text: str, name: str) -> tuple[Instance, dict[str, str]]:
    """The instance that this process is, and where all others are.

    Args:
        text: The whole config as YAML.
        name: Of the instance.

    Raises:
        ConfigError: There is no such instance, or its settings do not fit.
    """
    values = yaml.safe_load(text)
    if not isinstance(values, dict) or name not in values:
        raise ConfigError(f"{CONFIG} has no instance {name!r}.")
    urls: dict[str, str] = {}
    for key, block in values.items():
        for kind in KINDS:
            inner = block.get(kind) if isinstance(block, dict) else None
            for settings in inner.values() if isinstance(inner, dict) else ():
                if isinstance(settings, dict) and settings.get("port"):
                    host = settings.get("host") or "127.0.0.1"
                    urls[key] = f"http://{host}:{settings['port']}"
    kind = next(one for one in values[name] if one in KINDS)
    implementation, settings = next(iter(values[name][kind].items()))
    known = os.environ.get(_IMPLEMENTATION) or (settings or {}).get("environment") or implementation
    of = config_type(kind, "chat_agent" if kind == "responses_api_agents" else known)
    settings = {key: value for key, value in (settings or {}).items() if key in of.model_fields}
    return Instance(name, kind, known, parse_config(of, settings)), urls


async def _main() -> None:
    instance, urls = read_instance(os.environ[CONFIG], os.environ[NAME])
    stop = asyncio.Event()
    stop_on_signals(stop)
    listener = bind(instance.config.host, instance.config.port, instance.name)
    runtime = Runtime(urls=urls, api_key=os.environ.get(instance.config.api_key_env))
    app = build_instance(instance, runtime)
    await serve([Served(instance.name, app, listener)], lambda: None, stop)


def main() -> None:
    """Serve what NeMo Gym's launcher asks for.

    Raises:
        ConfigError: The variables are not set, or say something else.
    """
    if CONFIG not in os.environ or NAME not in os.environ:
        raise ConfigError(f"{CONFIG} and {NAME} are not set: this is started by NeMo Gym's launcher.")
    set_passive_threads()
    set_up_logging()
    run(_main())


if __name__ == "__main__":
    main()
