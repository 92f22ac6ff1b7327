"""The environment of an OpenEnv server played here: python examples/interop/openenv_environment.py URL."""

import asyncio
import json
import sys

from sensorium.core import parse_config
from sensorium.envs import Action, find_env


async def main(url: str) -> None:
    """Look at what the server offers."""
    definition = find_env("sensorium.interop.openenv:OpenEnv")
    config = parse_config(definition.config_type, {"url": url})
    env = definition.make(config)
    try:
        observation = await env.reset(definition.task(config, "train-0-0"))
        print("fields:", ", ".join(observation or ()))
        for tool in env.tools:
            print(tool["function"]["name"], json.dumps(tool["function"]["parameters"]["properties"]))
        step = await env.step(Action.call(env.tools[0]["function"]["name"]))
        print("without arguments:", step.info.results[0].text)
    finally:
        await env.close()


asyncio.run(main(sys.argv[1]))
