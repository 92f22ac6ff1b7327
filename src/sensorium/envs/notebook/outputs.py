"""What a cell wrote: messages of a kernel become nbformat outputs, within bounds while they stream in."""

import json
from collections.abc import Mapping
from typing import Any

from sensorium.envs.notebook.config import KernelConfig

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXTS = ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml")
_PLOTLY = "application/vnd.plotly.v1+json"
_MAX_TRACEBACK_CHARS = 20_000
_NO_INPUT = "nobody is there to answer input(); write the value into the cell"


class BoundedText:
    """Text that grows without end; its beginning and its end are kept.

    Args:
        limit: Most characters that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = ""
        self._tail: list[str] = []
        self._tail_chars = 0
        self._dropped = 0

    @property
    def num_chars(self) -> int:
        """Characters that are held."""
        return len(self._head) + self._tail_chars

    def add(self, text: str) -> None:
        """Append text; takes time in proportion to it, however much there was before."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if not text:
            return
        self._tail.append(text)
        self._tail_chars += len(text)
        if self._tail_chars > 2 * self._half:
            self._shorten()

    def __str__(self) -> str:
        if self._tail_chars > self._half:
            self._shorten()
        tail = "".join(self._tail)
        if not self._dropped:
            return self._head + tail
        return f"{self._head}\n... {self._dropped:,} characters left out ...\n{tail}"

    def _shorten(self) -> None:
        kept = "".join(self._tail)[-self._half :]
        self._dropped += self._tail_chars - len(kept)
        self._tail, self._tail_chars = [kept], len(kept)


class OutputCollector:
    """Takes the messages that a kernel publishes for one cell.

    Args:
        config: How much is kept.
    """

    def __init__(self, config: KernelConfig) -> None:
        self._config = config
        self._outputs: list[dict[str, Any]] = []
        self._left_out = 0
        self._clear_next = False
        self.failed = False
        """Whether the cell raised."""
        self.error = ("", "")
        """Name and message of the last exception."""

    def take(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take one message; what is malformed or of no concern is passed over.

        Args:
            kind: Of the message, e.g. ``stream``.
            content: Of the message; nobody vouches for it.
        """
        if kind == "clear_output":
            self._clear_next = bool(content.get("wait"))
            if not self._clear_next:
                self._clear()
        elif kind == "update_display_data":
            self._update(content)
        elif kind in ("stream", "execute_result", "display_data", "error"):
            if self._clear_next:
                self._clear()
            self._add(kind, content)

    def add_error(self, name: str, message: str) -> None:
        """Add an error that the kernel itself cannot tell."""
        self.take("error", {"ename": name, "evalue": message, "traceback": [f"{name}: {message}"]})

    @property
    def num_chars(self) -> int:
        """Size of what is kept, nearly."""
        return sum(_chars(output) for output in self._outputs)

    def discard(self) -> None:
        """Forget the outputs to save memory, and say so in their place."""
        self._clear()
        self._add(
            "stream", {"name": "stderr", "text": "(outputs removed: the notebook had become too large)\n"}
        )

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs in nbformat's form, as JSON."""
        shown = []
        for output in self._outputs:
            public = {key: value for key, value in output.items() if key != "display_id"}
            if isinstance(public.get("text"), BoundedText):
                public["text"] = str(public["text"])
            shown.append(public)
        if self._left_out:
            text = f"... {self._left_out:,} further outputs left out ...\n"
            shown.append({"output_type": "stream", "name": "stderr", "text": text})
        return shown

    def _clear(self) -> None:
        self._outputs, self._left_out, self._clear_next = [], 0, False

    def _add(self, kind: str, content: Mapping[str, Any]) -> None:
        if kind == "stream":
            self._stream(content)
            return
        if kind == "error":
            self.failed = True
            self.error = (_text(content.get("ename"), 200), _text(content.get("evalue"), 2_000))
            if self.error[0] == "StdinNotImplementedError":
                self.error = (self.error[0], _NO_INPUT)
        if len(self._outputs) >= self._config.max_outputs and kind != "error":
            self._left_out += 1
            return
        self._outputs.append(self._error(content) if kind == "error" else self._bundle(kind, content))

    def _stream(self, content: Mapping[str, Any]) -> None:
        name = "stderr" if content.get("name") == "stderr" else "stdout"
        text = content.get("text")
        if not isinstance(text, str):
            return
        last = self._outputs[-1] if self._outputs else {}
        if last.get("output_type") != "stream" or last.get("name") != name:
            if len(self._outputs) >= self._config.max_outputs:
                self._left_out += 1
                return
            last = {
                "output_type": "stream",
                "name": name,
                "text": BoundedText(self._config.max_stream_chars),
            }
            self._outputs.append(last)
        last["text"].add(text)

    def _error(self, content: Mapping[str, Any]) -> dict[str, Any]:
        lines = content.get("traceback")
        name, message = self.error
        if message is _NO_INPUT:
            lines = [f"{name}: {message}"]
        joined = BoundedText(_MAX_TRACEBACK_CHARS)
        for line in lines if isinstance(lines, list) else []:
            joined.add(f"{line}\n")
        return {
            "output_type": "error",
            "ename": name,
            "evalue": message,
            "traceback": str(joined).splitlines(),
        }

    def _bundle(self, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
        output: dict[str, Any] = {"output_type": kind, "metadata": {}, "data": self._data(content)}
        if kind == "execute_result":
            count = content.get("execution_count")
            output["execution_count"] = count if isinstance(count, int) else None
        transient = content.get("transient")
        if isinstance(transient, Mapping) and isinstance(transient.get("display_id"), str):
            output["display_id"] = transient["display_id"]
        return output

    def _update(self, content: Mapping[str, Any]) -> None:
        transient = content.get("transient")
        wanted = transient.get("display_id") if isinstance(transient, Mapping) else None
        for output in self._outputs:
            if wanted is not None and output.get("display_id") == wanted:
                output["data"] = self._data(content)

    def _data(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Those forms of the content that are shown to anybody, none of them too large."""
        given = content.get("data")
        kept: dict[str, Any] = {}
        left_out = []
        for mime, value in given.items() if isinstance(given, Mapping) else ():
            if mime in _PICTURES and isinstance(value, str):
                if len(value) * 3 // 4 <= self._config.max_image_bytes:
                    kept[mime] = value
                else:
                    left_out.append(f"a picture ({mime}) of {len(value) * 3 // 4:,} bytes")
            elif mime in _TEXTS and isinstance(value, str):
                if mime == "text/plain":
                    kept[mime] = _text(value, self._config.max_text_chars)
                elif len(value) <= 5 * self._config.max_text_chars:  # markup cannot be cut
                    kept[mime] = value
                else:
                    left_out.append(f"{mime} of {len(value):,} characters")
            elif mime in (_PLOTLY, "application/json") and _json_chars(value) <= self._config.max_text_chars:
                kept[mime] = value
        if left_out:
            said = f"[left out: {', '.join(left_out)}]"
            kept["text/plain"] = f"{kept['text/plain']}\n{said}" if "text/plain" in kept else said
        return kept


def _chars(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, BoundedText):
        return value.num_chars
    if isinstance(value, Mapping):
        return sum(map(_chars, value.values()))
    return sum(map(_chars, value)) if isinstance(value, list) else 8


def _text(value: Any, limit: int) -> str:
    bounded = BoundedText(limit)
    bounded.add(value if isinstance(value, str) else str(value))
    return str(bounded)


def _json_chars(value: Any) -> float:
    try:
        return len(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return float("inf")
