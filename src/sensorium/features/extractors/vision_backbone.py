"""EfficientNet-Lite0 in torch: a small convolutional classifier whose last features describe a picture.

Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks" (2019); the
Lite variants leave out squeeze-and-excitation and use ReLU6. Names of modules are those of the
published weights.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

FEATURES = 1280
"""Width of the features."""

IMAGE_SIDE = 224
"""Pixels of a side of the pictures that it was trained on."""

_EPS = 1e-3
_STAGES = (
    # repeats, kernel, stride, expansion, channels out
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SamePadConv(nn.Conv2d):
    """A convolution padded as TensorFlow does it: ceil(inputs / stride) outputs, the odd pixel at the end."""

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        """Convolve pictures."""
        padding: list[int] = []
        for size, kernel, stride in zip(x.shape[-2:], self.kernel_size, self.stride, strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            padding = [total // 2, total - total // 2, *padding]
        padded = functional.pad(x, padding) if any(padding) else x
        return functional.conv2d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class InvertedBottleneck(nn.Module):
    """Widen, look around in each channel, narrow; added to the input where shapes allow."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels * expansion
        if expansion != 1:
            self._expand_conv = SamePadConv(channels, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, eps=_EPS)
        self._depthwise_conv = SamePadConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, eps=_EPS)
        self._project_conv = SamePadConv(wide, out, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(out, eps=_EPS)
        self._expands = expansion != 1
        self._adds = stride == 1 and channels == out

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        """Map feature maps; sides shrink by the stride, rounded up."""
        wide = functional.relu6(self._bn0(self._expand_conv(x))) if self._expands else x
        seen = functional.relu6(self._bn1(self._depthwise_conv(wide)))
        narrow: Tensor = self._bn2(self._project_conv(seen))
        return x + narrow if self._adds else narrow


class EfficientNetLite0(nn.Module):
    """Pictures (B, 3, H, W), RGB, (value - 127) / 128, to features (B, 1280) before the classifier."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SamePadConv(3, 32, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=_EPS)
        blocks: list[nn.Module] = []
        channels = 32
        for repeats, kernel, stride, expansion, out in _STAGES:
            for number in range(repeats):
                blocks.append(
                    InvertedBottleneck(channels, out, kernel, stride if number == 0 else 1, expansion)
                )
                channels = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SamePadConv(channels, FEATURES, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(FEATURES, eps=_EPS)
        self._fc = nn.Linear(FEATURES, 1000)  # not used, but among the weights

    def forward(self, pictures: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 1280"]:
        """Mean over positions of the last features."""
        x = functional.relu6(self._bn0(self._conv_stem(pictures)))
        for block in self._blocks:
            x = block(x)
        x = functional.relu6(self._bn1(self._conv_head(x)))
        return x.mean(dim=(2, 3))


def load_lite0(path: Any, device: str) -> EfficientNetLite0:
    """Build the network with the weights in a file, frozen.

    Args:
        path: A ``.pth`` file with a state dict; only tensors are read from it, no code.
        device: Where it computes.
    """
    model = EfficientNetLite0()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.to(device).eval().requires_grad_(False)
