"""Data analysis in a notebook: a real Jupyter kernel in a sandbox, questions about real data."""

from sensorium.envs.notebook.answers import AnswerKey
from sensorium.envs.notebook.config import KernelConfig, NotebookConfig
from sensorium.envs.notebook.env import NotebookEnv

__all__ = ["AnswerKey", "KernelConfig", "NotebookConfig", "NotebookEnv"]
