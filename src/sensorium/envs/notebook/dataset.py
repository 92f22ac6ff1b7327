"""What is known of a data set that ships in a package."""

from dataclasses import dataclass

from sensorium.envs.notebook.table import Column, ColumnKind


@dataclass(frozen=True)
class Dataset:
    """Where a data set is, and what it holds."""

    name: str
    about: str
    """What a row is."""
    package: str
    path: str
    """Inside the package."""
    columns: tuple[Column, ...]
    delimiter: str = ","
    header: tuple[str, ...] = ()
    """Names of the columns where the file has none."""
    skipped_rows: int = 0
    """Rows at the beginning that are no data."""
    is_series: bool = False
    """Whether rows are in the order of time, which must be kept."""

    def of_kind(self, kind: ColumnKind) -> list[Column]:
        """Columns of a kind."""
        return [column for column in self.columns if column.kind == kind]


def columns(kind: ColumnKind, **meanings: str) -> tuple[Column, ...]:
    """Columns of one kind: name = what it means."""
    return tuple(Column(name, kind, meaning) for name, meaning in meanings.items())


def renamed(kind: ColumnKind, *triples: tuple[str, str, str]) -> tuple[Column, ...]:
    """Columns of one kind: name in the source, name in the file, what it means."""
    return tuple(Column(name, kind, meaning, source=source) for source, name, meaning in triples)


def statsmodels(
    name: str,
    about: str,
    holds: tuple[Column, ...],
    *,
    path: str,
    delimiter: str = ",",
    is_series: bool = False,
) -> Dataset:
    """A file of statsmodels."""
    return Dataset(name, about, "statsmodels", f"datasets/{path}", holds, delimiter, is_series=is_series)


def vega_datasets(
    name: str, about: str, holds: tuple[Column, ...], *, path: str, is_series: bool = False
) -> Dataset:
    """A file of vega_datasets."""
    return Dataset(name, about, "vega_datasets", f"_data/{path}", holds, is_series=is_series)


def sklearn(
    name: str,
    about: str,
    holds: tuple[Column, ...],
    *,
    path: str,
    header: tuple[str, ...],
    skipped_rows: int = 0,
) -> Dataset:
    """A file of scikit-learn."""
    place = f"datasets/data/{path}"
    return Dataset(name, about, "sklearn", place, holds, header=header, skipped_rows=skipped_rows)
