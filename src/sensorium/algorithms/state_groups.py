"""Which steps were in the same state: exactly, or nearly."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

_HASH_SIDE = 8
Near = Callable[[Int[Tensor, " some"]], Bool[Tensor, "some some"]]
"""Which of some rows are near which others."""


def equal_states(keys: Sequence[Hashable]) -> Int[Tensor, " rows"]:
    """A number for each distinct key, e.g. `Trajectory` steps' digests."""
    numbers: dict[Hashable, int] = {}
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys], dtype=torch.long)


def near_embeddings(
    embeddings: Float[Tensor, "rows dim"], tasks: Int[Tensor, " rows"], *, threshold: float
) -> Int[Tensor, " rows"]:
    """States of one task whose embeddings are near, directly or through others between them.

    Groups are connected components, so they depend neither on the order of rows nor on who came first.

    Args:
        embeddings: Of the states, any scale.
        tasks: States of different tasks are never near.
        threshold: Least cosine similarity, in [-1, 1].
    """
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    return _components(lambda rows: unit[rows] @ unit[rows].T >= threshold, tasks)


def near_pictures(
    hashes: UInt8[Tensor, "rows bits"], tasks: Int[Tensor, " rows"], *, max_bits: int
) -> Int[Tensor, " rows"]:
    """States of one task whose pictures differ in few bits of their hash, directly or through others.

    Args:
        hashes: 0 or 1, of `difference_hash`.
        tasks: States of different tasks are never near.
        max_bits: Most bits that may differ.
    """
    signs = 2 * hashes.to(torch.float32) - 1  # their product is the number of equal minus unequal bits
    least = hashes.shape[1] - 2 * max_bits
    return _components(lambda rows: signs[rows] @ signs[rows].T >= least, tasks)


def difference_hash(picture: UInt8[np.ndarray, "height width channels"]) -> UInt8[Tensor, " bits"]:
    """Perceptual hash of a picture, 128 bits: where brightness rises to the right, and where downwards.

    The picture is averaged over 9 x 8 and 8 x 9 areas first, so noise and small shifts change few bits.

    Source: Krawetz 2013, "Kind of Like That" (dHash), in both directions.
    """
    grey = picture.astype(np.float32).mean(2)
    across = _areas(grey, _HASH_SIDE, _HASH_SIDE + 1)
    down = _areas(grey, _HASH_SIDE + 1, _HASH_SIDE)
    bits = np.concatenate(((np.diff(across, axis=1) > 0.5).ravel(), (np.diff(down, axis=0) > 0.5).ravel()))
    return torch.from_numpy(bits.astype(np.uint8))


def _areas(
    grey: Float[np.ndarray, "height width"], rows: int, columns: int
) -> Float[np.ndarray, "rows columns"]:
    """Means over a grid of areas."""
    ys = np.linspace(0, grey.shape[0], rows + 1)[:-1].astype(int)
    xs = np.linspace(0, grey.shape[1], columns + 1)[:-1].astype(int)
    sums = np.add.reduceat(np.add.reduceat(grey, ys, axis=0), xs, axis=1)
    heights = np.maximum(np.diff(np.append(ys, grey.shape[0])), 1)
    widths = np.maximum(np.diff(np.append(xs, grey.shape[1])), 1)
    means: np.ndarray = sums / (heights[:, None] * widths)
    return means


def _components(near: Near, tasks: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    """Connected components within each task, by the least row that a row is connected with."""
    groups = torch.empty_like(tasks, dtype=torch.long)
    for task in torch.unique(tasks):
        rows = torch.nonzero(tasks == task)[:, 0]
        joined = near(rows) | torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        least = torch.arange(len(rows), device=rows.device)
        while True:
            reached = torch.where(joined, least, len(rows)).amin(1)
            reached = reached[reached]
            if torch.equal(reached, least):
                break
            least = reached
        groups[rows] = rows[least]
    return groups
