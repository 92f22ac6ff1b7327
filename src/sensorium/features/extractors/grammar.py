"""Speech recognition with a grammar: only its sentences can be heard, in a twentieth of a second."""

import functools
import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import ConfigError, FeatureError, boundary, require
from sensorium.features.extractors.audio_config import TranscriptConfig
from sensorium.features.extractors.commands import plain_words
from sensorium.features.extractors.model_stamp import package_version
from sensorium.features.extractors.recognition import RATE_HZ, SpokenSegment, SpokenText

_FRAMES_PER_S = 100
_QUIET_S = 0.3
_NO_WORD = re.compile(r"^(<.*>|\[.*\]|\+\+.*\+\+|\(NULL\))$")


class GrammarRecogniser:
    """Pocketsphinx with its own English acoustic model and a JSGF grammar.

    Args:
        config: The grammar, or commands of which one is made.
    """

    def __init__(self, config: TranscriptConfig) -> None:
        self._grammar = config.grammar if config.grammar.strip() else commands_grammar(config.commands)
        self._lock = threading.Lock()
        self._decoder: Any = None

    @property
    def version(self) -> str:
        """Engine, whose model comes with it."""
        return f"pocketsphinx-{package_version('pocketsphinx')}"

    def recognise(self, waveform: NDArray[np.float32]) -> SpokenText:
        """See `Recogniser`; one segment, or none when no sentence of the grammar fits."""
        quiet = _quiet()
        sound = np.concatenate([quiet, np.clip(waveform, -1.0, 1.0), quiet])
        samples = np.rint(sound * 32767.0).astype("<i2")
        with self._lock:  # a decoder keeps its state between the calls
            if self._decoder is None:
                self._decoder = self._load()
            decoder = self._decoder
            with boundary(FeatureError, "pocketsphinx failed"):
                decoder.start_utt()
                decoder.process_raw(samples.tobytes(), full_utt=True)
                decoder.end_utt()
                best = decoder.hyp()
                pieces = [(one.word, one.start_frame, one.end_frame) for one in decoder.seg() or ()]
        words = [(start, end) for word, start, end in pieces if not _NO_WORD.match(word)]
        if best is None or not best.hypstr.strip() or not words:
            return SpokenText((), None)
        start_s = max(0.0, words[0][0] / _FRAMES_PER_S - _QUIET_S)
        end_s = min((words[-1][1] + 1) / _FRAMES_PER_S - _QUIET_S, len(waveform) / RATE_HZ)
        return SpokenText((SpokenSegment(round(start_s, 2), round(end_s, 2), best.hypstr.strip()),), "en")

    def _load(self) -> Any:
        module = require(
            "pocketsphinx", extra="speech", purpose="speech recognition with engine pocketsphinx"
        )
        with boundary(FeatureError, "pocketsphinx cannot be started"):
            decoder = module.Decoder(lm=None, samprate=float(RATE_HZ), loglevel="FATAL")
        unknown = sorted({word for word in _grammar_words(self._grammar) if not decoder.lookup_word(word)})
        if unknown:
            raise ConfigError(
                f"The grammar has words that pocketsphinx's dictionary does not: {', '.join(unknown)}. Use "
                f"other words, or engine whisper."
            )
        try:
            decoder.add_jsgf_string("commands", self._grammar)
            decoder.activate_search("commands")
        except Exception as error:
            raise ConfigError(
                f"The grammar is no JSGF that pocketsphinx can read ({error}). It looks like: #JSGF V1.0; "
                f"grammar moves; public <move> = (turn | go) (left | right);"
            ) from error
        return decoder


@functools.cache
def _quiet() -> NDArray[np.float32]:
    """The faint noise of a quiet room, before and after: commands that are cut close are heard worse."""
    noise = np.random.default_rng(0).normal(scale=1e-4, size=round(_QUIET_S * RATE_HZ))
    return noise.astype(np.float32)


def commands_grammar(commands: Sequence[str]) -> str:
    """A JSGF grammar whose sentences are the commands."""
    sentences = [" ".join(plain_words(command)) for command in commands]
    return f"#JSGF V1.0; grammar commands; public <command> = {' | '.join(s for s in sentences if s)};"


def _grammar_words(grammar: str) -> list[str]:
    """Words of the sentences: what is left without header, comments, rule names, tags and weights."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\{[^}]*\}|/[\d.]+/", " ", grammar, flags=re.DOTALL)
    rules = text.split(";")
    bodies = [rule.split("=", 1)[1] for rule in rules if "=" in rule]
    return re.findall(r"[^\s()\[\]|*+<>]+", re.sub(r"<[^>]*>", " ", " ".join(bodies)))
