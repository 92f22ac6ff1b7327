"""Notebooks as Aviary shows them to an agent; run by `observation.py` in the environment that has Aviary.

python benchmarks/aviary_state.py NOTEBOOKS.json STATES.json     a list of notebooks in, a list of texts out
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Write the state of each notebook."""
    import nbformat
    from aviary.envs.notebook.utils import view_notebook

    source, target = map(Path, sys.argv[1:3])
    notebooks = [nbformat.from_dict(raw) for raw in json.loads(source.read_text())]
    target.write_text(json.dumps([view_notebook(notebook.cells, "python")[0] for notebook in notebooks]))


if __name__ == "__main__":
    main()
