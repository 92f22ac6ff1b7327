"""What NeMo RL needs to train on an environment of ours: python examples/interop/nemo_rl_files.py FOLDER."""

import sys

from sensorium.interop.nemo_rl import NemoRLConfig, write_nemo_rl

files = write_nemo_rl(
    sys.argv[1],
    NemoRLConfig(
        environment="lookup",
        config={"num_items": 5},
        num_tasks=512,
        num_validation_tasks=64,
        requirements=("sensorium[serve]",),  # add the environment's extras, e.g. sensorium[serve,notebook]
        checkout="/opt/nemo-rl",
    ),
)
print(f"export NEMO_GYM_EXTRA_ROOTS={files.training.parent}")
print(f"uv run python examples/nemo_gym/run_grpo_nemo_gym.py --config {files.training}")
