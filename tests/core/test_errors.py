import pickle

import pytest

from sensorium.core import (
    EnvError,
    MissingDependencyError,
    SensoriumError,
    boundary,
    errors,
    require,
    unknown_name,
)

ALL_ERRORS = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, SensoriumError)
]


@pytest.mark.parametrize("error_type", ALL_ERRORS)
def test_errors_cross_processes(error_type: type[SensoriumError]) -> None:
    again = pickle.loads(pickle.dumps(error_type("what was found")))
    assert type(again) is error_type
    assert str(again) == "what was found"


def test_there_are_errors_for_each_boundary() -> None:
    assert len(ALL_ERRORS) == 11


def test_unknown_name_names_the_nearest() -> None:
    message = str(unknown_name("task", "arena/fnd", ["arena/find", "doom/basic"]))
    assert message == "Unknown task 'arena/fnd'. Did you mean 'arena/find'? Known: arena/find, doom/basic."


def test_unknown_name_far_from_all_lists_them() -> None:
    message = str(unknown_name("task", "zzz", ["arena/find"]))
    assert "Did you mean" not in message
    assert "Known: arena/find." in message
    assert "Known: none." in str(unknown_name("task", "zzz", []))


def test_require_imports() -> None:
    assert require("json", extra="rl", purpose="this test") is __import__("json")


def test_require_says_how_to_install() -> None:
    with pytest.raises(MissingDependencyError) as caught:
        require("not_a_module_at_all", extra="doom", purpose="the doom backend")
    message = str(caught.value)
    assert message.startswith("The doom backend needs not_a_module_at_all")
    assert message.endswith("pip install 'sensorium[doom]'")
    assert isinstance(caught.value, ImportError)


def test_boundary_classifies_foreign_errors_and_passes_ours() -> None:
    with (
        pytest.raises(EnvError, match="reading the map: KeyError: 'x'") as caught,
        boundary(EnvError, "reading the map"),
    ):
        raise KeyError("x")
    assert isinstance(caught.value.__cause__, KeyError)
    ours = MissingDependencyError("ours")
    with pytest.raises(MissingDependencyError) as passed, boundary(EnvError, "reading"):
        raise ours
    assert passed.value is ours
