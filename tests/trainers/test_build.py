import pytest
import torch
from cue_agents import cue_config

from sensorium.core import ConfigError
from sensorium.trainers.build import build_agent, build_env, choose_device

pytestmark = pytest.mark.usefixtures("cue_backend")


def test_the_seed_alone_decides_the_parameters() -> None:
    def parameters(seed: int) -> torch.Tensor:
        config = cue_config(("rgb", "instruction"), seed=seed)
        policy = build_agent(config, build_env(config, 1)).policy
        return torch.cat([p.detach().flatten() for p in policy.parameters()])

    torch.manual_seed(1)
    first = parameters(0)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(first, parameters(0))
    assert not torch.equal(first, parameters(1))
    torch.set_rng_state(state)
    parameters(0)
    assert torch.equal(torch.get_rng_state(), state)  # the global generator is left alone


def test_num_envs_can_be_overridden() -> None:
    assert build_env(cue_config()).num_envs == 8
    assert build_env(cue_config(), 3).num_envs == 3


@pytest.mark.parametrize("name", ["tpu9", "cuda:99", "gpu"])
def test_a_device_that_does_not_exist(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"Device '{name}' is not available .*Use cpu, cuda or auto"):
        choose_device(name)
    assert choose_device("cpu") == torch.device("cpu")
