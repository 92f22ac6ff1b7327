"""Environments of a server, stepped as arrays: python examples/interop/remote_arrays.py http://127.0.0.1:8001.

The server: sensorium serve examples/arena.yaml arena.resources_servers.embodied.port=8001
"""

import sys

from sensorium.envs.remote import RemoteVectorEnv

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8001"
senses = {"visual_obs": ["rgb", "depth"], "text_obs": ["instruction"], "image_size": 48}
envs = RemoteVectorEnv(url, num_envs=16, settings=senses)
observation, info = envs.reset(seed=0)
print(envs.environment, {name: observation[name].shape for name in ("rgb", "depth")})
print("asked:", observation["instruction"][0])
envs.action_space.seed(0)
ended = 0
for _ in range(100):
    observation, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    ended += int((terminated | truncated).sum())
print("episodes that ended:", ended)
envs.close()
