"""Guesses about named values: units and meanings, from names and from how values are written."""

import re
from collections.abc import Mapping, Sequence

_UNIT_BY_WORD: dict[str, str] = {
    word: unit
    for unit, words in {
        "ns": "ns nanos nanoseconds",
        "µs": "us usec micros microseconds",
        "ms": "ms msec millis milliseconds",
        "s": "s sec secs seconds",
        "min": "mins minutes",
        "h": "hours hrs",
        "days": "days",
        "years": "years yrs",
        "bytes": "bytes",
        "kB": "kb kilobytes",
        "MB": "mb megabytes",
        "GB": "gb gigabytes",
        "TB": "tb terabytes",
        "KiB": "kib",
        "MiB": "mib",
        "GiB": "gib",
        "%": "pct percent percentage",
        "Hz": "hz hertz",
        "kHz": "khz",
        "MHz": "mhz",
        "GHz": "ghz",
        "mm": "mm millimeters millimetres",
        "cm": "cm centimeters centimetres",
        "m": "meters metres",
        "km": "km kilometers kilometres",
        "mi": "miles",
        "ft": "feet",
        "m/s": "mps",
        "km/h": "kmh kph",
        "mph": "mph",
        "kg": "kg kilograms",
        "mg": "mg",
        "g": "grams",
        "lb": "lbs pounds",
        "°": "deg degrees",
        "rad": "rad radians",
        "°C": "celsius degc",
        "°F": "fahrenheit degf",
        "K": "kelvin",
        "px": "px pixels",
        "dB": "db decibels",
        "V": "volts volt",
        "A": "amps ampere",
        "W": "watts",
        "kW": "kw",
        "kWh": "kwh",
        "Pa": "pascal",
        "hPa": "hpa",
        "bar": "bar",
        "rpm": "rpm",
        "fps": "fps",
        "tokens": "tokens",
        "USD": "usd dollars",
        "EUR": "eur euros",
        "GBP": "gbp",
        "JPY": "jpy",
        "CNY": "cny",
        "CHF": "chf",
        "INR": "inr",
        "cents": "cents",
    }.items()
    for word in words.split()
}
_LAST_ONLY = {
    "h": "h",
    "m": "m",
    "c": "°C",
    "f": "°F",
    "k": "K",
    "g": "g",
    "l": "l",
    "w": "W",
    "v": "V",
    "b": "bytes",
}
"""Single letters: units only as the last of several words, after one that is measured so (``distance_m``)."""
_MEASURED = re.compile(
    r"^(?:dist(?:ance)?|length|width|height|depth|size|speed|temp(?:erature)?|duration|time|elapsed|"
    r"mass|weight|volume|power|voltage|memory|altitude|radius|body|bill|flipper|uptime)$"
)
_BRACKETS = re.compile(r"[\[(]\s*([^\[\]()]{1,12}?)\s*[\])]\s*$")
_CURRENCY = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_QUANTITY = re.compile(
    r"^\s*([$€£¥₹])?\s*[-+]?\d[\d,]*(?:\.\d+)?\s*([%$€£¥₹]|°[CF]?|[A-Za-zµ][A-Za-z/]{0,5})?\s*$"
)
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

_MEANINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"^(?:id|uuid|guid|key|pk)$", "identifier"),
        (r"^(?:created|creation)(?: (?:at|on|date|time))?$", "when it was created"),
        (
            r"^(?:updated|modified|changed|last (?:updated|modified))(?: (?:at|on|date|time))?$",
            "when it was last changed",
        ),
        (r"^(?:deleted|closed|finished|completed|ended|end)(?: (?:at|on|date|time))?$", "when it ended"),
        (r"^(?:started|start|began|begin)(?: (?:at|on|date|time))?$", "when it began"),
        (r"^(?:timestamp|ts|datetime|date|time|when)$", "when it happened"),
        (r"^(?:lat|latitude)$", "latitude, degrees north"),
        (r"^(?:lon|lng|long|longitude)$", "longitude, degrees east"),
        (r"(?:^| )(?:e ?mail|email address)$", "e-mail address"),
        (r"(?:^| )(?:url|uri|href|link)$", "address on the web"),
        (r"(?:^| )(?:phone|tel|telephone|mobile)$", "telephone number"),
        (r"^(?:status|state)$", "state it is in"),
        (r"^(?:error|err|error message|exception)$", "what went wrong"),
        (r"(?:^| )(?:count|cnt|num|n|qty|quantity)$|^(?:num|n|count) ", "how many"),
        (r"^(?:total|sum|subtotal)$", "sum"),
        (r"(?:^| )(?:price|cost|amount|fee|salary|revenue)(?: |$)", "amount of money"),
        (r"(?:^| )(?:zip|zipcode|postcode|postal code)$", "postal code"),
        (r"^(?:country|country code)$", "country"),
        (r"^(?:currency|currency code)$", "currency"),
        (r"^(?:lang|language|locale)$", "language"),
        (
            r"(?:^| )(?:ratio|share|fraction|prob|probability|rate|score|confidence|accuracy)$",
            "share or score",
        ),
        (r"^(?:is|has|can|should|was) ", "whether it holds"),
    )
)


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: ``timeoutMs`` -> ``["timeout", "ms"]``."""
    return [word.lower() for word in _WORDS.findall(name)]


def guess_unit(name: str, texts: Sequence[str] = ()) -> str | None:
    """Guess the unit of a field.

    Args:
        name: Its name: ``latency_ms``, ``priceEUR``, ``Speed (km/h)``.
        texts: Some of its values, when they are text: ``12 %``, ``€3.50``.

    Returns:
        e.g. ``ms``, ``EUR``, ``%``; None when neither says anything.
    """
    if match := _BRACKETS.search(name):
        inside = match[1]
        known = _UNIT_BY_WORD.get(inside.lower())
        if known or inside in _CURRENCY:
            return known or _CURRENCY[inside]
        if "/" in inside or inside in (
            "%",
            "m",
            "s",
            "h",
            "g",
            "K",
            "V",
            "A",
            "W",
            "N",
            "J",
            "°C",
            "°F",
            "°",
        ):
            return inside
    words = words_of(name)
    if "%" in name:
        return "%"
    if words:
        last = words[-1]
        if last in _UNIT_BY_WORD and (len(words) > 1 or len(last) > 3):
            if len(words) > 1 and words[-2] in ("num", "n", "per", "of", "total"):
                return None if words[-2] == "per" else _UNIT_BY_WORD[last]
            return _UNIT_BY_WORD[last]
        if len(words) > 1 and last in _LAST_ONLY and _MEASURED.match(words[-2]):
            return _LAST_ONLY[last]
    return _unit_of_texts(texts)


def _unit_of_texts(texts: Sequence[str]) -> str | None:
    units = set()
    for text in texts:
        match = _QUANTITY.match(text) if len(text) <= 40 else None
        unit = (match[1] or match[2]) if match else None
        if not unit:
            return None
        units.add(
            _CURRENCY.get(unit, _UNIT_BY_WORD.get(unit.lower(), unit if unit in ("%", "m", "s", "h") else ""))
        )
    return units.pop() or None if len(units) == 1 else None


def guess_meaning(name: str, *, type: str, low: float | str | None = None) -> str | None:
    """Guess what a field means; the answer ends with ``?``, so that nobody takes it for knowledge.

    Args:
        name: Its name.
        type: Its type, as in `FieldNote.type`.
        low: Its smallest value, which tells Unix times from other numbers.
    """
    words = words_of(name)
    if not words:
        return None
    if type in ("integer", "number") and isinstance(low, int | float):
        is_time = words[-1] in ("at", "time", "timestamp", "ts", "date", "epoch", "created", "updated")
        if is_time and 5e8 <= low <= 4e9:
            return "Unix time in seconds?"
        if is_time and 5e11 <= low <= 4e12:
            return "Unix time in milliseconds?"
    if len(words) > 1 and words[-1] in ("id", "uuid", "key"):
        return f"identifier of a {' '.join(words[:-1])}?"
    joined = " ".join(words)
    for pattern, meaning in _MEANINGS:
        if pattern.search(joined):
            return f"{meaning}?"
    return None


def given_meaning(path: str, meanings: Mapping[str, str]) -> str | None:
    """What the user says that a field means: looked up by its path, then by its last name."""
    if not meanings:
        return None
    last = path.rsplit(".", 1)[-1].removesuffix("[]")
    return meanings.get(path, meanings.get(last))
