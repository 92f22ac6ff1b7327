import pytest

from sensorium.features.extractors.coco_labels import COCO_LABELS, count_of
from sensorium.features.extractors.scene import SeenObject, describe_scene, place_of, size_of

WIDTH, HEIGHT = 300, 300


@pytest.mark.parametrize(
    ("box", "place"),
    [
        ((130, 130, 170, 170), "in the centre"),
        ((0, 130, 40, 170), "on the left"),
        ((260, 130, 300, 170), "on the right"),
        ((130, 0, 170, 40), "at the top"),
        ((260, 260, 300, 300), "at the bottom right"),
        ((0, 0, 40, 40), "at the top left"),
        ((10, 10, 290, 290), "filling the picture"),
    ],
)
def test_places(box: tuple[int, int, int, int], place: str) -> None:
    assert place_of(box, WIDTH, HEIGHT) == place


def test_sizes() -> None:
    assert size_of((0, 0, 200, 200), WIDTH, HEIGHT) == "large"  # 44 %
    assert size_of((0, 0, 100, 100), WIDTH, HEIGHT) == ""  # 11 %
    assert size_of((0, 0, 50, 50), WIDTH, HEIGHT) == "small"  # 2.8 %


def test_things_are_counted_by_place() -> None:
    people = [SeenObject("person", 0.9, (x, 100, x + 40, 200)) for x in (0, 45)]
    dog = SeenObject("dog", 0.9, (250, 220, 300, 290))
    assert describe_scene([*people, dog], WIDTH, HEIGHT) == (
        "2 people on the left; a dog at the bottom right (small)"
    )


def test_doubts_are_told() -> None:
    boxes = ((0, 0, 90, 90), (210, 0, 300, 90), (0, 210, 90, 300))
    scores = (0.85, 0.7, 0.5)
    objects = [SeenObject("cat", score, box) for score, box in zip(scores, boxes, strict=True)]
    assert describe_scene(objects, WIDTH, HEIGHT) == (
        "a cat at the top left; probably a cat at the top right; perhaps a cat at the bottom left"
    )


def test_one_thing_on_another() -> None:
    couch = SeenObject("couch", 0.95, (50, 150, 250, 290))
    cat = SeenObject("cat", 0.9, (100, 120, 180, 200))
    assert describe_scene([couch, cat], WIDTH, HEIGHT) == "a cat on a couch in the centre"
    unsure = SeenObject("couch", 0.55, couch.box)
    assert describe_scene([unsure, cat], WIDTH, HEIGHT) == "a cat (perhaps on a couch) in the centre"
    beside = SeenObject("cat", 0.9, (0, 120, 45, 200))
    assert "on a couch" not in describe_scene([couch, beside], WIDTH, HEIGHT)
    under = SeenObject("cat", 0.9, (100, 270, 180, 299))
    assert "on a couch" not in describe_scene([couch, under], WIDTH, HEIGHT)


def test_furniture_on_furniture_is_told_once() -> None:
    table = SeenObject("dining table", 0.9, (20, 120, 280, 280))
    chair = SeenObject("chair", 0.9, (40, 100, 120, 250))
    said = describe_scene([table, chair], WIDTH, HEIGHT)
    assert said.count("chair") == said.count("table") == 1


def test_nothing_is_no_sentence() -> None:
    assert describe_scene([], WIDTH, HEIGHT) == ""


def test_counting_words() -> None:
    assert count_of("orange", 1) == "an orange"
    assert count_of("person", 3) == "3 people"
    assert count_of("bus", 2) == "2 buses"
    assert count_of("scissors", 1) == "a pair of scissors"
    assert count_of("dog", 2) == "2 dogs"


def test_the_80_labels_have_their_numbers() -> None:
    assert len(COCO_LABELS) == 80
    known = {
        1: "person",
        17: "cat",
        25: "giraffe",
        44: "bottle",
        62: "chair",
        67: "dining table",
        90: "toothbrush",
    }
    assert {number: COCO_LABELS[number] for number in known} == known
    assert not {12, 26, 29, 30, 45, 66, 68, 69, 71, 83} & COCO_LABELS.keys()
