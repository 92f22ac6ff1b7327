"""Reads a page back: whether its tags nest, and what it says."""

import re
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr"}
SELF_CLOSING = {"line", "rect", "path", "circle", "polyline"}


class Page(HTMLParser):
    """Checks that tags nest, and collects text, attributes and headings."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            assert tag not in SELF_CLOSING, f"<{tag}> is not closed"
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def headings(self) -> list[str | None]:
        return [attrs.get("id") for tag, attrs in self.seen if tag == "h2"]
