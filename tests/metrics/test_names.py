import pytest

from sensorium.metrics import METRIC_MEANINGS, meaning


def test_every_entry_is_one_readable_sentence() -> None:
    for name, sentence in METRIC_MEANINGS.items():
        assert sentence.endswith("."), name
        assert sentence.count(". ") == 0, name
        assert 15 < len(sentence) < 120, name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gradient/norm/env_sound", "encoder of env_sound,"),
        ("gradient/norm", "whole gradient"),
        ("attention/instruction->rgb", "attention of instruction that goes to rgb"),
        ("fusion/gate/speech", "lets speech through"),
        ("gate/speech", "learning rate of speech"),
        ("gradient/update_norm/rgb", "encoder of rgb took"),
        ("attention/entropy/rgb", "evenly rgb attends"),
        ("similarity/cka/rgb+speech", "structure of rgb+speech"),
        ("loss/alignment", "given one sense from that given all"),
        ("time/rollout_s", "Wall time of rollout per update"),
        ("time/eta_s", "expected to end"),
        ("policy/entropy/turn", "the turn part"),
        ("gradient/norm/rgb/non_finite", "values of gradient/norm/rgb were NaN"),
    ],
)
def test_templates_are_filled_in(name: str, expected: str) -> None:
    sentence = meaning(name)
    assert sentence is not None
    assert expected in sentence
    assert "{" not in sentence


@pytest.mark.parametrize("name", ["vendor/thing", "presence/a/b", "presence/", "xgradient/norm", ""])
def test_a_name_that_nobody_explained_has_no_meaning(name: str) -> None:
    assert meaning(name) is None
