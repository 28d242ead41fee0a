"""VideoMAE V2 through transformers: names of public weights, and features against a reference."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.refusals import refused
from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import read_weights
from jostle.models.extractors.extractor import Extractor, ExtractorKind, build_with_weights, extractors
from jostle.models.extractors.videomae_v2 import VideoMaeV2, VideoMaeV2Config, rename_public_weights
from jostle.models.input_spec import InputSpec
from jostle.models.loading.extractors import load_extractor

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
TINY = VideoMaeV2Config(frames=4, size=28, patch=14, dim=24, layers=3, heads=2, mlp_dim=40)


def public_shapes(config: VideoMaeV2Config, classes: int = 5) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the public checkpoints."""
    d, m = config.dim, config.mlp_dim
    shapes: dict[str, tuple[int, ...]] = {
        "patch_embed.proj.weight": (d, 3, 2, config.patch, config.patch),
        "patch_embed.proj.bias": (d,),
    }
    for i in range(config.layers):
        block = {
            "norm1.weight": (d,), "norm1.bias": (d,), "attn.q_bias": (d,), "attn.v_bias": (d,),
            "attn.qkv.weight": (3 * d, d), "attn.proj.weight": (d, d), "attn.proj.bias": (d,),
            "norm2.weight": (d,), "norm2.bias": (d,),
            "mlp.fc1.weight": (m, d), "mlp.fc1.bias": (m,), "mlp.fc2.weight": (d, m), "mlp.fc2.bias": (d,),
        }  # fmt: skip
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    end = {"fc_norm.weight": (d,), "fc_norm.bias": (d,), "head.weight": (classes, d), "head.bias": (classes,)}
    return shapes | end


def public_weights(config: VideoMaeV2Config = TINY) -> dict[str, Tensor]:
    drawn = torch.Generator().manual_seed(1)
    tensors = {}
    for name, shape in public_shapes(config).items():
        spread = 0.3 if len(shape) > 1 else 0.5
        tensors[name] = torch.randn(shape, generator=drawn) * spread + (
            1.0 if "norm" in name and "weight" in name else 0
        )
    return tensors


def position_encoding(count: int, dim: int) -> Tensor:
    """Return the sinusoidal position encoding (count, dim)."""
    column = torch.arange(dim, dtype=torch.float64)
    angle = torch.arange(count, dtype=torch.float64)[:, None] / 10000 ** (2 * (column // 2) / dim)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def reference_features(weights: dict[str, Tensor], clips: Tensor, config: VideoMaeV2Config) -> Tensor:
    """Compute the features (B, dim) of clips (B, T, 3, H, W) with plain operations in double precision."""
    w = {name: tensor.double() for name, tensor in weights.items()}
    d, heads = config.dim, config.heads
    cubes = F.conv3d(
        clips.double().transpose(1, 2), w["patch_embed.proj.weight"], w["patch_embed.proj.bias"],
        stride=(2, config.patch, config.patch),
    )  # fmt: skip
    x = cubes.flatten(2).transpose(1, 2)
    x = x + position_encoding(x.shape[1], d)
    for i in range(config.layers):
        b = {name.removeprefix(f"blocks.{i}."): tensor for name, tensor in w.items()}
        y = F.layer_norm(x, (d,), b["norm1.weight"], b["norm1.bias"], 1e-6)
        q, k, v = (y @ part.T for part in (b["attn.qkv.weight"][at : at + d] for at in (0, d, 2 * d)))
        q, v = q + b["attn.q_bias"], v + b["attn.v_bias"]
        mixed = []
        for h in range(heads):
            head_columns = slice(h * d // heads, (h + 1) * d // heads)
            weight = (q[..., head_columns] @ k[..., head_columns].transpose(1, 2) / (d // heads) ** 0.5).softmax(-1)
            mixed.append(weight @ v[..., head_columns])
        x = x + torch.cat(mixed, -1) @ b["attn.proj.weight"].T + b["attn.proj.bias"]
        y = F.layer_norm(x, (d,), b["norm2.weight"], b["norm2.bias"], 1e-6)
        y = F.gelu(y @ b["mlp.fc1.weight"].T + b["mlp.fc1.bias"])
        x = x + y @ b["mlp.fc2.weight"].T + b["mlp.fc2.bias"]
    return F.layer_norm(x.mean(1), (d,), w["fc_norm.weight"], w["fc_norm.bias"], 1e-6)


def tiny(**changes: object) -> ExtractorKind:
    spec = InputSpec(frames=4, stride=4, resize=(28, 28), size=28, layout="TCHW", antialias=False)
    return ExtractorKind(
        "tiny", partial(VideoMaeV2, TINY), spec, 24, 4, "", most_frames=4, translate=rename_public_weights, **changes
    )  # type: ignore[arg-type]


@needs_transformers
@pytest.mark.parametrize("prefix", ["", "module.encoder.", "backbone.", "model.backbone."])
def test_features_equal_the_reference(prefix: str) -> None:
    public = public_weights()
    network = build_with_weights(tiny(), {prefix + name: tensor for name, tensor in public.items()}).eval()
    clips = torch.rand(3, 4, 3, 28, 28, generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        features = network.features(clips)  # type: ignore[operator]
    expected = reference_features(public, clips, TINY)
    assert features.shape == (3, 24)
    assert (features - expected).abs().max() < 1e-5
    assert expected.std() > 0.1


@needs_transformers
@pytest.mark.parametrize("inside", ["model", "module", None])
def test_training_checkpoints_are_read(inside: str | None, tmp_path: Path) -> None:
    public = public_weights()
    half = {name: tensor.half() for name, tensor in public.items()}
    torch.save({inside: half, "epoch": 3} if inside else half, tmp_path / "vit_g.pth")
    extractor = Extractor(tiny(), build_with_weights(tiny(), read_weights(tmp_path / "vit_g.pth")))
    frames = np.random.default_rng(0).integers(0, 256, (3, 4, 40, 60, 3), np.uint8)
    features = extractor(frames)
    # Frames are squeezed to a square, and only divided by 255.
    squeezed = F.interpolate(
        torch.from_numpy(frames).flatten(0, 1).permute(0, 3, 1, 2).float() / 255, (28, 28), mode="bilinear"
    ).reshape(3, 4, 3, 28, 28)
    expected = reference_features({name: tensor.float() for name, tensor in half.items()}, squeezed, TINY)
    assert np.abs(features - expected.numpy()).max() < 1e-5
    assert features.tobytes() == np.concatenate([extractor(frames[i : i + 1]) for i in range(3)]).tobytes()


@needs_transformers
@pytest.mark.slow
def test_giant_model_loads_a_billion_public_weights() -> None:
    config = VideoMaeV2Config()
    shapes = public_shapes(config, classes=710)
    counted = sum(int(np.prod(shape)) for name, shape in shapes.items() if not name.startswith("head."))
    assert counted == 1_011_610_752
    kind = extractors["videomae_v2_g"]
    network = build_with_weights(kind, {name: torch.empty(shape, device="meta") for name, shape in shapes.items()})
    keys = sum(p.numel() for name, p in network.named_parameters() if name.endswith("key.bias"))  # in some versions
    assert sum(p.numel() for p in network.parameters()) - keys == counted
    assert kind.dim == config.dim


def test_input_spec() -> None:
    thumos, anet = extractors["videomae_v2_g"], extractors["videomae_v2_g_anet"]
    assert (thumos.spec.frames, thumos.spec.stride, thumos.spec.resize, thumos.dim) == (16, 4, (224, 224), 1408)
    assert (anet.spec.frames, anet.spec.stride, anet.dim) == (16, 16, 1408)
    prepared = thumos.spec.prepare(np.full((16, 30, 50, 3), 51, np.uint8))
    assert prepared.shape == (1, 16, 3, 224, 224)
    assert torch.allclose(prepared, torch.tensor(0.2))


class PublicNames(nn.Module):
    """Module with the parameter names of a network and nothing else."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def state_dict(self, *args: object, **kwargs: object) -> dict[str, Tensor]:  # type: ignore[override]
        return {name: torch.zeros(1) for name in self.names}


def test_fused_qkv_is_split_and_keys_have_no_bias() -> None:
    layer = "transformer.encoder.layer.0.attention.attention"
    weights = {
        "blocks.0.attn.qkv.weight": torch.arange(12.0).reshape(6, 2),
        "blocks.0.attn.q_bias": torch.tensor([1.0, 2.0]),
        "blocks.0.attn.v_bias": torch.tensor([3.0, 4.0]),
    }
    renamed = rename_public_weights(weights, PublicNames())
    assert renamed[f"{layer}.query.weight"].tolist() == [[0, 1], [2, 3]]
    assert renamed[f"{layer}.key.weight"].tolist() == [[4, 5], [6, 7]]
    assert renamed[f"{layer}.value.weight"].tolist() == [[8, 9], [10, 11]]
    assert (renamed[f"{layer}.query.bias"].tolist(), renamed[f"{layer}.value.bias"].tolist()) == ([1, 2], [3, 4])
    assert f"{layer}.key.bias" not in renamed
    older = rename_public_weights(weights, PublicNames(f"{layer}.key.bias"))
    assert older[f"{layer}.key.bias"].tolist() == [0, 0]


def test_pretraining_weights_are_refused() -> None:
    with refused("F54", CheckpointError, match=r"they have decoder\.norm\.weight; the fine-tuned ones"):
        rename_public_weights({"decoder.norm.weight": torch.zeros(2)}, PublicNames())


@needs_transformers
def test_weights_of_another_size_are_refused() -> None:
    weights = public_weights()
    weights["blocks.1.attn.qkv.weight"] = torch.zeros(7, 24)
    with pytest.raises(CheckpointError, match="belong to another network"):
        build_with_weights(tiny(), weights)
    with pytest.raises(CheckpointError, match=r"48 missing: transformer\.embeddings"):
        build_with_weights(tiny(), {"fc_norm.weight": torch.zeros(24)})


def test_windows_of_another_length_are_refused() -> None:
    with pytest.raises(BadValue, match="a clip must have 16 frames, not 8"):
        load_extractor("videomae_v2_g", weights={}, frames=8)
    with pytest.raises(BadValue, match="VideoMAEv2"):
        load_extractor("videomae_v2_g")
