import numpy as np
import pytest
from drawn_pictures import chart, encoded, photo
from PIL import Image, ImageEnhance

from sensorium.core import ObservationError
from sensorium.observations.image import read_image
from sensorium.observations.values import ImageValue
from sensorium.representations.media.phash import phash, phash_distance


def value_of(picture: Image.Image, form: str = "PNG", **settings: int) -> ImageValue:
    (part,) = read_image(encoded(picture, form, **settings), part_id="p")
    assert isinstance(part.value, ImageValue)
    return part.value


def test_bits_worked_out_by_hand() -> None:
    # Brightness that falls from left to right: cos(pi u (2x+1)/64) with u = 1 is the only large coefficient.
    ramp = 255 * (0.5 + 0.5 * np.cos(np.pi * (2 * np.arange(32) + 1) / 64))
    picture = np.repeat(np.rint(ramp)[None, :], 32, axis=0).astype(np.uint8)
    bits = phash(picture)
    assert bits >> 63 == int(picture.mean() > 127.5)
    assert (bits >> 62) & 1 == 1  # row 0, column 1
    assert (phash(picture[:, ::-1]) >> 62) & 1 == 0
    assert (phash(picture.T) >> 62) & 1 == 0
    assert (phash(picture.T) >> 55) & 1 == 1  # row 1, column 0


def test_a_picture_of_one_colour_has_no_bits_but_the_first() -> None:
    assert phash(np.full((50, 80), 255, np.uint8)) == 2**63
    assert phash(np.full((50, 80, 3), 90, np.uint8)) == 0


@pytest.mark.parametrize("picture", [photo(400, 300), chart(400, 300)])
def test_near_duplicates_are_near(picture: Image.Image) -> None:
    original = phash(value_of(picture))
    assert original == phash(np.asarray(picture))
    assert phash_distance(original, phash(value_of(picture, "JPEG", quality=50))) <= 6
    assert phash_distance(original, phash(value_of(picture.resize((200, 150))))) <= 6
    assert phash_distance(original, phash(value_of(ImageEnhance.Brightness(picture).enhance(0.9)))) <= 6


def test_other_pictures_are_far() -> None:
    prints = [phash(value_of(photo(seed=seed))) for seed in range(12)]
    distances = np.array([[phash_distance(one, other) for other in prints] for one in prints])
    assert np.all(np.diag(distances) == 0)
    others = distances[~np.eye(12, dtype=bool)]
    assert others.min() > 12
    assert others.mean() == pytest.approx(32, abs=4)


def test_without_bytes_there_is_no_fingerprint() -> None:
    with pytest.raises(ObservationError):
        phash(ImageValue(url="https://example.org"))
    with pytest.raises(ObservationError):
        phash(ImageValue(data=b"x"))
