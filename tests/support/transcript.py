"""What an agent reads in an episode, as text; the READMEs of environments show it.

python tests/support/transcript.py      # writes the present prompts into them
"""

import asyncio
import re
from importlib.resources import files
from pathlib import Path

from sensorium.envs import Action, find_env
from sensorium.llm.messages import TextBlock
from sensorium.representations import ObservationPipeline
from sensorium.rollouts.env_session import EnvSession


def transcript(name, task_id, actions, **settings):
    return asyncio.run(_transcript(name, task_id, actions, settings))


async def _transcript(name, task_id, actions, settings):
    definition = find_env(name)
    config = definition.config_type(**settings)
    episode = EnvSession(definition.make(config), ObservationPipeline(), system=definition.system)
    lines = []
    try:
        opening = await episode.start(definition.task(config, task_id))
        lines += _lines(opening.view)
        for number, action in enumerate(actions):
            lines += ["[assistant]", action.describe()]
            turn = await episode.act(action, number)
            lines += _lines(turn.view) if turn.view else ["(the episode is over)"]
        verdict = await episode.verdict()
        lines.append(f"reward {verdict.reward:g}, {verdict.status}")
    finally:
        await episode.close()
    return "\n".join(lines)


def _lines(view):
    shown = []
    for message in view.messages:
        shown.append(f"[{message.role}]")
        shown += [_block(block) for block in message.content]
    return shown


def _block(block):
    if isinstance(block, TextBlock):
        return block.text.strip("\n")
    return f"<picture, {block.width}x{block.height}>" if hasattr(block, "width") else "<sound>"


_LAKE = {"task": "FrozenLake-v1", "env_options": {"is_slippery": False}, "render": "text"}
_KEY = {"task": "MiniGrid-DoorKey-5x5-v0", "show": ("symbols",)}
_ARENA = {"task": "arena/find", "visual_obs": ("rgb", "depth"), "audio_obs": ("env_sound",), "proprio": True}
EXAMPLES = {
    "visual_qa": [
        (
            "visual_qa",
            "train-0-9",
            (
                Action.call("zoom", left=0.0, top=0.5, right=1.0, bottom=1.0),
                Action.call("submit_answer", answer="The total is 4,314.40 EUR."),
            ),
            {},
        )
    ],
    "grid": [
        ("grid", "train-0-0", (Action(text="left"), Action(text="forward")), {}),
        ("grid", "train-0-0", (Action.call("act", action="right"),), _KEY),
    ],
    "playable": [
        ("embodied", "train-0-0", (Action.call("act", action="turn_left", repeat=3),), _ARENA),
        (
            "embodied",
            "train-0-0",
            (Action.call("act", action="right", repeat=2), Action.call("act", action="down", repeat=3)),
            _LAKE,
        ),
    ],
}
"""Folder of an environment -> the episodes that its README shows, in their order."""


def blocks(folder):
    """What stands between the fences of a README's examples."""
    return [f"```text\n{transcript(*example[:3], **example[3])}\n```" for example in EXAMPLES[folder]]


def update_readmes():
    """Write the present prompts into the READMEs."""
    for folder in EXAMPLES:
        path = Path(str(files(f"sensorium.envs.{folder}") / "README.md"))
        found = iter(blocks(folder))
        text = re.sub(
            r"```text\n.*?\n```",
            lambda match, found=found: next(found),
            path.read_text("utf-8"),
            flags=re.DOTALL,
        )
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update_readmes()
