"""Counters that use a model's own vocabulary; each needs the library that reads it."""

import base64
import hashlib
import importlib.util
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from sensorium.core import ConfigError, require
from sensorium.llm.config import MistralConfig, TiktokenConfig, TokenizersConfig
from sensorium.llm.counting import RuledCounter


class TokenizersCounter(RuledCounter):
    """Counts with a Hugging Face tokenizer; marks that it adds around a prompt are not counted.

    Args:
        config: Which tokenizer.
        find: Turns the name of a packaged model into its folder; names that it does not know come back as
            they are.

    Raises:
        MissingDependencyError: ``tokenizers`` is not installed.
        ConfigError: There is no such file, folder or hub name, or the file is no tokenizer.
    """

    def __init__(self, config: TokenizersConfig, find: Callable[[str], Path | str] | None = None) -> None:
        self._resolve = find
        library = require("tokenizers", extra="observe", purpose="counting tokens with a tokenizer.json")
        path = _tokenizer_file(config.tokenizer)
        if path is None and find is not None:
            path = _tokenizer_file(str(find(config.tokenizer)))
        self._tokenizer: Any = (
            _from_hub(library, config.tokenizer) if path is None else _from_file(library, path)
        )
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        content = hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()[:8]
        super().__init__(config, f"tokenizers/{Path(config.tokenizer).name}@{content}", self._tokens)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.config, self._resolve)

    def _tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(_encodable(text), add_special_tokens=False).ids)


class TiktokenCounter(RuledCounter):
    """Counts with one of OpenAI's encodings; names of special tokens in a text count as plain text.

    Args:
        config: Which encoding.

    Raises:
        MissingDependencyError: ``tiktoken`` is not installed.
        ConfigError: There is no such encoding, or its vocabulary is not on this machine and cannot be loaded.
    """

    def __init__(self, config: TiktokenConfig) -> None:
        library = require("tiktoken", extra="observe", purpose="counting tokens with an OpenAI encoding")
        try:
            self._encoding = library.get_encoding(config.encoding)
        except ValueError as error:
            known = ", ".join(sorted(library.list_encoding_names()))
            raise ConfigError(f"tiktoken has no encoding {config.encoding!r}. Known: {known}.") from error
        except Exception as error:  # whatever its HTTP client or the disk raises
            raise ConfigError(
                f"tiktoken could not load the vocabulary of {config.encoding!r} ({_first_line(error)}). "
                "It is downloaded once and then kept in the folder that TIKTOKEN_CACHE_DIR names; without a "
                "network use `type: estimate`, or `type: tokenizers` with a tokenizer.json on disk."
            ) from error
        super().__init__(config, f"tiktoken/{config.encoding}", self._tokens)

    def _tokens(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(_encodable(text)))


class MistralCounter(RuledCounter):
    """Counts with a Tekken vocabulary: byte pairs, read with ``tiktoken``.

    Only the vocabulary file of ``mistral-common`` is used; none of its code is imported.

    Args:
        config: Which vocabulary.

    Raises:
        MissingDependencyError: ``tiktoken`` is not installed.
        ConfigError: There is no such vocabulary, or it is not a Tekken file.
    """

    def __init__(self, config: MistralConfig) -> None:
        path = _tekken_file(config.vocabulary)
        self._encoding = _tekken(path)
        content = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        super().__init__(config, f"mistral/{path.name}@{content}", self._tokens)

    def _tokens(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(_encodable(text)))


def _encodable(text: str) -> str:
    """Unpaired surrogates have no UTF-8 form: they are counted as the replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def _tokenizer_file(name: str) -> Path | None:
    """File behind a file or folder name; None when the name is one of the hub."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "tokenizer.json").is_file():
            raise ConfigError(f"Folder {path} holds no tokenizer.json. Expected a Hugging Face model folder.")
        return path / "tokenizer.json"
    if path.is_file():
        return path
    if path.is_absolute() or name[:1] in ".~" or path.suffix == ".json":
        raise ConfigError(f"There is no tokenizer {path}. Expected a tokenizer.json or a folder with one.")
    return None


def _from_file(library: Any, path: Path) -> Any:
    return _loaded(lambda: library.Tokenizer.from_file(str(path)), f"{path} is not a tokenizer.json")


def _from_hub(library: Any, name: str) -> Any:
    return _loaded(
        lambda: library.Tokenizer.from_pretrained(name),
        f"Tokenizer {name!r} is no local file or folder, and could not be loaded from the Hugging Face hub",
    )


def _loaded(load: Callable[[], Any], what: str) -> Any:
    try:
        return load()
    except Exception as error:  # the library raises bare Exception for all that can go wrong
        raise ConfigError(
            f"{what} ({_first_line(error)}). Give the path of a tokenizer.json, or a folder that holds one."
        ) from error


def _tekken_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.is_file():
        return path
    package = importlib.util.find_spec("mistral_common")
    places = package.submodule_search_locations if package else None
    folders = [Path(place) / "data" for place in places or ()]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    known = sorted(file.name for folder in folders for file in folder.glob("tekken*.json"))
    hint = f"Known: {', '.join(known)}" if known else "Install it with: pip install 'sensorium[mistral]'"
    raise ConfigError(
        f"There is no vocabulary {name!r}: no such file, and not in mistral-common. {hint}, "
        "or give the path of a model's tekken.json."
    )


@lru_cache(maxsize=2)
def _tekken(path: Path) -> Any:
    """Encoding of a Tekken file: its first `default_vocab_size - default_num_special_tokens` byte strings."""
    tiktoken = require("tiktoken", extra="observe", purpose="counting tokens with a Mistral vocabulary")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rules = content["config"]
        size = int(rules["default_vocab_size"]) - int(rules["default_num_special_tokens"])
        ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in content["vocab"][:size]}
        return tiktoken.Encoding(
            path.stem, pat_str=rules["pattern"], mergeable_ranks=ranks, special_tokens={}
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a Tekken vocabulary ({type(error).__name__}: {error}).") from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
