"""From a config to the counter it names."""

from collections.abc import Callable
from pathlib import Path

from sensorium.llm.base import TokenCounter
from sensorium.llm.config import (
    EstimateConfig,
    MistralConfig,
    TiktokenConfig,
    TokenizersConfig,
    TokensConfig,
)
from sensorium.llm.estimate import EstimateCounter


def build_counter(config: TokensConfig, find: Callable[[str], Path | str] | None = None) -> TokenCounter:
    """Make the token counter that `config` names; the estimate needs no file and no other package.

    Args:
        config: Whose tokens.
        find: Turns the name of a packaged model into its folder (`sensorium.features.find_model`); without it
            tokenizers are files, folders and hub names.

    Raises:
        MissingDependencyError: The library that counts is not installed.
        ConfigError: There is no such vocabulary, or it cannot be read or loaded (offline).
    """
    match config:
        case EstimateConfig():
            return EstimateCounter(config)
        case TokenizersConfig():
            from sensorium.llm.vocabularies import TokenizersCounter

            return TokenizersCounter(config, find)
        case TiktokenConfig():
            from sensorium.llm.vocabularies import TiktokenCounter

            return TiktokenCounter(config)
        case MistralConfig():
            from sensorium.llm.vocabularies import MistralCounter

            return MistralCounter(config)
