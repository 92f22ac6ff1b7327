"""Notebooks for the tests of changes: parts as the notebook reader makes them, without reading files."""

from typing import NamedTuple

from sensorium.core import Modality
from sensorium.observations.base import Observation, Part
from sensorium.observations.values import CellValue, OutputValue


class Cell(NamedTuple):
    source: str
    name: str = ""
    """Lasting id; empty: ids are positions."""
    output: str = ""
    count: int | None = None


def notebook(cells: list[Cell], time: float | None = None) -> Observation:
    parts = []
    for index, cell in enumerate(cells):
        part_id = f"nb.ipynb/cell-{cell.name or index}"
        value = CellValue(index=index, cell_type="code", source=cell.source, execution_count=cell.count)
        parts.append(Part(id=part_id, modality=Modality.NOTEBOOK, value=value, timestamp_s=time))
        if cell.output:
            output = OutputValue(output_type="stream", text=cell.output, stream="stdout")
            parts.append(
                Part(id=f"{part_id}/output-0", modality=Modality.NOTEBOOK, value=output, timestamp_s=time)
            )
    return Observation(parts=tuple(parts), timestamp_s=time)


def long_notebook(num_cells: int, *, names: bool = True) -> list[Cell]:
    return [
        Cell(
            source=f"import numpy as np\nx{at} = np.arange({at})\nfor i in x{at}:\n    print(i, {at} * i)\n",
            name=f"a{at:03x}" if names else "",
            output="\n".join(f"{line} {line * at}" for line in range(10)),
            count=at + 1,
        )
        for at in range(num_cells)
    ]
