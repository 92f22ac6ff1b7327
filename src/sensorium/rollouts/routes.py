"""Which server runs which row, from what a head server tells."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from sensorium.core import ConfigError
from sensorium.core.errors import nearest

_AGENTS = "responses_api_agents"
_ENVIRONMENTS = "environment_servers"
_ANY_HOST = frozenset({"0.0.0.0", "::", ""})


class Route(NamedTuple):
    """One server that runs rows."""

    name: str
    """Of the instance."""
    url: str
    implementation: str = ""
    is_environment_server: bool = False


class Routes:
    """The servers behind a head server.

    Args:
        config: Instance -> kind -> implementation -> settings.
        places: Instance -> address.
    """

    def __init__(self, config: Mapping[str, Any], places: Mapping[str, str]) -> None:
        self.config = config
        self._places = places
        self._agents = [name for name, kind, _, _ in _instances(config) if kind == _AGENTS]
        self._environments: dict[str, Route] = {}
        self._of_agent: dict[str, list[str]] = {}
        for name, kind, implementation, settings in _instances(config):
            if kind == _ENVIRONMENTS and name in places:
                self._environments[name] = Route(name, places[name], implementation, True)
                for agent in _agents_of(settings):
                    self._of_agent.setdefault(agent, []).append(name)

    def of_agent(self, agent: str) -> Route:
        """The environment server in front of an agent; the agent itself when there is none.

        Raises:
            ConfigError: There is no such agent, or several environment servers are in front of it.
        """
        if agent in self._environments:  # it may be named itself, too
            return self._environments[agent]
        servers = self._of_agent.get(agent, [])
        if len(servers) > 1:
            raise ConfigError(
                f"the agent {agent!r} is behind several environment servers: {', '.join(sorted(servers))}; "
                "name one of these instead"
            )
        if servers:
            return self._environments[servers[0]]
        if agent not in self._agents or agent not in self._places:
            raise ConfigError(
                f"there is no agent {agent!r}. {nearest(agent, [*self._agents, *self._environments])}"
            )
        return Route(agent, self._places[agent])

    def of_taskset(self, taskset: str, server: str | None) -> Route:
        """The environment server that runs the tasks of a set.

        Args:
            taskset: Its name.
            server: The one that is wanted; by default that with the name of the set, or the only one.

        Raises:
            ConfigError: It is not there, or which one is meant is not clear.
        """
        wanted = server or (taskset if taskset in self._environments else None)
        if wanted is None and len(self._environments) == 1:
            return next(iter(self._environments.values()))
        if wanted is None:
            raise ConfigError(
                f"which environment server runs the taskset {taskset!r}? Say --route {taskset}=NAME; "
                f"there are: {', '.join(sorted(self._environments)) or 'none'}"
            )
        if wanted not in self._environments:
            raise ConfigError(
                f"there is no environment server {wanted!r}. {nearest(wanted, self._environments)}"
            )
        return self._environments[wanted]

    def settings_of(self, names: Iterable[str]) -> dict[str, Any]:
        """The settings of some servers and of all to which they refer."""
        found: dict[str, Any] = {}
        queue = list(names)
        while queue:
            name = queue.pop()
            if name in found or name not in self.config:
                continue
            found[name] = self.config[name]
            for _, _, _, settings in _instances({name: self.config[name]}):
                queue += [
                    value["name"]
                    for value in settings.values()
                    if isinstance(value, Mapping) and isinstance(value.get("name"), str)
                ]
        return found


def read_routes(config: Any, instances: Any, head: str) -> Routes:
    """Read the answers of a head server.

    Args:
        config: Of ``/global_config_dict_yaml``: YAML in a text.
        instances: Of ``/server_instances``.
        head: Address of the head server.

    Raises:
        ConfigError: They are something else.
    """
    if not isinstance(config, str):
        raise ConfigError(
            f"{head}/global_config_dict_yaml is {type(config).__name__}; expected YAML in a text."
        )
    try:
        values = yaml.safe_load(config)
    except yaml.YAMLError as error:
        raise ConfigError(f"{head}/global_config_dict_yaml holds no YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{head}/global_config_dict_yaml holds no mapping of servers.")
    places: dict[str, str] = {}
    for one in instances if isinstance(instances, list) else []:
        if isinstance(one, Mapping) and isinstance(one.get("url"), str):
            name = one.get("process_name") or one.get("name")
            places[str(name)] = str(one["url"]).rstrip("/")
    here = urlsplit(head).hostname or "127.0.0.1"
    for name, _, _, settings in _instances(values):
        host, port = settings.get("host"), settings.get("port")
        if name not in places and port:
            places[name] = f"http://{here if str(host or '') in _ANY_HOST else host}:{port}"
    return Routes(values, {name: _reachable(url, here) for name, url in places.items()})


def _reachable(url: str, here: str) -> str:
    """An address for clients: a server that listens on every address is where the head server is."""
    parts = urlsplit(url)
    if parts.hostname not in ("0.0.0.0", "::"):
        return url
    return parts._replace(netloc=f"{here}:{parts.port}").geturl()


def _instances(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Name, kind, implementation and settings of every server."""
    for name, kinds in config.items():
        if not isinstance(kinds, Mapping):
            continue
        for kind in (_AGENTS, _ENVIRONMENTS, "resources_servers", "responses_api_models"):
            block = kinds.get(kind)
            for implementation, settings in block.items() if isinstance(block, Mapping) else ():
                if isinstance(settings, Mapping):
                    yield str(name), kind, str(implementation), settings


def _agents_of(settings: Mapping[str, Any]) -> Iterator[str]:
    """Agents to which an environment server refers."""
    for name, value in settings.items():
        named = isinstance(value, Mapping) and isinstance(value.get("name"), str)
        if named and (value.get("type") == _AGENTS or name == "agent_server"):
            yield value["name"]
