"""An environment of ours as a `gymnasium.Env` of texts: python examples/interop/gymnasium_text.py."""

import json

from sensorium.interop.gymnasium import TextGym

env = TextGym("lookup")
observation, info = env.reset(seed=0)
print(observation["text"])
print("tools:", ", ".join(one["function"]["name"] for one in info["tools"]))
action = json.dumps({"name": "calculate", "arguments": {"expression": "6 * 7"}})
observation, reward, terminated, truncated, info = env.step(action)
print("calculate:", info["results"][0]["text"])
observation, reward, terminated, truncated, info = env.step('{"name": "submit", "arguments": {"answer": 0}}')
print("reward:", reward, "over:", terminated, "status:", info["status"])
env.close()
