"""Recognisers of published papers: weights of several code bases, input specs, views and refused settings."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import jostle
from helpers.paper_networks import SMALL
from helpers.refusals import refused
from jostle.core.random import rng_for
from jostle.errors import BadValue, CheckpointError
from jostle.evaluation.recipes.sampling import Sampling, sample_frames
from jostle.models.extractors.extractor import as_extractor
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.pytorchvideo import multiscale, strip_prefixes
from jostle.models.recognition.recogniser import Recogniser, recognisers

PARAMETERS = {  # in millions, as published or counted, with 400 classes
    "slow_r50": 32.45, "slow_r50_4x16": 32.45, "i3d_r50": 28.04, "c2d_r50": 24.33, "r2plus1d_r50": 28.11,
    "slowfast_r50": 34.57, "slowfast_r50_4x16": 34.48, "x3d_xs": 3.79, "x3d_s": 3.79, "x3d_m": 3.79, "x3d_l": 6.15,
    "mvit_base_16x4": 36.61, "i3d_resnet18": 33.37, "i3d_resnet50": 46.98, "s3d_resnet18": 15.59,
    "s3d_resnet50": 28.13, "tam_resnet50": 24.37, "i3d_inception": 12.70, "s3d_inception": 8.31,
}  # fmt: skip
IBM = [name for name in recognisers if recognisers[name].options]
NETWORKS = [*PARAMETERS, "mvit_base_32x3", "tam_resnet18"]


def load_small(name: str, weights: Any, **changes: Any) -> Recogniser:
    return jostle.load_recogniser(name, weights=weights, **(SMALL[name] | changes))


@lru_cache(3)  # tests of one network follow each other
def load_random(name: str) -> Recogniser:
    """Load a small network with random weights; it is shared and must not be changed."""
    return load_small(name, "random")


def network_of(model: Recogniser) -> nn.Module:
    assert isinstance(model.network, nn.Module)
    return model.network


def prepared_clip(model: Recogniser, seed: int = 0) -> Tensor:
    """Return a random clip in the prepared format of the model."""
    assert model.spec is not None
    side, frames = model.spec.size, model.spec.frames
    return torch.randn(1, 3, frames, side, side, generator=torch.Generator().manual_seed(seed))


def logits_of(model: Recogniser) -> Tensor:
    with torch.inference_mode():
        logits: Tensor = network_of(model)(prepared_clip(model))
    return logits


def slowfast_name(name: str, *, pooled: bool, channelwise: bool) -> str:
    """Return the name in the SlowFast code base of a PyTorchVideo tensor."""
    match = re.match(r"blocks\.(\d+)\.(.*)", name)
    assert match
    block, rest = int(match[1]), match[2]
    path = "0"
    if inner := re.match(r"multipathway_blocks\.(\d)\.(.*)", rest):
        path, rest = inner[1], inner[2]
    if rest.startswith(("proj.", "pool.")):
        parts = {"pool.pre_conv": "conv_5", "pool.pre_norm": "conv_5_bn", "pool.post_conv": "lin_5"}
        for old, new in parts.items():
            rest = rest.replace(old, new)
        return f"head.{rest.replace('proj.', 'projection.')}"
    stage = block if pooled and block >= 3 else block + 1
    if rest.startswith("multipathway_fusion."):
        rest = rest.replace("conv_fast_to_slow", "conv_f2s").replace("norm", "bn")
        return f"s{stage}_fuse.{rest.removeprefix('multipathway_fusion.')}"
    if block == 0:
        rest = rest.replace("norm", "bn")
        if channelwise:
            rest = {"conv.conv_t.weight": "conv_xy.weight", "conv.conv_xy.weight": "conv.weight"}.get(rest, rest)
        return f"s1.pathway{path}_stem.{rest}"
    rest = rest.replace("norm_b.1.block.0", "se.fc1").replace("norm_b.1.block.2", "se.fc2")
    rest = rest.replace("norm_b.0.", "norm_b.")
    rest = re.sub(r"norm_([abc])", r"\1_bn", re.sub(r"conv_([abc])", r"\1", rest))
    rest = rest.replace("branch1_conv", "branch1").replace("branch1_norm", "branch1_bn")
    return re.sub(r"^res_blocks\.(\d+)\.", rf"s{stage}.pathway{path}_res\1.", rest)


@pytest.mark.parametrize("name", ["slow_r50", "i3d_r50", "c2d_r50", "slowfast_r50", "x3d_xs"])
def test_weights_of_the_slowfast_code_base_give_the_same_scores(name: str) -> None:
    own = load_random(name)
    pooled, channelwise = name in ("i3d_r50", "c2d_r50"), name == "x3d_xs"
    tensors = network_of(own).state_dict()
    other = {slowfast_name(key, pooled=pooled, channelwise=channelwise): value for key, value in tensors.items()}
    assert not set(other) & set(tensors)
    assert torch.equal(logits_of(load_small(name, other)), logits_of(own))


def test_x3d_of_the_slowfast_code_base_has_one_more_norm() -> None:
    own = load_random("x3d_xs")
    other = {
        slowfast_name(key, pooled=False, channelwise=True): value for key, value in network_of(own).state_dict().items()
    }
    norm = nn.BatchNorm3d(24)
    nn.init.uniform_(norm.bias, generator=torch.Generator().manual_seed(1))
    other |= {f"s2.pathway0_res0.branch1_bn.{key}": value for key, value in norm.state_dict().items()}
    model = load_small("x3d_xs", other)
    assert "blocks.1.res_blocks.0.branch1_norm.weight" in network_of(model).state_dict()
    assert not torch.equal(logits_of(model), logits_of(own))


@pytest.mark.parametrize("library", ["torchvision", "slowfast"])
def test_mvit_weights_with_the_names_of_other_libraries(library: str) -> None:
    own = load_random("mvit_base_16x4")
    tensors = dict(network_of(own).state_dict())
    other: dict[str, Tensor] = {}
    for key, value in tensors.items():
        if re.search(r"attn\.[kv]\.", key):
            continue
        if re.search(r"attn\.q\.", key):
            parts = [tensors[key.replace(".q.", f".{part}.")] for part in "qkv"]
            key, value = key.replace(".q.", ".qkv."), torch.cat(parts)
        replacements = {
            "torchvision": [
                ("patch_embed.patch_model", "conv_proj"), ("cls_positional_encoding.cls_", "pos_encoding.class_"),
                (r"cls_positional_encoding.pos_embed_(\w+)", r"pos_encoding.\1_pos"), (r"attn\.proj", "attn.project.0"),
                (r"attn\.pool_(\w)", r"attn.pool_\1.pool"), (r"attn\.norm_(\w)", r"attn.pool_\1.norm_act.0"),
                ("mlp.fc1", "mlp.0"), ("mlp.fc2", "mlp.3"), (r"^(blocks\.\d+)\.proj", r"\1.project"),
                ("norm_embed", "norm"), ("head.proj", "head.1"),
            ],
            "slowfast": [
                ("patch_embed.patch_model", "patch_embed.proj"), (r"cls_positional_encoding\.", ""),
                ("norm_embed", "norm"), ("head.proj", "head.projection"),
            ],
        }[library]  # fmt: skip
        for old, new in replacements:
            key = re.sub(old, new, key)
        if library == "torchvision" and key.startswith("pos_encoding."):
            value = value[0, 0] if "class" in key else value[0]
        other[key] = value
    weights = multiscale(other)
    assert set(weights) == set(tensors)
    assert torch.equal(logits_of(load_small("mvit_base_16x4", other)), logits_of(own))


def test_duplicate_pool_weights_are_read_once() -> None:
    own = dict(network_of(load_random("mvit_base_16x4")).state_dict())
    duplicated = own | {
        key.replace(".attn.pool_q.", ".attn._attention_pool_q.pool."): value
        for key, value in own.items()
        if ".attn.pool_q." in key
    }
    assert len(duplicated) > len(own)
    assert set(multiscale(duplicated)) == set(own)


def test_wrapped_checkpoints_and_name_prefixes(tmp_path: Path) -> None:
    tensors = dict(network_of(load_random("tam_resnet18")).state_dict())
    tensors |= {name: tensors[name][:5] for name in ("fc.weight", "fc.bias")}  # five classes, as read from the weights
    own = logits_of(load_small("tam_resnet18", tensors))
    # Wrappers around the tensors and prefixes of their names are removed one after the other.
    for wrapper, prefix in (
        ("plain", ""),
        ("plain", "model."),
        ("state_dict", "module."),
        ("model_state", "module.model."),
    ):
        named = {f"{prefix}{key}": value for key, value in tensors.items()}
        content: Any = named if wrapper == "plain" else {wrapper: named, "epoch": 3, "cfg": "SOLVER: 1"}
        torch.save(content, tmp_path / "net.pyth")
        model = load_small("tam_resnet18", tmp_path / "net.pyth")
        assert model.head == "fc"
        assert logits_of(model).shape == (1, 5)
        assert torch.equal(logits_of(model), own)


def test_only_prefixes_of_all_names_are_stripped() -> None:
    tensor = torch.zeros(1)
    assert set(strip_prefixes({"model.a": tensor, "b": tensor})) == {"model.a", "b"}
    assert set(strip_prefixes({"module.model.a": tensor})) == {"a"}
    assert strip_prefixes({}) == {}


def test_mismatched_weights_raise_a_short_message() -> None:
    tensors = dict(network_of(load_random("x3d_xs")).state_dict())
    with refused("F54", CheckpointError, match=r"slow_r50: the weights belong to another network: .*missing") as caught:
        load_small("slow_r50", tensors)
    assert len(str(caught.value)) < 600
    with pytest.raises(CheckpointError, match=r"x3d_xs: .*they have no blocks\.5\.proj\.bias"):
        load_small("x3d_xs", {"a": torch.zeros(1)})
    damaged = {key: value for key, value in tensors.items() if key != "blocks.0.norm.bias"} | {"odd": torch.zeros(2)}
    with pytest.raises(CheckpointError, match=r"1 missing: blocks\.0\.norm\.bias; 1 unexpected: odd"):
        load_small("x3d_xs", damaged)
    with pytest.raises(BadValue, match=r"give its weights: SLOW_8x8_R50\.pyth of https://dl\.fbaipublicfiles"):
        jostle.load_recogniser("slow_r50")


def test_positional_embeddings_fix_the_clip_size() -> None:
    tensors = network_of(load_random("mvit_base_16x4")).state_dict()
    with pytest.raises(BadValue, match="know positions of 4 frames of 32 by 32; leave frames and size at that"):
        jostle.load_recogniser("mvit_base_16x4", weights=tensors)
    model = load_random("mvit_base_16x4")
    with pytest.raises(BadValue, match="cannot take a clip of 8 frames; give it 4"):
        model(np.zeros((1, 8, 40, 40, 3), np.uint8))


@pytest.mark.parametrize("name", IBM)
def test_time_stride_is_a_setting(name: str) -> None:
    plain, strided = (recognisers[name].settings(changes) for changes in ({}, {"time_stride": True}))
    assert (plain, strided) == ({"time_stride": False}, {"time_stride": True})
    with pytest.raises(BadValue, match=f"{name}: time_stride is False or the like, not 'yes'"):
        recognisers[name].settings({"time_stride": "yes"})


def test_time_stride_changes_the_scores_but_not_the_weights() -> None:
    tensors = network_of(load_random("tam_resnet18")).state_dict()
    assert not torch.equal(
        logits_of(load_small("tam_resnet18", tensors, time_stride=True)), logits_of(load_small("tam_resnet18", tensors))
    )
    with pytest.raises(BadValue, match="x3d_xs: its input has no setting time_stride"):
        load_small("x3d_xs", "random", time_stride=True)


@pytest.mark.parametrize("name", NETWORKS)
def test_number_of_parameters_is_the_published_one(name: str) -> None:
    with torch.device("meta"):
        network = network_of(recognisers[name].load("random", {}))
    count = sum(value.numel() for value in network.parameters())
    assert PARAMETERS.get(name) is None or round(count / 1e6, 2) == PARAMETERS[name]


def test_original_i3d_as_a_recogniser() -> None:
    model = jostle.load_recogniser("i3d", weights="random", frames=9, size=193)
    clips = np.random.default_rng(0).integers(0, 256, (1, 9, 200, 200, 3), np.uint8)
    assert model(clips).shape == (1, 400)
    assert as_extractor(model).dim == 1024


def spec_of(name: str, **changes: Any) -> InputSpec:
    return recognisers[name].input_spec(changes)


@pytest.mark.parametrize(
    ("name", "frames", "step", "size", "clips"),
    [
        ("c2d_r50", 8, 8, 256, 10), ("i3d_r50", 8, 8, 256, 10), ("slow_r50", 8, 8, 256, 10),
        ("slow_r50_4x16", 4, 16, 256, 10), ("slowfast_r50", 32, 2, 256, 10), ("slowfast_r50_4x16", 32, 2, 256, 10),
        ("r2plus1d_r50", 16, 4, 256, 10), ("x3d_xs", 4, 12, 182, 10), ("x3d_s", 13, 6, 182, 10),
        ("x3d_m", 16, 5, 256, 10), ("x3d_l", 16, 5, 356, 10), ("mvit_base_16x4", 16, 4, 224, 5),
        ("mvit_base_32x3", 32, 3, 224, 5),
    ],
)  # fmt: skip
def test_input_specs_are_the_published_ones(name: str, frames: int, step: int, size: int, clips: int) -> None:
    single_view = spec_of(name)
    assert (single_view.frames, single_view.step, single_view.size, single_view.resize, single_view.fps) == (
        frames,
        step,
        size,
        size,
        30,
    )
    assert (single_view.clips, single_view.crops, single_view.joined) == (None, "centre", "scores")
    published_views = spec_of(name, views="published")
    assert (published_views.clips, published_views.crops) == (clips, "three" if clips == 10 else "centre")
    assert replace(published_views, clips=None, crops="centre", starts="ends") == single_view
    # PySlowFast starts its test clips at multiples of a tenth of the slack, MViT spreads them from end to end.
    firsts = sample_frames(Sampling(), published_views, np.arange(300) / 30, Fraction(30), rng_for(0))[:, 0].tolist()
    slack = 300 - frames * step
    assert firsts == [slack * i // 10 if clips == 10 else i * (slack // 4) for i in range(clips)]


def test_kinetics400_p_views_follow_the_loader_of_the_study() -> None:
    for name, side in (
        ("i3d_r50", 224),
        ("slow_r50", 224),
        ("x3d_m", 224),
        ("mvit_base_16x4", 224),
        ("slowfast_r50", 256),
    ):
        spec = spec_of(name, views="kinetics400-p")
        assert (spec.resize, spec.size, spec.shrunk) == (side * 5 // 4, side * 5 // 4, side)
        assert spec.mean == (0.485, 0.456, 0.406)
        assert spec.prepare(np.zeros((2, 300, 400, 3), np.uint8)).shape == (1, 3, 2, side, side)
        rows = sample_frames(Sampling(clips=10), spec, np.arange(300) / 30, Fraction(30), rng_for(0))
        assert rows.tolist() == [[i * 300 // spec.frames for i in range(spec.frames)]]


def test_mini_kinetics_c_views_spread_32_frames_and_average_logits() -> None:
    for name in (*IBM, "slowfast_r50", "x3d_m"):
        spec = spec_of(name, views="kinetics-c")
        assert (spec.frames, spec.spread, spec.joined, spec.resize, spec.size) == (32, "even", "logits", 256, 224)


def test_views_with_input_fields_and_unknown_views() -> None:
    assert spec_of("slow_r50", views="published", clips=3).clips == 3
    with pytest.raises(BadValue, match="slow_r50: there are no views 'kinetics-c'; choose one of published"):
        spec_of("slow_r50", views="kinetics-c")
    with pytest.raises(BadValue, match="puppet_c3d: its input has no setting views"):
        jostle.load_recogniser("puppet_c3d", weights="random", views="published")
    assert recognisers["tam_resnet50"].fit({"views": "published", "time_stride": True, "frames": 8}) == {
        "views": "published", "time_stride": True, "frames": 8,
    }  # fmt: skip
    with pytest.raises(BadValue, match=r"the input of tam_resnet50 has no setting frame: did you mean frames\?"):
        recognisers["tam_resnet50"].fit({"frame": 8})


@pytest.mark.parametrize(
    ("name", "millions"), [("puppet_slowfast", 0.7), ("puppet_tam", 0.7), ("puppet_tam_wide", 2.8)]
)
def test_small_variants_for_puppets(name: str, millions: float) -> None:
    model = jostle.load_recogniser(name, weights="random")
    clips = np.random.default_rng(0).integers(0, 256, (1, 16, 112, 112, 3), np.uint8)
    assert model(clips).shape == (1, 16)
    assert not np.allclose(model(clips), model(clips[:, ::-1]), atol=1e-6)
    assert round(sum(value.numel() for value in network_of(model).parameters()) / 1e6, 1) == millions
    with pytest.raises(BadValue, match="give its weights: a file that jostle train wrote"):
        jostle.load_recogniser(name)
