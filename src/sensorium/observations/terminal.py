"""Text as a terminal would show it: no colour codes, progress bars in their last state."""

import re

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, hyperlinks
    r"|[PX^_][^\x1b]*\x1b\\"  # device control strings
    r"|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_LINE_ENDS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_OVERLAID = 8
"""How many earlier states of a progress bar may shine through a shorter last one."""


def strip_ansi(text: str) -> str:
    """Remove terminal colours and other escape sequences."""
    return _ESCAPE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def screen_text(text: str) -> str:
    r"""What a terminal shows in the end: escape sequences removed, ``\r`` and backspaces carried out.

    Example:
        >>> screen_text("\x1b[31m 10%|#   |\r100%|####|\x1b[0m done")
        '100%|####| done'
    """
    text = strip_ansi(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    if "\b" in text:
        text = "\n".join(_rubbed_out(line) if "\b" in line else line for line in text.split("\n"))
    return text


def one_line(name: str) -> str:
    r"""A name as it stands in ids and headings: line ends and other control characters written out.

    Example:
        >>> one_line("report\n## Task")
        'report\\n## Task'
    """
    if name.isprintable():
        return name
    return "".join(
        c if c.isprintable() or (c.isspace() and c not in _LINE_ENDS) else ascii(c)[1:-1] for c in name
    )


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    shown = ""
    for state in states[-_OVERLAID:]:
        shown = state + shown[len(state) :]
    return shown


def _rubbed_out(line: str) -> str:
    shown: list[str] = []
    for character in line:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)
