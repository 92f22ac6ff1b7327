import math

import pytest

from sensorium.envs.notebook.answers import AnswerKey, read_numbers

NUMBER = AnswerKey(kind="number", value=1234.5, digits=4)
STATE = AnswerKey(kind="category", value="New York", choices=("York", "New York", "Paris", "St. Louis"))


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        (3, (3.0,)),
        (3.25, (3.25,)),
        ("3.25", (3.25,)),
        ("-3.25 °C", (-3.25,)),
        ("−3.25", (-3.25,)),
        ("1,234.5 kg", (1234.5,)),
        ("1 234.5", (1234.5,)),
        ("1_234.5", (1234.5,)),
        ("1'234.5", (1234.5,)),
        ("1,234", (1234.0,)),
        ("3,14", (3.14,)),
        ("1e-3", (0.001,)),
        ("1.5E+2", (150.0,)),
        ("1.2 x 10^-3", (0.0012,)),
        ("1.2×10^{-3}", (0.0012,)),
        ("2*10**3", (2000.0,)),
        (".5", (0.5,)),
        ("12 %", (12.0, 0.12)),
        ("12 percent", (12.0, 0.12)),
        ("The mean is 3.42 mpg.", (3.42,)),
        ("**42**", (42.0,)),
        ("$1,000,000$", (1_000_000.0,)),
        ("the mean of 12 rows is 3.42", (3.42,)),
        ("R2 = 0.81", (0.81,)),
        ("t(12) = -3.4", (-3.4,)),
        ("3.4 and again 3.4", (3.4,)),
    ],
)
def test_the_number_of_an_answer_is_found(given, numbers):
    assert read_numbers(given) == pytest.approx(numbers)


_ODD = (True, False, math.nan, math.inf)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "none",
        "12 or 13",
        "3,5,7",
        "x1",
        "2013-05-01",
        "1.2.3",
        "9" * 900,
        *_ODD,
    ],
)
def test_no_number_is_made_up(given):
    assert read_numbers(given) == ()


def test_a_list_of_guesses_counts_as_its_last_marked_number_at_most():
    assert read_numbers("maybe = 1, = 2, = 3") == (3.0,)
    assert not NUMBER.is_met("1234.5, 1235, 1236, 1237")


def test_an_error_of_one_unit_in_the_last_digit_is_accepted_and_no_more():
    for right in (1234.5, 1233.5, 1235.5, "1,235", "1234", "1.2345e3", "x = 1234.4"):
        assert NUMBER.is_met(right), right
    for wrong in (1233.4, 1235.6, "1.2345", "12345", "1.23e3", "", "a lot", 0.0):
        assert not NUMBER.is_met(wrong), wrong


def test_small_and_negative_numbers_are_judged_by_their_own_digits():
    key = AnswerKey(kind="number", value=-3.217e-7, digits=3)
    assert key.is_met("-3.22e-7")
    assert key.is_met(-3.21e-7)
    assert not key.is_met(0.0)
    assert not key.is_met("3.22e-7")
    assert not key.is_met(-3.25e-7)


def test_counts_are_exact():
    key = AnswerKey(kind="number", value=1312.0, exact=True)
    assert key.is_met("1312 rows")
    assert key.is_met("1,312")
    assert not key.is_met(1311)
    assert not key.is_met(1312.4)


def test_a_percentage_may_be_given_as_a_share_only_with_its_sign():
    share = AnswerKey(kind="number", value=0.1234)
    assert share.is_met("12.34 %")
    assert not share.is_met("12.34")


@pytest.mark.parametrize("given", ["New York", "new york", " 'New York'. ", "It is **New York**", "new-york"])
def test_a_category_is_recognised(given):
    assert STATE.is_met(given)


@pytest.mark.parametrize("given", ["York", "", "New York or Paris", "Newyork", "Boston", 3.0, "not Paris"])
def test_another_category_or_several_are_wrong(given):
    assert not STATE.is_met(given)
