"""What NeMo RL needs to train on an environment of ours, written as files.

NeMo RL plays through NeMo Gym's protocol, which our servers speak: its training run starts the environment as
one of NeMo Gym's resources servers, beside NeMo Gym's own agent and the model server that tells token ids.

    write_nemo_rl("nemo", NemoRLConfig(environment="lookup"))

    nemo/
      resources_servers/lookup/app.py                starts our server; found by NEMO_GYM_EXTRA_ROOTS
      resources_servers/lookup/requirements.txt      what its virtual environment needs
      resources_servers/lookup/configs/lookup.yaml   environment, agent, environment server
      resources_servers/lookup/data/train.jsonl      a row for each task
      resources_servers/lookup/data/validation.jsonl
      grpo.yaml                                      for NeMo RL, on top of one of its own configurations
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import Field

from sensorium.core.files import atomic_write_bytes
from sensorium.envs.base import Task
from sensorium.interop.played import Played, PlayedConfig
from sensorium.llm.messages import text_message
from sensorium.llm.responses import responses
from sensorium.rollouts.task_rows import task_row

__all__ = ["NemoRLConfig", "NemoRLFiles", "write_nemo_rl"]

_MODEL_SERVER = "responses_api_models/vllm_model/configs/vllm_model_for_training.yaml"
"""The model server of NeMo Gym that tells NeMo RL which tokens were sampled."""
_APP = '''"""Started by NeMo Gym's launcher."""

from sensorium.servers.nemo import main

main()
'''


class NemoRLConfig(PlayedConfig):
    """What NeMo RL trains on."""

    validation_split: str = "test"
    """Tasks of its validation; `split` where the environment has no such split."""
    num_validation_tasks: int = Field(default=64, ge=1)
    """How many."""
    max_steps: int = Field(default=16, ge=1)
    """Calls of the model in an episode."""
    openings: bool = True
    """Begin every task once, so that its row holds all that the agent is shown first, pictures included. Off:
    rows hold the instruction alone; for environments that are slow to begin and show nothing else."""
    requirements: tuple[str, ...] = ("sensorium[serve]",)
    """Of the environment server's virtual environment: the extras of the environment, or a path."""
    checkout: str = "/opt/nemo-rl"
    """Folder of NeMo RL on the machine that trains; that of its container by default."""
    base: str = "examples/nemo_gym/grpo_workplace_assistant_nemotron_nano_v2_9b.yaml"
    """Configuration in it that ``grpo.yaml`` changes: model, parallelism and algorithm are its own."""


class NemoRLFiles(NamedTuple):
    """What was written."""

    servers: Path
    """For NeMo Gym: its ``config_paths``."""
    train: Path
    validation: Path
    training: Path
    """For NeMo RL: ``--config``."""
    agent: str
    """Name of the agent that rows are run by."""


def write_nemo_rl(folder: Path | str, config: NemoRLConfig) -> NemoRLFiles:
    """Write everything that NeMo RL needs.

    Args:
        folder: Made if need be; files in it are replaced.
        config: The environment.

    Returns:
        Where the files are.

    Raises:
        ConfigError: There is no such environment, or its settings do not fit.
        EpisodeError: The environment cannot be begun.
        OSError: The folder cannot be written.
    """
    played = Played(config)
    name = played.definition.name
    root = Path(folder).resolve()
    server = root / "resources_servers" / name
    agent = f"{name}_simple_agent"
    files = NemoRLFiles(
        servers=server / "configs" / f"{name}.yaml",
        train=server / "data" / "train.jsonl",
        validation=server / "data" / "validation.jsonl",
        training=root / "grpo.yaml",
        agent=agent,
    )
    validation_split = config.validation_split
    if validation_split not in played.definition.splits:
        validation_split = config.split
    validation = played.definition.tasks(
        played.settings, split=validation_split, count=config.num_validation_tasks, seed=config.task_seed
    )
    _write(server / "app.py", _APP)
    _write(server / "requirements.txt", "\n".join(config.requirements) + "\n")
    _write(files.servers, _yaml(_servers(played, config, agent)))
    _write(files.train, _lines(played, config, played.tasks, agent))
    _write(files.validation, _lines(played, config, validation, agent))
    _write(files.training, _yaml(_training(config, files)))
    return files


def _servers(played: Played, config: NemoRLConfig, agent: str) -> dict[str, Any]:
    """Instances of NeMo Gym's configuration: environment, agent, and who runs whole episodes with it."""
    name = played.definition.name
    shown = config.pipeline.model_dump(mode="json", exclude_defaults=True)
    # The conversation grows: NeMo RL insists that every prompt begins with the one before.
    shown["context_management"] = shown.get("context_management", {}) | {"drop_full_history": False}
    environment = {
        "entrypoint": "app.py",
        "domain": "agent",
        "verified": False,
        "description": played.definition.summary,
        "environment": config.environment,
        "config": config.config,
        "episode": config.episode.model_dump(mode="json", exclude_unset=True),
        **shown,
    }
    reference = {"type": "resources_servers", "name": name}
    model = {"type": "responses_api_models", "name": "policy_model"}
    return {
        name: {"resources_servers": {name: environment}},
        agent: {
            "responses_api_agents": {
                "simple_agent": {
                    "entrypoint": "app.py",
                    "resources_server": reference,
                    "model_server": model,
                    "max_steps": config.max_steps,
                }
            }
        },
        f"{agent}_environment_server": {
            "environment_servers": {
                "legacy_agent": {
                    "entrypoint": "app.py",
                    "agent_server": {"type": "responses_api_agents", "name": agent},
                }
            }
        },
    }


def _training(config: NemoRLConfig, files: NemoRLFiles) -> dict[str, Any]:
    """What differs from the configuration of NeMo RL that is named."""
    return {
        "defaults": f"{config.checkout}/{config.base}",
        "data": {
            "train": {"data_path": str(files.train)},
            "validation": {"data_path": str(files.validation)},
            "default": {
                "dataset_name": "NemoGymDataset",
                "env_name": "nemo_gym",
                "processor": "nemo_gym_data_processor",
                "prompt_file": None,
                "system_prompt_file": None,
            },
        },
        "env": {
            "_override_": True,  # the servers of the configuration below are not wanted
            "should_use_nemo_gym": True,
            "nemo_gym": {"config_paths": [_MODEL_SERVER, str(files.servers)]},
        },
        "policy": {"generation": {"vllm_cfg": {"async_engine": True, "expose_http_server": True}}},
    }


def _lines(played: Played, config: NemoRLConfig, tasks: Sequence[Task], agent: str) -> str:
    """Rows as JSON lines; nothing hidden is in them, and the server makes each task again of its id."""
    rows = asyncio.run(_rows(played, config, tasks, agent))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


async def _rows(
    played: Played, config: NemoRLConfig, tasks: Sequence[Task], agent: str
) -> list[dict[str, Any]]:
    tools = await asyncio.to_thread(played.tools)
    system = [text_message("system", played.system)] if played.system else []
    rows = []
    for task in tasks:
        row = task_row(task, agent=agent, tools=tools)
        if config.openings:
            session = played.session()
            try:
                shown = (await session.start(task)).view.messages
            finally:
                await session.close()
            row["responses_create_params"]["input"] = responses((*system, *shown))
        else:
            row["responses_create_params"]["input"][:0] = responses(system)
        rows.append(row)
    return rows


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _write(path: Path, text: str) -> None:
    atomic_write_bytes(path, text.encode())
