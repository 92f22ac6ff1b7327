"""Tables, arrays and pictures: the changes that have a form of their own."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import cells, tables
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from plain_files import png

from sensorium.core import Modality
from sensorium.observations.base import Part
from sensorium.observations.values import ArrayValue, Column, ImageValue, TableValue
from sensorium.representations.delta import PartDelta, apply_delta, changed_rectangles, make_delta
from sensorium.representations.delta.base import ArrayDelta, ImageDelta, RowRun, TableDelta
from sensorium.representations.delta.images import Rectangle


def change_of(old: Any, new: Any, modality: Modality) -> Any:
    """The change of a value, after it has been proven lossless, also through JSON."""
    before, after = (Part(id="x", modality=modality, value=value) for value in (old, new))
    delta = make_delta(before, after)
    if delta is None:
        assert repr(old) == repr(new)
        return None
    assert repr(apply_delta(before, delta)) == repr(after)
    assert repr(apply_delta(before, PartDelta.model_validate_json(delta.model_dump_json()))) == repr(after)
    return delta.change


def prices(
    rows: list[tuple[Any, ...]], numbers: list[int] | None = None, names: str = "item price"
) -> TableValue:
    return TableValue(
        columns=tuple(Column(name=name, dtype="string") for name in names.split()),
        num_rows=len(rows),
        rows=tuple(rows),
        row_numbers=tuple(range(len(rows)) if numbers is None else numbers),
    )


ROWS = [(f"item {at}", float(at), at * 2) for at in range(100)]
NAMES = "item price stock"


def test_one_cell_costs_one_cell() -> None:
    rows = [*ROWS]
    rows[40] = ("item 40", 0.5, 80)
    change = change_of(prices(ROWS, names=NAMES), prices(rows, names=NAMES), Modality.TABLE)
    assert isinstance(change, TableDelta)
    assert change.cells == ((40, 1, 0.5),)
    assert (change.columns, change.runs, change.added) == (None, None, ())


def test_a_row_above_shifts_the_others_by_one_rule() -> None:
    rows = [("new", 1.0, 1), *ROWS]
    change = change_of(prices(ROWS, names=NAMES), prices(rows, names=NAMES), Modality.TABLE)
    assert change.runs == (RowRun(0, 100, 1),)
    assert [row.at for row in change.added] == [0]
    assert change.cells == ()


def test_removed_rows_cost_no_content() -> None:
    new = prices([*ROWS[:10], *ROWS[13:]], [*range(10), *range(13, 100)], names=NAMES)
    change = change_of(prices(ROWS, names=NAMES), new, Modality.TABLE)
    assert change.runs == (RowRun(0, 10), RowRun(13, 87))
    assert change.added == change.cells == ()


def test_columns_that_come_go_and_move() -> None:
    rows = [(stock, item, None if stock % 4 else "few") for item, _, stock in ROWS]
    change = change_of(prices(ROWS, names=NAMES), prices(rows, names="stock item hint"), Modality.TABLE)
    assert isinstance(change, TableDelta)
    assert [one if isinstance(one, int) else one.name for one in change.columns or ()] == [2, 0, "hint"]
    assert len(change.cells) == 50
    assert change.added == ()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(tables(min_rows=1), st.data())
def test_edited_tables_are_lossless(old: TableValue, data: st.DataObject) -> None:
    width = len(old.columns)
    rows = [list(row) for row in old.rows]
    order = data.draw(st.permutations(range(len(rows)))) if data.draw(st.booleans()) else range(len(rows))
    rows = [rows[at] for at in order if data.draw(st.integers(0, 3))]
    for row in rows:
        if width and data.draw(st.booleans()):
            row[data.draw(st.integers(0, width - 1))] = data.draw(cells())
    columns = list(data.draw(st.permutations(range(width))))[: data.draw(st.integers(0, width))]
    step = data.draw(st.integers(0, 2))
    new = TableValue(
        columns=tuple(old.columns[at] for at in columns) + tuple([Column(name="new", dtype="x")] * step),
        num_rows=old.num_rows,
        rows=tuple(tuple(row[at] for at in columns) + (data.draw(cells()),) * step for row in rows),
        row_numbers=tuple(at * 2 + step for at in range(len(rows))),
        index=old.index,
    )
    change_of(old, new, Modality.TABLE)


def array(values: np.ndarray, **fields: Any) -> ArrayValue:
    return ArrayValue(dtype=str(values.dtype), shape=values.shape, data=values.tobytes(), **fields)


def test_a_region_of_an_array_costs_the_region() -> None:
    old = np.zeros((64, 64), np.float32)
    new = old.copy()
    new[10:14, 20:30] = 2.5
    change = change_of(array(old), array(new, high=2.5), Modality.DEPTH)
    assert isinstance(change, ArrayDelta)
    assert (change.start, change.shape, len(change.data)) == ((10, 20), (4, 10), 4 * 10 * 4)
    assert change.places is None


def test_scattered_numbers_are_sparse() -> None:
    old = np.zeros((64, 64), np.float64)
    new = old.copy()
    new[0, 0], new[63, 63], new[5, 6] = np.nan, -0.0, 1.0
    change = change_of(array(old), array(new), Modality.DEPTH)
    assert isinstance(change, ArrayDelta)
    assert np.frombuffer(change.places or b"", "<u4").tolist() == [0, 5 * 64 + 6, 64 * 64 - 1]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 6), max_size=4),
    st.sampled_from(["float32", "uint8", "int64"]),
)
def test_edited_arrays_are_lossless(seed: int, shape: list[int], dtype: str) -> None:
    rng = np.random.default_rng(seed)
    old = rng.integers(0, 9, shape).astype(dtype)
    new = np.where(rng.random(shape) < rng.random(), old, 7).astype(dtype)
    change_of(array(old), array(new), Modality.DEPTH)


@pytest.mark.parametrize(
    "new",
    [
        ArrayValue(dtype="float32", shape=(2, 8), data=bytes(64)),
        ArrayValue(dtype="int32", shape=(16,), data=bytes(64)),
        ArrayValue(dtype="float32", shape=(16,), data=bytes(63)),
        ArrayValue(dtype="float32", shape=(16,), data=None),
        ArrayValue(dtype="float32", shape=(0,), data=b""),
        ArrayValue(dtype="float32", shape=(-1, 16), data=bytes(64)),
    ],
)
def test_arrays_that_do_not_fit_together_are_lossless(new: ArrayValue) -> None:
    old = ArrayValue(dtype="float32", shape=(16,), data=bytes(range(64)))
    change_of(old, new, Modality.DEPTH)
    change_of(new, old, Modality.DEPTH)


def picture(pixels: np.ndarray, file_format: str = "PNG", **options: Any) -> ImageValue:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, file_format, **options)
    mime = {"PNG": "image/png", "JPEG": "image/jpeg"}[file_format]
    return ImageValue(data=file.getvalue(), mime=mime, width=pixels.shape[1], height=pixels.shape[0])  # type: ignore[arg-type]


@pytest.fixture
def screens() -> tuple[np.ndarray, np.ndarray]:
    before = np.random.default_rng(0).integers(0, 255, (120, 200, 3)).astype(np.uint8)
    after = before.copy()
    after[20:30, 50:80] = 0
    after[100:102, 180:184] = 9
    return before, after


@pytest.mark.parametrize("options", [{}, {"compress_level": 1}, {"optimize": True}, {"dpi": (100, 100)}])
def test_changed_rectangles_of_a_screen_are_patches(
    screens: tuple[np.ndarray, np.ndarray], options: dict[str, Any]
) -> None:
    info = PngInfo()
    info.add_text("Software", "a plotting library")
    old, new = (picture(one, pnginfo=info, **options) for one in screens)
    change = change_of(old, new, Modality.IMAGE)
    assert isinstance(change, ImageDelta)
    assert [(patch.left, patch.top) for patch in change.patches] == [(50, 20), (180, 100)]
    assert sum(len(patch.png) for patch in change.patches) < 0.05 * len(new.data or b"")


def test_rectangles_and_share(screens: tuple[np.ndarray, np.ndarray]) -> None:
    change = changed_rectangles(*(picture(one) for one in screens))
    assert change is not None
    assert change.rectangles == (Rectangle(50, 20, 30, 10), Rectangle(180, 100, 4, 2))
    assert change.share == pytest.approx(308 / 24_000, rel=0.02)  # random pixels may have been 0 before


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "I;16", "1"])
def test_pictures_of_every_mode_are_lossless(screens: tuple[np.ndarray, np.ndarray], mode: str) -> None:
    values = []
    for pixels in screens:
        first = Image.fromarray(pixels[..., 0])
        file = io.BytesIO()
        (Image.fromarray(pixels[..., 0].astype(np.uint16)) if mode == "I;16" else first.convert(mode)).save(
            file, "PNG"
        )
        values.append(ImageValue(data=file.getvalue()))
    change_of(*values, Modality.IMAGE)


def test_pictures_that_cannot_be_patched_are_replaced(screens: tuple[np.ndarray, np.ndarray]) -> None:
    before, after = screens
    for old, new in (
        (picture(before, "JPEG"), picture(after, "JPEG")),
        (picture(before), picture(255 - before)),
        (picture(before), picture(before[:50])),
        (ImageValue(data=png(before)), ImageValue(data=png(after))),  # another encoder
        (picture(before), ImageValue(data=b"no picture")),
        (picture(before), ImageValue(url="https://example.org/a.png")),
    ):
        change = change_of(old, new, Modality.IMAGE)
        assert not isinstance(change, ImageDelta)
    assert changed_rectangles(picture(before), picture(before[:50])) is None
    assert changed_rectangles(picture(before), ImageValue(data=b"no picture")) is None


def test_unchanged_pixels_in_another_file_have_no_rectangles(screens: tuple[np.ndarray, np.ndarray]) -> None:
    before, _ = screens
    change = changed_rectangles(picture(before), picture(before, compress_level=1))
    assert change is not None
    assert change.rectangles == ()
    assert change.share == 0.0
