from sensorium.servers.http import Reply, _cookies, failure_of_reply


def test_cookies_are_kept_as_they_were_sent():
    sent = ['Lookup___x="0.a b"; Path=/; HttpOnly', "odd/name=1", "token=a=b; Secure", "no cookie"]
    assert _cookies(sent) == {"Lookup___x": '"0.a b"', "odd/name": "1", "token": "a=b"}


def test_what_a_foreign_server_says_of_its_failure_need_not_be_in_our_words():
    said = b'{"error": {"kind": "theirs", "stage": "somewhere", "message": "no"}}'
    failure = failure_of_reply(Reply(500, said, {}), "seed", "the server").failure
    assert (failure.kind, failure.stage, failure.terminal) == ("theirs", "agent", False)
    failure = failure_of_reply(Reply(404, b"nothing", {}), "seed", "the server").failure
    assert (failure.kind, failure.stage, failure.terminal) == ("agent_run_error", "seed", True)
