import numpy as np
import pytest
from numpy.typing import NDArray

from sensorium.features.extractors.picture_statistics import picture_statistics


def plain(colour: tuple[int, int, int], height: int = 64, width: int = 80) -> NDArray[np.uint8]:
    return np.full((height, width, 3), colour, np.uint8)


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ((255, 255, 255), "white"),
        ((0, 0, 0), "black"),
        ((128, 128, 128), "grey"),
        ((220, 20, 30), "red"),
        ((40, 110, 205), "blue"),
        ((250, 230, 50), "yellow"),
        ((35, 35, 38), "black"),
        ((20, 75, 30), "dark green"),
    ],
)
def test_one_colour_is_blank_and_named(colour: tuple[int, int, int], name: str) -> None:
    found = picture_statistics(plain(colour))
    assert found.kind == "blank"
    assert found.colours == ((name, 1.0),)
    assert found.flatness == 1.0
    assert found.contrast == 0.0
    luma = np.array([0.299, 0.587, 0.114]) @ np.array(colour) / 255
    assert found.brightness == pytest.approx(luma, abs=1e-3)
    assert found.chart_likeness == 0.0


def test_halves_have_the_contrast_of_halves() -> None:
    picture = plain((0, 0, 0))
    picture[:, 40:] = 255
    found = picture_statistics(picture)
    assert found.brightness == pytest.approx(0.5, abs=1e-3)
    assert found.contrast == pytest.approx(0.5, abs=1e-3)
    assert dict(found.colours) == {"black": 0.5, "white": 0.5}
    assert found.kind == "graphic"
    assert found.flatness == 1.0  # the border lies between blocks


def test_blocks_across_a_border_are_not_flat() -> None:
    picture = plain((0, 0, 0), 64, 64)
    picture[:, 36:] = 255
    assert picture_statistics(picture).flatness == pytest.approx(7 / 8)  # one column of 8 has the border


def test_noise_is_a_photo() -> None:
    noise = np.random.default_rng(0).integers(100, 104, (100, 100, 3), dtype=np.uint8)
    found = picture_statistics(noise)
    assert found.kind == "photo"
    assert found.flatness == 0.0


def test_a_noisy_thing_on_an_even_ground_is_a_photo() -> None:
    picture = plain((255, 255, 255), 200, 200)
    picture[50:150, 50:150] = np.random.default_rng(0).integers(60, 200, (100, 100, 3), dtype=np.uint8)
    assert picture_statistics(picture).kind == "photo"


def test_axes_make_a_chart_and_their_absence_less_of_one() -> None:
    picture = plain((255, 255, 255), 200, 300)
    picture[100:103, 30:280:7] = (200, 30, 30)  # dots
    dots = picture_statistics(picture)
    picture[180, 20:290] = 0
    across = picture_statistics(picture)
    picture[10:181, 20] = 0
    chart = picture_statistics(picture)
    assert dots.chart_likeness == pytest.approx(0.6)
    assert across.chart_likeness == pytest.approx(0.8)
    assert chart.chart_likeness == pytest.approx(1.0)
    picture[:, :, :] = 255 - picture
    assert picture_statistics(picture).chart_likeness == pytest.approx(1.0)  # white on black as well


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (7, 9), (3000, 9)])
def test_odd_shapes(shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    found = picture_statistics(noise)
    assert 0.0 <= found.flatness <= 1.0
    assert 0.0 < found.brightness < 1.0
    assert found.summary
    assert sum(share for _, share in found.colours) <= 1.0 + 1e-6
