"""The base of every configuration, and how files and flags are laid over it.

People write YAML, machines write JSON. Later sources win: preset, then files, then flags.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_serializer

from sensorium.core.errors import ConfigError, nearest

ConfigT = TypeVar("ConfigT", bound="Config")


class Config(BaseModel):
    """Frozen, typed settings; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", use_attribute_docstrings=True
    )

    selectors: ClassVar[tuple[str, ...]] = ("type",)
    """Fields that say where the defaults of all others come from: when one of them is changed, the other
    fields are not kept but fall back to the new defaults."""

    def updated(self: ConfigT, changes: Mapping[str, Any]) -> ConfigT:
        """Return a validated copy with `changes` (a nested mapping) laid over it.

        Raises:
            ConfigError: A key is unknown or a value does not fit; the message names the path.
        """
        return parse_config(type(self), _merge(self, self.model_dump(mode="json"), changes))

    def outdated(self, changes: Mapping[str, Any]) -> frozenset[str]:
        """Fields whose present values mean nothing any more once `changes` are made.

        Args:
            changes: Field -> new value, in the plain form of a file.
        """
        plain = self.model_dump(mode="json", include=set(self.selectors))
        if any(name in changes and changes[name] != value for name, value in plain.items()):
            return frozenset(type(self).model_fields)
        return frozenset()

    @model_serializer(mode="wrap")
    def _strict_json(self, dump: Callable[[Any], dict[str, Any]], info: Any) -> dict[str, Any]:
        """JSON has no infinity: it is written as the text "Infinity", which is read back as the number."""
        values = dump(self)
        return _without_infinities(values) if info.mode == "json" else values

    def digest(self, *, exclude: set[str] | None = None) -> str:
        """Eight hex digits that change when any setting (outside `exclude`) changes.

        Args:
            exclude: Settings that do not count; ``a.b`` is field b of section a.
        """
        values = self.model_dump(mode="json")
        for path in exclude or ():
            *sections, name = path.split(".")
            inner = values
            for section in sections:
                inner = inner[section]
            inner.pop(name)
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def parse_config(config_type: type[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Validate plain values into `config_type`.

    Raises:
        ConfigError: One line per problem: the dotted path, what was found and, for an unknown key,
            the nearest known ones.
    """
    try:
        return config_type.model_validate(values)
    except ValidationError as error:
        lines = [_explain(config_type, dict(problem)) for problem in error.errors()]
        raise ConfigError("\n".join(lines)) from error


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML (or JSON) mapping from a file.

    Raises:
        ConfigError: The file is missing, is not YAML, or does not hold a mapping.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read config file {path}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a mapping of settings, found {type(values).__name__}.")
    return values


def setting_of(flag: str) -> str:
    """The setting that a flag names: ``--algo.num-envs=4`` -> ``algo.num_envs``."""
    return flag.removeprefix("--").partition("=")[0].replace("-", "_")


def parse_overrides(arguments: Sequence[str]) -> dict[str, Any]:
    """Turn ``["--algo.gamma", "0.98", "--env.proprio=false"]`` into a nested mapping; values are YAML.

    Raises:
        ConfigError: An argument is not a flag, or a flag has no value or one that is not YAML.
    """
    values: dict[str, Any] = {}
    queue = list(arguments)
    while queue:
        flag = queue.pop(0)
        if not flag.startswith("--"):
            raise ConfigError(f"Expected a setting such as --algo.gamma 0.98, found {flag!r}.")
        name, has_value, text = flag[2:].partition("=")
        if not has_value:
            if not queue or queue[0].startswith("--"):
                raise ConfigError(f"Setting {flag} has no value; write {flag} VALUE.")
            text = queue.pop(0)
        node = values
        *parents, leaf = setting_of(flag).split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError(
                    f"--{name} goes inside {parent!r}, which another flag set to a plain value."
                )
        try:
            node[leaf] = _parse_value(text)
        except yaml.YAMLError as error:
            problem = getattr(error, "problem", None) or error
            raise ConfigError(f"The value of --{name}, {text!r}, is not valid YAML: {problem}.") from error
    return values


def _parse_value(text: str) -> Any:
    """YAML, plus floats such as ``3e-4`` that YAML 1.1 reads as text."""
    value = yaml.safe_load(text)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _merge(node: Any, base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `changes` over `base`, the plain form of `node`."""
    outdated = node.outdated(changes) if isinstance(node, Config) else frozenset()
    merged = {key: value for key, value in base.items() if key not in outdated}
    for key, change in changes.items():
        old, inner = merged.get(key), getattr(node, key, None)
        # Free settings have no other way to be cleared; for a config an empty mapping changes nothing.
        clears = not change and not isinstance(inner, Config)
        if isinstance(change, Mapping) and isinstance(old, Mapping) and not clears:
            change = _merge(inner, old, change)
        merged[key] = change
    return merged


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_infinities(one) for one in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _explain(config_type: type[BaseModel], problem: Mapping[str, Any]) -> str:
    path = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        # The last part is what somebody wrote, even where it is called like a tag.
        dotted = ".".join([*_without_tags(config_type, path[:-1]), path[-1]])
        if owners := _alternatives_with(config_type, path):
            return f"Unknown setting {dotted!r}: {path[-1]} needs type {' or '.join(owners)}."
        return f"Unknown setting {dotted!r}. {nearest(path[-1], _known_keys(config_type, path[:-1]))}"
    dotted = ".".join(_without_tags(config_type, path))
    if problem["type"] == "value_error" and isinstance(problem.get("input"), Mapping):
        # A check of a whole section says itself what it found; the section's other settings are no help.
        return f"Setting {dotted!r}: {problem['msg'].removeprefix('Value error, ')}."
    found = problem.get("input")
    hint = ""
    if problem["type"] in ("tuple_type", "list_type") and isinstance(found, str):
        hint = f" Write a list: [{found}]."
    return f"Setting {dotted!r}: {problem['msg']} (found {found!r}).{hint}"


def _without_tags(config_type: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The path as files and flags have it: without the tags of unions, which pydantic puts between."""
    written: list[str] = []
    for n, part in enumerate(path):
        owners = _configs_at(config_type, path[:n])
        is_field = any(part in owner.model_fields for owner in owners)
        is_tag = n > 0 and not is_field and part in map(_tag, owners)
        written += [] if is_tag else [part]
    return written


def _known_keys(config_type: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Field names of the config that `path` leads to."""
    return sorted({name for config in _configs_at(config_type, path) for name in config.model_fields})


def _alternatives_with(config_type: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Tags of a union's other alternatives that have the setting at `path`, whose last but one is a tag."""
    siblings = _configs_at(config_type, path[:-2])
    if len(path) < 3 or path[-2] not in map(_tag, siblings):
        return []
    return [str(_tag(config)) for config in siblings if path[-1] in config.model_fields]


def _configs_at(config_type: type[BaseModel], path: Sequence[str]) -> list[type[BaseModel]]:
    """Configs that `path` leads to: several for a union, of which its tag selects one."""
    candidates: list[type[BaseModel]] = [config_type]
    for part in path:
        deeper: list[type[BaseModel]] = []
        for candidate in candidates:
            if part in candidate.model_fields:
                deeper += _models_in(candidate.model_fields[part].annotation)
        # Where it is no field, it is the tag of a union.
        candidates = deeper or [c for c in candidates if _tag(c) == part] or candidates
    return candidates


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("type")
    return None if field is None else str(field.default)
