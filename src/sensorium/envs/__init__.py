"""Environments: tasks and tools for a language model's agent; `embodied` are worlds for policy networks."""

from sensorium.envs.base import Action, Env, Step, StepInfo, Task, ToolCall, ToolResult
from sensorium.envs.definition import EnvDefinition, Expert, find_env, list_envs
from sensorium.envs.episode import Episode, EpisodeError, Failure, Opening, Turn, Verdict, View
from sensorium.envs.tool_env import ToolEnv
from sensorium.envs.tools import Tool, ToolBox, ToolError, tool

__all__ = [
    "Action",
    "Env",
    "EnvDefinition",
    "Episode",
    "EpisodeError",
    "Expert",
    "Failure",
    "Opening",
    "Step",
    "StepInfo",
    "Task",
    "Tool",
    "ToolBox",
    "ToolCall",
    "ToolEnv",
    "ToolError",
    "ToolResult",
    "Turn",
    "Verdict",
    "View",
    "find_env",
    "list_envs",
    "tool",
]
