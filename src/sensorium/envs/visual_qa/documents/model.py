"""What is on a page, and how it is laid out: everything that drawing needs, nothing that answers need."""

from typing import Literal

from sensorium.envs.base import Record

INK = "#1b1b1b"
FontName = Literal["sans", "bold", "serif", "mono"]


class TextItem(Record):
    """A line of text."""

    type: Literal["text"] = "text"
    x: float
    y: float
    """Of its upper edge, pixels."""
    text: str
    size: int = 18
    font: FontName = "sans"
    align: Literal["left", "right", "center"] = "left"
    color: str = INK


class RuleItem(Record):
    """A straight line."""

    type: Literal["rule"] = "rule"
    x: float
    y: float
    to_x: float
    to_y: float
    width: int = 1
    color: str = "#6b7280"


class BoxItem(Record):
    """A rectangle; with a cross in it when it is ticked."""

    type: Literal["box"] = "box"
    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    outline: str | None = INK
    ticked: bool = False


class Page(Record):
    """A page."""

    family: Literal["document"] = "document"
    kind: str
    width: int
    height: int
    paper: str = "#ffffff"
    items: tuple[TextItem | RuleItem | BoxItem, ...] = ()


class Layout:
    """Collects what is on a page.

    Args:
        width: Of the page, pixels.
        margin: Left and right, pixels.
        font: Of ordinary text.
    """

    def __init__(self, width: int, *, margin: int = 48, font: FontName = "sans") -> None:
        self.width, self.left, self.right = width, margin, width - margin
        self.font: FontName = font
        self.y = 40.0
        self._items: list[TextItem | RuleItem | BoxItem] = []

    def text(
        self,
        text: str,
        *,
        x: float | None = None,
        size: int = 18,
        bold: bool = False,
        align: Literal["left", "right", "center"] = "left",
    ) -> None:
        """A text at the present height."""
        place = (
            x if x is not None else {"left": self.left, "right": self.right, "center": self.width / 2}[align]
        )
        font: FontName = "bold" if bold else self.font
        self._items.append(TextItem(x=place, y=self.y, text=text, size=size, font=font, align=align))

    def rule(self, width: int = 1) -> None:
        """A line from margin to margin at the present height."""
        self._items.append(RuleItem(x=self.left, y=self.y, to_x=self.right, to_y=self.y, width=width))

    def box(self, x: float, size: float, *, ticked: bool) -> None:
        """A square to tick at the present height."""
        self._items.append(BoxItem(x=x, y=self.y, width=size, height=size, ticked=ticked))

    def band(self, height: float, fill: str) -> None:
        """A strip of colour from margin to margin, from the present height down."""
        size = self.right - self.left
        self._items.append(BoxItem(x=self.left, y=self.y, width=size, height=height, fill=fill, outline=None))

    def down(self, pixels: float) -> None:
        """Go down."""
        self.y += pixels

    def page(self, kind: str, paper: str = "#ffffff") -> Page:
        """The page, as high as it must be."""
        height = round(self.y + 40)
        return Page(kind=kind, width=self.width, height=height, paper=paper, items=tuple(self._items))
