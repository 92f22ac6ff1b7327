"""What a file is: by its first bytes, then by its name, then by what stands in it."""

import re
from typing import Literal

from sensorium.observations.columns import is_table
from sensorium.observations.decoding import decode
from sensorium.observations.files import suffix_of
from sensorium.observations.languages import language_of_path
from sensorium.observations.structured import detect_structure

Kind = Literal[
    "array",
    "arrays",
    "audio",
    "binary",
    "code",
    "database",
    "image",
    "notebook",
    "structured",
    "table",
    "text",
    "workbook",
]
_MAGIC: tuple[tuple[bytes, Kind, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image", "a PNG picture"),
    (b"\xff\xd8\xff", "image", "a JPEG picture"),
    (b"GIF8", "image", "a GIF picture"),
    (b"II*\x00", "image", "a TIFF picture"),
    (b"MM\x00*", "image", "a TIFF picture"),
    (b"\x00\x00\x00\x0cjP  ", "image", "a JPEG 2000 picture"),
    (b"fLaC", "audio", "a FLAC sound"),
    (b"OggS", "audio", "an Ogg sound"),
    (b"ID3", "audio", "an MP3 sound"),
    (b"\x93NUMPY", "array", "a NumPy array"),
    (b"PAR1", "table", "a Parquet table"),
    (b"ARROW1", "table", "an Arrow table"),
    (b"\xd0\xcf\x11\xe0", "workbook", "an old Office file"),
    (b"%PDF-", "binary", "a PDF document"),
    (b"\x1f\x8b", "binary", "a gzip file"),
    (b"BZh", "binary", "a bzip2 file"),
    (b"\xfd7zXZ\x00", "binary", "an xz file"),
    (b"(\xb5/\xfd", "binary", "a zstandard file"),
    (b"7z\xbc\xaf", "binary", "a 7-Zip archive"),
    (b"Rar!", "binary", "a RAR archive"),
    (b"SQLite format 3\x00", "database", "an SQLite database"),
    (b"\x7fELF", "binary", "a program (ELF)"),
    (b"MZ", "binary", "a program (Windows)"),
    (b"\xca\xfe\xba\xbe", "binary", "a compiled class or program"),
    (b"\xcf\xfa\xed\xfe", "binary", "a program (Mach-O)"),
    (b"\x00asm", "binary", "a WebAssembly module"),
    (b"\x89HDF", "binary", "an HDF5 file"),
    (b"\x80\x04", "binary", "a Python pickle, which is never loaded because it can run code"),
    (b"\x80\x05", "binary", "a Python pickle, which is never loaded because it can run code"),
    (b"GGUF", "binary", "weights of a model (GGUF)"),
    (b"\x00\x00\x01\x00", "image", "an icon"),
)
_NAMES: dict[Kind, str] = {
    "notebook": "ipynb",
    "table": "csv tsv tab psv parquet pq",
    "workbook": "xlsx xls ods",
    "array": "npy",
    "arrays": "npz",
    "image": "png jpg jpeg jpe webp gif bmp tif tiff avif ico ppm pgm pbm jp2 svg svgz",
    "audio": "wav wave flac ogg oga opus mp3 aif aiff au",
    "structured": "json jsonl ndjson geojson yaml yml toml xml",
    "text": "txt text md markdown rst log html htm adoc tex srt vtt out err",
}
_MAYBE_TABLES = frozenset({"txt", "text", "dat", "data", "asc", "prn", "out"})
"""Endings of files that hold text or columns of numbers."""
_LOOKED_AT = 8_000
_BY_SUFFIX: dict[str, Kind] = {suffix: kind for kind, names in _NAMES.items() for suffix in names.split()}
_NOTEBOOK = re.compile(r'\{\s*"(?:cells|metadata|nbformat|worksheets|nbformat_minor)"\s*:')


def kind_of_bytes(head: bytes, name: str) -> tuple[Kind, str]:
    """What a file holds.

    Args:
        head: Its first bytes, some thousand.
        name: Its name; may be empty.

    Returns:
        The kind, and what it is in words when its bytes say so (else an empty text).
    """
    for magic, kind, words in _MAGIC:
        if head.startswith(magic):
            return kind, words
    if head.startswith(b"RIFF"):
        if head[8:12] == b"WEBP":
            return "image", "a WebP picture"
        if head[8:12] == b"WAVE":
            return "audio", "a WAV sound"
    if head.startswith(b"BM") and len(head) > 14 and head[6:10] == b"\x00\x00\x00\x00":
        return "image", "a BMP picture"
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"avis", b"heic", b"mif1"):
        return "image", "an AVIF or HEIF picture"
    if head.startswith(b"PK\x03\x04"):
        return _zip_kind(head, name)
    kind = kind_of_name(name) or kind_of_text(head)
    return ("table" if kind == "text" and holds_columns(head, name) else kind), ""


def holds_columns(content: bytes | str, name: str) -> bool:
    """Whether a file that may be text or a table, by its name, is a table."""
    if suffix_of(name) not in _MAYBE_TABLES:
        return False
    begin = content[:_LOOKED_AT]
    if isinstance(begin, bytes):
        decoded = decode(begin)
        if decoded.is_binary:
            return False
        begin = decoded.text
    return is_table(begin[: begin.rfind("\n") + 1] if len(content) >= _LOOKED_AT else begin)


def kind_of_name(name: str) -> Kind | None:
    """What the name of a file says; None when it says nothing."""
    suffix = suffix_of(name)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return "code" if language_of_path(name) is not None else None


def kind_of_text(head: str | bytes) -> Kind:
    """What a nameless text is: a notebook, structured data, code (by its ``#!`` line) or text."""
    begin = head[:400].decode("utf-8", "replace") if isinstance(head, bytes) else head[:400]
    first = begin.lstrip("\ufeff \t\r\n")[:1]
    if first == "{" and looks_like_notebook_text(head):
        return "notebook"
    if first in "{[<" and first and detect_structure(head) is not None:
        return "structured"
    return "code" if begin.startswith("#!/") else "text"


def looks_like_notebook_text(text: str | bytes) -> bool:
    """Whether JSON text is a notebook, as far as its beginning and end tell."""
    if isinstance(text, bytes):
        edge = (text[:4_000] + text[-4_000:]).decode("utf-8", "replace")
    else:
        edge = text[:4_000] + text[-4_000:]
    if not _NOTEBOOK.match(edge.lstrip("\ufeff \t\r\n")):
        return False
    return '"nbformat"' in edge or '"cell_type"' in edge


def _zip_kind(head: bytes, name: str) -> tuple[Kind, str]:
    suffix = suffix_of(name)
    if suffix in ("xlsx", "ods") or b"xl/" in head[:4_000] or b"[Content_Types].xml" in head[:100]:
        if suffix in ("docx", "pptx") or b"word/" in head[:4_000] or b"ppt/" in head[:4_000]:
            return "binary", "an Office document"
        return "workbook", "a workbook"
    if suffix == "npz" or b".npy" in head[:200]:
        return "arrays", "NumPy arrays"
    return "binary", "a zip archive"
