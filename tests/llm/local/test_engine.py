import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from sensorium.core import ConfigError, ModelError
from sensorium.llm.base import ContextLengthError
from sensorium.llm.local import (
    EngineConfig,
    Generation,
    ModelClosedError,
    QueueFullError,
    Request,
    Sampling,
)
from sensorium.llm.local.engine import Engine
from sensorium.llm.local.loading import LocalTokenizer

TEXTS = [
    "hello world, a prompt",
    "a",
    "long " * 40,
    "xyz" * 7,
    "hello world, a prompt that goes on",
    "?" * 33,
]
GREEDY = Sampling(temperature=0.0, max_tokens=24)


def tokens_of(vocabulary: LocalTokenizer, text: str) -> tuple[int, ...]:
    return tuple(vocabulary.tokenizer(text).input_ids)


def generated(model: Any, prompt: Sequence[int], count: int) -> list[int]:
    """What transformers itself generates, greedily."""
    out = model.generate(
        torch.tensor([list(prompt)]), do_sample=False, max_new_tokens=count, pad_token_id=0, eos_token_id=2
    )
    tokens: list[int] = out[0, len(prompt) :].tolist()
    return tokens


def when(engine: Engine, step: int, call: Any) -> None:
    """Call once the engine has done so many steps."""
    while engine.stats.steps < step and not engine.is_closed:
        threading.Event().wait(0.001)
    call()


def answer(engine: Engine, prompt: tuple[int, ...], sampling: Sampling) -> Generation:
    return engine.submit(Request(prompt=prompt, sampling=sampling)).result(60)


@pytest.fixture
def gate(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is not set, the engine stands before its next step."""
    opened = threading.Event()
    step = engine._decoder.step

    def held() -> Any:
        opened.wait(60)
        return step()

    monkeypatch.setattr(engine._decoder, "step", held)
    yield opened
    opened.set()


def test_greedy_answers_are_those_of_transformers_alone(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    for text in TEXTS:
        prompt = tokens_of(vocabulary, text)
        assert answer(engine, prompt, GREEDY).token_ids == generated(loaded[0], prompt, 24)


def test_greedy_answers_are_the_same_when_others_join_and_leave(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    prompts = [tokens_of(vocabulary, text) for text in TEXTS * 2]
    counts = [5 + 11 * (place % 5) for place in range(len(prompts))]
    futures: list[Future[Generation]] = []
    for place, (prompt, count) in enumerate(zip(prompts, counts, strict=True)):
        sampling = Sampling(temperature=0.0, max_tokens=count)
        when(engine, 3 * place if place < 4 else 0, lambda: None)
        futures.append(engine.submit(Request(prompt=prompt, sampling=sampling)))
    for prompt, count, future in zip(prompts, counts, futures, strict=True):
        assert future.result(60).token_ids == generated(loaded[0], prompt, count)
    assert engine.stats.completion_tokens > engine.stats.steps  # they did decode together


def small_config(kind: type[Any], **more: Any) -> Any:
    return kind(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.5,
        eos_token_id=2,
        **more,
    )


OTHERS: dict[str, Any] = {
    "sliding window": lambda: transformers.MistralForCausalLM(
        small_config(transformers.MistralConfig, sliding_window=8)
    ),
    "learned positions": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=97,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=256,
            initializer_range=0.5,
            eos_token_id=2,
        )
    ),
    "biases": lambda: transformers.Qwen2ForCausalLM(small_config(transformers.Qwen2Config)),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_architectures_come_out_right_too(kind: str, vocabulary: LocalTokenizer) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = OTHERS[kind]().eval()
    rng = np.random.default_rng(0)
    prompts = [tuple(rng.integers(3, 97, size).tolist()) for size in (30, 4, 17, 60)]
    engine = Engine(model, vocabulary, EngineConfig(prefill_tokens=16), context_tokens=256)
    try:
        futures = [engine.submit(Request(prompt=prompt, sampling=GREEDY)) for prompt in prompts]
        for prompt, future in zip(prompts, futures, strict=True):
            assert future.result(60).token_ids == generated(model, prompt, 24)
    finally:
        engine.close()


def test_a_model_with_another_state_is_refused(vocabulary: LocalTokenizer) -> None:
    config = transformers.MambaConfig(
        vocab_size=97, hidden_size=16, num_hidden_layers=1, state_size=4, intermediate_size=32
    )
    with pytest.raises(ConfigError, match="ordinary attention"):
        Engine(transformers.MambaForCausalLM(config), vocabulary, EngineConfig(), context_tokens=64)


def test_a_seeded_answer_does_not_depend_on_its_mates(engine: Engine, vocabulary: LocalTokenizer) -> None:
    prompts = [tokens_of(vocabulary, text) for text in TEXTS]
    settings = [
        Sampling(temperature=0.5 + 0.3 * seed, top_p=0.9, top_k=20 * (seed % 2), seed=seed, max_tokens=30)
        for seed in range(len(prompts))
    ]
    alone = [answer(engine, p, s).token_ids for p, s in zip(prompts, settings, strict=True)]
    futures = [engine.submit(Request(prompt=p, sampling=s)) for p, s in zip(prompts, settings, strict=True)]
    assert [future.result(60).token_ids for future in futures] == alone
    other = Sampling(temperature=2.0, seed=100, max_tokens=30)
    assert answer(engine, prompts[0], other).token_ids != alone[0]


def test_an_unseeded_answer_tells_its_seed(engine: Engine, vocabulary: LocalTokenizer) -> None:
    prompt = tokens_of(vocabulary, "hello")
    first = answer(engine, prompt, Sampling(temperature=2.0, max_tokens=20))
    again = answer(engine, prompt, Sampling(temperature=2.0, max_tokens=20, seed=first.seed))
    assert again.token_ids == first.token_ids
    assert answer(engine, prompt, Sampling(temperature=2.0, max_tokens=20)).seed != first.seed


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_logprobs_are_those_of_a_plain_forward_pass(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer, temperature: float
) -> None:
    prompts = [tokens_of(vocabulary, text) for text in TEXTS[:4]]
    sampling = Sampling(temperature=temperature, seed=1, max_tokens=20, logprobs=True, top_logprobs=3)
    futures = [engine.submit(Request(prompt=prompt, sampling=sampling)) for prompt in prompts]
    for prompt, future in zip(prompts, futures, strict=True):
        found = future.result(60)
        with torch.inference_mode():
            logits = loaded[0](torch.tensor([[*prompt, *found.token_ids]])).logits[0].float()
        places = torch.arange(len(found.token_ids)) + len(prompt) - 1
        chosen = torch.tensor(found.token_ids)[:, None]
        own = torch.log_softmax(logits[places], -1)
        assert found.logprobs == pytest.approx(own.gather(1, chosen)[:, 0].tolist(), abs=1e-4)
        if temperature:
            drawn = torch.log_softmax(logits[places] / temperature, -1).gather(1, chosen)[:, 0]
            assert found.sampled_logprobs == pytest.approx(drawn.tolist(), abs=1e-4)
        else:
            assert found.sampled_logprobs == [0.0] * len(found.token_ids)
        best = own.topk(3)
        assert [[token for token, _ in top] for top in found.top_logprobs] == best.indices.tolist()


def test_a_stop_text_ends_the_answer_before_it(engine: Engine, vocabulary: LocalTokenizer) -> None:
    prompt = tokens_of(vocabulary, "hello")
    whole = answer(engine, prompt, Sampling(temperature=1.0, seed=7, max_tokens=60))
    for start in (0, 9, 30):
        stop = whole.text[start : start + 3]
        cut = answer(engine, prompt, Sampling(temperature=1.0, seed=7, max_tokens=60, stop=("never", stop)))
        assert cut.text == whole.text[: whole.text.index(stop)]
        assert cut.finish_reason == "stop"
        assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
        assert len(cut.token_ids) < 60


def test_a_length_limit_ends_an_answer(engine: Engine, vocabulary: LocalTokenizer) -> None:
    found = answer(engine, tokens_of(vocabulary, "a"), Sampling(temperature=0.0, max_tokens=1))
    assert (found.finish_reason, len(found.token_ids)) == ("length", 1)


def test_an_answer_goes_to_the_end_of_the_context_and_says_so(
    engine: Engine, vocabulary: LocalTokenizer
) -> None:
    found = answer(engine, tokens_of(vocabulary, "a" * 500), Sampling(temperature=0.0, max_tokens=999))
    assert found.finish_reason == "length"
    assert len(found.token_ids) == 12


def test_a_prompt_that_fills_the_context_is_refused(engine: Engine) -> None:
    with pytest.raises(ContextLengthError, match=r"512 tokens, and the context length is 512"):
        engine.submit(Request(prompt=(5,) * 512))
    assert len(answer(engine, (5,) * 511, GREEDY).token_ids) == 1
    with pytest.raises(ModelError, match="no tokens"):
        engine.submit(Request(prompt=()))


def test_the_end_mark_ends_an_answer(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    prompt = tokens_of(vocabulary, "hello")
    found = answer(engine, prompt, Sampling(temperature=3.0, seed=2, max_tokens=480))
    assert found.finish_reason == "stop"
    assert found.token_ids[-1] == 2
    assert vocabulary.decode(found.token_ids) == found.text


def test_a_conversation_that_goes_on_is_not_read_again(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    prompt = tokens_of(vocabulary, "once upon a time there was")
    first = answer(engine, prompt, GREEDY)
    assert first.reused_tokens == 0
    longer = (*prompt, *first.token_ids, *tokens_of(vocabulary, " and then"))
    second = answer(engine, longer, GREEDY)
    assert second.reused_tokens == len(prompt) + len(first.token_ids) - 1
    assert second.token_ids == generated(loaded[0], longer, 24)
    again = answer(engine, longer, GREEDY)
    assert again.reused_tokens == len(longer)
    assert again.token_ids == second.token_ids


def test_requests_that_run_share_their_beginning(
    engine: Engine, loaded: tuple[Any, Any], vocabulary: LocalTokenizer, gate: threading.Event
) -> None:
    prompt = tokens_of(vocabulary, "the same long beginning of all of them")
    futures = [engine.submit(Request(prompt=prompt, sampling=GREEDY)) for _ in range(3)]
    gate.set()
    found = [future.result(60) for future in futures]
    assert [one.reused_tokens for one in found] == [0, len(prompt), len(prompt)]
    assert all(one.token_ids == generated(loaded[0], prompt, 24) for one in found)


def test_without_memory_for_prefixes_nothing_is_reused(
    loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    config = EngineConfig(prefix_cache_mb=0.0)
    engine = Engine(loaded[0], vocabulary, config, context_tokens=512)
    try:
        prompt = tokens_of(vocabulary, "once upon a time there was")
        assert [answer(engine, prompt, GREEDY).reused_tokens for _ in range(2)] == [0, 0]
    finally:
        engine.close()


def test_requests_with_one_prompt_read_it_once_and_decode_together(
    loaded: tuple[Any, Any], vocabulary: LocalTokenizer
) -> None:
    config = EngineConfig(max_batch=4, prefix_cache_mb=0.0)
    engine = Engine(loaded[0], vocabulary, config, context_tokens=512)
    read: list[tuple[int, ...]] = []
    embedding = loaded[0].get_input_embeddings()
    hook = embedding.register_forward_hook(lambda module, inputs, output: read.append(tuple(inputs[0].shape)))
    try:
        prompt = tokens_of(vocabulary, "the same for all")
        with engine.paused():  # they wait, and come at once
            futures = [engine.submit(Request(prompt=prompt, sampling=GREEDY)) for _ in range(4)]
        found = [future.result(60) for future in futures]
    finally:
        hook.remove()
        engine.close()
    assert read == [(1, len(prompt)), *[(4, 1)] * 23]
    assert [one.reused_tokens for one in found] == [0, *[len(prompt)] * 3]
    assert all(one.token_ids == generated(loaded[0], prompt, 24) for one in found)


def test_cancelling_frees_the_place(
    engine: Engine, vocabulary: LocalTokenizer, gate: threading.Event
) -> None:
    prompt = tokens_of(vocabulary, "a")
    endless = Sampling(temperature=0.0)
    running = [engine.submit(Request(prompt=prompt, sampling=endless)) for _ in range(3)]
    waiting = engine.submit(Request(prompt=prompt, sampling=endless))
    last = engine.submit(Request(prompt=prompt, sampling=Sampling(temperature=0.0, max_tokens=3)))
    assert all(future.cancel() for future in [*running, waiting])
    gate.set()
    assert len(last.result(60).token_ids) == 3
    assert engine.stats.completion_tokens < 100


def test_too_many_requests_are_refused(
    loaded: tuple[Any, Any], vocabulary: LocalTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(loaded[0], vocabulary, EngineConfig(max_batch=1, max_queue=2), context_tokens=512)
    opened = threading.Event()
    step = engine._decoder.step
    monkeypatch.setattr(engine._decoder, "step", lambda: (opened.wait(60), step())[1])
    try:
        request = Request(prompt=(5, 6), sampling=Sampling(max_tokens=2))
        futures = [engine.submit(request) for _ in range(3)]
        with pytest.raises(QueueFullError, match="at most 2 may"):
            engine.submit(request)
        opened.set()
        assert all(len(future.result(60).token_ids) <= 2 for future in futures)
        engine.submit(request).result(60)
    finally:
        opened.set()
        engine.close()


def test_closing_fails_what_is_under_way(engine: Engine, gate: threading.Event) -> None:
    futures = [engine.submit(Request(prompt=(5, 6))) for _ in range(5)]
    closing = threading.Thread(target=engine.close)
    closing.start()
    gate.set()
    for future in futures:
        with pytest.raises(ModelClosedError):
            future.result(60)
    closing.join(60)
    engine.close()
    with pytest.raises(ModelClosedError):
        engine.submit(Request(prompt=(5, 6)))
    with pytest.raises(ModelClosedError), engine.paused():
        pass
    assert not any(thread is engine._thread for thread in threading.enumerate())


def test_weights_change_between_answers_only(
    loaded: tuple[Any, Any], engine: Engine, vocabulary: LocalTokenizer
) -> None:
    prompt = tokens_of(vocabulary, "once upon a time there was")
    before = engine.submit(Request(prompt=prompt, sampling=Sampling(temperature=0.0, max_tokens=100)))
    model = loaded[0]
    expected_before = generated(model, prompt, 100)
    original = {name: value.clone() for name, value in model.state_dict().items()}
    with engine.paused() as held:
        assert held is model
        assert before.done()
        after = engine.submit(Request(prompt=prompt, sampling=GREEDY))
        model.train()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(-1.5)
        assert not after.done()
    try:
        assert before.result().token_ids == expected_before
        assert before.result().weights_version == 0
        found = after.result(60)
        assert (found.weights_version, found.reused_tokens, engine.weights_version) == (1, 0, 1)
        assert not model.training
        assert found.token_ids == generated(model, prompt, 24) != expected_before[:24]
    finally:
        model.load_state_dict(original)


def test_broken_weights_are_an_error_and_not_the_end(
    loaded: tuple[Any, Any], engine: Engine, vocabulary: LocalTokenizer
) -> None:
    prompt = tokens_of(vocabulary, "hello")
    with engine.paused() as model:
        norm = model.model.norm.weight
        kept = norm.detach().clone()
        with torch.no_grad():
            norm.fill_(float("nan"))
    try:
        with pytest.raises(ModelError, match="not finite"):
            answer(engine, prompt, GREEDY)
    finally:
        with engine.paused(), torch.no_grad():
            norm.copy_(kept)
    assert answer(engine, prompt, GREEDY).token_ids == generated(loaded[0], prompt, 24)


def test_a_fault_of_the_model_fails_the_batch_and_not_the_engine(
    engine: Engine, vocabulary: LocalTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = tokens_of(vocabulary, "hello")

    def failing(**inputs: Any) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine.model, "forward", failing)
        with pytest.raises(ModelError, match="reading a prompt: RuntimeError: out of memory"):
            answer(engine, prompt, GREEDY)
    assert len(answer(engine, prompt, GREEDY).token_ids) == 24


def test_a_full_memory_lets_requests_wait(loaded: tuple[Any, Any], vocabulary: LocalTokenizer) -> None:
    config = EngineConfig(kv_memory_mb=0.1, prefix_cache_mb=0.0)
    engine = Engine(loaded[0], vocabulary, config, context_tokens=512)
    try:
        prompts = [tokens_of(vocabulary, text * 2) for text in TEXTS]
        futures = [engine.submit(Request(prompt=prompt, sampling=GREEDY)) for prompt in prompts]
        for prompt, future in zip(prompts, futures, strict=True):
            assert future.result(60).token_ids == generated(loaded[0], prompt, 24)
    finally:
        engine.close()
