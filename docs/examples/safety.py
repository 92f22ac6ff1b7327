"""Pictures are judged before an agent sees them.

python safety.py http://localhost:8000/v1 MODEL
"""

import sys
from pathlib import Path
from typing import Any

from sensorium import ObservationPipeline, PipelineConfig
from sensorium.representations import Representation


def observe(state: Any, base_url: str, model: str, **judge: Any) -> Representation:
    """Show a state without pictures that are unsafe or could not be judged.

    Args:
        state: What is shown.
        base_url: Of the endpoint of the judge.
        model: The judge's name there.
        judge: More settings of the extractor ``safety``.
    """
    features = {
        "extractors": ["safety"],
        "settings": {"safety": {"judge": {"base_url": base_url, "model": model}, **judge}},
    }
    return ObservationPipeline(PipelineConfig().updated({"features": features}))(state)


if __name__ == "__main__":
    shown = observe(Path("report.ipynb"), sys.argv[1], sys.argv[2])
    for entry in shown.account.entries:
        if entry.modality == "image":
            print(entry.part_id, entry.level, entry.why)
    print(*shown.account.notes, sep="\n")
