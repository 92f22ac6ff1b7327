import numpy as np
import pytest
from cue_agents import ALL_SENSORS, KINDS, cue_env_config

from sensorium.core import ActionKind
from sensorium.envs.embodied import MultiModalVectorEnv

pytestmark = pytest.mark.usefixtures("cue_backend")


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_known(kind: ActionKind) -> None:
    env = MultiModalVectorEnv(cue_env_config(kind=kind), 50)
    env.reset(seed=0)
    cue = np.array([env.worlds.backend.describe(i)["cue"] for i in range(50)])
    assert set(cue.tolist()) == {0, 1, 2}
    level = (cue - 1.0).astype(np.float32)[:, None]
    right = {
        ActionKind.DISCRETE: cue,
        ActionKind.CONTINUOUS: level,
        ActionKind.HYBRID: {"discrete": cue, "continuous": np.where(cue[:, None] == 0, 0.7, level)},
    }[kind]
    for _ in range(4):
        _, reward, terminated, _, info = env.step(right)
        assert reward.tolist() == [1.0] * 50
    assert terminated.all()
    assert set(info["status"]) == {"success"}


def test_a_hybrid_answer_needs_both_parts() -> None:
    env = MultiModalVectorEnv(cue_env_config(kind=ActionKind.HYBRID), 50)
    env.reset(seed=0)
    cue = np.array([env.worlds.backend.describe(i)["cue"] for i in range(50)])
    wrong_level = {"discrete": cue, "continuous": -(cue - 1.0)[:, None] + 0.5}
    _, reward, *_ = env.step(wrong_level)
    assert reward.tolist() == (cue == 0).astype(float).tolist()
    wrong_option = {"discrete": (cue + 1) % 3, "continuous": (cue - 1.0)[:, None]}
    _, reward, *_ = env.step(wrong_option)
    assert reward.sum() == 0


@pytest.mark.parametrize("sensor", ALL_SENSORS)
def test_every_sensor_tells_the_cue(sensor: str) -> None:
    """Nearest neighbour on the first half of the worlds names the cue of the second half."""
    env = MultiModalVectorEnv(cue_env_config((sensor,)), 60)
    observation, _ = env.reset(seed=0)
    cue = np.array([env.worlds.backend.describe(i)["cue"] for i in range(60)])
    if sensor == "instruction":
        assert len({(text, c) for text, c in zip(observation[sensor], cue, strict=True)}) == 3
        return
    x = observation[sensor].reshape(60, -1).astype(np.float64)
    distance = ((x[30:, None] - x[None, :30]) ** 2).sum(-1)
    assert (cue[:30][distance.argmin(1)] == cue[30:]).all()


def test_with_first_step_only_the_cue_is_gone_and_the_last_step_pays() -> None:
    env = MultiModalVectorEnv(cue_env_config(("rgb",), first_step_only=True, length=3), 40)
    env.reset(seed=0)
    cue = np.array([env.worlds.backend.describe(i)["cue"] for i in range(40)])
    rewards = []
    for t in range(3):
        observation, reward, _, _, info = env.step(cue if t == 2 else (cue + 1) % 3)
        assert (observation["rgb"][..., 1:] == 0).all()  # only noise in the first channel is left
        rewards.append(reward.sum())
    assert rewards == [0, 0, 40]
    assert set(info["status"]) == {"success"}
