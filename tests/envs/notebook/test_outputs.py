import pytest

from sensorium.envs.notebook.config import KernelConfig
from sensorium.envs.notebook.outputs import BoundedText, OutputCollector

CONFIG = KernelConfig(max_stream_chars=1_000, max_text_chars=1_000, max_image_bytes=1_000, max_outputs=3)


def collect(*messages):
    collector = OutputCollector(CONFIG)
    for kind, content in messages:
        collector.take(kind, content)
    return collector


def stream(text, name="stdout"):
    return "stream", {"name": name, "text": text}


def display(data, display_id=None):
    return "display_data", {"data": data, "transient": {"display_id": display_id} if display_id else {}}


def test_pieces_of_one_stream_are_one_output():
    outputs = collect(stream("a"), stream("b"), stream("c", "stderr"), stream("d")).outputs()
    assert [(o["name"], o["text"]) for o in outputs] == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]


@pytest.mark.parametrize("piece", [1, 7, 400, 5_000])
def test_beginning_and_end_of_a_long_text_are_kept(piece):
    whole = "".join(f"{n:05d}," for n in range(2_000))
    bounded = BoundedText(1_000)
    for start in range(0, len(whole), piece):
        bounded.add(whole[start : start + piece])
    kept = str(bounded)
    assert kept.startswith(whole[:500])
    assert kept.endswith(whole[-500:])
    assert f"{len(whole) - 1_000:,} characters left out" in kept
    assert str(bounded) == kept


def test_a_text_within_the_bound_stays_as_it_is():
    bounded = BoundedText(1_000)
    bounded.add("x" * 600)
    bounded.add("y" * 400)
    assert str(bounded) == "x" * 600 + "y" * 400


def test_too_many_outputs_are_counted_and_an_error_is_always_kept():
    many = [display({"text/plain": str(n)}) for n in range(10)]
    error = ("error", {"ename": "ValueError", "evalue": "no", "traceback": ["line"]})
    collector = collect(*many, error)
    outputs = collector.outputs()
    assert [o["data"]["text/plain"] for o in outputs[:3]] == ["0", "1", "2"]
    assert outputs[3]["ename"] == "ValueError"
    assert "7 further outputs" in outputs[4]["text"]
    assert collector.failed
    assert collector.error == ("ValueError", "no")


def test_a_picture_that_is_too_large_is_said_and_unknown_kinds_are_dropped():
    data = {"image/png": "A" * 4_000, "text/plain": "<Figure>", "application/javascript": "alert()"}
    [output] = collect(display(data)).outputs()
    assert set(output["data"]) == {"text/plain"}
    assert "3,000 bytes" in output["data"]["text/plain"]
    [output] = collect(display({"image/png": "A" * 400})).outputs()
    assert output["data"] == {"image/png": "A" * 400}


def test_displays_are_updated_and_cleared():
    updated = ("update_display_data", {"data": {"text/plain": "2"}, "transient": {"display_id": "x"}})
    [output] = collect(display({"text/plain": "1"}, "x"), updated).outputs()
    assert output["data"] == {"text/plain": "2"}
    assert "display_id" not in output
    assert collect(stream("a"), ("clear_output", {"wait": False})).outputs() == []
    [output] = collect(stream("a"), ("clear_output", {"wait": True}), stream("b")).outputs()
    assert output["text"] == "b"


def test_malformed_messages_do_no_harm():
    messages = [
        ("stream", {"text": 3}),
        ("stream", {}),
        ("display_data", {"data": [1]}),
        ("display_data", {"data": {"image/png": 3, 4: "x", "application/json": {"a": 1}}}),
        ("execute_result", {"data": None, "execution_count": "one"}),
        ("error", {"ename": 3, "traceback": "oh"}),
        ("update_display_data", {"transient": 1}),
        ("comm_open", {}),
        ("clear_output", {}),
    ]
    for message in messages:
        collect(message).outputs()
    assert collect(messages[3]).outputs()[0]["data"] == {"application/json": {"a": 1}}
    assert collect(messages[5]).error[0] == "3"
