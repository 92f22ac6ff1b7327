"""What flags make of a preset, as `--dry-run` prints it."""

from typing import Any

import pytest
import yaml

from sensorium.cli.main import main


def resolved(capsys: pytest.CaptureFixture[str], *flags: str, preset: str = "quickstart") -> dict[str, Any]:
    code = main(["train", preset, *flags, "--dry-run"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    values: dict[str, Any] = yaml.safe_load(captured.out)
    return values


def test_another_algorithm_keeps_what_both_have(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten passes and a KL penalty are DAPO's own; the number of worlds and steps is the preset's."""
    ppo = resolved(capsys, "--algo.type", "ppo", preset="doom_basic")["algo"]
    dapo = resolved(capsys, "--algo.type", "dapo", preset="doom_basic")["algo"]
    differing = {name for name in ppo if dapo[name] != ppo[name]}
    assert differing == {"type", "num_epochs", "kl_coef"}
    assert (dapo["num_epochs"], dapo["kl_coef"], dapo["num_envs"]) == (10, 0.2, 16)
    assert dapo["gate"]["type"] == "shapley"


def test_gates_by_flag(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--algo.type", "dapo", "--algo.gate.type", "ogm_ge", "--algo.gate.alpha", "0.5")
    gate = resolved(capsys, *flags)["algo"]["gate"]
    assert gate == {"type": "ogm_ge", "alpha": 0.5, "k_min": 0.1, "decay": 0.9}
    gate = resolved(capsys, "--algo.type", "dapo", "--algo.gate.tau", "inf")["algo"]["gate"]
    assert (gate["type"], float(gate["tau"])) == ("shapley", float("inf"))


def test_sections_that_are_off_are_switched_on(capsys: pytest.CaptureFixture[str]) -> None:
    flags = (
        "--algo.type=dapo",
        "--algo.alignment.coef=0.2",
        "--algo.contrastive={}",
        "--algo.reward.safety=0.3",
        "--env.augment.modal_dropout.p=0.2",
        "--env.augment.outage.max_steps=null",
    )
    values = resolved(capsys, *flags)
    assert values["algo"]["alignment"] == {"coef": 0.2, "rows": 128}
    assert values["algo"]["contrastive"] == {"coef": 0.05, "temperature": 0.1}
    assert values["algo"]["reward"]["safety"] == 0.3
    assert values["algo"]["reward"]["divergence"] == -0.1
    assert values["env"]["augment"]["modal_dropout"] == {"p": 0.2, "only": []}
    assert values["env"]["augment"]["outage"]["max_steps"] is None
    assert values["env"]["augment"]["time_warp"] is None


def test_a_curriculum_by_flag(capsys: pytest.CaptureFixture[str]) -> None:
    stages = "[{sensors: [rgb, speech]}, {sensors: [rgb, depth, speech]}]"
    flags = ("--curriculum.stages", stages, "--curriculum.promote_at", "0.7")
    curriculum = resolved(capsys, *flags)["curriculum"]
    assert curriculum["stages"] == [{"sensors": ["rgb", "speech"]}, {"sensors": ["rgb", "depth", "speech"]}]
    assert (curriculum["promote_at"], curriculum["replay_share"]) == (0.7, 0.2)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), {"colors": ["red", "green", "blue"]}),
        (("--env.task", "arena/senses"), {"colors": ["red", "green", "blue"]}),  # the same backend
        (("--env.task", "doom/basic"), {}),
        (("--env.task", "doom/find", "--env.backend_options.kinds=[red pillar]"), {"kinds": ["red pillar"]}),
        (("--env.backend_options={}",), {}),
        (("--env.backend_options={}", "--env.task=arena/listen"), {}),
        (("--env.backend_options.walls=2",), {"colors": ["red", "green", "blue"], "walls": 2}),
    ],
)
def test_options_of_a_backend_go_with_it(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], options: dict[str, Any]
) -> None:
    assert resolved(capsys, *flags)["env"]["backend_options"] == options


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--algo.type", "ppo", "--algo.gate.type", "ogm_ge"), "gate needs type dapo"),
        (("--algo.type=dapo", "--algo.gate.alpha=1"), "alpha needs type ogm_ge"),
        (("--env.augment.modal_dropout.q", "0.2"), "Unknown setting 'env.augment.modal_dropout.q'"),
        (("--curriculum.promote_at", "0.7"), "curriculum.stages"),
    ],
)
def test_a_setting_in_the_wrong_place_is_said(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], says: str
) -> None:
    assert main(["train", "quickstart", *flags, "--dry-run"]) == 2
    assert says in capsys.readouterr().err
