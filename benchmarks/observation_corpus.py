"""Real raw states for `observation.py`, collected from the documentation and data of installed packages.

notebooks    the worked examples of the documentation of pandas, NumPy, SciPy, scikit-learn and statsmodels:
             prose as markdown cells, code with the output that the documentation prints
tables       CSV files that ship with scikit-learn and statsmodels
tracebacks   calls of those libraries that really fail, with all frames
sources      modules of those libraries
"""

import doctest
import gzip
import importlib
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Document(NamedTuple):
    """One real raw state."""

    kind: str
    """`notebook`, `table`, `traceback` or `source`."""
    name: str
    raw: Any
    """A notebook as a dict, or text."""


NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "pandas": ("pandas:DataFrame", "pandas:Series", "pandas:Index", "pandas:MultiIndex", "pandas:Timestamp"),
    "pandas grouped": ("pandas.api.typing:DataFrameGroupBy", "pandas.api.typing:Rolling"),
    "numpy": ("numpy:ndarray", "numpy.linalg", "numpy.fft", "numpy.random:Generator", "numpy.ma"),
    "scipy": ("scipy.stats", "scipy.optimize", "scipy.signal", "scipy.interpolate", "scipy.spatial.distance"),
    "scikit-learn": (
        "sklearn.metrics",
        "sklearn.preprocessing",
        "sklearn.linear_model",
        "sklearn.ensemble",
        "sklearn.cluster",
        "sklearn.model_selection",
        "sklearn.feature_extraction.text",
    ),
    "statsmodels": ("statsmodels.tsa.api", "statsmodels.api"),
}
"""Where worked examples are: classes (`module:Class`) and modules."""

_CELLS = 60
_FAILURES: dict[str, str] = {
    "missing_column.py": "import pandas as pd\npd.DataFrame({'cost': [1]}).groupby('price').mean()",
    "shapes.py": "import numpy as np\nnp.linalg.solve(np.ones((3, 4)), np.ones(3))",
    "not_fitted.py": "from sklearn.linear_model import Ridge\nRidge().predict([[1.0]])",
    "nan_input.py": "from sklearn.linear_model import Lasso\nLasso().fit([[float('nan')], [0.0]], [1, 2])",
    "parse_dates.py": "import pandas as pd\npd.to_datetime(pd.Series(['2024-01-02', 'tomorrow']))",
    "merge_keys.py": "from pandas import DataFrame as D\nD({'k': [1]}).merge(D({'j': [1]}), on='k')",
    "optimise.py": "from scipy.optimize import brentq\nbrentq(lambda x: x * x + 1, -1, 1)",
    "formula.py": "from statsmodels.formula.api import ols\nols('y ~ z', {'y': [1.0, 2.0]}).fit()",
}
_SOURCES = (
    "pandas.core.reshape.merge",
    "pandas.io.json._normalize",
    "sklearn.linear_model._ridge",
    "sklearn.cluster._kmeans",
    "scipy.optimize._minimize",
    "statsmodels.regression.linear_model",
    "numpy.linalg._linalg",
    "seaborn.categorical",
)
_TABLES = (
    ("sklearn", "datasets/data/*.csv*"),
    ("statsmodels", "datasets/*/*.csv"),
)
_TABLE_ROWS = 60
"""A table counts when it has more rows than this: shorter ones fit anyway."""


def corpus(notebooks: int = 16, tables: int = 12) -> list[Document]:
    """Collect the raw states, always the same for the same versions of the packages."""
    found = list(_notebooks())[:notebooks]
    found += list(_tables())[:tables]
    found += list(_tracebacks())
    found += [_source(name) for name in _SOURCES]
    return found


def _notebooks() -> Iterator[Document]:
    """Notebooks of at most `_CELLS` code cells each, one after the other per subject."""
    for names in NOTEBOOKS.values():
        for name in names:
            cells = list(_cells(name))
            if len(cells) >= 20:
                notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells[: 2 * _CELLS]}
                yield Document("notebook", name.replace(":", "."), notebook)


def _cells(name: str) -> Iterator[dict[str, Any]]:
    module, _, attribute = name.partition(":")
    owner = importlib.import_module(module)
    owner = getattr(owner, attribute) if attribute else owner
    parser, number = doctest.DocTestParser(), 0
    for member in sorted(vars(owner) if attribute else getattr(owner, "__all__", dir(owner))):
        text = _documentation(owner, member)
        if member.startswith("_") or ">>>" not in text:
            continue
        summary, _, examples = text.partition("Examples")
        prose = f"## {attribute or module}.{member}\n\n{summary[:1500]}"
        yield {"id": f"c{number}", "cell_type": "markdown", "metadata": {}, "source": prose}
        number += 1
        for example in parser.get_examples(examples or text):
            outputs = []
            if example.want:
                data = {"text/plain": example.want.rstrip("\n")}
                outputs.append(
                    {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": number}
                )
            yield {
                "id": f"c{number}",
                "cell_type": "code",
                "metadata": {},
                "source": example.source.rstrip("\n"),
                "execution_count": number,
                "outputs": outputs,
            }
            number += 1


def _documentation(owner: Any, member: str) -> str:
    try:
        return inspect.getdoc(getattr(owner, member, None)) or ""
    except ImportError:  # scikit-learn names members that must be switched on first
        return ""


def _tables() -> Iterator[Document]:
    for package, pattern in _TABLES:
        root = Path(str(importlib.import_module(package).__file__)).parent
        for path in sorted(root.glob(pattern)):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            text = data.decode("utf-8", "replace")
            if text.count("\n") > _TABLE_ROWS and _has_header(text):
                yield Document("table", path.name.removesuffix(".gz"), text[:200_000])


def _has_header(text: str) -> bool:
    """Whether the first line names columns: files of scikit-learn begin with counts."""
    return not any(
        re.fullmatch(r"[\s\"]*[-+.\deE]*[\s\"]*", cell) for cell in text.split("\n", 1)[0].split(",")
    )


def _tracebacks() -> Iterator[Document]:
    for name, code in _FAILURES.items():
        yield Document("traceback", name, _failure(name, code))


def _failure(name: str, code: str) -> str:
    """Run code that fails, inside a few calls of its own as in an application; what Python prints."""
    program = compile(textwrap.dedent(code), name, "exec")

    def call(depth: int, run: Callable[[], None]) -> None:
        if depth:
            call(depth - 1, run)
        else:
            run()

    try:
        call(12, lambda: exec(program, {}))
    except Exception as error:
        return "".join(traceback.format_exception(error))
    raise AssertionError(f"{name} was expected to fail")


def _source(name: str) -> Document:
    return Document("source", f"{name}.py", inspect.getsource(importlib.import_module(name)))
