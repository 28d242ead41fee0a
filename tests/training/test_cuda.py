"""Training on a GPU: both precisions, resuming, and agreement with the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from helpers.small_world import make_config
from jostle.models.detection.detector import make_detector
from jostle.training.loop import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

SIZES = {
    "actionformer": {"heads": 2, "window": 5, "mlp_dim": 32},
    "tridet": {"mlp_dim": 32, "sgp_window": 1, "sgp_k": 3, "bins": 4},
    "temporalmaxer": {},
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("detector", SIZES)
def test_training_on_a_gpu(world: Path, tmp_path: Path, detector: str, precision: str) -> None:
    config = make_config(
        world,
        detector=detector,
        settings=SIZES[detector],
        data={"select": 0.2, "corrupted": str(world / "rough")},
        optimiser={"epochs": 20, "lr": 5e-3},
        device="cuda",
        precision=precision,
        chosen_by="map@0.5",
    )
    result = train(config, tmp_path)
    assert result.skipped == 0
    assert result.score > 0.3
    assert train(config, tmp_path) == result


def test_resumed_run_continues_at_its_step(world: Path, tmp_path: Path) -> None:
    config = make_config(world, device="cuda", save_every=0.0)

    def stop(step: int, total: int) -> None:
        if step == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "stopped", on_step=stop)
    resumed, uninterrupted = train(config, tmp_path / "stopped"), train(config, tmp_path / "whole")
    assert resumed.steps == uninterrupted.steps


@pytest.mark.parametrize("detector", SIZES)
def test_gpu_outputs_equal_the_cpu(detector: str) -> None:
    torch.manual_seed(0)
    sizes = {"input_dim": 8, "dim": 32, "classes": 3, "max_length": 96, "levels": 4} | SIZES[detector]
    network = make_detector(detector, **sizes)
    x, lengths = network.batch([torch.randn(n, 8).numpy() for n in (40, 96)])
    with torch.inference_mode():
        expected = network(x, lengths)
        actual = network.cuda()(x.cuda(), lengths.cuda())
    torch.testing.assert_close(actual.logits.cpu(), expected.logits, rtol=1e-3, atol=1e-3)


def test_compiled_outputs_equal_eager() -> None:
    torch.manual_seed(0)
    sizes = {"input_dim": 8, "dim": 32, "classes": 3, "max_length": 96, "levels": 4}
    eager = make_detector("temporalmaxer", **sizes).cuda()
    compiled = make_detector("temporalmaxer", compiled=True, **sizes).cuda()
    compiled.load_state_dict(eager.state_dict())
    features = torch.randn(60, 8).numpy()
    one, other = (model.raw(features) for model in (eager, compiled))
    for expected, actual in zip(one["cls"], other["cls"], strict=True):
        assert abs(expected - actual).max() < 1e-3
