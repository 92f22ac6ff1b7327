"""Observations of many worlds as tensors: what a policy network reads.

Frames, sounds and vectors that change at every step stay dense and keep their dtype. Texts, and what is
constant within an episode (an instruction, spoken or written), are kept once in a table and referred to by
row, so that each distinct one is encoded once however many steps it accompanies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import Modality, PolicyError
from sensorium.features.base import FrozenTextEncoder

MAX_TABLE_ROWS = 512
"""Rows that a table keeps from one rollout to the next."""


class TableRows(NamedTuple):
    """The distinct readings of one tabled sensor."""

    values: Tensor
    """(rows, ...): log-mel frames (frames, mels), or token embeddings (tokens, dim)."""
    mask: Bool[Tensor, "rows tokens"]
    """True where a token exists; one column, always True, for anything but text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorObservation:
    """One moment in N worlds."""

    dense: Mapping[str, Tensor]
    """Sensor -> (N, ...) in the sensor's own dtype and layout, e.g. rgb uint8 (N, H, W, 3)."""
    rows: Mapping[str, Int[Tensor, " batch"]]
    """Tabled sensor -> row of the table, per world."""
    tables: Mapping[str, TableRows]
    """Tabled sensor -> its distinct readings so far."""
    present: Bool[Tensor, "batch sensors"]
    """Which sensors deliver; columns in the order of `SensorInput`."""
    age_s: Float[Tensor, "batch sensors"]
    """Seconds since each reading was taken."""

    def blank(self, sensors: frozenset[str], order: tuple[str, ...]) -> "TensorObservation":
        """Return the same moment with `sensors` absent."""
        kept = torch.tensor([name not in sensors for name in order], device=self.present.device)
        return replace(self, present=self.present & kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorInput:
    """What a policy network must know about one sensor to build an encoder for it."""

    name: str
    modality: Modality
    shape: tuple[int, ...]
    """Shape of one reading: (H, W, C), (ears, frames, mels), (frames, mels), (dim,) or (tokens, dim)."""
    dtype: str
    """``"uint8"`` for pixels in 0 .. 255, ``"float32"`` for everything else; readings are converted to it."""
    tabled: bool
    normalise: bool
    encoder: str = ""
    """Identity of the frozen text encoder whose embeddings these are; empty for other modalities."""

    def describe(self) -> dict[str, Any]:
        """JSON-friendly form, for checkpoints and `policy.json`."""
        return {field: getattr(self, field) for field in self.__dataclass_fields__} | {
            "shape": list(self.shape)
        }

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "SensorInput":
        """Inverse of `describe`."""
        return cls(**{**values, "modality": Modality(values["modality"]), "shape": tuple(values["shape"])})


class _Table:
    """Distinct readings of one sensor, found again by their bytes."""

    def __init__(self) -> None:
        self.row_of: dict[bytes, int] = {}
        self.readings: list[Any] = []

    def row(self, reading: Any) -> int:
        key = reading.encode() if isinstance(reading, str) else np.ascontiguousarray(reading).tobytes()
        row = self.row_of.get(key)
        if row is None:
            row = self.row_of[key] = len(self.readings)
            self.readings.append(reading)
        return row


class TensorRepresenter:
    """Turns the observations of a vector environment into `TensorObservation`s.

    Args:
        inputs: The sensors, canonical order.
        text_encoder: Frozen encoder of texts; needed when a sensor is text.
        device: Where the tensors go.
    """

    def __init__(
        self, inputs: tuple[SensorInput, ...], text_encoder: FrozenTextEncoder | None, device: torch.device
    ) -> None:
        self.inputs = inputs
        self.text_encoder = text_encoder
        self.device = device
        self._tables = {sensor.name: _Table() for sensor in inputs if sensor.tabled}
        self._encoded: dict[str, TableRows] = {}
        self._latest: dict[str, tuple[Tensor, np.ndarray]] = {}

    def __call__(
        self,
        observation: Mapping[str, Any],
        now_s: Float[np.ndarray, " batch"],
        starts: Bool[np.ndarray, " batch"],
    ) -> TensorObservation:
        """Represent one moment.

        Args:
            observation: As from `MultiModalVectorEnv`; every leaf has a row per world.
            now_s: Time since each world's episode began, seconds.
            starts: Worlds whose episode begins with this observation: readings that are constant within
                an episode are looked up again only there, and where presence changes.

        The reading of an absent sensor is never read: a zero (an empty text) stands in for whatever it holds.

        Raises:
            PolicyError: A sensor that the policy was built for is not in the observation.
        """
        dense: dict[str, Tensor] = {}
        rows: dict[str, Tensor] = {}
        for sensor in self.inputs:
            if sensor.name not in observation:
                raise PolicyError(
                    f"The policy perceives {sensor.name!r}, which the observation lacks; it holds "
                    f"{', '.join(sorted(set(observation) - {'present', 'timestamp_s'}))}."
                )
            here = observation["present"][sensor.name] > 0
            reading = _present_only(observation[sensor.name], here)
            if sensor.tabled:
                rows[sensor.name] = self._rows(sensor, reading, starts, here)
            else:
                plain = np.ascontiguousarray(reading, dtype=sensor.dtype)
                dense[sensor.name] = torch.from_numpy(plain).to(self.device)
        names = [sensor.name for sensor in self.inputs]
        present = np.stack([observation["present"][name] for name in names], axis=1) > 0
        taken_s = np.stack([observation["timestamp_s"][name] for name in names], axis=1)
        age_s = np.maximum(now_s[:, None] - taken_s, 0.0).astype(np.float32)
        return TensorObservation(
            dense=dense,
            rows=rows,
            tables=self.tables(),
            present=torch.from_numpy(present).to(self.device),
            age_s=torch.from_numpy(age_s).to(self.device),
        )

    def tables(self) -> dict[str, TableRows]:
        """Every tabled sensor's distinct readings so far, encoded."""
        for sensor in self.inputs:
            if sensor.tabled:
                readings = self._tables[sensor.name].readings
                old = self._encoded.get(sensor.name)
                known = 0 if old is None else len(old.values)
                if known < len(readings):
                    new = self._encode(sensor, readings[known:])
                    self._encoded[sensor.name] = new if old is None else _joined(old, new)
        return dict(self._encoded)

    def trim(self) -> None:
        """Forget when there are more rows than it pays to keep, so that memory stays flat."""
        if any(len(table.readings) > MAX_TABLE_ROWS for table in self._tables.values()):
            self.forget()

    def forget(self) -> None:
        """Drop all table rows; rows handed out before are void."""
        self._tables = {name: _Table() for name in self._tables}
        self._encoded = {}
        self._latest = {}

    def _rows(
        self,
        sensor: SensorInput,
        reading: Any,
        starts: Bool[np.ndarray, " batch"],
        here: Bool[np.ndarray, " batch"],
    ) -> Tensor:
        table = self._tables[sensor.name]
        if sensor.modality is Modality.TEXT or sensor.name not in self._latest:
            rows = torch.tensor([table.row(one) for one in reading], device=self.device)
        else:
            rows, before = self._latest[sensor.name]
            changed = np.flatnonzero(starts | (here != before))
            if len(changed):
                rows = rows.clone()
                for world in changed:
                    rows[world] = table.row(reading[world])
        self._latest[sensor.name] = (rows, here)
        return rows

    def _encode(self, sensor: SensorInput, readings: list[Any]) -> TableRows:
        if sensor.modality is Modality.TEXT:
            if self.text_encoder is None:
                raise PolicyError(f"Sensor {sensor.name!r} is text and needs a text encoder; none was given.")
            embedding = self.text_encoder.encode(readings)
            values, mask = torch.from_numpy(embedding.tokens), torch.from_numpy(embedding.mask)
        else:
            values = torch.from_numpy(np.stack(readings).astype(np.float32))
            mask = torch.ones(len(readings), 1, dtype=torch.bool)
        return TableRows(values.to(self.device), mask.to(self.device))


def _present_only(reading: Any, here: Bool[np.ndarray, " batch"]) -> Any:
    if here.all():
        return reading
    if isinstance(reading, np.ndarray):
        return np.where(here.reshape(-1, *[1] * (reading.ndim - 1)), reading, np.zeros((), reading.dtype))
    return [one if present else "" for one, present in zip(reading, here, strict=True)]


def _joined(old: TableRows, new: TableRows) -> TableRows:
    return TableRows(torch.cat([old.values, new.values]), torch.cat([old.mask, new.mask]))
