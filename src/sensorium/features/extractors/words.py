"""What a part says in words: all of it, or its running prose only."""

import json
import re

from sensorium.observations.base import Part
from sensorium.observations.values import (
    CellValue,
    MessagesValue,
    ProblemValue,
    StackTrace,
    StructuredValue,
    TableValue,
    TextValue,
)

_TAG = re.compile(
    r"<(?:script|style)\b.*?</(?:script|style)\s*>|<!--.*?-->|</?[a-zA-Z][^<>]{0,2000}>",
    re.DOTALL | re.IGNORECASE,
)
_CODE = re.compile(r"^(?:```|~~~).*?(?:^(?:```|~~~)\s*$|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_NOT_NEWLINE = re.compile(r"[^\n]")
_TABLE_ROWS = 20


def words_of(part: Part, *, max_chars: int = 200_000) -> str | None:
    """The part as one text; None for a picture, a sound, an array or the state of a body.

    Args:
        part: Any part.
        max_chars: Longest text that is put together of structured data; text is returned whole.
    """
    if (text := part.text) is not None:
        stack = part.stack
        return text if stack is None or stack.type in text else f"{_exception(stack)}\n{text}"
    match part.value:
        case MessagesValue(turns=turns):
            return "\n".join(turn.content for turn in turns)
        case StructuredValue(data=data):
            return json.dumps(data, ensure_ascii=False, default=str)[:max_chars]
        case TableValue() as table:
            return _table(table)[:max_chars]
        case ProblemValue(what=what, where=where, mend=mend):
            return " ".join(filter(None, (what, where, mend)))
        case _:
            return None


def prose_of(part: Part) -> str | None:
    """What the part says in sentences; None where it holds none (code, logs, tables, pictures).

    Code and tags inside are blanked with spaces, so that positions are those in the original text.
    """
    match part.value:
        case TextValue(text=text, format="plain"):
            return text
        case TextValue(text=text, format="markdown"):
            return _CODE.sub(_blank, text)
        case TextValue(text=text, format="html"):
            return _TAG.sub(_blank, text)
        case CellValue(source=source, cell_type="markdown"):
            return _CODE.sub(_blank, source)
        case MessagesValue(turns=turns):
            return _CODE.sub(_blank, "\n".join(turn.content for turn in turns))
        case _:
            return None


def has_words(part: Part) -> bool:
    """Whether `words_of` finds something; puts nothing together."""
    kinds = MessagesValue | StructuredValue | TableValue | ProblemValue
    return part.text is not None or isinstance(part.value, kinds)


def has_prose(part: Part) -> bool:
    """Whether `prose_of` finds something."""
    match part.value:
        case TextValue(format=form):
            return form in ("plain", "markdown", "html")
        case CellValue(cell_type=kind):
            return kind == "markdown"
        case MessagesValue():
            return True
        case _:
            return False


def _blank(match: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", match.group())


def _exception(stack: StackTrace) -> str:
    return f"{stack.type}: {stack.message}"


def _table(table: TableValue) -> str:
    names = [column.name for column in table.columns]
    meanings = [column.meaning for column in table.columns if column.meaning]
    rows = [", ".join("" if cell is None else str(cell) for cell in row) for row in table.rows[:_TABLE_ROWS]]
    return "\n".join([", ".join(names), *meanings, *rows])
