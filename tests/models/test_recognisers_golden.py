"""Recognisers of published papers against the public implementations, with generated weights and clips."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from golden.by_rule import GOLDEN, clip, shapes, stored, weights
from jostle.models.networks import slowfast
from jostle.models.networks.layers import window_means
from jostle.models.recognition.recogniser import Weights, recognisers

FOLDER = GOLDEN / "recognisers"
RUNS: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text())["runs"]
QUICK = 32 * 64 * 64  # values per channel of a clip; larger ones take up to half a minute
NAMES = {  # names of IBM's networks in jostle
    "ibm_i3dresnet_18": "i3d_resnet18",
    "ibm_i3dresnet_50": "i3d_resnet50",
    "ibm_s3dresnet_18": "s3d_resnet18",
    "ibm_s3dresnet_50": "s3d_resnet50",
    "ibm_tam_50": "tam_resnet50",
    "ibm_i3d": "i3d_inception",
    "ibm_s3d": "s3d_inception",
}


def network_of(model: str, tensors: Weights = "random") -> nn.Module:
    """Return the network of a recorded run with the given weights."""
    changes: dict[str, Any] = {}
    name = model
    if model == "mvit_small_8x64":
        name, changes = "mvit_base_16x4", {"frames": 8, "size": 64}
    if model.startswith("ibm_"):
        bare = model.partition("_f")[0]
        name, changes = NAMES[bare.removesuffix("_ts")], {"time_stride": bare.endswith("_ts")}
    network = recognisers[name].load(tensors, changes).network
    assert isinstance(network, nn.Module)
    return network


def keys_of(run: dict[str, Any]) -> list[str]:
    with gzip.open(FOLDER / run["keys"], "rt") as file:
        return file.read().splitlines()


def as_param(run: dict[str, Any]) -> Any:
    frames, height, width, _ = run["clip"]
    slow = (pytest.mark.slow,) if frames * height * width > QUICK else ()
    return pytest.param(run, id=run["file"].removesuffix(".npz"), marks=slow)


def record_stages(network: nn.Module, model: str, stages: list[str], outputs: dict[str, Tensor]) -> None:
    """Register hooks that store the output of each stage by name, as (C, T, H, W) or as in the golden file."""

    def store(name: str, part: int | None, _module: nn.Module, _given: Any, output: Any) -> None:
        selected = output if part is None else output[part]
        outputs[name] = (selected if "_tam" in model else selected[0]).clone()

    for stage in stages:
        bare, _, path = stage.partition("_") if stage.startswith("block") else (stage, "", "")
        part = {"slow": 0, "fast": 1}.get(path)
        if model.startswith("mvit"):
            modules_by_stage = {"patch_embed": "patch_embed", "pos": "cls_positional_encoding", "norm": "norm_embed"}
            module_name = modules_by_stage.get(stage) or f"blocks.{bare.removeprefix('block')}"
            part = 0 if stage == "patch_embed" or stage.startswith("block") else None
        elif bare.startswith("block"):
            module_name = f"blocks.{bare.removeprefix('block')}"
        elif "_tam" in model and stage.startswith("layer"):
            module_name = f"{stage}.{len(network.get_submodule(stage)) - 1}"  # type: ignore[arg-type]
        else:
            module_name = stage
        network.get_submodule(module_name).register_forward_hook(partial(store, stage, part))


@pytest.mark.parametrize("run", [as_param(run) for run in RUNS])
def test_logits_and_stages_equal_the_public_implementation(run: dict[str, Any]) -> None:
    golden = stored(f"recognisers/{run['file']}")
    drawn = weights(keys_of(run), seed=run["seed"], gain=run["gain"])
    network = network_of(run["model"], {name: torch.from_numpy(value) for name, value in drawn.items()})
    assert sum(value.numel() for value in network.parameters()) == run["parameters"]
    stages, outputs = golden["stage"].tolist(), dict[str, Tensor]()
    record_stages(network, run["model"], stages, outputs)
    frames, size, _, seed = run["clip"]
    with torch.inference_mode():
        logits = network(torch.from_numpy(clip(frames, size, seed)))[0].numpy()
    for name, shape, stat in zip(stages, golden["shape"], golden["stat"], strict=True):
        stage_output = outputs[name]
        assert tuple(stage_output.shape) == tuple(n for n in shape if n), name
        statistics = [stage_output.mean(), stage_output.std(correction=0), stage_output.min(), stage_output.max()]
        np.testing.assert_allclose(statistics, stat, rtol=1e-5, atol=1e-4, err_msg=name)
        if f"mean_{name}" in golden:
            channels = {"mvit": 1}.get(run["model"][:4], 1 if "_tam" in run["model"] else 0)
            others = [axis for axis in range(stage_output.ndim) if axis != channels]
            np.testing.assert_allclose(
                stage_output.mean(others), golden[f"mean_{name}"], rtol=1e-5, atol=1e-4, err_msg=name
            )
    if "cls_norm" in golden:
        np.testing.assert_allclose(outputs["norm"][0], golden["cls_norm"], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(logits, golden["logits"], rtol=0, atol=1e-4 + 1e-5 * np.abs(golden["logits"]).max())


@pytest.mark.parametrize("model", sorted({run["model"] for run in RUNS}))
def test_names_and_shapes_equal_the_public_ones(model: str) -> None:
    run = next(run for run in RUNS if run["model"] == model)
    with torch.device("meta"):
        actual = {name: tuple(tensor.shape) for name, tensor in network_of(model).state_dict().items()}
    assert actual == shapes(keys_of(run))


def test_generated_weights_and_clips_have_the_recorded_hashes() -> None:
    run = next(run for run in RUNS if run["model"] == "x3d_s")
    drawn = weights(keys_of(run), seed=run["seed"], gain=run["gain"])
    frames, size, _, seed = run["clip"]
    for values, key in ((drawn.values(), "weights_sha256"), ([clip(frames, size, seed)], "clip_sha256")):
        digest = hashlib.sha256()
        for value in values:
            digest.update(value.astype("<f4").tobytes() if value.dtype == np.float32 else b"")
        assert digest.hexdigest() == run[key]


def test_slow_pathway_samples_from_the_first_to_the_last_frame() -> None:
    for run in RUNS:
        golden = stored(f"recognisers/{run['file']}")
        if "slow_index" in golden:
            alpha = slowfast.CONFIGS[run["model"]].alpha
            assert slowfast.slow_frames(run["clip"][0], alpha) == golden["slow_index"].tolist()
    assert slowfast.slow_frames(4, 4) == [0]


def test_pooling_window_larger_than_the_map_gives_its_mean() -> None:
    x = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(1, 2, 3, 4, 4)
    assert torch.equal(window_means(x, (8, 7, 7)), x.mean((2, 3, 4), keepdim=True))
    assert window_means(x, (3, 3, 3)).shape == (1, 2, 1, 2, 2)
