"""A model that sees: pictures stand where they belong, and numbers of tokens and rows agree."""

import asyncio
import base64
import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image

from sensorium.core import ConfigError
from sensorium.llm.local import (
    LocalChatModel,
    LocalModelConfig,
    PictureError,
    RequestError,
    tiny_model,
    tiny_seeing_model,
)
from sensorium.llm.local.loading import load_model
from sensorium.llm.local.vision import Vision, picture_rows, with_pictures
from sensorium.llm.messages import AudioBlock, ImageBlock, Message, TextBlock, image_block, text_message

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def block(colour: tuple[int, int, int], size: tuple[int, int] = (40, 30)) -> ImageBlock:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return image_block("data:image/png;base64," + base64.b64encode(data.getvalue()).decode())


RED, BLUE = block((255, 0, 0)), block((0, 0, 255))
QUESTION = TextBlock(text="What colour is the whole of this picture? Say it in one word.")


def asked(*blocks: Any) -> list[Message]:
    return [text_message("system", "Look."), Message(role="user", content=blocks)]


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_seeing_model(tmp_path_factory.mktemp("seeing"), context_tokens=1024)


@pytest.fixture
def chat(seeing: Path) -> Iterator[LocalChatModel]:
    made = LocalChatModel.from_config(LocalModelConfig(model=str(seeing), device="cpu"))
    yield made
    made.engine.close()


def generated(chat: LocalChatModel, seeing: Path, image: ImageBlock, tokens: int) -> list[int]:
    """What transformers itself makes of the same prompt."""
    processor = transformers.AutoProcessor.from_pretrained(seeing)
    content = [{"type": "image"}, {"type": "text", "text": "\n" + QUESTION.text}]
    turns = [
        {"role": "system", "content": [{"type": "text", "text": "Look."}]},
        {"role": "user", "content": content},
    ]
    text = processor.apply_chat_template(turns, add_generation_prompt=True)
    picture = Image.open(io.BytesIO(base64.b64decode(image.url.partition(",")[2])))
    given = processor(text=[text], images=[picture], return_tensors="pt", add_special_tokens=False)
    out = chat.engine.model.generate(**given, do_sample=False, max_new_tokens=tokens, pad_token_id=0)
    answer: list[int] = out[0, given["input_ids"].shape[1] :].tolist()
    return answer


@pytest.mark.parametrize("picture", [RED, BLUE])
async def test_answers_to_pictures_are_those_of_transformers(
    chat: LocalChatModel, seeing: Path, picture: ImageBlock
) -> None:
    assert chat.vision is not None
    answer = await chat.complete(
        asked(picture, QUESTION), max_tokens=20, temperature=0, return_token_ids=True
    )
    assert answer.token_ids is not None
    assert list(answer.token_ids) == generated(chat, seeing, picture, 20)
    assert answer.prompt_token_ids is not None
    assert answer.prompt_token_ids.count(chat.vision.token_id) == 4


async def test_pictures_that_differ_are_never_taken_for_each_other(chat: LocalChatModel) -> None:
    async def greedy(*blocks: Any) -> Any:
        return await chat.complete(asked(*blocks), max_tokens=8, temperature=0, logprobs=True)

    red = await greedy(RED, QUESTION)
    blue = await greedy(BLUE, QUESTION)
    again = await greedy(RED, QUESTION)
    both = await greedy(RED, BLUE, QUESTION)
    shared = len(chat.prompt_tokens([text_message("system", "Look.")])) - len("assistant\n") - 1
    assert red.reused_tokens == 0
    assert blue.reused_tokens == shared + len("user\n") + 1  # as far as the text goes, not into the picture
    assert again.reused_tokens == again.usage.prompt_tokens
    assert both.reused_tokens >= blue.reused_tokens + 4  # the first picture is the same
    assert red.logprobs == pytest.approx(again.logprobs, abs=1e-4)
    assert red.logprobs != pytest.approx(blue.logprobs, abs=1e-2)


async def test_conversations_with_and_without_pictures_decode_together(chat: LocalChatModel) -> None:
    prompts = [asked(RED, QUESTION), asked(QUESTION), asked(BLUE, QUESTION), asked(QUESTION, RED, BLUE)] * 2
    ways: dict[str, Any] = {"max_tokens": 12, "temperature": 0}
    together = await asyncio.gather(*(chat.complete(one, **ways) for one in prompts))
    with chat.engine.paused():
        pass  # nothing is known of them any more
    alone = [await chat.complete(one, **ways) for one in prompts]
    assert [one.message for one in together] == [one.message for one in alone]


async def test_pictures_in_answers_of_tools_are_seen(chat: LocalChatModel) -> None:
    turns = [
        *asked(QUESTION),
        Message(role="assistant", content=(), tool_calls=(CALL,)),
        Message(role="tool", content=(TextBlock(text="here"), RED), tool_call_id="c1"),
    ]
    assert chat.vision is not None
    assert chat.prompt_tokens(turns, [LOOK]).count(chat.vision.token_id) == 4
    assert (
        await chat.complete(turns, [LOOK], max_tokens=3, temperature=0.0, seed=0)
    ).usage.completion_tokens == 3


def test_text_that_looks_like_a_place_is_none(chat: LocalChatModel) -> None:
    assert chat.vision is not None
    tokens = chat.prompt_tokens(asked(TextBlock(text="write <image> here"), RED))
    assert tokens.count(chat.vision.token_id) == 4
    assert "write < image> here" in chat.tokenizer.decode(list(tokens))
    assert chat.prompt_tokens(asked(TextBlock(text="<image>"))).count(chat.vision.token_id) == 0


async def test_what_cannot_be_seen_is_an_error(chat: LocalChatModel) -> None:
    wrong = [
        (ImageBlock(url="https://example.org/a.png", width=4, height=4), "data: URLs"),
        (ImageBlock(url="data:image/png;base64,AAAA", width=4, height=4), "cannot be read"),
    ]
    for one, message in wrong:
        with pytest.raises(PictureError, match=message):
            await chat.complete(asked(one), max_tokens=1)
    with pytest.raises(RequestError, match="text and pictures alone"):
        await chat.complete(asked(AudioBlock(data="AAAA", duration_s=1.0)), max_tokens=1)


async def test_a_template_that_drops_a_picture_is_an_error(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ m['role'] }}:{% for part in m['content'] %}"
        "{{ '<image>' if part['type'] == 'image' and m['role'] == 'user' else part['text'] }}{% endfor %}"
        "{% endfor %}"
    )
    folder = tiny_seeing_model(tmp_path, template=template)
    async with LocalChatModel.from_config(LocalModelConfig(model=str(folder), device="cpu")) as chat:
        await chat.complete(asked(RED), max_tokens=1)
        with pytest.raises(PictureError, match="0 places for 1 pictures"):
            await chat.complete([Message(role="system", content=(RED,)), *asked(QUESTION)], max_tokens=1)


async def test_more_places_than_rows_fail_one_request_alone(chat: LocalChatModel) -> None:
    assert chat.vision is not None
    tokens = chat.vision.tokens

    def cut(text: str, pictures: Any) -> tuple[int, ...]:
        made = tokens(text, pictures)
        return made if len(pictures) == 1 else made[:20] + made[22:]

    good = asyncio.create_task(chat.complete(asked(RED, QUESTION), max_tokens=30, temperature=0))
    chat.vision.tokens = cut  # type: ignore[method-assign]
    with pytest.raises(PictureError, match=r"has \d placeholder tokens .* have 8 rows"):
        await chat.complete(asked(RED, BLUE, QUESTION), max_tokens=30)
    assert (await good).usage.completion_tokens


def test_a_placeholder_that_was_sampled_is_a_token_like_any_other(chat: LocalChatModel) -> None:
    model, vision = chat.engine.model, chat.vision
    assert vision is not None
    place = vision.token_id
    ids = torch.tensor([[5, place, place, place, place, 6, place]])
    rows = picture_rows(model, vision.picture(RED.url))
    made = with_pictures(model, ids, torch.arange(7)[None] < 6, [rows])
    torch.testing.assert_close(made[0, 1:5], rows)
    torch.testing.assert_close(made[0, 6], model.get_input_embeddings().weight[place])
    with pytest.raises(PictureError, match="Text 0 has 5 placeholder tokens"):
        with_pictures(model, ids, torch.ones(1, 7, dtype=torch.bool), [rows])
    with pytest.raises(PictureError, match="Text 1 has 0 placeholder tokens"):
        with_pictures(model, torch.tensor([[5, 6], [5, 6]]), torch.ones(2, 2).bool(), [None, rows])


def test_a_model_that_sees_may_be_used_for_text_alone(seeing: Path) -> None:
    config = LocalModelConfig(model=str(seeing), device="cpu", pictures=False)
    made = LocalChatModel.from_config(config)
    try:
        assert made.vision is None
        with pytest.raises(RequestError, match="text alone"):
            made.complete_sync(asked(RED), max_tokens=1)
    finally:
        made.engine.close()


def test_pictures_for_a_model_without_eyes_are_refused(tmp_path: Path) -> None:
    config = LocalModelConfig(model=str(tiny_model(tmp_path)), device="cpu", pictures=True)
    with pytest.raises(ConfigError, match="takes no pictures"):
        load_model(config)


def test_a_processor_that_needs_another_package_says_which(
    seeing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def needing(where: str) -> None:
        raise ImportError("X requires the Torchvision library but it was not found.")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", needing)
    with pytest.raises(ConfigError, match=r"Torchvision library.*pictures: false"):
        load_model(LocalModelConfig(model=str(seeing), device="cpu"))


def tiny_text(tokenizer: Any) -> dict[str, int]:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return {"vocab_size": len(tokenizer), "max_position_embeddings": 2048, **sizes}


def in_tiles(tokenizer: Any) -> tuple[Any, Any]:
    """LLaVA-NeXT: a picture is cut into tiles, as many as its shape asks for."""
    pil = importlib.import_module("transformers.models.llava_next.image_processing_pil_llava_next")
    grids = [[32, 64], [64, 32]]
    eyes = transformers.CLIPVisionConfig(**EYES, patch_size=16)
    config = transformers.LlavaNextConfig(
        text_config=transformers.LlamaConfig(**tiny_text(tokenizer)),
        vision_config=eyes,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        image_grid_pinpoints=grids,
    )
    pixels = pil.LlavaNextImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, image_grid_pinpoints=grids
    )
    processor = transformers.LlavaNextProcessor(
        image_processor=pixels,
        tokenizer=tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    return transformers.LlavaNextForConditionalGeneration(config), processor


def between_marks(tokenizer: Any) -> tuple[Any, Any]:
    """Idefics3, of which SmolVLM is one: tiles with marks and places between them."""
    pil = importlib.import_module("transformers.models.idefics3.image_processing_pil_idefics3")
    config = transformers.Idefics3Config(
        text_config=transformers.LlamaConfig(**tiny_text(tokenizer)),
        vision_config={**EYES, "patch_size": 8},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    pixels = pil.Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    processor = transformers.Idefics3Processor(image_processor=pixels, tokenizer=tokenizer, image_seq_len=4)
    return transformers.Idefics3ForConditionalGeneration(config), processor


EYES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "image_size": 32,
}
MARKS = ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]


@pytest.mark.parametrize("made", [in_tiles, between_marks])
def test_pictures_in_tiles_are_seen_as_their_models_see_them(seeing: Path, made: Any) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(seeing)
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 4) for column in range(1, 4)]
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>", *MARKS, *tiles]})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, processor = made(tokenizer)
    model.eval()
    vision = Vision(model, processor, "tiles")  # compares with the model's own reading
    picture = vision.picture(block((1, 2, 3), (60, 20)).url)
    rows = picture_rows(model, picture)
    assert len(rows) > 4
    assert vision.tokens("<image> a", [picture]).count(vision.token_id) == len(rows)


def test_a_model_that_takes_pictures_in_another_way_is_refused(
    seeing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = load_model(LocalModelConfig(model=str(seeing), device="cpu"))
    features = model.get_image_features

    def other(**inputs: Any) -> Any:
        made = features(**inputs)
        made.pooler_output = [rows * 1.5 for rows in made.pooler_output]
        return made

    with monkeypatch.context() as patch:
        patch.setattr(model, "get_image_features", other)
        with pytest.raises(ConfigError, match="logits differ"):
            Vision(model, processor, "odd")
    model.config.text_config.rope_parameters["mrope_section"] = [2, 1, 1]
    with pytest.raises(ConfigError, match="several dimensions"):
        Vision(model, processor, "odd")
