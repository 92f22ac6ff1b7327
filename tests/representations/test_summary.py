"""Summaries of documents: what is kept, in which order, with which marks."""

from sensorium.representations.base import Document, Level, Segment
from sensorium.representations.scoring import Relevance, information, scores, terms
from sensorium.representations.summary import Sheet


class Words:
    """Counts words: easy to follow by hand."""

    identity, message_overhead = "words", 0

    def text(self, text: str) -> int:
        return len(text.split())

    def image(self, width: int, height: int) -> int:
        return 85

    def audio(self, duration_s: float) -> int:
        return int(duration_s)


def log(count: int, **special: str) -> Document:
    lines = [special.get(f"at_{i}", f"step {i} loss 0.{i:03d} went on as before") for i in range(count)]
    segments = tuple(Segment(line, place=f"line {i + 1}") for i, line in enumerate(lines))
    return Document("log", segments)


def sheet(document: Document, task: str = "") -> Sheet:
    relevance = Relevance(task, [s.text for s in document.segments])
    return Sheet("run.log", document, Words(), relevance)


def shortest(found: Sheet, ratio: float) -> str:
    draft = found.draft(int(ratio * found.full_tokens))
    assert draft is not None
    return found.text(draft)


def test_the_whole_document_comes_first_and_summaries_shrink():
    drafts = sheet(log(200)).drafts(0.05)
    assert drafts[0].level is Level.FULL
    assert drafts[0].retained == 1.0
    assert all(d.level is Level.SUMMARY for d in drafts[1:])
    assert len(drafts) > 3
    assert [d.tokens for d in drafts] == sorted((d.tokens for d in drafts), reverse=True)
    assert [d.retained for d in drafts] == sorted((d.retained for d in drafts), reverse=True)


def test_no_summary_is_smaller_than_the_compression_ratio():
    names = ["".join(chr(97 + (i * k) % 26) for k in (1, 3, 5)) for i in range(200)]
    lines = tuple(
        Segment(f"{name} went to {name[::-1]} and came back", place=f"line {i + 1}")
        for i, name in enumerate(names)
    )
    found = sheet(Document("tale", lines))
    for ratio in (0.5, 0.2, 0.1):
        smallest = found.drafts(ratio)[-1]
        assert smallest.tokens >= 0.5 * ratio * found.substance
        assert len(found.text(smallest).split()) <= 1.2 * ratio * found.full_tokens + 14
    assert len(found.drafts(1.0)) == 1


def test_estimates_are_at_least_what_the_text_costs():
    found = sheet(log(300, at_77="ValueError: the matrix is singular at row 12"))
    for draft in found.drafts(0.03):
        assert len(found.text(draft).split()) <= draft.tokens


def test_errors_and_lines_of_another_shape_survive_among_repetition():
    odd = "checkpoint digest 9f3ac2 written to /data/best.pt"
    error = "RuntimeError: CUDA out of memory while allocating 2.4 GiB"
    text = shortest(sheet(log(400, at_123=odd, at_301=error)), 0.05)
    assert odd in text
    assert error in text
    assert text.index(odd) < text.index(error)


def test_the_task_decides_between_lines_of_equal_standing():
    document = log(
        100,
        at_40="sensor QX-17 was calibrated with an offset of 4.25 mm",
        at_60="sensor AB-03 was calibrated with an offset of 1.75 mm",
    )
    text = shortest(sheet(document, "What is the offset of sensor AB-03?"), 0.05)
    assert "AB-03" in text


def test_marks_say_what_is_left_out():
    text = shortest(sheet(log(100, at_50="FATAL: disk full")), 0.05)
    assert "\n[... lines 2-50]\nFATAL: disk full\n[... lines 52-100]" in text


def test_parents_and_pinned_segments_are_kept():
    segments = (
        Segment("def f(x):", weight=3.0, place="line 1"),
        *(
            Segment(
                f"    y{i} = x + {i} # plain words that say nothing much", place=f"line {i + 2}", parent=0
            )
            for i in range(60)
        ),
        Segment("    raise KeyError(x)", place="line 62", parent=0),
        Segment("total columns and rows", weight=0.0, is_pinned=True),
    )
    text = shortest(sheet(Document("f.py", segments, fence="python"), "KeyError"), 0.1)
    assert "def f(x):" in text
    assert "raise KeyError(x)" in text
    assert "total columns and rows" in text
    assert text.startswith("### run.log: f.py\n```python\n")
    assert text.endswith("\n```")


def test_a_parent_out_of_range_or_in_a_circle_does_no_harm():
    segments = tuple(
        Segment(f"line number {i} with value {i * 7}", parent=parent)
        for i, parent in enumerate([1, 0, 2, 99, -5] * 8)
    )
    assert sheet(Document("odd", segments)).drafts(0.1)


def test_fences_are_longer_than_those_inside():
    text = sheet(Document("md", (Segment("```"), Segment("x")), fence="markdown")).full_text
    assert text == "### run.log: md\n~~~~markdown\n```\nx\n~~~~"


def test_terms_take_identifiers_apart_and_drop_common_words():
    assert terms("The maxTokens of the residuals") == {"maxtoken", "max", "token", "residual"}
    assert terms("loading the price") < terms("load_prices")
    assert terms("bed_rooms") & terms("bedrooms")
    assert terms("boxes and classes") == terms("box class")


def test_relevance_weights_rare_words_more():
    relevance = Relevance("price regression", ["price a", "price b", "price c", "regression d"])
    assert relevance("a regression") > relevance("a price") > relevance("nothing") == 0.0
    assert relevance("price and regression") == 1.0
    assert Relevance("").is_empty
    assert Relevance("zebra", ["no such animal"]).is_empty


def test_repeated_shapes_count_less_after_the_first():
    found = scores(log(10), Relevance(""))
    assert found[0] > found[1] == found[9]
    assert information("") < information("}") < information("plain words") < information("x = 42 at KeyError")
