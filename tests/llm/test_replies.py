import json

from sensorium.llm.replies import read_completion


def test_token_ids_are_read_where_an_endpoint_tells_them():
    choice = {
        "message": {"content": "Yes"},
        "finish_reason": "stop",
        "logprobs": {"content": [{"token": "Yes", "logprob": -0.5}, {"token": "", "logprob": -0.1}]},
    }
    told = {"choices": [choice | {"token_ids": [7, 2]}], "prompt_token_ids": [1, 5, 6]}
    made = read_completion(json.dumps(told), "chat")
    assert (made.prompt_token_ids, made.token_ids, made.logprobs) == ((1, 5, 6), (7, 2), (-0.5, -0.1))
    bare = read_completion(json.dumps({"choices": [choice]}), "chat")
    assert (bare.prompt_token_ids, bare.token_ids, bare.weights_version) == (None, None, None)
