"""Pictures for a model that sees: what it is given of them, and where that stands in a prompt.

The processor of a model writes as many placeholder tokens into the text as the model makes rows of a
picture. The rows then stand in the place of the placeholders' embeddings. This is done here, not in the
model, so that a placeholder that the model itself samples stays a token like any other, and so that both
numbers are compared before anything is computed from them.
"""

import hashlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sensorium.core import ConfigError, require
from sensorium.llm.embedded_pictures import encoded, picture
from sensorium.llm.local.requests import Picture, PictureError

_KEPT = 256
"""Pictures whose pixels are kept."""
_TEST_SIZE = (56, 40)
_CLOSE = 0.02
"""Of the largest logit; rounding of half precision is below it."""


class Vision:
    """Reads pictures for one model; may be called from any thread.

    Args:
        model: A model of transformers that takes pictures and text.
        processor: The model's, with a tokenizer.
        name: Of the model, for messages.

    Raises:
        ConfigError: The model uses pictures in another way than in place of placeholder tokens.
    """

    def __init__(self, model: Any, processor: Any, name: str) -> None:
        if getattr(model.config, "image_token_id", None) is None or not hasattr(model, "get_image_features"):
            raise ConfigError(_other_way(name, "its config names no image_token_id"))
        self.token_id = int(model.config.image_token_id)
        self.token: str = processor.tokenizer.convert_ids_to_tokens(self.token_id)
        self._processor, self._names = processor, _feature_names(model)
        self._pictures: OrderedDict[str, Picture] = OrderedDict()
        self._lock = threading.Lock()
        self._check(model, name)

    def picture(self, url: str) -> Picture:
        """What the model is given of a picture.

        Args:
            url: A ``data:`` URL with base64.

        Raises:
            PictureError: It is none, or holds no picture that can be read.
        """
        digest = picture_digest(url)
        with self._lock:
            if digest in self._pictures:
                self._pictures.move_to_end(digest)
                return self._pictures[digest]
        made = self._read(digest, _decoded(url))
        with self._lock:
            self._pictures[digest] = made
            if len(self._pictures) > _KEPT:
                self._pictures.popitem(last=False)
        return made

    def harmless(self, text: str) -> str:
        """A text in which nothing can be taken for the place of a picture."""
        return text.replace(self.token, f"{self.token[:1]} {self.token[1:]}")

    def tokens(self, text: str, pictures: Sequence[Picture]) -> tuple[int, ...]:
        """Token ids of a text in which every picture has its place.

        Args:
            text: With one placeholder for each picture.
            pictures: In the order of the text.

        Raises:
            PictureError: There are more or fewer placeholders than pictures.
        """
        places = text.count(self.token)
        if places != len(pictures):
            raise PictureError(
                f"The chat template left {places} places for {len(pictures)} pictures. It may show those of "
                "users alone, not of tools: set tool_format: system, or mend the template."
            )
        with self._lock:  # a tokenizer is no thing for several threads
            read = self._processor(
                text=[text], images=[one.image for one in pictures], add_special_tokens=False
            )
        return tuple(int(token) for token in read["input_ids"][0])

    def _read(self, digest: str, image: Any) -> Picture:
        with self._lock:
            made = self._processor.image_processor(images=[image], return_tensors="pt")
        return Picture(digest, image, {name: made[name] for name in self._names if name in made})

    def _check(self, model: Any, name: str) -> None:
        """Compare with what the model itself makes of a picture."""
        positions = _rotary_settings(model)
        if any("mrope" in str(key) for key in positions):
            raise ConfigError(_other_way(name, "its positions have several dimensions"))
        image_module = require("PIL.Image", extra="observe", purpose="a model that sees")
        width, height = _TEST_SIZE
        pixels = bytes(place % 251 for place in range(3 * width * height))
        picture = self._read("test", image_module.frombytes("RGB", _TEST_SIZE, pixels))
        text = f"{self.token} a"
        given = self._processor(
            text=[text], images=[picture.image], add_special_tokens=False, return_tensors="pt"
        ).to(model.device, model.dtype)
        try:
            with torch.inference_mode():
                expected = model(**given).logits[0, -1].float()
                ids = given["input_ids"]
                rows = picture_rows(model, picture)
                found = model(inputs_embeds=with_pictures(model, ids, torch.ones_like(ids).bool(), [rows]))
        except PictureError as error:
            raise ConfigError(_other_way(name, str(error))) from error
        except Exception as error:
            raise ConfigError(_other_way(name, f"{type(error).__name__}: {error}")) from error
        apart = (found.logits[0, -1].float() - expected).abs().max()
        if bool(apart > _CLOSE * expected.abs().max().clamp(min=1e-6)):
            raise ConfigError(_other_way(name, f"its logits differ by {float(apart):.3g}"))


def picture_digest(url: str) -> str:
    """Hash of the content of a picture in a ``data:`` URL."""
    return hashlib.sha256(url.encode()).hexdigest()[:32]


def picture_rows(model: Any, picture: Picture) -> Float[Tensor, "rows width"]:
    """What stands in the place of a picture's placeholders, with gradient where that is enabled."""
    inputs = {
        name: value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)
        for name, value in picture.inputs.items()
    }
    made = model.get_image_features(**inputs)
    features = getattr(made, "pooler_output", made)
    parts = features if isinstance(features, list | tuple) else [features]
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])


def with_pictures(
    model: Any,
    ids: Int[Tensor, "texts tokens"],
    is_prompt: Bool[Tensor, "texts tokens"],
    rows: Sequence[Float[Tensor, "rows width"] | None],
) -> Float[Tensor, "texts tokens width"]:
    """Embeddings of texts, with the rows of their pictures in the place of placeholders.

    Args:
        model: Whose.
        ids: Tokens.
        is_prompt: Where placeholders stand for pictures; elsewhere they were sampled.
        rows: Of all pictures of a text, in their order; None where it has none.

    Raises:
        PictureError: A text has more or fewer placeholders than its pictures have rows.
    """
    is_place = is_prompt & (ids == int(model.config.image_token_id))
    places = is_place.sum(1).tolist()
    for number, (count, own) in enumerate(zip(places, rows, strict=True)):
        has = 0 if own is None else len(own)
        if count != has:
            raise PictureError(
                f"Text {number} has {count} placeholder tokens for pictures, but its pictures have {has} "
                "rows. A prompt that holds pictures must not be cut."
            )
    embedding = model.get_input_embeddings()
    made: Tensor = embedding(ids.masked_fill(is_place, 0))  # a placeholder may lie outside the vocabulary
    known = [own for own in rows if own is not None]
    if known:
        made = made.masked_scatter(is_place[..., None], torch.cat(known).to(made))
    return made


def _decoded(url: str) -> Any:
    """A picture in RGB from a data URL."""
    if encoded(url) is None:
        raise PictureError(
            f"A picture is at {url[:60]!r}. The local model takes pictures embedded in the conversation, as "
            "data: URLs with base64."
        )
    try:
        return picture(url)
    except ValueError as error:
        raise PictureError(f"A picture cannot be read: {error}.") from error


def _feature_names(model: Any) -> tuple[str, ...]:
    """Names of what the model takes of a picture."""
    names: dict[str, None] = {}
    for owner in (model, getattr(model, "model", None)):
        look = getattr(owner, "get_image_features", None)
        if look is not None:
            names |= dict.fromkeys(inspect.signature(look).parameters)
    return tuple(names)


def _rotary_settings(model: Any) -> Mapping[str, Any]:
    text = model.config.get_text_config()
    return {**(getattr(text, "rope_scaling", None) or {}), **(getattr(text, "rope_parameters", None) or {})}


def _other_way(name: str, why: str) -> str:
    return (
        f"{name!r} does not take pictures in the place of placeholder tokens alone ({why}), which is what "
        "the local engine can give it. Take a model of the kind of LLaVA, or set pictures: false to use this "
        "one for text alone."
    )
