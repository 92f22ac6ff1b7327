"""A vision transformer with divided space-time attention over a clip of frames."""

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from sensorium.nn.config import SpaceTimeConfig
from sensorium.nn.tokens import Tokens, TokenShape, cut_patches, project_pixels


class _Attention(nn.Module):
    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(
        self, x: Float[Tensor, "batch length dim"], mask: Bool[Tensor, "batch length"] | None
    ) -> Float[Tensor, "batch length dim"]:
        q, k, v = rearrange(self.qkv(x), "b n (k h d) -> k b h n d", k=3, h=self.num_heads)
        keys = None if mask is None else mask[:, None, None, :]
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=keys)
        return self.out(rearrange(y, "b h n d -> b n (h d)"))  # type: ignore[no-any-return]


class SpaceTimeBlock(nn.Module):
    """Attention over time at each patch, then over space in each frame, then an MLP.

    The projection after the temporal attention starts at zero, so that an image transformer is the
    starting function. A CLS token of the whole clip is a copy in every frame: it takes no part in the
    attention over time, and its spatial update is averaged over the valid frames, so the copies stay equal.

    Source: Bertasius et al. 2021, arXiv:2102.05095, section 3 ("Divided Space-Time Attention").
    """

    def __init__(self, config: SpaceTimeConfig) -> None:
        super().__init__()
        dim, eps = config.embed_dim, config.layer_norm_eps
        self.num_shared = 1 if config.cls_token == "clip" else 0
        self.time_norm, self.space_norm, self.mlp_norm = (nn.LayerNorm(dim, eps=eps) for _ in range(3))
        self.time_attention = _Attention(dim, config.num_heads)
        self.time_project = nn.Linear(dim, dim)
        nn.init.zeros_(self.time_project.weight)
        nn.init.zeros_(self.time_project.bias)
        self.space_attention = _Attention(dim, config.num_heads)
        hidden = int(dim * config.mlp_ratio)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(
        self, x: Float[Tensor, "batch frames patches dim"], valid: Bool[Tensor, "batch frames"]
    ) -> Float[Tensor, "batch frames patches dim"]:
        """Mix a clip; frames that are not `valid` are never attended to over time."""
        batch = x.shape[0]  # not len(x), which is a constant while the policy is traced for export
        shared, moving = x[:, :, : self.num_shared], x[:, :, self.num_shared :]
        over_time = rearrange(self.time_norm(moving), "b t n d -> (b n) t d")
        seen = repeat(valid, "b t -> (b n) t", n=moving.shape[2])
        mixed = self.time_project(self.time_attention(over_time, seen))
        moving = moving + rearrange(mixed, "(b n) t d -> b t n d", b=batch)
        x = torch.cat([shared, moving], dim=2) if self.num_shared else moving
        over_space = rearrange(self.space_norm(x), "b t n d -> (b t) n d")
        update = rearrange(self.space_attention(over_space, None), "(b t) n d -> b t n d", b=batch)
        if self.num_shared:
            update = torch.cat([_mean_over_frames(update[:, :, :1], valid), update[:, :, 1:]], dim=2)
        x = x + update
        return x + self.mlp(self.mlp_norm(x))  # type: ignore[no-any-return]


def _mean_over_frames(
    x: Float[Tensor, "batch frames one dim"], valid: Bool[Tensor, "batch frames"]
) -> Float[Tensor, "batch frames one dim"]:
    """The mean over valid frames, in each frame."""
    weight = valid.to(x.dtype)[:, :, None, None]
    mean = (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True).clamp(min=1.0)
    return mean.expand_as(x)


class SpaceTimeEncoder(nn.Module):
    """Vision transformer over the last `num_frames` frames of an episode; tokens of the current frame.

    Args:
        config: Patch size, clip length, width and depth.
        image_size: (height, width) of a frame, pixels; multiples of `config.patch_size`.
        in_channels: 3 for rgb, 1 for depth.
        embed_dim: Width of the summary.
    """

    def __init__(
        self, config: SpaceTimeConfig, image_size: tuple[int, int], in_channels: int, embed_dim: int
    ) -> None:
        super().__init__()
        self.config = config
        self.in_channels = in_channels
        self.num_frames = config.num_frames
        self.patch_size = config.patch_size
        dim = config.embed_dim
        self.grid = (image_size[0] // config.patch_size, image_size[1] // config.patch_size)
        patches = self.grid[0] * self.grid[1]
        self.embed = nn.Linear(in_channels * config.patch_size**2, dim, bias=False)
        self.position = nn.Parameter(torch.randn(patches, dim) * 0.02)
        self.time = nn.Parameter(torch.zeros(config.num_frames, 1, dim))
        self.cls = None if config.cls_token == "none" else nn.Parameter(torch.randn(dim) * 0.02)
        self.blocks = nn.ModuleList(SpaceTimeBlock(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(dim, eps=config.layer_norm_eps)
        self.token_shape = TokenShape(patches, dim)
        narrowed = config.summary_channels
        self.narrow = nn.Identity() if narrowed is None else nn.Linear(dim, narrowed)
        read = patches * (narrowed or dim) + (0 if self.cls is None else dim)
        self.summarise = nn.Linear(read, embed_dim)

    def forward(
        self,
        clips: Shaped[Tensor, "batch frames height width channels"],
        valid: Bool[Tensor, "batch frames"],
    ) -> Tokens:
        """Encode clips (uint8 or float32), oldest frame first; `valid`: frames of the running episode."""
        patches = cut_patches(clips, self.patch_size).flatten(2, 3)
        x = project_pixels(patches, self.embed.weight) + self.position + self.time
        if self.cls is not None:
            x = torch.cat([self.cls.expand(*x.shape[:2], 1, -1), x], dim=2)
        keep_less = self.config.gradient_checkpointing and torch.is_grad_enabled()
        for block in self.blocks:
            if keep_less:
                x = checkpoint(block, x, valid, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x, valid)
        current = self.norm(x[:, -1])
        if self.cls is None:
            return Tokens(current, None, self.summarise(self.narrow(current).flatten(1)))
        whole, values = current[:, 0], current[:, 1:]
        read = torch.cat([self.narrow(values).flatten(1), whole], dim=-1)
        return Tokens(values, None, self.summarise(read))
