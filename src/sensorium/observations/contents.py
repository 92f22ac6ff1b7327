"""Calls the reader of a kind or modality; all of them are imported when they are first needed."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.config import ReadConfig
from sensorium.observations.kinds import Kind
from sensorium.observations.source import Source
from sensorium.observations.values import ProblemValue

if TYPE_CHECKING:
    from sensorium.observations.messages import MediaItem

_LFS = b"version https://git-lfs.github.com/spec"
_MODALITIES: dict[Kind, Modality] = {
    "notebook": Modality.NOTEBOOK,
    "table": Modality.TABLE,
    "workbook": Modality.TABLE,
    "database": Modality.TABLE,
    "array": Modality.TABLE,
    "arrays": Modality.TABLE,
    "image": Modality.IMAGE,
    "audio": Modality.AUDIO,
    "code": Modality.CODE,
}


def modality_of_kind(kind: Kind) -> Modality:
    """The sense that a kind of file belongs to."""
    return _MODALITIES.get(kind, Modality.TEXT)


def parts_of_kind(
    kind: Kind, raw: Any, source: Source, part_id: str, config: ReadConfig, words: str = ""
) -> list[Part]:
    """Read content of a known kind.

    Args:
        kind: What it is.
        raw: The content: text, bytes, or what the reader of that kind takes (a path, an array, a picture).
        source: What is known of it.
        part_id: Id of the parts.
        config: Limits.
        words: What it is in words, for the problem of a kind that has no reader.
    """
    if isinstance(raw, bytes) and raw.startswith(_LFS):
        what = "a pointer of Git LFS, not the file itself"
        return [_problem(what, "Run: git lfs pull", part_id, kind)]
    path = source.path or part_id
    match kind:
        case "notebook":
            from sensorium.observations.notebook import read_notebook

            return read_notebook(raw, part_id=part_id, config=config, is_cut=source.is_cut)
        case "table" | "workbook" | "database":
            from sensorium.observations.table import read_table

            return read_table(
                raw, part_id=part_id, config=config, units=source.units, meanings=source.meanings
            )
        case "image":
            from sensorium.observations.image import read_image

            return read_image(raw, part_id=part_id, config=config, url=source.url, alt=source.alt)
        case "audio":
            from sensorium.observations.audio import read_audio

            return read_audio(raw, part_id=part_id, config=config)
        case "array" | "arrays":
            return _saved_arrays(raw, part_id, config)
        case "binary":
            what = f"{words or 'binary data'}: {len(raw):,} bytes"
            mend = "Unpack or convert it to a kind that can be read."
            return [_problem(what, mend, part_id, kind)]
    return _text_parts(kind, raw, source, part_id, config, path)


def _text_parts(
    kind: Kind, raw: Any, source: Source, part_id: str, config: ReadConfig, path: str
) -> list[Part]:
    from sensorium.observations.code import CodeState, read_code
    from sensorium.observations.structured import read_structured
    from sensorium.observations.test_results import is_junit
    from sensorium.observations.text import read_text

    if kind == "code":
        return read_code(
            raw, part_id=part_id, config=config, path=path, language=source.language, state=source.state
        )
    if kind == "structured" and not source.is_cut and is_junit(raw):
        return read_code("", part_id=part_id, config=config, path=path, state=CodeState(tests=raw))
    if kind == "structured":
        return read_structured(
            raw,
            part_id=part_id,
            config=config,
            path=path,
            meanings=dict(source.meanings),
            is_cut=source.is_cut,
        )
    return read_text(raw, part_id=part_id, config=config, path=path)


def parts_of_modality(modality: Modality, source: Source, part_id: str, config: ReadConfig) -> list[Part]:
    """Read a raw state as a given modality."""
    raw = source.raw
    match modality:
        case Modality.DEPTH:
            from sensorium.observations.array import read_array

            return read_array(raw, part_id=part_id, config=config, unit=source.unit, modality=modality)
        case Modality.PROPRIO:
            from sensorium.observations.array import read_proprio

            named: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {part_id.rsplit("/", 1)[-1]: raw}
            return read_proprio(named, part_id=part_id, units=source.units)
        case Modality.TABLE if (
            hasattr(raw, "__array__")
            and hasattr(raw, "ndim")
            and not (hasattr(raw, "columns") or hasattr(raw, "to_frame"))
        ):
            from sensorium.observations.array import read_array

            return read_array(raw, part_id=part_id, config=config, unit=source.unit)
        case Modality.TEXT if not isinstance(raw, str | bytes):
            from sensorium.observations.structured import read_structured

            return read_structured(raw, part_id=part_id, config=config, meanings=dict(source.meanings))
    kinds: dict[Modality, Kind] = {
        Modality.TEXT: "text",
        Modality.CODE: "code",
        Modality.NOTEBOOK: "notebook",
        Modality.TABLE: "table",
        Modality.IMAGE: "image",
        Modality.AUDIO: "audio",
    }
    return parts_of_kind(kinds[modality], raw, source, part_id, config)


def media_parts(item: "MediaItem", config: ReadConfig) -> list[Part]:
    """The picture or sound of a message."""
    raw, part_id = item.raw, item.part_id
    kind: Kind = item.kind
    if raw is None:
        what = f"the message says {kind} here but holds none: neither an address nor data"
        return [_problem(what, "Send it again with its data.", part_id, kind)]
    if item.encoding == "base64" and not raw.startswith("data:"):
        raw = f"data:;base64,{raw}"
    return parts_of_kind(kind, raw, Source(raw), part_id, config)


def _saved_arrays(raw: Any, part_id: str, config: ReadConfig) -> list[Part]:
    """Arrays of an ``.npy`` or ``.npz`` file; pickled objects are never loaded."""
    import zipfile

    import numpy as np

    from sensorium.observations.array import read_array

    try:
        if not isinstance(raw, bytes):
            raise ValueError("an array is not text")
        if raw[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
            if size > 4 * config.max_bytes:
                raise ValueError(
                    f"it unpacks to {size:,} bytes, more than the limit of {4 * config.max_bytes:,}"
                )
        loaded = np.load(io.BytesIO(raw), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return read_array(loaded, part_id=part_id, config=config)
        return [
            part
            for name in loaded.files
            for part in read_array(loaded[name], part_id=f"{part_id}/{name}", config=config)
        ]
    except Exception as error:  # damaged archives raise anything
        mend = "Save it again with numpy.save, without objects."
        return [_problem(f"the array file cannot be read: {error}", mend, part_id, "array")]


def _problem(what: str, mend: str, part_id: str, kind: Kind) -> Part:
    value = ProblemValue(what=what, where=part_id, mend=mend)
    return Part(id=part_id, modality=modality_of_kind(kind), value=value)
