import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.envs.visual_qa.answers import (
    ChoiceAnswer,
    NamesAnswer,
    NumberAnswer,
    TextAnswer,
    YesNoAnswer,
    answer_from,
    gold_text,
    is_right,
)
from sensorium.envs.visual_qa.number_words import mentions, normalise

PRICE = NumberAnswer(value=1234.5, tolerance=1.0, unit="EUR", labels=("2008",))
SHARE = NumberAnswer(value=12.0, tolerance=0.5, unit="%")
COUNT = NumberAnswer(value=3.0)
WORKERS = NumberAnswer(value=1932.0, tolerance=20.0, unit="thousand")
COLOR = ChoiceAnswer(
    value="blue", options=("blue", "red", "grey", "dark red"), synonyms={"grey": ("gray",), "blue": ("navy",)}
)
YEAR = ChoiceAnswer(value="1994", options=("1992", "1993", "1994"))
BIN = ChoiceAnswer(
    value="500 to 1000",
    options=("0 to 500", "500 to 1000", "1000 to 1500"),
    synonyms={"500 to 1000": ("500-1000", "500 and 1000"), "1000 to 1500": ("1000-1500",)},
)
NAMES = NamesAnswer(values=("Locker", "Parking"), options=("Locker", "Parking", "Guest pass"))
CODE = TextAnswer(value="INV-2043", others=("Granite Works",))


def said(answer, texts, right):
    wrong = [text for text in texts if is_right(text, answer) is not right]
    assert not wrong


def test_numbers_in_any_dress_are_right():
    said(
        PRICE,
        [
            "1234.5",
            "1,234.50",
            "1.234,50",
            "1 234.5",
            "1\u202f234,5",
            "EUR 1,234.50",
            "1234.50 EUR",
            "€1,234.5",
            "about 1235",
            "The total is 1,234.50 EUR.",
            "In 2008 it was 1,234.5.",
            "1.2345e3",
            "1.2345 x 10^3",
            "Answer: 1234.5",
            "**1234.5**",
            "**Answer:** 1234.5",
            "\\boxed{1{,}234.5}",
            "#### 1234.5",
            "First I read 900 and 334.5. The final answer is 1234.5.",
            "<think>900? 300?</think> 1234.5",
            "Line one.\nAnswer:\n1234.5\nI read 900 and 334.5.",
            "1.2345k",
            "$1234.5$",
            "one thousand two hundred and thirty-four",
        ],
        True,
    )


def test_other_numbers_and_several_of_them_are_wrong():
    said(
        PRICE,
        [
            "",
            "  ",
            "no idea",
            "1240",
            "-1234.5",
            "1234.5 or 1300",
            "1234.5%",
            "12345",
            "1,2345",
            "between 1200 and 1300",
            "Answer: 1234.5. Answer: 900",
            "2008",
            "1 2 3 1234.5",
            "1.2345 million",
            "nan",
            "inf",
            "9" * 3000,
        ],
        False,
    )


def test_percent_is_a_unit():
    said(SHARE, ["12", "12 %", "12.4%", "12 percent", "twelve per cent", "12 percentage points"], True)
    said(SHARE, ["0.12", "13", "12 of 100"], False)


def test_counts_in_words_and_digits():
    said(COUNT, ["3", "three", "Three bars.", "There are 3 objects", "the third", "3.0"], True)
    said(COUNT, ["four", "two or three", "3 or 4", "30", "thirty-three", "one, two, three"], False)
    said(NumberAnswer(value=0.0), ["0", "zero", "none", "No boxes can be seen.", "There are no boxes"], True)
    said(NumberAnswer(value=1.0), ["one", "a single object", "There is only the one object, 1."], True)


def test_a_unit_with_a_multiplier_may_be_spelt_out_or_left_out():
    said(WORKERS, ["1932", "1,932 thousand", "1,932,000", "1.932 million", "1930k"], True)
    said(WORKERS, ["1932 million", "1.932", "19320"], False)
    flow = NumberAnswer(value=1160.0, tolerance=10, unit="10^8 m3")
    said(flow, ["1160", "1160 10^8 m3", "about 1,160 x 10^8 m3"], True)
    said(NumberAnswer(value=-3.5, tolerance=0.1), ["-3.5", "−3.5", "minus 3.5", "negative 3.5 °C"], True)
    said(NumberAnswer(value=-3.5, tolerance=0.1), ["3.5"], False)


def test_numbers_inside_names_are_no_answers():
    answer = NumberAnswer(value=7, labels=("No. 462", "Cable 3 m"))
    said(answer, ["The value of No. 462 is 7", "Cable 3 m: 7 pieces", "7"], True)
    said(answer, ["No. 462", "462", "7 and 462"], False)
    said(NumberAnswer(value=1990, labels=("1990",)), ["1990", "The value is 1990."], True)
    said(NumberAnswer(value=1990, labels=("1990",)), ["What is the value of it for the year 1990?"], False)


def test_one_choice_must_be_named_and_no_other():
    said(
        COLOR,
        [
            "blue",
            "Blue.",
            "It is blue",
            "the navy one",
            "Blue is higher than red.",
            "blue, not red",
            "It is not red but blue",
            "Answer: blue (red is lower)",
            "**Blue**",
        ],
        True,
    )
    said(
        COLOR,
        [
            "",
            "red",
            "blue or red",
            "blue, red, gray",
            "not blue",
            "bluebell",
            "dark red",
            "red is higher than blue",
        ],
        False,
    )
    said(YEAR, ["1994", "In 1994.", "1994, with a value of 1,200"], True)
    said(YEAR, ["1993", "1994 or 1995", "199", "between 1992 and 1994"], False)
    said(BIN, ["500 to 1000", "500-1,000", "500–1000", "between 500 and 1000", "[500-1000)"], True)
    said(BIN, ["0 to 500", "0.500 to 1000", "1000 to 1500", "500"], False)


def test_all_names_and_no_others():
    said(
        NAMES, ["Locker, Parking", "parking and locker", "Locker\nParking", "Ticked: Parking; Locker."], True
    )
    said(NAMES, ["Locker", "Locker, Parking, Guest pass", "", "none"], False)


@pytest.mark.parametrize("value", [True, False])
def test_yes_and_no(value):
    yes = [
        "yes",
        "Yes.",
        "YES, it is higher",
        "true",
        "Correct",
        "The answer is yes.",
        "Yes, no bar is higher",
    ]
    no = [
        "no",
        "No, it is not.",
        "false",
        "It is not.",
        "No, the other one is higher",
        "Answer: no",
        "It is no.",
    ]
    said(YesNoAnswer(value=value), yes, value)
    said(YesNoAnswer(value=value), no, not value)
    said(YesNoAnswer(value=value), ["", "maybe", "yes and no", "yes or no", "no/yes"], False)


def test_text_that_was_read():
    said(
        CODE,
        ["INV-2043", "inv-2043", "INV 2043", "The number is INV-2043.", "Invoice number: INV-2043"],
        True,
    )
    said(
        CODE,
        [
            "",
            "INV-2044",
            "INV2043",
            "INV-2043 or INV-2044",
            "2043",
            "INV-2043, Granite Works",
            "INV-2043 " + "word " * 40,
        ],
        False,
    )


def test_answers_survive_json_and_their_own_gold_text():
    for answer in (PRICE, SHARE, COUNT, WORKERS, COLOR, YEAR, BIN, NAMES, CODE, YesNoAnswer(value=False)):
        again = answer_from(answer.model_dump(mode="json"))
        assert again == answer
        assert is_right(gold_text(again), again)


def test_numbers_are_found_where_they_are():
    text = normalise("10-12 kg, 1.5e3, 5th, v2, 3.14.")
    assert [(m.value, text[m.start : m.end]) for m in mentions(text)] == [
        (10.0, "10"),
        (12.0, "12"),
        (1500.0, "1.5e3"),
        (5.0, "5th"),
        (3.14, "3.14"),
    ]


@given(st.text(max_size=300) | st.text(alphabet="0123456789.,-+%eE ()/*^$k'", max_size=300))
def test_no_text_breaks_the_check(text):
    for answer in (PRICE, SHARE, COUNT, WORKERS, COLOR, YEAR, BIN, NAMES, CODE, YesNoAnswer(value=True)):
        assert is_right(text, answer) in (True, False)


@given(st.floats(-1e9, 1e9), st.sampled_from(["{}", "It is {}.", "about {} people", "= {}"]))
def test_every_number_is_found_again(value, sentence):
    shown = f"{value:,.3f}"
    assert is_right(sentence.format(shown), NumberAnswer(value=value, tolerance=6e-4 + 1e-6))
