from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summary_parts import LOG

from sensorium.features.extractors.numbered_lines import Line
from sensorium.features.extractors.summary_answer import (
    numbers_in,
    read_answer,
    shortened,
    without_repetition,
)

LINES = [Line(text, f"line {number}") for number, text in enumerate(LOG, start=1)]

CHECKED = [
    # answer, sentence, cited, doubt
    ("Connection lost [20].", "Connection lost.", ((20, 20),), ""),
    ("Connection lost. [20]", "Connection lost.", ((20, 20),), ""),
    ("- **Connection lost** [lines 20 to 21]", "Connection lost.", ((20, 21),), ""),
    ("1. Connection lost (lines 20-21)", "Connection lost.", ((20, 21),), ""),
    ("Requests and retry [1-3, 21]", "Requests and retry.", ((1, 3), (21, 21)), ""),
    ("Requests and retry [3][L21]!", "Requests and retry!", ((3, 3), (21, 21)), ""),
    ("As [20] tells, it was lost [21].", "As tells, it was lost.", ((20, 20), (21, 21)), ""),
    ("1204 rows pending after 30.50 s [20].", "1204 rows pending after 30.50 s.", ((20, 20),), ""),
    ("A balance of -12.5 or 12.5 [21].", "A balance of -12.5 or 12.5.", ((21, 21),), ""),
    ("Connection lost 【20】", "Connection lost.", ((20, 20),), ""),
    ("数据库连接丢失。[20]", "数据库连接丢失。", ((20, 20),), ""),
    ("Connection lost.", "Connection lost.", (), "names no lines"),
    ("Lost [61].", "Lost.", (), "names lines that do not exist (there are 60)"),
    ("Lost [20, 61].", "Lost.", ((20, 20),), "names lines that do not exist (there are 60)"),
    ("Lost [0].", "Lost.", (), "names lines that do not exist (there are 60)"),
    ("Lost [21-20].", "Lost.", (), "names lines that do not exist (there are 60)"),
    ("Lost after 31 s [20].", "Lost after 31 s.", ((20, 20),), "31 does not stand in these lines"),
    ("Lost after 30 s [20].", "Lost after 30 s.", ((20, 20),), "30 does not stand in these lines"),
    ("Lost after 30.5 s [21].", "Lost after 30.5 s.", ((21, 21),), "30.5 does not stand in these lines"),
    ("It took -30.5 s [20].", "It took -30.5 s.", ((20, 20),), "-30.5 does not stand in these lines"),
    (
        "Bananas ripen quickly everywhere [20].",
        "Bananas ripen quickly everywhere.",
        ((20, 20),),
        "has no word in common with these lines",
    ),
    ("x" * 700 + " [20]", "x" * 600 + "...", ((20, 20),), "is too long for a sentence"),
]


@pytest.mark.parametrize(("answer", "text", "cited", "doubt"), CHECKED, ids=range(len(CHECKED)))
def test_sentences_are_checked_against_the_lines_they_name(
    answer: str, text: str, cited: tuple[tuple[int, int], ...], doubt: str
) -> None:
    (sentence,) = read_answer(answer, LINES)
    assert sentence == (text, cited, doubt)


def test_answers_are_taken_apart_whatever_their_shape() -> None:
    answer = (
        "<think>Lost [1]?</think>Here is the summary:\n\n```\n## Requests\n- Requests came. [1-3] They were "
        "handled. [4] [5-6]\n* Connection lost [20] Retry followed [21].\nConnection lost [20]\n```"
    )
    assert [(s.text, s.cited) for s in read_answer(answer, LINES)] == [
        ("Requests.", ()),
        ("Requests came.", ((1, 3),)),
        ("They were handled.", ((4, 4), (5, 6))),
        ("Connection lost.", ((20, 20),)),
        ("Retry followed.", ((21, 21),)),
    ]
    cut = "Connection lost [20]. Then the wor"
    assert [s.text for s in read_answer(cut, LINES, is_cut=True)] == ["Connection lost."]
    assert len(read_answer(cut, LINES)) == 2
    japanese = "接続が切れた[20]。再試行した。[21]"
    assert [(s.text, s.cited, s.num_words) for s in read_answer(japanese, LINES)] == [
        ("接続が切れた。", ((20, 20),), 4),
        ("再試行した。", ((21, 21),), 3),
    ]
    for nothing in ("", "  \n", "[20]", "<think>never ends", "Summary:", "---", "1. 2. 3."):
        assert read_answer(nothing, LINES) == []


@given(st.text(st.sampled_from("ab .[]()-–,;19\n\tlines")))
def test_any_answer_can_be_read(answer: str) -> None:
    for sentence in read_answer(answer, LINES):
        assert sentence.text
        assert all(1 <= a <= b <= len(LINES) for a, b in sentence.cited)
        assert sentence.cited or sentence.doubt


@pytest.mark.parametrize(
    ("filler", "cited", "smallest"),
    [
        (" ", (), None),
        ("\n", (), None),
        ("[", (), None),
        ("[1", (), 1),
        ("[1 ", (), 1),
        ("1,", (), 1),
        ("111,", (), 111),
        ("9", (), Decimal("1e40")),
        ("a ", (), None),
        (". ", (), None),
        ("-", (), None),
        ("[1-2] .", ((1, 2),), 1),
    ],
)
def test_endless_answers_are_read_at_once(
    filler: str, cited: tuple[tuple[int, int], ...], smallest: Decimal | int | None
) -> None:
    """A pattern that goes back and forth would take minutes on these."""
    (sentence,) = read_answer(f"Lost {filler * 20_000} [20", LINES)
    assert sentence.text.startswith("Lost")
    assert len(sentence.text) <= 603
    assert sentence.cited == cited
    assert min(numbers_in(filler * 50_000), default=None) == smallest


def test_a_sentence_said_twice_stands_once_with_the_lines_of_both() -> None:
    first = read_answer("Requests came [1-3]. Requests came [9]. Retry came [21]. Retry came.", LINES)
    assert [(s.text, s.cited, s.doubt) for s in first] == [
        ("Requests came.", ((1, 3), (9, 9)), ""),
        ("Retry came.", ((21, 21),), ""),
    ]
    second = read_answer("Lost [20]. Requests came [4-8]. Retry came [99].", LINES)
    assert [[(s.text, s.cited) for s in group] for group in without_repetition([first, second])] == [
        [("Requests came.", ((1, 9),)), ("Retry came.", ((21, 21),))],
        [("Lost.", ((20, 20),))],
    ]


def test_numbers_are_compared_by_value() -> None:
    assert {float(n) for n in numbers_in("-3.50 of 1,234 at 2024-01-05, 1e3, v1.2.3, x7")} == {
        *(-3.5, 3.5, 1234.0, 1.0, 234.0, 2024.0, 1.0, 5.0, 1000.0, 1.2, 3.0, 7.0)
    }


def test_the_first_sentences_of_every_piece_go_before_the_second_ones() -> None:
    groups = [read_answer("One two. Three four. Five six.", LINES), read_answer("Seven. Eight nine.", LINES)]
    assert [s.text for s in shortened(groups, 5)] == ["One two.", "Three four.", "Seven."]
    assert [s.text for s in shortened(groups, 3)] == ["One two.", "Seven."]
    assert [s.text for s in shortened(groups, 0)] == ["One two."], "never nothing"
