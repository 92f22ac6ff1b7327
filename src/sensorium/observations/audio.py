"""Sounds: files and arrays become parts.

A sound file that is in order keeps its bytes; what is damaged, or of a rare format, is written anew as 16-bit
WAV, and notes say why. Measures are taken block by block, so that hours of sound need no gigabytes.
"""

import io
import math
import wave
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sensorium.core import MissingDependencyError, Modality, ObservationError, require
from sensorium.observations.array import as_array
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.decoding import decode_data_url, encodable
from sensorium.observations.files import file_bytes
from sensorium.observations.loudness import Measures, Tally
from sensorium.observations.values import AudioValue, ProblemValue

MAX_SAMPLES = 30_000_000
"""Samples (frames x channels) of one sound that are decoded: half an hour at 16 kHz, mono."""

Mime = Literal["audio/wav", "audio/flac", "audio/ogg", "audio/mpeg"]

_MIMES: dict[str, Mime] = {
    "WAV": "audio/wav",
    "WAVEX": "audio/wav",
    "FLAC": "audio/flac",
    "OGG": "audio/ogg",
    "MP3": "audio/mpeg",
    "MPEG": "audio/mpeg",
}
_BLOCK_FRAMES = 4_096
"""Small, because a decoder that meets damage loses the block it was reading."""

_TRAILING_CHUNKS = (b"LIST", b"id3 ", b"ID3 ", b"bext", b"cue ", b"fact", b"smpl", b"_PMX", b"iXML")
_MAX_RATE_HZ = 1_000_000
_MAX_CHANNELS = 64


class _File(io.BytesIO):
    """Bytes that stay where they are when a damaged header sends the decoder to a place before the beginning.

    An exception could not leave the decoder's C code and would be printed instead.
    """

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """As in `io.BytesIO`."""
        try:
            return super().seek(offset, whence)
        except (ValueError, OverflowError):
            return self.tell()


def read_audio(raw: Any, *, part_id: str, config: ReadConfig | None = None) -> list[Part]:
    """Read one sound.

    Args:
        raw: Bytes of a file (WAV, FLAC, OGG, MP3, and what else libsndfile reads), an open binary file, a
            path, a ``data:`` address, or ``(samples, rate_hz)`` with an array (frames,), (frames, channels)
            or (channels, frames): integers of full scale, floats in [-1, 1].
        part_id: Id of the part.
        config: `max_bytes`; of a longer file the beginning is read.

    Returns:
        One part: an `AudioValue`, or a `ProblemValue` when nothing could be heard. Nothing about the content
        raises.
    """
    config = config or ReadConfig()
    try:
        value, notes = _read(raw, config)
    except MissingDependencyError as error:
        return [_problem(part_id, str(error), "pip install 'sensorium[observe]'")]
    except ObservationError as error:
        return [_problem(part_id, str(error))]
    except Exception as error:  # hostile input can fail anywhere in a decoder: say so, read on
        return [_problem(part_id, f"The sound cannot be read: {type(error).__name__}: {error}")]
    return [Part(id=part_id, modality=Modality.AUDIO, value=value, notes=notes)]


def decode_samples(
    value: AudioValue, *, start_s: float = 0.0, max_seconds: float | None = None
) -> NDArray[np.float32]:
    """Decode a stretch of a sound.

    Args:
        value: The sound.
        start_s: Where the stretch begins.
        max_seconds: Its length; to the end by default, `MAX_SAMPLES` at most.

    Returns:
        (frames, channels) float32 in [-1, 1], at the sound's own rate; values that are not finite are 0.

    Raises:
        ObservationError: The bytes cannot be decoded.
        MissingDependencyError: soundfile is not installed.
    """
    with _open(value.data) as file:
        limit = MAX_SAMPLES // max(file.channels, 1)
        if max_seconds is not None:
            limit = min(limit, math.ceil(max_seconds * file.samplerate))
        try:
            skipped = int(start_s * file.samplerate)
            if value.mime == "audio/mpeg":  # has no exact places to jump to
                _decode(file, skipped)
            elif skipped > 0:
                file.seek(min(skipped, max(file.frames - 1, 0)))
            samples: NDArray[np.float32] = _decode(file, limit)
        except RuntimeError as error:
            raise ObservationError(f"The sound cannot be decoded: {error}") from error
    np.nan_to_num(samples, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(samples, -1.0, 1.0, out=samples)


def encode_wav(samples: NDArray[Any], rate_hz: int) -> bytes:
    """Encode as 16-bit WAV.

    Args:
        samples: (frames, channels) or (frames,) floats in [-1, 1]; beyond is clipped. 1.0 becomes 32767.
        rate_hz: Frames per second.
    """
    frames = samples[:, None] if samples.ndim == 1 else samples
    whole = np.clip(np.rint(frames * 32768.0), -32768, 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(whole.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(whole.tobytes())
    return buffer.getvalue()


def _read(raw: Any, config: ReadConfig) -> tuple[AudioValue, tuple[str, ...]]:
    if isinstance(raw, tuple | list) and len(raw) == 2 and not isinstance(raw[0], int | float):
        return _read_array(raw[0], raw[1], config)
    if isinstance(raw, str) and raw[:5].lower() == "data:":
        return _read_file(decode_data_url(raw, max_bytes=config.max_bytes), config)
    content = file_bytes(raw, config.max_bytes)
    if content is None:
        raise ObservationError(
            f"A {type(raw).__name__} is no sound; expected bytes of a file, an open file, a path, a data: "
            "address, or (samples, rate_hz)."
        )
    return _read_file(content, config)


def _read_file(data: bytes, config: ReadConfig) -> tuple[AudioValue, tuple[str, ...]]:
    notes: list[str] = []
    if len(data) > config.max_bytes:
        data = data[: config.max_bytes]
        notes.append(f"only the first {config.max_bytes:,} bytes of the file were read (reading.max_bytes)")
    is_rewritten = bool(notes)
    data, mended = _with_right_sizes(data)
    if mended and not notes:
        notes.append(mended)
    with _open(data) as file:
        rate_hz, channels, promised = file.samplerate, file.channels, file.frames
        kind = str(file.format)
        _check_form(rate_hz, channels)
        limit = MAX_SAMPLES // channels
        measures, damage = _measure(file, limit)
    if measures.frames == 0:
        raise ObservationError(f"The sound has no samples{f' ({damage})' if damage else ''}.")
    frames = measures.frames
    if damage is None and frames >= limit and promised > frames:
        notes.append(f"peak, loudness and silence are those of the first {frames / rate_hz:.0f} s")
        # What a header promises is believed only as far as the file could hold it.
        frames = min(promised, frames * 100)
    elif damage is not None or _is_short(frames, promised, kind):
        promise = f"of {promised / rate_hz:.1f} s " if frames < promised < 2**40 else ""
        notes.append(f"the file is damaged or cut off: {frames / rate_hz:.1f} s {promise}could be read")
        is_rewritten = True
    if measures.num_non_finite:
        notes.append(f"{measures.num_non_finite:,} samples were not finite and are silent")
        is_rewritten = True
    mime = _MIMES.get(kind)
    if mime is None:
        notes.append(f"converted from {kind}")
    value = _value(data, mime or "audio/wav", rate_hz, channels, frames / rate_hz, measures)
    if is_rewritten or mime is None:
        samples = decode_samples(value)
        if len(samples) < frames:
            notes.append(f"only the first {len(samples) / rate_hz:.0f} s are kept")
        changes = {
            "data": encode_wav(samples, rate_hz),
            "mime": "audio/wav",
            "duration_s": len(samples) / rate_hz,
        }
        value = value.model_copy(update=changes)
    return value, tuple(notes)


def _read_array(raw: Any, rate: Any, config: ReadConfig) -> tuple[AudioValue, tuple[str, ...]]:
    array, rate_hz = as_array(raw)[0], float(rate)
    if array.dtype.kind not in "iufb" or array.ndim not in (1, 2):
        raise ObservationError(
            f"An array of {array.dtype} and shape {array.shape} is no sound; expected numbers of shape "
            "(frames,), (frames, channels) or (channels, frames)."
        )
    if array.size == 0:
        raise ObservationError("The sound has no samples.")
    if not rate_hz.is_integer():
        raise ObservationError(f"A sample rate is a whole number of Hz, found {rate!r}.")
    frames = array[:, None] if array.ndim == 1 else array
    if (
        frames.shape[0] <= _MAX_CHANNELS < frames.shape[1]
        or frames.shape[0] < frames.shape[1] <= _MAX_CHANNELS
    ):
        frames = frames.T
    _check_form(int(rate_hz), frames.shape[1])
    notes: list[str] = []
    limit = max(min(MAX_SAMPLES, config.max_bytes // 2) // frames.shape[1], 1)
    if len(frames) > limit:
        notes.append(f"only the first {limit / rate_hz:.1f} of {len(frames) / rate_hz:.1f} s are kept")
        frames = frames[:limit]
    samples, note = _full_scale(frames)
    if note:
        notes.append(note)
    tally = Tally(int(rate_hz))
    tally.add(samples)
    measures = tally.measures()
    if measures.num_non_finite:
        notes.append(f"{measures.num_non_finite:,} samples were not finite and are silent")
    data = encode_wav(np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0), int(rate_hz))
    duration_s = len(frames) / rate_hz
    return _value(data, "audio/wav", int(rate_hz), frames.shape[1], duration_s, measures), tuple(notes)


def _value(
    data: bytes, mime: Mime, rate_hz: int, channels: int, duration_s: float, measures: Measures
) -> AudioValue:
    return AudioValue(
        data=data,
        mime=mime,
        rate_hz=rate_hz,
        channels=channels,
        duration_s=duration_s,
        peak_dbfs=measures.peak_dbfs,
        loudness_dbfs=measures.loudness_dbfs,
        silence_share=measures.silence_share,
    )


def _open(data: bytes) -> Any:
    soundfile = require("soundfile", extra="observe", purpose="reading sound")
    if not data:
        raise ObservationError("The sound file is empty.")
    try:
        file = soundfile.SoundFile(_File(data))
        # Otherwise soundfile seeks after every block, and an MP3 decoder forgets what the next block needs.
        file.seekable = lambda: False
        return file
    except (RuntimeError, TypeError, ValueError) as error:  # LibsndfileError is a RuntimeError
        reason = " ".join(str(error).rpartition(": ")[2].split())
        raise ObservationError(
            f"{len(data):,} bytes that begin with {data[:8]!r} are no sound that can be read: {reason}"
        ) from error


def _check_form(rate_hz: int, channels: int) -> None:
    if not 1 <= rate_hz <= _MAX_RATE_HZ or not 1 <= channels <= _MAX_CHANNELS:
        raise ObservationError(
            f"A sound of {channels} channels at {rate_hz} Hz cannot be; expected 1 to {_MAX_CHANNELS} "
            f"channels and 1 to {_MAX_RATE_HZ:,} Hz."
        )


def _full_scale(frames: NDArray[Any]) -> tuple[NDArray[np.float32], str]:
    """Samples in [-1, 1], and a note when floats had to be scaled or clipped."""
    kind, bits = frames.dtype.kind, frames.dtype.itemsize * 8
    if kind == "b":
        return frames.astype(np.float32), ""
    if kind == "i":
        return (frames.astype(np.float64) / 2.0 ** (bits - 1)).astype(np.float32), ""
    if kind == "u":
        half = 2.0 ** (bits - 1)
        return ((frames.astype(np.float64) - half) / half).astype(np.float32), ""
    samples = frames.astype(np.float32)
    peak = float(np.max(np.abs(samples), initial=0.0, where=np.isfinite(samples)))
    if peak <= 1.0:
        return samples, ""
    if peak <= 2.0:  # an overdriven recording
        return np.where(np.isfinite(samples), np.clip(samples, -1.0, 1.0), samples), (
            f"samples up to {peak:.2f} were clipped to full scale"
        )
    return samples / np.float32(peak), f"samples up to {peak:g} were divided by that"


def _measure(file: Any, limit: int) -> tuple[Measures, str | None]:
    """Measure up to `limit` frames of an open file; the second value says what broke, if anything did."""
    tally, left = Tally(file.samplerate), limit
    damage = None
    block_frames = max(_BLOCK_FRAMES // tally.window, 1) * tally.window
    while left > 0:
        try:
            block = file.read(min(block_frames, left), dtype="float32", always_2d=True)
        except RuntimeError as error:
            damage = str(error)
            break
        if not len(block):
            break
        tally.add(block)
        left -= len(block)
    return tally.measures(), damage


def _decode(file: Any, limit: int) -> NDArray[np.float32]:
    """Up to `limit` frames; of a damaged file what comes before the damage."""
    blocks: list[NDArray[np.float32]] = []
    while limit > 0:
        try:
            block = file.read(min(_BLOCK_FRAMES, limit), dtype="float32", always_2d=True)
        except RuntimeError:
            if not blocks:
                raise
            break
        if not len(block):
            break
        blocks.append(block)
        limit -= len(block)
    return np.concatenate(blocks) if blocks else np.zeros((0, file.channels), np.float32)


def _is_short(frames: int, promised: int, kind: str) -> bool:
    # The length of an MP3 is an estimate until it was decoded.
    slack = promised // 20 + 4_800 if kind in ("MP3", "MPEG") else 0
    return frames + slack < promised


def _with_right_sizes(data: bytes) -> tuple[bytes, str]:
    """A WAV file with the sizes of what is there in its header, and a note when that changed anything.

    Streams write 0 or the largest number there is; a file that is cut off promises what is missing.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return data, ""
    at = 12
    while data[at : at + 4] != b"data":
        if at + 8 > len(data):
            return data, ""
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    promised, there = int.from_bytes(data[at + 4 : at + 8], "little"), len(data) - at - 8
    is_stream = promised == 0 and there > 0 and data[at + 8 : at + 12] not in _TRAILING_CHUNKS
    if there < 0 or (promised <= there and not is_stream):
        return data, ""
    mended = bytearray(data)
    mended[at + 4 : at + 8] = there.to_bytes(4, "little")
    mended[4:8] = (len(data) - 8).to_bytes(4, "little")
    return bytes(mended), f"the header promised {promised:,} bytes of sound; {there:,} are there"


def _problem(part_id: str, what: str, mend: str = "") -> Part:
    return Part(id=part_id, modality=Modality.AUDIO, value=ProblemValue(what=encodable(what), mend=mend))
