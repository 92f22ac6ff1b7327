"""verifiers evaluates a model on an environment of ours, in a virtual environment that has both.

pip install 'sensorium' 'verifiers>=0.1.14,<0.4'
OPENAI_API_KEY=... python examples/interop/verifiers_environment.py http://localhost:8000/v1 qwen3
"""

import sys

import verifiers as vf

from sensorium.interop.verifiers import load_environment

url, model = sys.argv[1:]
environment = load_environment("lookup", config={"num_items": 3})
told = environment.evaluate_sync(
    client=vf.ClientConfig(api_base_url=url, api_key_var="OPENAI_API_KEY"),
    model=model,
    num_examples=8,
    rollouts_per_example=2,
    state_columns=["verdict"],
)
for output in told["outputs"]:
    print(output["info"]["task_id"], output["reward"], output["error"] or output["stop_condition"])
