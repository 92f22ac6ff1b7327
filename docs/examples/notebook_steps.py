"""An agent edits a notebook over five steps: what each step costs, with states sent whole and with changes.

A change can only be read by whoever still sees what it changes. So the conversation keeps what it holds
(`drop_full_history: false`) and only grows at its end; what is new in a step is all that an endpoint with a
cache of prompts has to compute.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sensorium import ObservationPipeline, PipelineConfig, Session

TASK = "Make the regression of price on size work, and report its slope."
FIT = """X = np.c_[np.ones(len(houses)), houses["size"]]
coef = np.linalg.solve(X.T @ X, X.T @ houses["price"])
coef"""


def edited(notebook: dict[str, Any], name: str, source: str, *printed: str) -> dict[str, Any]:
    """The notebook with a cell that has another source, and shows other values."""
    notebook = copy.deepcopy(notebook)
    cell = next((cell for cell in notebook["cells"] if cell["id"] == name), None)
    if cell is None:
        cell = {"id": name, "cell_type": "code", "metadata": {}, "outputs": []}
        notebook["cells"].append(cell)
    cell["source"] = source
    if printed:
        shown = {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": printed[0]}}
        cell["outputs"] = [shown]
    return notebook


def episode() -> Iterator[tuple[dict[str, Any], str]]:
    """The notebook at each of five steps, and what the agent then does."""
    notebook = json.loads(Path("report.ipynb").read_text())
    yield notebook, "edit cell fit: the column is called price"
    notebook = edited(notebook, "fit", FIT, "array([nan, nan])")
    yield notebook, "edit cell load: leave out houses without a price"
    notebook = edited(notebook, "load", 'houses = pd.read_csv("houses.csv").dropna()\nhouses.info()')
    yield notebook, "run cell fit"
    notebook = edited(notebook, "fit", FIT, "array([12.31, 1.88])")
    yield notebook, "add a cell that shows the slope"
    notebook = edited(notebook, "slope", "coef[1]", "1.88")
    yield notebook, "finish: the slope is 1.88"


def costs(**settings: Any) -> list[tuple[int, int]]:
    """For every step the tokens of the whole prompt, and of the state that is new in it."""
    budget = {"max_tokens": 64_000, "context_window": 128_000}
    session = Session(
        ObservationPipeline(PipelineConfig().updated({"observation": budget, **settings})), TASK
    )
    found = []
    for notebook, action in episode():
        account = session.observe({"report.ipynb": notebook}).account
        found.append((account.num_tokens, account.state_tokens))
        session.acted(action)
    return found


def main() -> None:
    """Print what both ways cost."""
    keeps_all = {"drop_full_history": False}
    ways = {
        "whole, history dropped": costs(delta={"enabled": False}),
        "whole, history kept": costs(delta={"enabled": False}, context_management=keeps_all),
        "changes, history kept": costs(context_management=keeps_all),
    }
    print("step" + "".join(f"{way:>26}" for way in ways))
    for step, row in enumerate(zip(*ways.values(), strict=True), start=1):
        print(f"{step:>4}" + "".join(f"{f'{total:,} ({new:,})':>26}" for total, new in row))


if __name__ == "__main__":
    main()
