import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorium.core.types import Modality
from sensorium.observations.base import Part
from sensorium.observations.messages import read_messages
from sensorium.observations.text import read_text
from sensorium.observations.values import CodeValue, TextValue
from sensorium.representations.base import Document, Segment
from sensorium.representations.config import TextConfig
from sensorium.representations.layout.text import LONG_LINE, lay_out_messages, lay_out_text, text_document
from sensorium.representations.scoring import worth


def laid_out(text: str, **settings: str) -> Document:
    (part,) = read_text(text, part_id="t", **settings)  # type: ignore[arg-type]
    return lay_out_text(part)


def find(document: Document, words: str) -> Segment:
    return next(segment for segment in document.segments if words in segment.text)


def test_short_lines_are_the_text_unchanged() -> None:
    text = "One.\n\nTwo 2.\n  indented\n\n\nlast"
    document = laid_out(text)
    assert document.separator.join(segment.text for segment in document.segments) == text
    assert [segment.place for segment in document.segments] == ["line 1", "line 3", "line 4", "line 7"]
    assert document.title == "text, 7 lines"


def test_long_lines_are_divided_between_sentences() -> None:
    sentences = [f"Sentence number {n} says something of its own." for n in range(40)]
    document = laid_out(" ".join(sentences))
    assert [segment.text for segment in document.segments] == sentences


def test_a_long_line_without_sentences_loses_nothing() -> None:
    text = "x" * (LONG_LINE * 3 + 7)
    segments = laid_out(text).segments
    assert "".join(segment.text for segment in segments) == text
    assert len(segments) > 3


def test_headings_are_parents() -> None:
    document = laid_out(
        "# A\n\nintro\n\n## B\n\ntext b\n\n```\n# no heading\n```\n\n# C\nend", format="markdown"
    )
    texts = [segment.text.strip() for segment in document.segments]
    parents = {text: s.parent for text, s in zip(texts, document.segments, strict=True)}
    assert parents["intro"] == texts.index("# A")
    assert parents["## B"] == texts.index("# A")
    assert parents["text b"] == parents["# no heading"] == texts.index("## B")
    assert parents["# C"] is None
    assert parents["end"] == texts.index("# C")
    assert find(document, "## B").weight > find(document, "text b").weight


def test_errors_of_a_log_are_pinned_and_noise_sinks() -> None:
    lines = [f"2024-01-01 00:00:{n:02} DEBUG tick {n}" for n in range(30)]
    lines[12] = "2024-01-01 00:00:12 ERROR disk full"
    lines.insert(13, "    at writer.flush")
    document = laid_out("\n".join(lines))
    error, detail = find(document, "disk full"), find(document, "writer.flush")
    assert error.is_pinned
    assert document.segments[detail.parent or 0] is error
    assert error.weight > detail.weight > find(document, "tick 5").weight
    worths = dict(zip(document.segments, worth(document), strict=True))
    assert worths[find(document, "tick 0")] > worths[find(document, "tick 20")]
    assert sum(segment.is_pinned for segment in document.segments) == 1


def test_few_errors_are_pinned_of_many() -> None:
    document = laid_out("\n".join(f"2024-01-01 00:00:00 ERROR e{chr(97 + n)}" for n in range(20)))
    assert sum(segment.is_pinned for segment in document.segments) == 3
    assert document.segments[-1].is_pinned


def test_own_frames_weigh_more_than_those_of_libraries() -> None:
    document = laid_out(
        'Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\n    load()\n'
        '  File "/x/site-packages/lib/io.py", line 9, in read\n    raise E\nValueError: bad value 7'
    )
    own, library = find(document, "/app/run.py"), find(document, "site-packages")
    assert own.is_pinned
    assert own.weight > library.weight
    assert document.segments[find(document, "load()").parent or 0] is own
    assert find(document, "bad value 7").is_pinned
    assert document.fence == ""


def test_scripts_of_a_page_weigh_nothing() -> None:
    document = laid_out(
        "<html>\n<script>\nvar x = 1;\n</script>\n<h1>Title</h1>\n<p>Words.</p>\n</div>\n</html>"
    )
    assert (
        find(document, "var x").weight < 0.2 < find(document, "Words").weight < find(document, "Title").weight
    )


def test_what_lies_behind_the_limit_is_said() -> None:
    part = Part(id="t", modality=Modality.TEXT, value=TextValue(text="a" * 50))
    document = lay_out_text(part, TextConfig(max_chars=20))
    assert [segment.text for segment in document.segments] == [
        "a" * 20,
        "... 30 more characters not read ...",
    ]


def test_empty_text_has_no_segments() -> None:
    assert laid_out("  \n ").segments == ()


def test_other_kinds_are_refused() -> None:
    part = Part(id="c", modality=Modality.CODE, value=CodeValue(text="x"))
    with pytest.raises(TypeError, match="kind 'code'"):
        lay_out_text(part)
    with pytest.raises(TypeError, match="kind 'code'"):
        lay_out_messages(part)


def test_turns_are_parents_and_the_question_is_pinned() -> None:
    raw = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Old question?"},
        {"role": "assistant", "content": "Old answer.\nIn two lines."},
        {"role": "user", "content": "New question?\nWith detail.", "name": "Ann"},
    ]
    document = lay_out_messages(read_messages(raw, part_id="c").parts[0])
    assert [segment.text for segment in document.segments if segment.parent is None] == [
        "[system]",
        "[user]",
        "[assistant]",
        "[user Ann]",
    ]
    assert [segment.text for segment in document.segments if segment.is_pinned] == ["New question?"]
    assert document.segments[find(document, "In two lines").parent or 0].text == "[assistant]"
    assert find(document, "New question").weight > find(document, "Old question").weight


FORMATS = st.sampled_from(["plain", "markdown", "log", "traceback", "html"])
LINES = st.lists(
    st.text("ab #`<>/:.0 \n\t", max_size=30)
    | st.sampled_from(
        ["# h", "```", "ERROR x", '  File "a.py", line 1', "<script>", "</script>", "Error: y"]
    ),
    max_size=20,
)


@given(LINES, FORMATS)
def test_every_line_is_laid_out_and_parents_come_first(lines: list[str], format: str) -> None:
    text = "\n".join(lines)
    document = laid_out(text, format=format)
    joined = document.separator.join(segment.text for segment in document.segments)
    assert joined.strip() == text.strip()
    for position, segment in enumerate(document.segments):
        assert segment.weight >= 0
        assert segment.parent is None or 0 <= segment.parent < position
        assert not segment.is_pinned or len(segment.text) <= 300


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "text, empty"), ("a", "text, 1 line"), ("a\n", "text, 1 line"), ("a\n\n", "text, 2 lines")],
)
def test_lines_are_counted_as_editors_count(text: str, said: str) -> None:
    assert text_document(text, "plain", TextConfig()).title == said
