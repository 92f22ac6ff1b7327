"""What is told of a round, worked out by hand, and lengths of prompts with and without history."""

import json

import pytest

from sensorium.envs.letters.definition import Letters, LettersEnv
from sensorium.presets import find_preset
from sensorium.trainers.language.grpo import GRPOTraining
from sensorium.trainers.language.samples import Sample
from sensorium.trainers.language.told import told_of_samples


def sample(trajectory, step, prompt, answer, version=0, is_cut=False):
    return Sample(
        prompt=tuple(prompt),
        answer=tuple(answer),
        logprobs=(-1.0,) * len(answer),
        counts=(True,) * len(answer),
        trajectory=trajectory,
        step=step,
        is_cut=is_cut,
        version=version,
    )


SAMPLES = [
    sample(0, 0, [1, 2], [3], version=5),
    sample(0, 1, [1, 2, 3, 4], [5, 6], version=6),
    sample(0, 2, [1, 2, 3, 4, 5, 9, 9, 9], [7], version=6, is_cut=True),
    sample(1, 0, [1, 2, 8, 8], [3], version=6),
]


def test_lengths_ages_and_kept_beginnings_by_hand():
    told = told_of_samples(SAMPLES, 7, goes_on=True)
    assert told["tokens/prompt"] == (2 + 4 + 8 + 4) / 4
    assert told["tokens/first_prompt"] == (2 + 4) / 2
    assert told["tokens/last_prompt"] == (8 + 4) / 2
    assert told["tokens/answer"] == 5 / 4
    assert told["tokens/sampled"] == 5
    assert told["tokens/cut_answers"] == 0.25
    assert told["staleness/mean"] == (2 + 1 + 1 + 1) / 4
    assert told["staleness/max"] == 2
    assert told["tokens/kept_prefix"] == 0.5  # 1 2 | 3 goes on; 5 6 became 5 9
    assert "tokens/kept_prefix" not in told_of_samples(SAMPLES, 7, goes_on=False)
    assert "tokens/kept_prefix" not in told_of_samples(SAMPLES[3:], 7, goes_on=True)


class FourAnswers(LettersEnv):
    """Four answers, with the same to see before each."""

    async def _reset(self, task, seed):
        await super()._reset(task, seed)
        self._said_so_far = ""
        self._number = 0

    async def _observe(self):
        return {"page": "The same page. " * 4}

    async def _said(self, text):
        self._said_so_far += text
        self._number += 1
        if self._number < 4:
            return "Go on."
        return await super()._said(self._said_so_far)


class Long(Letters):
    """Four answers each."""

    def make(self, config):
        return FourAnswers()


@pytest.mark.parametrize("drops", [True, False])
def test_prompts_stay_short_without_history_and_grow_with_it(tmp_path, drops):
    history = {"drop_full_history": drops, "keep_previous_actions": 0}
    config = find_preset("grpo_toy").updated(
        {
            "env": f"{__name__}:Long",
            "observation": {"context_management": history, "delta": {"enabled": False}},
            "algo": {"total_updates": 1, "tasks_per_update": 2, "group_size": 2},
            "evaluation": {"tasks": 1},
        }
    )
    GRPOTraining(config, tmp_path).run()
    row = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    growth = row["tokens/last_prompt"] / row["tokens/first_prompt"]
    assert growth < 1.3 if drops else growth > 1.6
    assert ("tokens/kept_prefix" in row) is not drops
