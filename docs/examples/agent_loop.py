"""An agent that repairs a notebook over any OpenAI-compatible endpoint: observe, fetch, act.

python agent_loop.py http://localhost:8000/v1 MODEL
"""

import json
import sys
from pathlib import Path
from typing import Any

from sensorium import ObservationPipeline, Session
from sensorium.llm.client import OpenAIChatModel
from sensorium.llm.messages import Message, TextBlock
from sensorium.representations import fetch_tool

SYSTEM = (
    "You repair notebooks. Look closer with fetch_part, change a cell with edit_cell, or say what you did."
)
EDIT_CELL = {
    "type": "function",
    "function": {
        "name": "edit_cell",
        "description": "Replace the source of a cell.",
        "parameters": {
            "type": "object",
            "properties": {"cell": {"type": "string"}, "source": {"type": "string"}},
            "required": ["cell", "source"],
        },
    },
}
MAX_LOOKS = 4
"""Rounds of looking closer before the agent must act."""


def ask(model: OpenAIChatModel, session: Session, state: Any) -> Message:
    """The model's answer to a state; what it wants to see more of is fetched."""
    messages = list(session.observe(state).messages)
    for look in range(MAX_LOOKS + 1):
        tools = [EDIT_CELL] if look == MAX_LOOKS else [EDIT_CELL, fetch_tool()]
        answer = model.complete_sync(messages, tools=tools).message
        looks = [call for call in answer.tool_calls if call["function"]["name"] == "fetch_part"]
        if not looks:
            return answer
        messages.append(answer)
        for call in answer.tool_calls:
            shown = (TextBlock(text="Look first, then edit."),)
            if call in looks:
                shown = session.fetch(json.loads(call["function"]["arguments"]))
            messages.append(Message(role="tool", tool_call_id=call["id"], content=shown))
    return answer


def repair(model: OpenAIChatModel, notebook: dict[str, Any], task: str, max_steps: int = 8) -> Session:
    """Let the model edit the notebook until it says that it is done."""
    session = Session(ObservationPipeline(), task, system=SYSTEM)
    for _ in range(max_steps):
        answer = ask(model, session, {"report.ipynb": notebook})
        if not answer.tool_calls:
            session.acted(answer.text)
            break
        for call in answer.tool_calls:
            edit = json.loads(call["function"]["arguments"])
            cell = next((cell for cell in notebook["cells"] if f"cell-{cell['id']}" == edit["cell"]), None)
            if cell is not None:
                cell |= {"source": edit["source"], "outputs": []}  # a real environment would run it, too
        session.acted(f"edit_cell({edit['cell']})", outcome="no such cell" if cell is None else "edited")
    return session


if __name__ == "__main__":
    report = json.loads(Path("report.ipynb").read_text())
    done = repair(OpenAIChatModel(sys.argv[1], sys.argv[2]), report, "Make the regression work.")
    for step in done.history.steps:
        print(step.action, "->", step.outcome)
