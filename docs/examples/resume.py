"""A session that goes on in another process writes the same prompt."""

import json
from pathlib import Path

from sensorium import ObservationPipeline, Session
from sensorium.representations import SessionState

before, after = (json.loads(Path(name).read_text()) for name in ("report.ipynb", "fixed.ipynb"))

here = Session(ObservationPipeline(), "Make the regression work.")
here.observe({"report.ipynb": before})
here.acted("edit_cell(cell-fit)", outcome="edited, run")
line = here.state.model_dump_json()

there = Session(ObservationPipeline(), "", state=SessionState.model_validate_json(line))
prompts = [session.observe({"report.ipynb": after}).chat() for session in (here, there)]
print(prompts[0] == prompts[1])
