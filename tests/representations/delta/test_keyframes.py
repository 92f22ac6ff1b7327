import subprocess
import sys

import pytest
from delta_notebooks import Cell, long_notebook, notebook
from hypothesis import given, settings
from hypothesis import strategies as st
from part_strategies import observations

from sensorium.observations.base import Observation
from sensorium.representations.delta import DeltaDecoder, DeltaEncoder, ResyncError, parse_packet
from sensorium.representations.delta.keyframes import DecoderState, DeltaPacket, EncoderState, KeyframePacket


def states(number: int) -> list[Observation]:
    """A notebook of which one cell after another is edited."""
    cells = long_notebook(12)
    found = []
    for step in range(number):
        cells[step % 12] = cells[step % 12]._replace(source=f"step = {step}\n", count=step)
        found.append(notebook(cells, time=float(step)))
    return found


def test_stream_is_lossless_and_has_keyframes() -> None:
    encoder, decoder = DeltaEncoder(keyframe_every=4), DeltaDecoder()
    kinds = []
    for state in states(11):
        packet = parse_packet(encoder.encode(state).model_dump_json())
        assert decoder.decode(packet) == state
        kinds.append(packet.kind[0])
    assert "".join(kinds) == "kddddkddddk"


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(observations(max_parts=3), max_size=5), st.integers(1, 3), st.floats(0.1, 1.0))
def test_streams_of_any_observations_are_lossless(
    sequence: list[Observation], keyframe_every: int, max_share: float
) -> None:
    encoder, decoder = DeltaEncoder(keyframe_every, max_share), DeltaDecoder()
    for state in sequence:
        packet = parse_packet(encoder.encode(state).model_dump_json())
        assert repr(decoder.decode(packet)) == repr(state)


def test_large_changes_are_keyframes() -> None:
    encoder = DeltaEncoder(max_share=0.5)
    encoder.encode(notebook(long_notebook(10)))
    assert isinstance(encoder.encode(notebook([Cell("other " * 40, name="q")])), KeyframePacket)
    small = notebook([Cell("other " * 40 + "!", name="q", output="x" * 1_500)])
    assert isinstance(encoder.encode(small), KeyframePacket)
    assert isinstance(
        encoder.encode(notebook([Cell("other " * 40, name="q", output="x" * 1_500)])), DeltaPacket
    )


def test_a_lost_packet_asks_for_a_keyframe() -> None:
    encoder, decoder = DeltaEncoder(), DeltaDecoder()
    first, lost, second, third, fourth = states(5)
    decoder.decode(encoder.encode(first))
    encoder.encode(lost)
    with pytest.raises(ResyncError, match="Packet 2 follows packet 0"):
        decoder.decode(encoder.encode(second))
    assert decoder.needs_keyframe
    with pytest.raises(ResyncError, match="no keyframe before it"):
        decoder.decode(encoder.encode(third))
    encoder.request_keyframe()
    packet = encoder.encode(fourth)
    assert packet.sequence == 4
    assert decoder.decode(packet) == fourth
    assert not decoder.needs_keyframe


def test_damaged_packets_are_refused() -> None:
    encoder = DeltaEncoder()
    first, second, _ = states(3)
    key, delta = encoder.encode(first).model_dump_json(), encoder.encode(second).model_dump_json()
    with pytest.raises(ResyncError, match="Keyframe 0 is damaged"):
        DeltaDecoder().decode(parse_packet(key.replace("step = 0", "step = 9")))
    decoder = DeltaDecoder()
    decoder.decode(parse_packet(key))
    with pytest.raises(ResyncError, match="Packet 1 does not fit"):
        decoder.decode(parse_packet(delta.replace("step = 1", "step = 7")))
    for text in ("", "{}", delta[:-9], "[1]", '{"kind":"delta","sequence":1}'):
        with pytest.raises(ResyncError, match="cannot be read"):
            parse_packet(text)


def test_encoder_and_decoder_go_on_from_their_states() -> None:
    first, second, third = states(3)
    encoder, decoder = DeltaEncoder(keyframe_every=5), DeltaDecoder()
    decoder.decode(encoder.encode(first))
    decoder.decode(encoder.encode(second))
    encoder = DeltaEncoder.from_state(EncoderState.model_validate_json(encoder.state.model_dump_json()))
    decoder = DeltaDecoder(DecoderState.model_validate_json(decoder.state.model_dump_json()))
    packet = encoder.encode(third)
    assert isinstance(packet, DeltaPacket)
    assert decoder.decode(packet) == third


def test_packets_cross_the_border_of_a_process() -> None:
    program = (
        "import sys\n"
        "from sensorium.representations.delta import DeltaDecoder, parse_packet\n"
        "decoder = DeltaDecoder()\n"
        "for line in sys.stdin.buffer:\n"
        "    state = decoder.decode(parse_packet(line))\n"
        "sys.stdout.buffer.write(state.model_dump_json().encode())\n"
    )
    encoder = DeltaEncoder()
    sent = states(4)
    packets = "\n".join(encoder.encode(state).model_dump_json() for state in sent)
    done = subprocess.run(
        [sys.executable, "-c", program], input=packets.encode(), capture_output=True, check=True
    )
    assert Observation.model_validate_json(done.stdout) == sent[-1]
