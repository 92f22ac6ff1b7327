"""Our network of size `tiny` for rgb alone, in plain PyTorch, for the peers.

Same layers and widths, and the same treatment of pixels: uint8 until the patches are cut, scaled through the
weights. `tests/benchmarks` compares the number of parameters.
"""

import torch
from doom_task import DoomTask
from torch import Tensor, nn
from torch.nn import functional


class Sight(nn.Module):
    """rgb -> the vector that the LSTM reads: patches, a merge, a summary, and a two-layer MLP.

    Args:
        task: Sizes.
    """

    def __init__(self, task: DoomTask) -> None:
        super().__init__()
        first, second = task.channels
        cells = (task.image_size // (2 * task.patch_size)) ** 2
        self.patch_size, self.out_dim = task.patch_size, task.hidden_dim
        self.patches = nn.Linear(3 * task.patch_size**2, first, bias=False)
        self.merge = nn.Linear(4 * first, second)
        self.summarise = nn.Linear(cells * second, task.embed_dim)
        self.norm = nn.LayerNorm(task.embed_dim)
        self.hidden = nn.Linear(task.embed_dim, task.hidden_dim)
        self.out = nn.Linear(task.hidden_dim, task.hidden_dim)

    def forward(self, frames: Tensor) -> Tensor:
        """Encode (batch, height, width, 3) uint8 pixels as (batch, hidden_dim)."""
        patches = _cut(frames, self.patch_size).to(torch.float32)
        weight = self.patches.weight
        cells = torch.relu(functional.linear(patches, weight / 127.5, -weight.sum(-1)))
        cells = torch.relu(self.merge(_cut(cells, 2)))
        x = self.norm(self.summarise(cells.flatten(1)))
        return torch.tanh(self.out(torch.relu(self.hidden(x))))


def _cut(frames: Tensor, side: int) -> Tensor:
    """(batch, h, w, c) -> (batch, h / side, w / side, side * side * c)."""
    batch, height, width, channels = frames.shape
    rows, columns = height // side, width // side
    cut = frames.reshape(batch, rows, side, columns, side, channels).transpose(2, 3)
    return cut.reshape(batch, rows, columns, side * side * channels)


def parameters(module: nn.Module) -> int:
    """Number of parameters that are trained."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
