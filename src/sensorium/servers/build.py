"""From an instance of a file to the app that serves it."""

from typing import Any

from fastapi import FastAPI

from sensorium.core import ConfigError
from sensorium.servers.config import AgentServerConfig, EnvironmentServerConfig, ResourcesConfig
from sensorium.servers.layout import Instance
from sensorium.servers.runtime import Runtime


def build_instance(instance: Instance, runtime: Runtime) -> FastAPI:
    """The app of an instance.

    Raises:
        ConfigError: Its settings do not fit.
    """
    config: Any = instance.config
    try:
        match config:
            case ResourcesConfig():
                from sensorium.servers.resources import build_resources_app

                environment = config.environment or instance.implementation
                named = config.model_copy(update={"environment": environment})
                return build_resources_app(named, instance.name, runtime)
            case AgentServerConfig():
                from sensorium.servers.agent import build_agent_app

                return build_agent_app(config, instance.name, runtime)
            case EnvironmentServerConfig():
                from sensorium.servers.environment import build_environment_app

                return build_environment_app(config, instance.name, runtime)
            case _:
                from sensorium.servers.model import build_model_app

                return build_model_app(config, instance.name, runtime)
    except ConfigError as error:
        raise ConfigError(f"{instance.name}: {error}") from error
