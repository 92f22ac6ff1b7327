"""Colours with names that people agree on."""

COLORS: dict[str, str] = {
    "blue": "#2a6fdb",
    "orange": "#f28c1e",
    "green": "#2f9e44",
    "red": "#d62839",
    "purple": "#8338b0",
    "brown": "#7f4f24",
    "pink": "#f48fb8",
    "grey": "#8a8f98",
    "black": "#1b1b1b",
    "yellow": "#f2cf1d",
}
"""Name -> as the picture shows it."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "grey": ("gray", "silver"),
    "purple": ("violet", "magenta"),
    "brown": ("dark brown",),
    "pink": ("light pink", "rose"),
    "blue": ("dark blue", "navy"),
    "green": ("dark green",),
    "red": ("crimson", "dark red"),
    "yellow": ("gold", "golden"),
}
"""Other words for them."""
