import asyncio

from sensorium.envs.episode import View
from sensorium.llm.base import Completion
from sensorium.llm.messages import text_message
from sensorium.policies.chat_agent import AgentConfig, ChatAgent, Example

EXAMPLES = (Example(asked="1 + 1?", answered="2"), Example(asked="2 + 2?", answered="4"))
SHOWN = [("user", "1 + 1?"), ("assistant", "2"), ("user", "2 + 2?"), ("assistant", "4")]


class Model:
    """Remembers what it was shown."""

    model = "listener"

    def __init__(self):
        self.prompts, self.sampling = [], []

    async def complete(self, messages, tools=None, **sampling):
        self.prompts.append([(message.role, message.text) for message in messages])
        self.sampling.append(sampling)
        return Completion(message=text_message("assistant", "6"))


def view(*messages, replaces=True):
    return View(messages=tuple(text_message(*one) for one in messages), replaces=replaces, num_tokens=1)


def played(*views):
    model = Model()
    conversation = ChatAgent(model, AgentConfig(examples=EXAMPLES)).begin(())
    for one in views:
        asyncio.run(conversation.act(one))
    return model


def test_examples_stand_between_the_system_prompt_and_the_task():
    model = played(view(("system", "Count."), ("user", "3 + 3?")), view(("user", "4 + 4?")))
    assert model.prompts == [
        [("system", "Count."), *SHOWN, ("user", "3 + 3?")],
        [*SHOWN, ("user", "4 + 4?")],
    ]
    assert "examples" not in model.sampling[0]


def test_a_conversation_that_goes_on_has_them_once():
    model = played(view(("user", "3 + 3?")), view(("user", "And 4 + 4?"), replaces=False))
    assert model.prompts[1] == [*SHOWN, ("user", "3 + 3?"), ("assistant", "6"), ("user", "And 4 + 4?")]
