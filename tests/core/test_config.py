import json
import math
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from sensorium.core import Config, ConfigError, parse_config, parse_overrides, read_yaml


class Small(Config):
    type: Literal["small"] = "small"
    width: int = 4


class Large(Config):
    type: Literal["large"] = "large"
    depth: int = 2
    """Number of layers."""


class Inner(Config):
    gamma: float = Field(default=0.9, gt=0, le=1)
    gae_lambda: float = 0.95


class Outer(Config):
    inner: Inner = Inner()
    body: Annotated[Small | Large, Field(discriminator="type")] = Small()
    names: tuple[str, ...] = ("a",)


def test_unknown_key_names_its_path_and_the_nearest_known() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(Outer, {"inner": {"gama": 0.5}})
    message = str(caught.value)
    assert "'inner.gama'" in message
    assert "Did you mean 'gamma'" in message
    assert "gae_lambda" in message
    assert "names" not in message  # keys of another level are no help


def test_unknown_key_at_the_top() -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting 'innr'\. Did you mean 'inner'"):
        Outer().updated({"innr": {}})


def test_unknown_key_in_a_union_lists_the_chosen_alternative() -> None:
    with pytest.raises(ConfigError) as caught:
        Outer().updated({"body": {"type": "large", "dept": 3}})
    message = str(caught.value)
    assert "'body.dept'" in message  # as it was written: the type is no part of the path
    assert "Did you mean 'depth'" in message
    assert "width" not in message


class Checked(Config):
    type: Literal["checked"] = "checked"
    low: int = 0
    high: int = 1

    @model_validator(mode="after")
    def _ordered(self) -> "Checked":
        if self.high < self.low:
            raise ValueError(f"high ({self.high}) is less than low ({self.low})")
        return self


class Boxed(Config):
    part: Annotated[Small | Checked, Field(discriminator="type")] = Checked()


def test_what_a_section_finds_wrong_is_said_without_the_section() -> None:
    with pytest.raises(ConfigError) as caught:
        Boxed().updated({"part": {"high": -3}})
    assert str(caught.value) == "Setting 'part': high (-3) is less than low (0)."


def test_one_word_in_the_place_of_a_list_is_shown_as_a_list() -> None:
    with pytest.raises(ConfigError, match=r"'names'.*found 'rgb'.* Write a list: \[rgb\]\."):
        Outer().updated({"names": "rgb"})


def test_a_key_that_is_called_like_a_type_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting 'part\.small'\."):
        Boxed().updated({"part": {"small": 1}})


def test_every_problem_has_its_line() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(Outer, {"inner": {"gamma": 3}, "nams": 1})
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "inner.gamma" in lines[0]
    assert "found 3" in lines[0]


def test_updated_keeps_what_is_not_changed() -> None:
    config = Outer().updated({"inner": {"gamma": 0.5}})
    assert config == Outer(inner=Inner(gamma=0.5))
    assert config.inner.gae_lambda == 0.95


def test_another_type_of_a_union_drops_the_old_fields() -> None:
    config = Outer(body=Small(width=9)).updated({"body": {"type": "large"}})
    assert config.body == Large()
    same = Outer(body=Small(width=9)).updated({"body": {"type": "small"}})
    assert same.body == Small(width=9)


class Sized(Config):
    selectors = ("size",)
    size: str = "s"
    width: int = 4


class Holder(Config):
    sized: Sized = Sized()
    options: dict[str, object] = Field(default_factory=dict)


def test_another_value_of_a_selector_drops_the_old_fields() -> None:
    holder = Holder(sized=Sized(width=9))
    assert holder.updated({"sized": {"size": "l"}}).sized == Sized(size="l")
    assert holder.updated({"sized": {"size": "s"}}).sized == Sized(width=9)
    assert Sized(width=9).updated({"size": "l"}) == Sized(size="l")


def test_an_empty_mapping_clears_free_settings_and_leaves_a_config_alone() -> None:
    holder = Holder(sized=Sized(width=9), options={"colors": ["red"], "deep": {"a": 1}})
    assert holder.updated({"options": {}, "sized": {}}) == Holder(sized=Sized(width=9))
    assert holder.updated({"options": {"deep": {}}}).options == {"colors": ["red"], "deep": {}}
    assert holder.updated(parse_overrides(["--options={}"])).options == {}


class Optional(Config):
    inner: Inner | None = None


def test_an_optional_section_is_switched_on_by_a_setting_in_it() -> None:
    assert Optional().updated({"inner": {"gamma": 0.5}}).inner == Inner(gamma=0.5)
    assert Optional().updated({"inner": {}}).inner == Inner()
    assert Optional(inner=Inner()).updated({"inner": None}).inner is None
    with pytest.raises(ConfigError, match=r"'inner\.gama'.*Did you mean 'gamma'"):
        Optional().updated({"inner": {"gama": 0.5}})


def test_a_setting_of_another_alternative_names_it() -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting 'body\.depth': depth needs type large\."):
        Outer().updated({"body": {"depth": 3}})


class Unbounded(Config):
    inner: Inner = Inner()
    limit: float = math.inf
    lowest: float = -math.inf
    free: dict[str, object] = Field(default_factory=dict)


def test_infinity_survives_strict_json() -> None:
    config = Unbounded(free={"list": [math.inf, 1.0]})
    plain = config.model_dump(mode="json")
    text = json.dumps(plain, allow_nan=False)
    assert plain["limit"] == "Infinity"
    assert plain["free"] == {"list": ["Infinity", 1.0]}
    again = parse_config(Unbounded, json.loads(text))
    assert (again.limit, again.lowest) == (math.inf, -math.inf)
    assert config.model_dump()["limit"] == math.inf
    assert parse_config(Unbounded, json.loads(config.model_dump_json())).limit == math.inf
    assert config.updated({"inner": {"gamma": 0.5}}).limit == math.inf


def test_a_plain_mapping_has_no_selectors() -> None:
    holder = Holder(options={"type": "a", "size": 1, "other": 2})
    changed = holder.updated({"options": {"type": "b", "size": 3}})
    assert changed.options == {"type": "b", "size": 3, "other": 2}


def test_configs_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Outer().names = ("b",)  # type: ignore[misc]


def test_digest_follows_settings_and_ignores_the_excluded() -> None:
    assert Outer().digest() == Outer().digest()
    assert Outer().digest() != Outer(names=("b",)).digest()
    assert Outer().digest(exclude={"names"}) == Outer(names=("b",)).digest(exclude={"names"})
    assert len(Outer().digest()) == 8
    other = Outer(inner=Inner(gamma=0.5))
    assert Outer().digest(exclude={"inner.gamma"}) == other.digest(exclude={"inner.gamma"})
    assert Outer().digest(exclude={"inner.gae_lambda"}) != other.digest(exclude={"inner.gae_lambda"})


def test_field_docstrings_become_descriptions() -> None:
    assert Large.model_fields["depth"].description == "Number of layers."


def test_read_yaml(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("inner:\n  gamma: 0.5\n")
    assert read_yaml(path) == {"inner": {"gamma": 0.5}}
    path.write_text("")
    assert read_yaml(path) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [1", "is not valid YAML"), ("- 1\n- 2\n", "must hold a mapping of settings, found list")],
)
def test_read_yaml_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)


def test_read_yaml_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read config file .*none\.yaml: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_read_yaml_of_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ConfigError, match="is not"):
        read_yaml(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("0.98", 0.98),
        ("5", 5),
        ("false", False),
        ("null", None),
        ("[speech, env_sound]", ["speech", "env_sound"]),
        ("{a: 1}", {"a": 1}),
        ("arena/find", "arena/find"),
        ("-1", -1),
    ],
)
def test_overrides_are_yaml(text: str, value: object) -> None:
    assert parse_overrides(["--algo.x", text]) == {"algo": {"x": value}}
    assert parse_overrides([f"--algo.x={text}"]) == {"algo": {"x": value}}


def test_overrides_merge_and_later_wins() -> None:
    flags = ["--a.b", "1", "--a.c-d=2", "--a.b", "3"]
    assert parse_overrides(flags) == {"a": {"b": 3, "c_d": 2}}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--a"], "--a has no value; write --a VALUE"),
        (["--a", "--b", "1"], "--a has no value"),
        (["a", "1"], "Expected a setting such as .*, found 'a'"),
        (["--a", "1", "--a.b", "2"], "goes inside 'a'"),
        (["--a", "[1"], r"The value of --a, '\[1', is not valid YAML: expected ',' or '\]'"),
    ],
)
def test_overrides_say_what_is_wrong(flags: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_overrides(flags)
