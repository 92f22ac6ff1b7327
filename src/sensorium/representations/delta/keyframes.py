"""A stream of observations as keyframes and changes, for a channel that may lose packets."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from sensorium.core.errors import ObservationError
from sensorium.observations.base import Observation
from sensorium.observations.values import Value
from sensorium.representations.delta.observation import ObservationDelta, apply, diff, observation_digest

_PART_OVERHEAD = 64
"""Bytes of JSON around the value of a part, besides id and notes."""


class KeyframePacket(Value):
    """A whole observation."""

    kind: Literal["keyframe"] = "keyframe"
    sequence: int
    """Number of the packet, from 0."""
    observation: Observation
    digest: str
    """`observation_digest` of it."""


class DeltaPacket(Value):
    """What changed since the packet before."""

    kind: Literal["delta"] = "delta"
    sequence: int
    """Number of the packet; it applies to the observation of the one before."""
    delta: ObservationDelta


Packet = Annotated[KeyframePacket | DeltaPacket, Field(discriminator="kind")]
_PACKET: TypeAdapter[KeyframePacket | DeltaPacket] = TypeAdapter(Packet)


class ResyncError(ObservationError):
    """A packet cannot be decoded because one before it is missing or damaged: ask for a keyframe."""


def parse_packet(text: str | bytes) -> KeyframePacket | DeltaPacket:
    """A packet from its JSON.

    Raises:
        ResyncError: It is not a packet.
    """
    try:
        return _PACKET.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the packet"
        raise ResyncError(
            f"A packet of the stream cannot be read: {place}: {first['msg']}. Ask for a keyframe."
        ) from None


class EncoderState(Value):
    """Everything an encoder knows, to go on in another process."""

    keyframe_every: int = Field(ge=1)
    max_share: float = Field(gt=0.0, le=1.0)
    sequence: int = 0
    """Number of the next packet."""
    deltas: int = 0
    """Changes since the last keyframe."""
    last: Observation | None = None
    """What the decoder has; None: the next packet is a keyframe."""


class DeltaEncoder:
    """Turns observations into packets.

    Args:
        keyframe_every: A keyframe follows after so many changes, so that whoever joins late waits no longer.
        max_share: A keyframe is sent when the change is larger than this share of it, in bytes of JSON.
    """

    def __init__(self, keyframe_every: int = 10, max_share: float = 0.6) -> None:
        self._state = EncoderState(keyframe_every=keyframe_every, max_share=max_share)
        self._sizes: dict[str, int] = {}

    @classmethod
    def from_state(cls, state: EncoderState) -> "DeltaEncoder":
        """An encoder that goes on where another one was."""
        encoder = cls(state.keyframe_every, state.max_share)
        encoder._state = state
        return encoder

    @property
    def state(self) -> EncoderState:
        """What it knows now."""
        return self._state

    def encode(self, observation: Observation) -> KeyframePacket | DeltaPacket:
        """The next packet."""
        state = self._state
        packet: KeyframePacket | DeltaPacket | None = None
        if state.last is not None and state.deltas < state.keyframe_every:
            delta = diff(state.last, observation)
            if delta.num_bytes <= state.max_share * self._num_bytes(observation):
                packet = DeltaPacket(sequence=state.sequence, delta=delta)
        if packet is None:
            packet = KeyframePacket(
                sequence=state.sequence, observation=observation, digest=observation_digest(observation)
            )
        deltas = state.deltas + 1 if isinstance(packet, DeltaPacket) else 0
        now = {"sequence": state.sequence + 1, "deltas": deltas, "last": observation}
        self._state = state.model_copy(update=now)
        return packet

    def request_keyframe(self) -> None:
        """Make the next packet a keyframe: the decoder has lost track."""
        self._state = self._state.model_copy(update={"deltas": 0, "last": None})

    def _num_bytes(self, observation: Observation) -> int:
        """Size of the observation as JSON, nearly; values are measured once, as long as they stay."""
        self._sizes = {
            part.digest: self._sizes.get(part.digest) or len(part.value.model_dump_json().encode())
            for part in observation.parts
        }
        return sum(
            self._sizes[part.digest] + len(part.id) + sum(map(len, part.notes)) + _PART_OVERHEAD
            for part in observation.parts
        )


class DecoderState(Value):
    """Everything a decoder knows, to go on in another process."""

    sequence: int = -1
    """Number of the last packet that was decoded."""
    last: Observation | None = None
    """What it decoded to; None: only a keyframe can follow."""


class DeltaDecoder:
    """Turns packets back into observations."""

    def __init__(self, state: DecoderState | None = None) -> None:
        self._state = state or DecoderState()

    @property
    def state(self) -> DecoderState:
        """What it knows now."""
        return self._state

    @property
    def needs_keyframe(self) -> bool:
        """Whether only a keyframe can be decoded: at the start, and after a packet was lost."""
        return self._state.last is None

    def decode(self, packet: KeyframePacket | DeltaPacket) -> Observation:
        """The observation of a packet.

        Raises:
            ResyncError: A change whose predecessor was not decoded, or that is damaged. Every change is
                refused from then on until a keyframe comes.
        """
        if isinstance(packet, KeyframePacket):
            observation = packet.observation
            if observation_digest(observation) != packet.digest:
                raise self._lost(f"Keyframe {packet.sequence} is damaged: its digest is another one.")
        else:
            last = self._state.last
            if last is None:
                raise self._lost(f"Packet {packet.sequence} is a change, and there is no keyframe before it.")
            if packet.sequence != self._state.sequence + 1:
                raise self._lost(
                    f"Packet {packet.sequence} follows packet {self._state.sequence}: one between is missing."
                )
            try:
                observation = apply(last, packet.delta)
            except ObservationError as error:
                raise self._lost(f"Packet {packet.sequence} does not fit: {error}") from error
        self._state = DecoderState(sequence=packet.sequence, last=observation)
        return observation

    def _lost(self, what: str) -> ResyncError:
        self._state = DecoderState(sequence=self._state.sequence)
        return ResyncError(f"{what} Ask the sender for a keyframe (DeltaEncoder.request_keyframe).")
