"""Environments of a server for policies that read arrays: the client, and what both sides say."""

from sensorium.core.frames import FrameError
from sensorium.envs.hosted import HostedEnvs
from sensorium.envs.remote.connection import RemoteError
from sensorium.envs.remote.gym import RemoteGym
from sensorium.envs.remote.spaces import SpaceError
from sensorium.envs.remote.vector import RemoteVectorEnv

__all__ = ["FrameError", "HostedEnvs", "RemoteError", "RemoteGym", "RemoteVectorEnv", "SpaceError"]
