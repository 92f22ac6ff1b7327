"""What verifiers finds under a name: an environment of ours."""

from sensorium.interop.verifiers import load_environment

__all__ = ["load_environment"]
