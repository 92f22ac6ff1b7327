"""Makes one self-contained page of an observation: raw state, features and what a model reads of it."""

import base64
import hashlib
import json
import re
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from sensorium.analysis.observation_payload import PageLimits, Traced, page_data
from sensorium.analysis.page_templates import page_templates
from sensorium.core.files import atomic_write_bytes
from sensorium.core.types import Modality
from sensorium.representations.base import Account, Level

_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_SEGMENTS = 40
MODALITY_COLOURS = {modality: i for i, modality in enumerate(Modality)}
"""Modality -> number of its colour in the house style."""


class BarSegment(NamedTuple):
    """A stretch of the budget bar."""

    name: str
    tokens: int
    share: float
    """Of the limit, in percent."""
    style: str
    """CSS class."""
    part_id: str | None = None


def write_page(
    trace: Traced, path: Path, *, title: str, task: str | None = None, limits: PageLimits | None = None
) -> Path:
    """Write the page of an observation and return its path; see `render_page`.

    Raises:
        MissingDependencyError: jinja2 is not installed.
        OSError: The page cannot be written; an older one stays as it was.
    """
    page = render_page(trace, title=title, task=task, limits=limits)
    atomic_write_bytes(path, page.encode())
    return path


def render_page(
    trace: Traced, *, title: str, task: str | None = None, limits: PageLimits | None = None
) -> str:
    """Return the page as text.

    The page loads nothing: pictures and sounds are embedded, a content security policy allows its own script
    alone, and all content is drawn as text. What is sent to the model is there as a whole; large raw
    content is cut, which the page says.

    Args:
        trace: The three layers of one observation.
        title: What was observed, e.g. the names of files.
        task: What the agent was asked to do.
        limits: How much of the raw state the page holds.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    environment = page_templates(extra="observe", purpose="the page of an observation")
    account = trace.representation.account
    script = resources.files("sensorium.analysis").joinpath("templates/observation.js").read_text("utf-8")
    page: str = environment.get_template("observation.html.j2").render(
        title=title,
        task=task,
        account=account,
        levels=[(level, account.counts().get(level.value, 0)) for level in Level],
        modalities=_modalities(account),
        tokens_before=sum(entry.tokens_before for entry in account.entries),
        segments=budget_segments(account),
        num_errors=sum(part.is_error for part in trace.observation),
        data=_script_json(page_data(trace, limits)),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return _SURROGATES.sub("\ufffd", page)


def budget_segments(account: Account) -> list[BarSegment]:
    """Where the tokens went, in the order of the prompt, the unused rest left out.

    The largest parts have a stretch each, the others one per modality.
    """
    limit = max(account.max_tokens, account.num_tokens, 1)

    def segment(name: str, tokens: int, style: str, part_id: str | None = None) -> BarSegment:
        return BarSegment(name, tokens, 100.0 * tokens / limit, style, part_id)

    found = [
        segment("instruction", account.instruction_tokens, "instruction"),
        segment("history", account.history_tokens, "history"),
    ]
    sent = [entry for entry in account.entries if entry.tokens_after > 0]
    largest = {entry.part_id for entry in sorted(sent, key=lambda e: -e.tokens_after)[:_MAX_SEGMENTS]}
    others: dict[Modality, int] = defaultdict(int)
    for entry in sent:
        if entry.part_id in largest:
            style = f"modality-{MODALITY_COLOURS[entry.modality]}"
            found.append(segment(entry.part_id, entry.tokens_after, style, entry.part_id))
        else:
            others[entry.modality] += entry.tokens_after
    for modality, tokens in others.items():
        found.append(segment(f"smaller parts, {modality}", tokens, f"modality-{MODALITY_COLOURS[modality]}"))
    rest = account.num_tokens - sum(one.tokens for one in found)
    found.append(segment("titles and message marks", max(rest, 0), "frame"))
    return [one for one in found if one.tokens > 0]


def _modalities(account: Account) -> list[tuple[str, int, int, int]]:
    """Modality, number of its colour, number of parts and tokens sent."""
    return [
        (
            modality.value,
            colour,
            sum(entry.modality is modality for entry in account.entries),
            sum(entry.tokens_after for entry in account.entries if entry.modality is modality),
        )
        for modality, colour in MODALITY_COLOURS.items()
        if any(entry.modality is modality for entry in account.entries)
    ]


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element, whatever the text in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
