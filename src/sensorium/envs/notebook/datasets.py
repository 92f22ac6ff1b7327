"""Real data sets that ship in packages: scikit-learn, statsmodels, vega_datasets.

Their files are read as they are; none of the packages is imported, and nothing is fetched.
"""

import csv
import functools
import gzip
import importlib.util
import io
import json
from pathlib import Path

from sensorium.core import MissingDependencyError
from sensorium.core.errors import unknown_name
from sensorium.envs.notebook.catalogue_series import TIMES
from sensorium.envs.notebook.catalogue_tables import NATURE, PEOPLE, PLACES
from sensorium.envs.notebook.dataset import Dataset
from sensorium.envs.notebook.table import Table

_MISSING = {"NA", "N/A", "NaN", "nan", "null", "None"}  # pandas reads them as missing, too
DATASETS: dict[str, Dataset] = {one.name: one for one in (*PEOPLE, *PLACES, *NATURE, *TIMES)}
"""Name -> data set."""


@functools.cache
def load_table(name: str) -> Table:
    """All rows of a data set, with the columns that it declares.

    Args:
        name: One of `DATASETS`.

    Raises:
        ConfigError: There is none of this name.
        MissingDependencyError: The package that holds it is not installed.
    """
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    dataset = DATASETS[name]
    records = _records(dataset, _find(dataset))
    columns = {}
    for column in dataset.columns:
        cells = (record.get(column.source or column.name, "") for record in records)
        columns[column.name] = tuple(
            "" if cell in _MISSING else column.labels.get(cell, cell) for cell in cells
        )
    return Table(columns)


def is_installed(name: str) -> bool:
    """Whether the file of a data set is on this machine."""
    try:
        _find(DATASETS[name])
    except MissingDependencyError:
        return False
    return True


def _find(dataset: Dataset) -> Path:
    spec = importlib.util.find_spec(dataset.package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        path = Path(place) / dataset.path
        if path.is_file():
            return path
    raise MissingDependencyError(
        f"The data set {dataset.name!r} is in the package {dataset.package}, which is not installed or "
        f"has no {dataset.path}. Install it with: pip install 'sensorium[notebook]'"
    )


def _records(dataset: Dataset, path: Path) -> list[dict[str, str]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    if path.suffix == ".json":
        return [{key: _cell(value) for key, value in record.items()} for record in json.loads(text)]
    quote = "'" if text.lstrip().startswith("'") else '"'
    rows = list(csv.reader(io.StringIO(text), delimiter=dataset.delimiter, quotechar=quote))
    rows = rows[dataset.skipped_rows :]
    header = dataset.header or tuple(rows.pop(0))
    return [dict(zip(header, (cell.strip() for cell in row), strict=True)) for row in rows if row]


def _cell(value: object) -> str:
    return "" if value is None else str(value)
