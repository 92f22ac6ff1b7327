"""The espeak-ng synthesiser, called in-process through ctypes; text in, raw sound out, always the same.

espeak-ng keeps hidden state between sentences (oscillator phase, flutter, a noise generator), so that the
same sentence sounds slightly different each time, even after it is terminated and initialised again. The
library is therefore loaded afresh for every sentence and unloaded after it, which takes about a millisecond
and makes the sound depend on the arguments alone: in any order, thread or process.
"""

import ctypes
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError, FeatureError, MissingDependencyError, require, unknown_name

VOICES: tuple[str, ...] = (
    "en-us",
    "en-gb",
    "en-us+f3",
    "en-gb+m7",
    "en-us+m3",
    "en-gb-scotland+f2",
    "en-gb-x-rp+f4",
    "en-us-nyc+m1",
)
"""English voices, men and women, that differ audibly; any `language+variant` of espeak-ng works too."""

RATE_WPM_RANGE = (80, 450)
"""Slowest and fastest speech, words per minute."""

PITCH_RANGE = (0, 99)
"""Lowest and highest pitch, espeak-ng's own scale."""

_AUDIO_OUTPUT_SYNCHRONOUS = (
    2  # sound goes to the callback; the call returns when all of it has been delivered
)
_INITIALIZE_DONT_EXIT = 0x8000  # report a failure instead of ending the process
_CHARS_UTF8 = 1
_POS_CHARACTER = 1
_PARAMETER_RATE = 1
_PARAMETER_PITCH = 3
_MAX_DATA_PATH_BYTES = 150  # espeak-ng cuts longer ones off at 160, silently

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_locks: dict[int, threading.Lock] = {}


class Sound(NamedTuple):
    """Raw output of the synthesiser."""

    samples: NDArray[np.int16]
    """(samples,), full scale 32768; includes the silence that espeak-ng puts around a sentence."""
    sample_rate_hz: int


def check_voice(voice: str, rate_wpm: int, pitch: int) -> None:
    """Check a voice and its settings against what the installed data offers; synthesises nothing.

    Raises:
        ConfigError: The language or variant does not exist, or a setting is out of range.
        MissingDependencyError: The synthesiser is not installed.
    """
    _voice_name(voice)
    for name, value, (low, high) in (("rate_wpm", rate_wpm, RATE_WPM_RANGE), ("pitch", pitch, PITCH_RANGE)):
        if not low <= value <= high:
            raise ConfigError(f"{name} must be between {low} and {high}, found {value}.")


def synthesise(text: str, *, voice: str, rate_wpm: int, pitch: int) -> Sound:
    """Speak `text`. Safe to call from any thread and after a fork; one sentence at a time per process.

    Args:
        text: What to say; punctuation sets the intonation.
        voice: `language` or `language+variant`, e.g. ``"en-gb+m7"``.
        rate_wpm: Words per minute, 80 to 450.
        pitch: 0 to 99.

    Raises:
        ConfigError: The voice does not exist, or a setting is out of range.
        FeatureError: espeak-ng failed.
        MissingDependencyError: The synthesiser is not installed.
    """
    check_voice(voice, rate_wpm, pitch)
    chunks: list[bytes] = []

    def receive(samples: int | None, count: int, _events: int | None) -> int:
        if samples and count > 0:
            chunks.append(ctypes.string_at(samples, 2 * count))
        return 0

    # A lock per process: one that another thread held at the moment of a fork must not block the child.
    with _locks.setdefault(os.getpid(), threading.Lock()), ExitStack() as stack:
        library = stack.enter_context(_fresh_library())
        data = stack.enter_context(_short_path(_data_folder()))
        rate_hz = library.espeak_Initialize(
            _AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data), _INITIALIZE_DONT_EXIT
        )
        if rate_hz <= 0:
            raise FeatureError(
                f"espeak-ng could not read its data in {_data_folder()}; reinstall espeakng-loader."
            )
        stack.callback(library.espeak_Terminate)
        callback = _Callback(receive)
        library.espeak_SetSynthCallback(callback)
        library.espeak_ng_SetRandSeed(ctypes.c_long(1))
        status = library.espeak_SetVoiceByName(_voice_name(voice).encode())
        status |= library.espeak_SetParameter(_PARAMETER_RATE, rate_wpm, 0)
        status |= library.espeak_SetParameter(_PARAMETER_PITCH, pitch, 0)
        words = text.replace("\0", " ").encode("utf-8", "replace")
        size = ctypes.c_size_t(len(words) + 1)
        status |= library.espeak_Synth(words, size, 0, _POS_CHARACTER, 0, _CHARS_UTF8, None, None)
        if status:
            raise FeatureError(f"espeak-ng could not say {text!r} with voice {voice!r} (status {status}).")
    return Sound(np.frombuffer(b"".join(chunks), np.int16), rate_hz)


def _data_folder() -> Path:
    loader = require("espeakng_loader", extra="rl", purpose="speech synthesis")
    try:
        return Path(loader.get_data_path())
    except RuntimeError as error:
        raise MissingDependencyError(
            f"{error}; reinstall it with: pip install --force-reinstall espeakng-loader"
        ) from error


@functools.cache
def _languages() -> dict[str, str]:
    """Lower-case language tag -> identifier of its voice file, e.g. ``{"en-gb": "gmw/en"}``.

    espeak-ng itself finds some voices by tag and others, British English among them, only by file.
    """
    root = _data_folder() / "lang"
    best: dict[str, tuple[int, str]] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            word, *fields = line.split()[:3] or [""]
            if word == "language" and fields:
                priority = int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 5
                found = (priority, path.relative_to(root).as_posix())
                best[fields[0].lower()] = min(best.get(fields[0].lower(), found), found)
    return {tag: identifier for tag, (_, identifier) in best.items()}


@functools.cache
def _variants() -> frozenset[str]:
    return frozenset(path.name for path in (_data_folder() / "voices" / "!v").iterdir())


def _voice_name(voice: str) -> str:
    """Name under which espeak-ng knows the voice; it would silently ignore an unknown variant."""
    language, plus, variant = voice.partition("+")
    if language.lower() not in _languages() or (plus and variant not in _variants()):
        raise unknown_name("voice", voice, VOICES)
    return f"{_languages()[language.lower()]}{plus}{variant}"


@contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    """Load the library with untouched state, and unload it again."""
    from _ctypes import dlclose  # ctypes has no public way to unload; absent on Windows

    path = require("espeakng_loader", extra="rl", purpose="speech synthesis").get_library_path()
    with ExitStack() as stack:
        if _is_loaded(path):  # somebody else in this process uses it: leave theirs alone, load a copy
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sensorium-espeak-"))
            path = shutil.copy(path, folder)
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise MissingDependencyError(
                f"The espeak-ng library {path} does not load ({error}). Reinstall it with: "
                f"pip install --force-reinstall espeakng-loader"
            ) from error
        stack.callback(dlclose, library._handle)
        yield library


def _is_loaded(path: str) -> bool:
    from _ctypes import dlclose

    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    dlclose(library._handle)
    return True


@contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """Give the folder a short name for as long as it is needed, when its own is too long for espeak-ng."""
    if len(os.fsencode(folder)) <= _MAX_DATA_PATH_BYTES:
        yield str(folder)
        return
    with tempfile.TemporaryDirectory(prefix="sensorium-espeak-") as short:
        link = Path(short, "data")
        link.symlink_to(folder, target_is_directory=True)
        yield str(link)
