import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sensorium.llm.local import EngineConfig, LocalChatModel, LocalModelConfig, tiny_model
from sensorium.llm.local.engine import Engine
from sensorium.llm.local.guides import Grammars
from sensorium.llm.local.loading import LocalTokenizer, end_tokens, load_model


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines, each in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of 27 thousand random weights."""
    return tiny_model(tmp_path_factory.mktemp("tiny"), context_tokens=2048)


@pytest.fixture(scope="package")
def loaded(folder: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    return load_model(LocalModelConfig(model=str(folder), device="cpu"))


@pytest.fixture(scope="package")
def vocabulary(loaded: tuple[Any, Any]) -> LocalTokenizer:
    """Its tokenizer as the engine takes it."""
    model, tokenizer = loaded
    return LocalTokenizer(tokenizer, end_tokens(model, tokenizer), len(tokenizer))


@pytest.fixture(scope="package")
def grammars(vocabulary: LocalTokenizer) -> Grammars:
    """Grammars over its tokens, which are bytes."""
    pytest.importorskip("llguidance")
    return Grammars(vocabulary)


@pytest.fixture
def engine(loaded: tuple[Any, Any], vocabulary: LocalTokenizer) -> Iterator[Engine]:
    """An engine that decodes three requests at once and reads prompts in pieces of 16 tokens."""
    config = EngineConfig(max_batch=3, prefill_tokens=16)
    made = Engine(loaded[0], vocabulary, config, context_tokens=512)
    yield made
    made.close()


@pytest.fixture
def chat_model(folder: Path) -> Iterator[LocalChatModel]:
    """A chat model whose answers mean nothing."""
    config = LocalModelConfig(model=str(folder), name="tiny", device="cpu")
    made = LocalChatModel.from_config(config)
    yield made
    made.engine.close()
