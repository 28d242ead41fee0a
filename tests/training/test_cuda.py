"""Training on a GPU: it learns there too, in both precisions, and a stopped run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from helpers.small_world import made_config
from jostle.models.detection.detector import load_detector
from jostle.training.loop import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

SIZES = {
    "actionformer": {"heads": 2, "window": 5, "mlp_dim": 32},
    "tridet": {"mlp_dim": 32, "sgp_window": 1, "sgp_k": 3, "bins": 4},
    "temporalmaxer": {},
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("detector", SIZES)
def test_it_learns_on_a_gpu(world: Path, tmp_path: Path, detector: str, precision: str) -> None:
    config = made_config(
        world,
        detector=detector,
        settings=SIZES[detector],
        data={"select": 0.2, "corrupted": str(world / "rough")},
        optimiser={"epochs": 20, "lr": 5e-3},
        device="cuda",
        precision=precision,
        chosen_by="map@0.5",
    )
    done = train(config, tmp_path)
    assert done.skipped == 0
    assert done.score > 0.3
    assert train(config, tmp_path) == done


def test_a_stopped_run_goes_on_at_the_step_it_had_come_to(world: Path, tmp_path: Path) -> None:
    config = made_config(world, device="cuda", save_every=0.0)

    def stop(step: int, total: int) -> None:
        if step == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "stopped", on_step=stop)
    done, whole = train(config, tmp_path / "stopped"), train(config, tmp_path / "whole")
    assert done.steps == whole.steps


@pytest.mark.parametrize("detector", SIZES)
def test_a_gpu_answers_as_the_cpu_does(detector: str) -> None:
    torch.manual_seed(0)
    sizes = {"input_dim": 8, "dim": 32, "classes": 3, "max_length": 96, "levels": 4} | SIZES[detector]
    made = load_detector(detector, **sizes)
    x, lengths = made.batch([torch.randn(n, 8).numpy() for n in (40, 96)])
    with torch.inference_mode():
        here = made(x, lengths)
        there = made.cuda()(x.cuda(), lengths.cuda())
    torch.testing.assert_close(there.logits.cpu(), here.logits, rtol=1e-3, atol=1e-3)


def test_compiled_answers_as_eager_does() -> None:
    torch.manual_seed(0)
    sizes = {"input_dim": 8, "dim": 32, "classes": 3, "max_length": 96, "levels": 4}
    eager = load_detector("temporalmaxer", **sizes).cuda()
    compiled = load_detector("temporalmaxer", compiled=True, **sizes).cuda()
    compiled.load_state_dict(eager.state_dict())
    features = torch.randn(60, 8).numpy()
    one, other = (model.raw(features) for model in (eager, compiled))
    for here, there in zip(one["cls"], other["cls"], strict=True):
        assert abs(here - there).max() < 1e-3
