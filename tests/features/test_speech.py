import hashlib
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sensorium.core import ConfigError, FeatureError, MissingDependencyError
from sensorium.features import espeak, speech
from sensorium.features.audio import LOG_MEL_FLOOR
from sensorium.features.speech import SAMPLE_RATE_HZ, VOICES, Utterance, utterance, utterance_log_mel

SENTENCE = "go to the red ball"

pytestmark = pytest.mark.usefixtures("cache_home")


def digest(spoken: Utterance) -> str:
    return hashlib.sha256(spoken.waveform.tobytes()).hexdigest()


def forget() -> None:
    speech._utterance.cache_clear()


def test_it_sounds_like_speech() -> None:
    spoken = utterance(SENTENCE)
    assert spoken.sample_rate_hz == SAMPLE_RATE_HZ == 16_000
    assert spoken.waveform.dtype == np.float32
    assert 0.7 < spoken.duration_s < 1.6
    assert 0.2 < np.abs(spoken.waveform).max() <= 1.0
    power = np.abs(np.fft.rfft(spoken.waveform)) ** 2
    bins_hz = np.fft.rfftfreq(spoken.waveform.size, 1 / SAMPLE_RATE_HZ)
    assert power[(bins_hz > 100) & (bins_hz < 4000)].sum() > 0.9 * power.sum()


def test_silence_at_both_ends_is_trimmed() -> None:
    loud = np.flatnonzero(np.abs(utterance(SENTENCE).waveform) > 1.1e-3)
    assert 0 < loud[0] <= 160
    assert utterance(SENTENCE).waveform.size - 1 - loud[-1] <= 160


def test_rate_voice_pitch_and_text_all_matter() -> None:
    slow, normal, fast = (utterance(SENTENCE, rate_wpm=rate) for rate in (100, 160, 260))
    assert slow.duration_s > 1.2 * normal.duration_s > 1.2 * 1.2 * fast.duration_s
    assert digest(utterance("go to the blue box")) != digest(normal)
    assert digest(utterance(SENTENCE, pitch=80)) != digest(normal)


def test_every_voice_speaks_in_its_own_way() -> None:
    frames = [utterance_log_mel(SENTENCE, voice=voice, num_frames=60) for voice in VOICES]
    for index, first in enumerate(frames):
        for second in frames[index + 1 :]:
            assert np.abs(first - second).mean() > 0.2


def test_the_same_arguments_give_the_same_samples_in_any_order() -> None:
    order = [(SENTENCE, "en-us"), ("find the blue box", "en-gb+m7"), (SENTENCE, "en-us+whisper")]
    first = [espeak.synthesise(text, voice=voice, rate_wpm=160, pitch=50).samples for text, voice in order]
    again = [
        espeak.synthesise(text, voice=voice, rate_wpm=160, pitch=50).samples for text, voice in order[::-1]
    ]
    for one, other in zip(first, again[::-1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_process_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = digest(utterance(SENTENCE, voice="en-gb+m7"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    program = (
        "import hashlib; from sensorium.features.speech import utterance; "
        f"print(hashlib.sha256(utterance({SENTENCE!r}, voice='en-gb+m7').waveform.tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == here


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_can_speak(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")  # no shared cache: the worker has to speak itself
    here = digest(utterance(SENTENCE, voice="en-us+f3"))
    forget()
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert digest(pool.apply(utterance, (SENTENCE,), {"voice": "en-us+f3"})) == here


def test_threads_do_not_mix_their_sentences() -> None:
    texts = [f"go to room {number}" for number in range(12)]
    expected = [espeak.synthesise(text, voice="en-us", rate_wpm=160, pitch=50).samples for text in texts]
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(espeak.synthesise, text, voice="en-us", rate_wpm=160, pitch=50) for text in texts]
    for job, samples in zip(jobs, expected, strict=True):
        np.testing.assert_array_equal(job.result().samples, samples)


def test_a_library_that_somebody_else_holds_is_left_alone() -> None:
    alone = espeak.synthesise(SENTENCE, voice="en-us", rate_wpm=160, pitch=50).samples
    with espeak._fresh_library() as theirs:
        beside = espeak.synthesise(SENTENCE, voice="en-us", rate_wpm=160, pitch=50).samples
        assert espeak._is_loaded(theirs._name)
    assert not espeak._is_loaded(theirs._name)
    np.testing.assert_array_equal(alone, beside)


def test_data_in_a_deep_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = espeak.synthesise(SENTENCE, voice="en-us+f3", rate_wpm=160, pitch=50).samples
    deep = tmp_path / ("x" * 120) / "data"
    deep.parent.mkdir()
    deep.symlink_to(espeak._data_folder())
    monkeypatch.setattr(espeak, "_data_folder", lambda: deep)
    found = espeak.synthesise(SENTENCE, voice="en-us+f3", rate_wpm=160, pitch=50).samples
    np.testing.assert_array_equal(found, expected)


def test_a_cached_sentence_is_not_spoken_again(cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = utterance(SENTENCE)
    assert len(list(cache_home.rglob("*.npy"))) == 1
    forget()
    monkeypatch.setattr(speech, "synthesise", lambda *_, **__: pytest.fail("spoke again"))
    again = utterance(SENTENCE)
    assert again is not first
    assert digest(again) == digest(first)


@pytest.mark.parametrize("contents", [b"", b"rubbish" * 100])
def test_a_corrupt_cache_file_is_made_again(cache_home: Path, contents: bytes) -> None:
    first = utterance(SENTENCE)
    (path,) = cache_home.rglob("*.npy")
    good = path.read_bytes()
    path.write_bytes(contents)
    forget()
    assert digest(utterance(SENTENCE)) == digest(first)
    assert path.read_bytes() == good


def test_a_cache_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert utterance(SENTENCE).duration_s > 0.7


def test_waveforms_are_shared_and_read_only() -> None:
    assert utterance(SENTENCE) is utterance(SENTENCE)
    with pytest.raises(ValueError, match="read-only"):
        utterance(SENTENCE).waveform[0] = 0.0


@pytest.mark.parametrize("text", ["", "   ", "..."])
def test_nothing_to_say_is_silence(text: str) -> None:
    assert utterance(text).waveform.shape == (0,)
    assert (utterance_log_mel(text, num_frames=8) == np.float32(LOG_MEL_FLOOR)).all()


def test_log_mel_is_padded_with_the_floor() -> None:
    frames = utterance_log_mel(SENTENCE, num_frames=80)
    assert frames.shape == (80, 20)
    assert frames.dtype == np.float32
    spoken = int(np.ceil(utterance(SENTENCE).duration_s * 40))
    assert (frames[spoken + 1 :] == np.float32(LOG_MEL_FLOOR)).all()
    assert (frames[:spoken].max(axis=1) > LOG_MEL_FLOOR + 3).mean() > 0.9
    np.testing.assert_array_equal(utterance_log_mel(SENTENCE, num_frames=spoken), frames[:spoken])


def test_a_sentence_that_is_too_long_says_how_many_frames_it_needs() -> None:
    needed = int(np.ceil(utterance(SENTENCE).duration_s * 40))
    with pytest.raises(FeatureError, match=f"Raise num_frames to {needed},"):
        utterance_log_mel(SENTENCE, num_frames=needed - 1)
    assert utterance_log_mel(SENTENCE, num_frames=needed).shape == (needed, 20)


@pytest.mark.parametrize("frame_rate_hz", [10.0, 35.0, 100.0])
def test_other_frame_rates(frame_rate_hz: float) -> None:
    frames = utterance_log_mel(SENTENCE, frame_rate_hz=frame_rate_hz, num_frames=150)
    audible = (frames > LOG_MEL_FLOOR).any(axis=1).sum()
    assert audible == pytest.approx(utterance(SENTENCE).duration_s * frame_rate_hz, abs=4)


@pytest.mark.parametrize("voice", ["en-us+nobody", "klingonese", "en-us+../../x", ""])
def test_an_unknown_voice_is_named(voice: str) -> None:
    with pytest.raises(ConfigError, match=r"Unknown voice.*en-gb"):
        utterance(SENTENCE, voice=voice)


@pytest.mark.parametrize("setting", [{"rate_wpm": 20}, {"rate_wpm": 900}, {"pitch": 100}])
def test_settings_out_of_range(setting: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be between"):
        utterance(SENTENCE, **setting)


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(MissingDependencyError, match=r"sensorium\[rl\]"):
        utterance(SENTENCE)


def test_difficult_text_is_spoken() -> None:
    assert utterance("caffè \0 naïve \ud800 5 + 3").duration_s > 0.5
