import pytest

from sensorium.observations.units import given_meaning, guess_meaning, guess_unit, words_of


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("latency_ms", "ms"),
        ("timeoutMs", "ms"),
        ("duration_s", "s"),
        ("price_eur", "EUR"),
        ("priceUSD", "USD"),
        ("cpu %", "%"),
        ("success_pct", "%"),
        ("Speed (km/h)", "km/h"),
        ("price [€]", "EUR"),
        ("body_mass_g", "g"),
        ("distance_m", "m"),
        ("max_tokens", "tokens"),
        ("size_bytes", "bytes"),
        ("name", None),
        ("s", None),
        ("items", None),
        ("group_m", None),
        ("column (new)", None),
    ],
)
def test_units_of_names(name: str, unit: str | None) -> None:
    assert guess_unit(name) == unit


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["12 %", "3%"], "%"),
        (["€3.50", "€1,200"], "EUR"),
        (["3 km", "4.5 km"], "km"),
        (["3 km", "4 kg"], None),
        (["3 km", "far"], None),
        (["12", "13"], None),
        (["4 apples", "5 apples"], None),
        ([], None),
    ],
)
def test_units_of_values(texts: list[str], unit: str | None) -> None:
    assert guess_unit("", texts) == unit


def test_meanings_are_guessed_with_a_question_mark() -> None:
    assert guess_meaning("user_id", type="integer") == "identifier of a user?"
    assert guess_meaning("createdAt", type="date") == "when it was created?"
    assert guess_meaning("updated_at", type="integer", low=1.7e9) == "Unix time in seconds?"
    assert guess_meaning("ts", type="integer", low=1.7e12) == "Unix time in milliseconds?"
    assert guess_meaning("is_open", type="boolean") == "whether it holds?"
    assert guess_meaning("zebra", type="string") is None
    assert guess_meaning("", type="string") is None


def test_meanings_are_given_by_path_before_name() -> None:
    meanings = {"a.b": "by path", "b": "by name"}
    assert given_meaning("a.b", meanings) == "by path"
    assert given_meaning("c[].b", meanings) == "by name"
    assert given_meaning("c.b[]", meanings) == "by name"
    assert given_meaning("d", meanings) is None


def test_words_of_names() -> None:
    assert words_of("maxHTTPRetries_perHost2") == ["max", "http", "retries", "per", "host", "2"]
