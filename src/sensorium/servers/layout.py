"""Reads files in NeMo Gym's layout: instance, kind, implementation, settings."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from sensorium.core import Config, ConfigError, parse_config, read_yaml
from sensorium.core.errors import nearest
from sensorium.servers.config import (
    KINDS,
    AgentServerConfig,
    CustomModelConfig,
    EnvironmentServerConfig,
    HeadConfig,
    LocalModelConfig,
    OpenAIModelConfig,
    ResourcesConfig,
    ServerConfig,
)

ENV_FILE = "env.yaml"
"""Values for ``${...}`` that are in no file one shares: keys, addresses."""
_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_PLAIN_KEYS = frozenset({"config_paths", "head_server", "default_host", "policy_base_url", "policy_api_key"})
_MAX_DEPTH = 10
MODEL_KINDS: dict[str, type[ServerConfig]] = {
    "openai_model": OpenAIModelConfig,
    "vllm_model": OpenAIModelConfig,
    "local_model": LocalModelConfig,
    "custom_model": CustomModelConfig,
}
AGENT_KINDS = ("chat_agent", "simple_agent", "gymnasium_agent", "aviary_agent")
ENVIRONMENT_KINDS = ("episode", "legacy_agent", "single_agent_turn", "single_agent_turn_legacy")
_IMPLEMENTATIONS: dict[str, Mapping[str, type[ServerConfig]]] = {
    "responses_api_models": MODEL_KINDS,
    "responses_api_agents": dict.fromkeys(AGENT_KINDS, AgentServerConfig),
    "environment_servers": dict.fromkeys(ENVIRONMENT_KINDS, EnvironmentServerConfig),
}
_KIND_OF_FIELD = {
    "resources_server": "resources_servers",
    "model_server": "responses_api_models",
    "agent_server": "responses_api_agents",
}
"""Field that names another server -> the kind that it must have."""


class Instance(NamedTuple):
    """One server of a file."""

    name: str
    kind: str
    implementation: str
    config: ServerConfig

    @property
    def block(self) -> dict[str, Any]:
        """Its settings in plain form, without what is secret."""
        return self.config.model_dump(mode="json", exclude_none=True, exclude={"model_api_key"})


class Layout(NamedTuple):
    """Everything that a file asks to be started."""

    instances: tuple[Instance, ...]
    head: HeadConfig
    elsewhere: Mapping[str, str]
    """Instances that run elsewhere -> where they are."""
    values: Mapping[str, Any]
    """The file as it was read, for those who ask the head server."""

    def named(self, name: str) -> Instance:
        """An instance.

        Raises:
            ConfigError: There is none of this name.
        """
        for one in self.instances:
            if one.name == name:
                return one
        raise ConfigError(
            f"There is no instance {name!r}. {nearest(name, [one.name for one in self.instances])}"
        )


def read_layout(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Layout:
    """Read a file with those that its ``config_paths`` name, ``env.yaml`` beside it, and overrides.

    Args:
        path: The file.
        overrides: ``key.sub=value``, as NeMo Gym takes them, with ``+`` or ``++`` in front or without.

    Raises:
        ConfigError: A file cannot be read, a key is unknown, or a reference leads nowhere.
    """
    return build_layout(_merged_files(Path(path), overrides))


def build_layout(values: Mapping[str, Any]) -> Layout:
    """Make instances of merged settings.

    Raises:
        ConfigError: A key is unknown, or a reference leads nowhere.
    """
    resolved = _resolved(values)
    instances: list[Instance] = []
    elsewhere: dict[str, str] = {}
    for name, block in resolved.items():
        if not isinstance(block, Mapping) or name == "head_server":
            if name not in _PLAIN_KEYS and not _is_value(name, block, values):
                raise ConfigError(f"{name!r} is no server. {nearest(name, [*_PLAIN_KEYS, *KINDS])}")
            continue
        found = _read_instance(name, block)
        if isinstance(found, Instance):
            instances.append(found)
        else:
            elsewhere[name] = found
    head = parse_config(HeadConfig, resolved.get("head_server") or {})
    layout = Layout(tuple(instances), head, elsewhere, resolved)
    _check_references(layout)
    return layout._replace(instances=(*instances, *_missing_environment_servers(layout)))


def config_type(kind: str, implementation: str) -> type[ServerConfig]:
    """The settings of an implementation.

    Raises:
        ConfigError: There is none of this name.
    """
    if kind == "resources_servers":
        return ResourcesConfig
    known = _IMPLEMENTATIONS[kind]
    if implementation not in known:
        raise ConfigError(
            f"There is no {implementation!r} among the {kind}. {nearest(implementation, known)}"
        )
    return known[implementation]


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Lay ``key.sub=value`` over settings, values read as YAML.

    Raises:
        ConfigError: One has another form.
    """
    for text in overrides:
        name, equals, value = text.lstrip("+").lstrip("-").partition("=")
        if not equals or not name:
            raise ConfigError(
                f"Expected an override such as my_env.resources_servers.lookup.port=8001, found {text!r}."
            )
        node = values
        *parents, leaf = name.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{name} goes inside {parent!r}, which is a plain value.")
        try:
            node[leaf] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"The value of {name}, {value!r}, is not valid YAML.") from error


def _merged_files(path: Path, overrides: Sequence[str]) -> dict[str, Any]:
    own = read_yaml(path)
    values: dict[str, Any] = {}
    paths = own.get("config_paths") or []
    if not isinstance(paths, list) or not all(isinstance(one, str) for one in paths):
        raise ConfigError(f"config_paths of {path} must be a list of files.")
    for one in paths:
        beside = path.parent / one
        values = _laid_over(values, read_yaml(beside if beside.exists() else Path(one)))
    values = _laid_over(values, own)
    for folder in dict.fromkeys((path.resolve().parent, Path.cwd())):
        if (folder / ENV_FILE).is_file():
            values = _laid_over(values, read_yaml(folder / ENV_FILE))
            break
    apply_overrides(values, overrides)
    values.pop("config_paths", None)
    return values


def _laid_over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in top.items():
        old = made.get(key)
        made[key] = _laid_over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return made


def _resolved(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with their ``${...}`` replaced: by other keys, or by environment variables (``oc.env``)."""

    def look_up(name: str, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ConfigError(f"${{{name}}} refers to itself.")
        if name.startswith(("oc.env:", "env:")):
            variable, comma, default = name.partition(":")[2].partition(",")
            found = os.environ.get(variable.strip(), default.strip() if comma else None)
            if found is None:
                raise ConfigError(f"${{{name}}}: the environment variable {variable} is not set.")
            return found
        node: Any = values
        for key in name.strip().split("."):
            if not isinstance(node, Mapping) or key not in node:
                where = f"in the files, in {ENV_FILE} or on the command line ({name}=...)"
                raise ConfigError(f"${{{name}}} is set nowhere: it may be {where}.")
            node = node[key]
        return replace(node, depth + 1)

    def replace(value: Any, depth: int = 0) -> Any:
        if isinstance(value, Mapping):
            return {key: replace(one, depth) for key, one in value.items()}
        if isinstance(value, list):
            return [replace(one, depth) for one in value]
        if not isinstance(value, str):
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return look_up(whole[1], depth)
        return _REFERENCE.sub(lambda match: str(look_up(match[1], depth)), value)

    return {key: replace(value) for key, value in values.items()}


def _is_value(name: str, block: Any, values: Mapping[str, Any]) -> bool:
    """Whether a top-level key is a value for ``${...}``, or a switch of NeMo Gym that means nothing here."""
    used = any(f"${{{name}}}" in str(other) for key, other in values.items() if key != name)
    return used or name.startswith(
        ("policy_", "nemo_", "use_", "uv_", "skip_", "port_range_", "ray_", "observability_")
    )


def _read_instance(name: str, block: Mapping[str, Any]) -> Instance | str:
    kinds = [key for key in block if key in KINDS]
    if len(kinds) != 1:
        unknown = next((key for key in block if key not in KINDS), None)
        found = f"{unknown!r}. {nearest(str(unknown), KINDS)}" if unknown else "several kinds."
        raise ConfigError(f"The instance {name!r} must have one kind of server, found {found}")
    kind = kinds[0]
    inner = block[kind]
    if not isinstance(inner, Mapping) or len(inner) != 1:
        raise ConfigError(f"{name}.{kind} must name one implementation with its settings.")
    implementation, settings = next(iter(inner.items()))
    settings = dict(settings or {})
    if set(settings) == {"url"}:
        return str(settings["url"])
    try:
        config = parse_config(config_type(kind, str(implementation)), settings)
    except ConfigError as error:
        raise ConfigError(f"{name}.{kind}.{implementation}: {error}") from error
    return Instance(name, kind, str(implementation), config)


def references(config: Config) -> dict[str, Any]:
    """Field -> the server that it names."""
    found = {name: getattr(config, name, None) for name in _KIND_OF_FIELD}
    return {name: one for name, one in found.items() if one is not None}


def _check_references(layout: Layout) -> None:
    names = {one.name: one.kind for one in layout.instances} | dict.fromkeys(layout.elsewhere, "")
    for one in layout.instances:
        for field, reference in references(one.config).items():
            if reference.name is None:
                continue
            if reference.name not in names:
                hint = nearest(reference.name, names)
                raise ConfigError(
                    f"{one.name}.{field} names {reference.name!r}, which is not in the file. {hint}"
                )
            kind = names[reference.name]
            if kind and kind != _KIND_OF_FIELD[field]:
                raise ConfigError(f"{one.name}.{field} names {reference.name!r}, which is one of the {kind}.")


def _missing_environment_servers(layout: Layout) -> list[Instance]:
    """One for each agent that has none, since NeMo Gym's collector reaches agents through them alone."""
    have = {
        one.config.agent_server.name
        for one in layout.instances
        if isinstance(one.config, EnvironmentServerConfig)
    }
    made = []
    for one in layout.instances:
        if one.kind == "responses_api_agents" and one.name not in have:
            config = parse_config(
                EnvironmentServerConfig,
                {"agent_server": {"type": one.kind, "name": one.name}, "host": one.config.host},
            )
            made.append(
                Instance(f"{one.name}_environment_server", "environment_servers", "legacy_agent", config)
            )
    return made


def relocated(layout: Layout, *, host: str | None = None, head_port: int | None = None) -> Layout:
    """A layout with all servers on another address, or the head server on another port."""
    head = layout.head
    instances = layout.instances
    if host is not None:
        head = head.model_copy(update={"host": host})
        moved = (
            one._replace(config=one.config.model_copy(update={"host": host})) for one in layout.instances
        )
        instances = tuple(moved)
    if head_port is not None:
        head = head.model_copy(update={"port": head_port})
    return layout._replace(instances=instances, head=head)
