from typing import Any

import numpy as np
import pytest
import torch

from sensorium.core import Modality, PolicyError
from sensorium.features.hashed_text import HashedTextEncoder
from sensorium.representations import tensors
from sensorium.representations.tensors import SensorInput, TensorRepresenter

CPU = torch.device("cpu")
NOW = np.zeros(3, np.float32)
ALL = np.ones(3, np.bool_)
NONE = np.zeros(3, np.bool_)


def sensor(
    name: str, modality: Modality, shape: tuple[int, ...], *, tabled: bool, dtype: str = "float32"
) -> SensorInput:
    return SensorInput(name=name, modality=modality, shape=shape, dtype=dtype, tabled=tabled, normalise=False)


RGB = sensor("rgb", Modality.IMAGE, (4, 4, 3), tabled=False, dtype="uint8")
SPEECH = sensor("speech", Modality.AUDIO, (5, 2), tabled=True)
TEXT = sensor("instruction", Modality.TEXT, (4, 8), tabled=True)


def representer(*inputs: SensorInput) -> TensorRepresenter:
    return TensorRepresenter(inputs, HashedTextEncoder(dim=8, max_tokens=4), CPU)


def observation(**readings: Any) -> dict[str, Any]:
    return readings | {
        "present": {name: np.ones(3, np.int64) for name in readings},
        "timestamp_s": {name: np.zeros(3, np.float32) for name in readings},
    }


def speech(*values: float) -> np.ndarray:
    return np.stack([np.full((5, 2), v, np.float32) for v in values])


def test_texts_are_kept_once() -> None:
    r = representer(TEXT)
    first = r(observation(instruction=("go left", "go right", "go left")), NOW, ALL)
    assert first.rows["instruction"].tolist() == [0, 1, 0]
    assert first.tables["instruction"].values.shape == (2, 4, 8)
    second = r(observation(instruction=("go right", "stop", "go left")), NOW, NONE)
    assert second.rows["instruction"].tolist() == [1, 2, 0]
    assert second.tables["instruction"].values.shape == (3, 4, 8)
    # rows that were handed out before still mean the same
    old, new = first.tables["instruction"], second.tables["instruction"]
    assert torch.equal(old.values, new.values[:2])
    assert torch.equal(old.mask, new.mask[:2])
    expected = HashedTextEncoder(dim=8, max_tokens=4).encode(["stop"])
    np.testing.assert_array_equal(new.values[2], expected.tokens[0])


def test_per_episode_readings_are_looked_up_at_starts_only() -> None:
    r = representer(SPEECH)
    r(observation(speech=speech(1, 2, 1)), NOW, ALL)
    starts = np.array([False, True, False])
    now = r(observation(speech=speech(9, 7, 9)), NOW, starts)
    assert now.rows["speech"].tolist() == [0, 2, 0]
    assert now.tables["speech"].values[:, 0, 0].tolist() == [1, 2, 7]
    assert now.tables["speech"].mask.shape == (3, 1)


def test_rows_handed_out_are_not_changed_later() -> None:
    r = representer(SPEECH)
    first = r(observation(speech=speech(1, 2, 1)), NOW, ALL)
    r(observation(speech=speech(3, 3, 3)), NOW, ALL)
    assert first.rows["speech"].tolist() == [0, 1, 0]


def test_forget_starts_again_at_row_zero() -> None:
    r = representer(SPEECH, TEXT)
    r(observation(speech=speech(1, 2, 3), instruction=("a", "b", "c")), NOW, ALL)
    r.forget()
    now = r(observation(speech=speech(3, 3, 3), instruction=("c", "c", "c")), NOW, NONE)
    assert now.rows["speech"].tolist() == [0, 0, 0]
    assert now.rows["instruction"].tolist() == [0, 0, 0]
    assert len(now.tables["speech"].values) == 1


def test_trim_forgets_only_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MAX_TABLE_ROWS", 2)
    r = representer(SPEECH)
    r(observation(speech=speech(1, 2, 1)), NOW, ALL)
    r.trim()
    assert len(r.tables()["speech"].values) == 2
    r(observation(speech=speech(3, 3, 3)), NOW, ALL)
    r.trim()
    assert "speech" not in r.tables()


def test_dense_readings_keep_their_dtype() -> None:
    frames = np.arange(3 * 48, dtype=np.uint8).reshape(3, 4, 4, 3)
    now = representer(RGB)(observation(rgb=frames), NOW, ALL)
    assert now.dense["rgb"].dtype == torch.uint8
    np.testing.assert_array_equal(now.dense["rgb"], frames)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint16", "bool"])
def test_dense_readings_become_what_the_policy_reads(dtype: str) -> None:
    touch = sensor("proprio", Modality.PROPRIO, (2,), tabled=False)
    reading = np.array([[0, 1], [1, 0], [1, 1]], dtype)
    now = representer(touch)(observation(proprio=reading), NOW, ALL)
    assert now.dense["proprio"].dtype == torch.float32
    np.testing.assert_array_equal(now.dense["proprio"], reading.astype(np.float32))


def test_presence_and_age() -> None:
    obs = observation(rgb=np.zeros((3, 4, 4, 3), np.uint8), speech=speech(1, 1, 1))
    obs["present"]["speech"] = np.array([1, 0, 1])
    obs["timestamp_s"]["rgb"] = np.array([0.5, 1.0, 2.0], np.float32)
    now = representer(RGB, SPEECH)(obs, np.array([1.0, 1.0, 1.0], np.float32), ALL)
    assert now.present.tolist() == [[True, True], [True, False], [True, True]]
    torch.testing.assert_close(now.age_s, torch.tensor([[0.5, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    blank = now.blank(frozenset({"rgb"}), ("rgb", "speech"))
    assert blank.present.tolist() == [[False, True], [False, False], [False, True]]
    assert now.present[0, 0]


def test_a_missing_sensor_is_named_with_those_there_are() -> None:
    with pytest.raises(
        PolicyError, match=r"perceives 'rgb', which the observation lacks; it holds instruction, speech"
    ):
        representer(RGB)(observation(speech=speech(1, 1, 1), instruction=("a", "b", "c")), NOW, ALL)


def test_text_needs_an_encoder() -> None:
    with pytest.raises(PolicyError, match="'instruction' is text and needs a text encoder"):
        TensorRepresenter((TEXT,), None, CPU)(observation(instruction=("a", "b", "c")), NOW, ALL)


def test_sensor_inputs_survive_json() -> None:
    for one in (RGB, SPEECH, TEXT):
        assert SensorInput.parse(one.describe()) == one


def test_the_reading_of_an_absent_sensor_is_never_read() -> None:
    r = representer(RGB, SPEECH, TEXT)
    frames = np.full((3, *RGB.shape), 200, RGB.dtype)
    seen = observation(rgb=frames, speech=speech(1, 2, 3), instruction=("a", "b", "c"))
    for name in ("rgb", "speech", "instruction"):
        seen["present"][name] = np.array([1, 0, 1])
    seen["speech"][1] = np.nan
    first = r(seen, NOW, ALL)
    assert first.present.tolist() == [[True] * 3, [False] * 3, [True] * 3]
    assert not first.dense["rgb"][1].any()
    assert torch.isfinite(first.tables["speech"].values).all()
    assert not first.tables["instruction"].mask[first.rows["instruction"][1]].any()
    # once it delivers, in the middle of the episode, it is read
    for name in ("rgb", "speech", "instruction"):
        seen["present"][name] = np.ones(3, np.int64)
    seen["speech"][1] = 2.0
    then = r(seen, NOW, NONE)
    assert (then.dense["rgb"] == 200).all()
    assert (then.tables["speech"].values[then.rows["speech"][1]] == 2.0).all()
