"""``sensorium export RUN``: the newest policy as ONNX, checked against PyTorch."""

import argparse
import json
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the verb."""
    parser = subparsers.add_parser("export", help="write the newest policy of a run as an ONNX file")
    parser.add_argument("directory", metavar="RUN", type=Path, help="a run's directory")
    parser.add_argument("--out", type=Path, help="folder to write to (default: RUN/export)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export and check."""
    from sensorium.evals import load_agent
    from sensorium.trainers.onnx_export import export_policy

    _, agent, _ = load_agent(args.directory)
    out: Path = args.out or args.directory / "export"
    out.mkdir(parents=True, exist_ok=True)
    difference = export_policy(agent.policy, out)
    path = out / "policy.onnx"
    if args.json:
        print(json.dumps({"path": str(path), "max_abs_diff": difference}))
    else:
        print(f"{path} · differs from PyTorch by at most {difference:.1e} · {path.with_suffix('.json')}")
    return 0
