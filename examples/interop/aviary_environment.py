"""A task dataset of Aviary played here (needs `pip install fhaviary`)."""

import asyncio

from sensorium.core import parse_config
from sensorium.envs import Action, find_env


async def main() -> None:
    """Play one episode."""
    definition = find_env("sensorium.interop.aviary:Aviary")
    config = parse_config(definition.config_type, {"dataset": "dummy"})
    env = definition.make(config)
    try:
        observation = await env.reset(definition.tasks(config, count=1)[0])
        print("request:", observation["request"].raw)
        print("tools:", ", ".join(one["function"]["name"] for one in env.tools))
        step = await env.step(Action.call("print_story", story="A story of five words"))
        print("reward:", step.reward, "over:", step.terminated)
    finally:
        await env.close()


asyncio.run(main())
