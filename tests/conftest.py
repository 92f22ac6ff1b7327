import os
from collections.abc import Iterator

# Tests are many small tensors: a second thread costs more than it brings. Before torch and numba load.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import gymnasium
import hypothesis
import pytest
import torch

from sensorium.envs.embodied.registry import BACKENDS
from sensorium.testing.cue import use_cue_backend

torch.set_num_threads(1)
hypothesis.settings.register_profile("sensorium", deadline=None)  # a busy machine is no fault
hypothesis.settings.load_profile("sensorium")


@pytest.fixture
def cue_backend() -> Iterator[None]:
    """The task `cue/match` exists during the test, and not after it."""
    use_cue_backend()
    yield
    BACKENDS.pop("cue", None)
    gymnasium.registry.pop("sensorium/cue-match-v0", None)
