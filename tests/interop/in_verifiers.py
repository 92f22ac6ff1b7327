"""Runs with the Python of `benchmarks/peers/verifiers`: python in_verifiers.py URL ENVIRONMENT [ROLLOUTS].

The real verifiers evaluates an environment of ours with a model that a scripted endpoint plays.
"""

import asyncio
import json
import os
import sys

import verifiers as vf

from sensorium.interop.verifiers import load_environment

os.environ["SCRIPTED_KEY"] = "none"


async def evaluate(url, name, rollouts):
    env = (
        vf.load_environment("sensorium_by_name", environment=name, num_tasks=2) if name == "lookup" else None
    )
    env = env or load_environment(name, num_tasks=2, eval_split=None)
    client = vf.ClientConfig(api_base_url=url, api_key_var="SCRIPTED_KEY", max_retries=0)
    told = await env.evaluate(
        client=client, model="scripted", num_examples=2, rollouts_per_example=rollouts,
        state_columns=["verdict"], max_retries=0,
    )  # fmt: skip
    kept = ("prompt", "completion", "reward", "metrics", "error", "verdict", "stop_condition", "is_truncated")
    outputs = [{key: one.get(key) for key in kept} for one in told["outputs"]]
    tools = [tool.name for tool in env.tool_defs]
    return {
        "class": [kind.__name__ for kind in type(env).__mro__],
        "tools": tools,
        "rows": [dict(env.get_dataset()[n]) for n in range(2)],
        "outputs": outputs,
        "open": len(env._sessions),
    }


if __name__ == "__main__":
    url, name, *rollouts = sys.argv[1:]
    told = asyncio.run(evaluate(url, name, int(rollouts[0]) if rollouts else 1))
    print(json.dumps(told, default=lambda value: value.model_dump(mode="json")))
