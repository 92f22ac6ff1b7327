import numpy as np
import pytest
from drawn_pictures import encoded, photo
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sensorium.core import Modality
from sensorium.observations.base import Part
from sensorium.observations.image import read_image
from sensorium.observations.values import TextValue
from sensorium.representations.align import align, interleave, sample_frames, source_of


def at(name: str, time_s: float | None) -> Part:
    return Part(id=name, modality=Modality.TEXT, value=TextValue(text=name), timestamp_s=time_s)


STREAMS = [at("camera/0", 0.0), at("camera/1", 1.0), at("camera/2", 2.0), at("mic/0", 0.9), at("task", None)]


def test_previous_takes_nothing_from_the_future() -> None:
    found = align(STREAMS, at=[-0.5, 0.0, 0.95, 1.0, 5.0])
    assert found.sources == ("camera", "mic", "task")
    assert found.position.tolist() == [[-1, -1, 4], [0, -1, 4], [0, 3, 4], [1, 3, 4], [2, 3, 4]]
    assert found.present.tolist() == (found.position >= 0).tolist()
    np.testing.assert_allclose(found.age_s[2], [0.95, 0.05, 0.0], atol=1e-12)
    assert np.isnan(found.age_s[0, 0])
    assert found.row(1) == {"camera": STREAMS[0], "mic": None, "task": STREAMS[4]}


def test_nearest_and_tolerance() -> None:
    found = align(STREAMS, at=[-0.5, 0.4, 0.5, 0.6, 9.0], method="nearest", tolerance_s=0.5)
    assert found.position[:, 0].tolist() == [0, 0, 0, 1, -1]  # of two at the same distance the earlier one
    assert found.position[:, 1].tolist() == [-1, 3, 3, 3, -1]
    assert found.age_s[3, 0] == pytest.approx(-0.4)
    assert align(STREAMS, at=[3.0], tolerance_s=1.0).position[0].tolist() == [2, -1, 4]


def test_order_equal_times_and_parts_without_a_time() -> None:
    parts = [
        at("a/late", 2.0),
        at("a/first", 1.0),
        at("a/again", 1.0),
        at("a/none", None),
        at("a/nan", np.nan),
    ]
    for method in ("previous", "nearest"):
        assert align(parts, at=[1.2], method=method).row(0) == {"a": parts[2]}  # type: ignore[arg-type]
    assert align(parts, at=[0.9], method="nearest").row(0) == {"a": parts[2]}
    assert align([at("b", None), at("b", None)], at=[0.0]).position.tolist() == [[1]]
    assert align([], at=[1.0]).position.shape == (1, 0)
    assert align(parts, at=[]).position.shape == (0, 1)
    assert source_of(at("camera/left/12", None)) == "camera/left"
    assert align(STREAMS, at=[1.0], source=lambda part: "all").position.tolist() == [[1]]


def test_impossible_requests_are_refused() -> None:
    for wrong in ({"at": [np.nan]}, {"at": [0.0], "tolerance_s": -1.0}, {"at": [0.0], "tolerance_s": np.nan}):
        with pytest.raises(ValueError, match=r"seconds|tolerance_s"):
            align(STREAMS, **wrong)  # type: ignore[arg-type]


TIMES = st.lists(st.one_of(st.none(), st.floats(-5, 5), st.integers(-3, 3).map(float)), max_size=20)


@settings(max_examples=200, deadline=None)
@given(
    TIMES,
    st.lists(st.floats(-6, 6), min_size=1, max_size=20),
    st.sampled_from(["previous", "nearest"]),
    st.one_of(st.just(np.inf), st.floats(0, 3)),
)
def test_alignment_is_monotone_and_agrees_with_a_plain_search(
    times: list[float | None], queries: list[float], method: str, tolerance: float
) -> None:
    parts = [at(f"{'ab'[i % 2]}/{i}", time) for i, time in enumerate(times)]
    found = align(parts, at=sorted(queries), method=method, tolerance_s=tolerance)  # type: ignore[arg-type]
    for column, source in enumerate(found.sources):
        members = [i for i, part in enumerate(parts) if source_of(part) == source]
        timed = [i for i in members if times[i] is not None]
        last = -np.inf
        for row, query in enumerate(sorted(queries)):
            position = int(found.position[row, column])
            if not timed:
                assert position == members[-1]
                continue
            held = {i: times[i] for i in timed if method == "nearest" or times[i] <= query}  # type: ignore[operator]
            distances = {i: abs(query - t) for i, t in held.items()}  # type: ignore[operator]
            within = bool(distances) and min(distances.values()) <= tolerance
            assert (position >= 0) == within == bool(found.present[row, column])
            if within:
                assert distances[position] == min(distances.values())
                assert times[position] >= last  # type: ignore[operator]
                last = times[position]  # type: ignore[assignment]


@settings(max_examples=100, deadline=None)
@given(TIMES)
def test_interleaving_sorts_by_time_and_loses_nothing(times: list[float | None]) -> None:
    parts = [at(str(i), time) for i, time in enumerate(times)]
    ordered = interleave(parts)
    assert sorted(p.id for p in ordered) == sorted(p.id for p in parts)
    keys = [(-np.inf if p.timestamp_s is None else p.timestamp_s, int(p.id)) for p in ordered]
    assert keys == sorted(keys)


def frame(number: int, picture: Image.Image) -> Part:
    (part,) = read_image(encoded(picture), part_id=f"camera/{number}")
    return part.model_copy(update={"timestamp_s": number / 30})


def test_frames_are_picked_where_the_picture_changes() -> None:
    scenes = [photo(64, 48, seed=seed) for seed in range(3)]
    # Long still stretches: 40 frames of the first, 2 of the second, 22 of the third scene.
    frames = [frame(i, scenes[0 if i < 40 else 1 if i < 42 else 2]) for i in range(64)]
    picked = sample_frames(frames, 5)
    assert [part.id for part in picked] == ["camera/0", "camera/40", "camera/42"]
    assert [part.id for part in sample_frames(frames[::-1], 5)] == [part.id for part in picked]
    assert [part.id for part in sample_frames(frames[:40], 5)] == ["camera/0"]
    assert sample_frames(frames, 1) == (frames[0],)
    assert sample_frames(frames, 0) == ()
    broken = Part(id="camera/x", modality=Modality.TEXT, value=TextValue(text="lost"), timestamp_s=0.5)
    assert sample_frames([broken], 3) == ()
    with pytest.raises(ValueError, match="0 or more"):
        sample_frames(frames, -1)


@pytest.mark.parametrize("limit", [1, 2, 4, 9, 50])
def test_the_limit_holds_and_a_moving_camera_is_followed(limit: int) -> None:
    wide = photo(400, 48, seed=7)
    frames = [frame(i, wide.crop((i * 3, 0, i * 3 + 64, 48))) for i in range(100)]
    picked = sample_frames(frames, limit)
    numbers = [int(part.id.rpartition("/")[2]) for part in picked]
    assert 1 <= len(picked) <= limit
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    if limit >= 4:
        assert max(np.diff([*numbers, 100])) < 60
