"""VideoMAE V2, giant: a plain vision transformer with a billion weights, through transformers.

Wang et al., "VideoMAE V2: Scaling Video Masked Autoencoders with Dual Masking", CVPR 2023. The network is the library's
VideoMAE, in another size. Public weights use other names and layouts;
`rename_public_weights` converts them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import CheckpointError
from jostle.models.extractors.extractor import Tensors, extractor
from jostle.models.input_spec import InputSpec
from jostle.models.transformers_folder import library_class

SOURCE = (
    "vit_g_hybrid_pt_1200e_k710_ft.pth, fine-tuned on Kinetics-710, from the model zoo of "
    "https://github.com/OpenGVLab/VideoMAEv2"
)
EPSILON = 1e-6  # of every norm; the library's own networks have 1e-12 inside and 1e-5 at the end
PREFIXES = ("encoder.", "backbone.", "model.", "module.")  # what programs put in front of the names of a network
BLOCK = re.compile(r"blocks\.(\d+)\.(.+)")
PARTS = {
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "attn.proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}
LOOKS = ("query", "key", "value")  # in this order in the one tensor that public weights have


@dataclass(frozen=True)
class VideoMaeV2Config:
    """Settings of the network; the giant by default.

    Attributes:
        frames, size: of a clip.
        patch: height and width of a cube; its length is always two frames.
        dim, layers, heads, mlp_dim: of the transformer.
    """

    frames: int = 16
    size: int = 224
    patch: int = 14
    dim: int = 1408
    layers: int = 40
    heads: int = 16
    mlp_dim: int = 6144


class VideoMaeV2(nn.Module):
    """Transformer with the norm of its mean token, without a classifier.

    Raises:
        MissingExtra: without transformers.
    """

    def __init__(self, config: VideoMaeV2Config = VideoMaeV2Config()) -> None:  # noqa: B008
        super().__init__()
        settings = library_class("videomae_v2_g", "VideoMAEConfig")(
            image_size=config.size,
            patch_size=config.patch,
            num_frames=config.frames,
            tubelet_size=2,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.mlp_dim,
            layer_norm_eps=EPSILON,
            use_mean_pooling=True,  # without it there would be a norm of every token, which the weights do not have
        )
        self.transformer = library_class("videomae_v2_g", "VideoMAEModel")(settings)
        self.fc_norm = nn.LayerNorm(config.dim, eps=EPSILON)

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, dim) of (B, T, 3, H, W)."""
        tokens = self.transformer(pixel_values=clips).last_hidden_state  # (B, T/2 * (H/14) * (W/14), dim)
        output: Tensor = self.fc_norm(tokens.mean(1))
        return output


def rename_public_weights(weights: Tensors, network: nn.Module) -> Tensors:
    """Rename public weights to the names of the network, and drop its classifier.

    Raises:
        CheckpointError: F54 if there is a tensor that no network of this kind has.
    """
    expected = network.state_dict()
    renamed: dict[str, Tensor] = {}
    for full, tensor in weights.items():
        name = _bare(full)
        match = BLOCK.fullmatch(name)
        if name.startswith("head."):
            continue
        if name.startswith("fc_norm."):
            renamed[name] = tensor
        elif name.startswith("patch_embed.proj."):
            renamed[f"transformer.embeddings.patch_embeddings.projection.{name.rpartition('.')[2]}"] = tensor
        elif match is None:
            raise CheckpointError(
                f"videomae_v2_g: the weights belong to another network: they have {full}; the fine-tuned ones are "
                f"needed, {SOURCE}",
                fault="F54",
            )
        else:
            renamed |= _of_block(f"transformer.encoder.layer.{match[1]}", match[2], tensor, expected)
    return renamed


def _bare(name: str) -> str:
    """Strip the prefixes that programs add."""
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def _of_block(layer: str, name: str, tensor: Tensor, expected: Tensors) -> dict[str, Tensor]:
    looks = f"{layer}.attention.attention"
    if name == "attn.qkv.weight":
        thirds = zip(LOOKS, tensor.tensor_split(3), strict=True)
        return {f"{looks}.{look}.weight": third for look, third in thirds}
    if name == "attn.v_bias":
        renamed = {f"{looks}.value.bias": tensor}
        if f"{looks}.key.bias" in expected:  # some versions of the library have one, where the original has nothing
            renamed[f"{looks}.key.bias"] = torch.zeros_like(tensor)
        return renamed
    if name == "attn.q_bias":
        return {f"{looks}.query.bias": tensor}
    part, _, which = name.rpartition(".")
    return {f"{layer}.{PARTS.get(part, part)}.{which}": tensor}


# Frames are resized to a square, with values from 0 to 1.
SPEC = InputSpec(frames=16, stride=4, resize=(224, 224), size=224, layout="TCHW", antialias=False)
_ABOUT: dict[str, Any] = {
    "dim": 1408,
    "least_frames": 16,
    "most_frames": 16,
    "source": SOURCE,
    "translate": rename_public_weights,
}


@extractor("videomae_v2_g", spec=SPEC, **_ABOUT)
def videomae_v2_g() -> VideoMaeV2:
    """As THUMOS14 features are made: windows of 16 frames every 4."""
    return VideoMaeV2()


@extractor("videomae_v2_g_anet", spec=replace(SPEC, stride=16), **_ABOUT)
def videomae_v2_g_anet() -> VideoMaeV2:
    """The same network as ActivityNet features are made: windows that do not overlap."""
    return VideoMaeV2()
