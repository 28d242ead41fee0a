"""Training events: plans, progress, warnings, and the running average of the weights."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from helpers.small_world import make_config, write_world
from helpers.stopped_work import logged_rows
from jostle.features.store import FeatureOrigin, VideoEntry
from jostle.training.events import TrainingPlan, TrainingProgress
from jostle.training.loop import train
from jostle.training.optimisation import Average
from jostle.training.schedule import OptimiserConfig, first_share


def average_after(ramp: bool, steps: int = 78) -> float:
    """Return the running average after a number of steps with weight 1, starting from weight 0."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    average = Average(model, 0.99, ramp=ramp)
    with torch.no_grad():
        model.weight.fill_(1)
    for _ in range(steps):
        average.update(model)
    return float(average.weights["weight"])


def test_ramped_average_forgets_the_initial_weights() -> None:
    assert average_after(ramp=True) == pytest.approx(1, abs=1e-6)
    assert average_after(ramp=False) == pytest.approx(1 - 0.99**78)  # as in the released programs
    assert first_share(OptimiserConfig(average=0.99), 78) < 1e-9


def test_plan_sentence_lists_warm_up_epochs_and_steps() -> None:
    plan = TrainingPlan("net", OptimiserConfig(warmup_epochs=3, epochs=10), 6, learn=210, choose=42)
    assert plan.sentence == (
        "net: 13 epochs (3 of warm-up, then 10) of 6 steps, 78 in all; 210 to learn from, 42 to choose the epoch by"
    )
    assert not plan.warning
    short = replace(plan, optimiser=replace(plan.optimiser, average=0.99, average_ramp=False))
    assert short.warning.startswith("after 78 steps the running average, which is what is kept, still is 46 %")


def test_run_reports_its_plan_and_loss(tmp_path: Path) -> None:
    events: list[Any] = []
    result = train(make_config(write_world(tmp_path / "world")), tmp_path / "run", watch=events.append)
    plan, progress = events[0], events[1:]
    assert isinstance(plan, TrainingPlan)
    assert all(isinstance(event, TrainingProgress) for event in progress)
    assert [event.step for event in progress] == list(range(1, plan.steps + 1))
    last = [row["total"] for row in logged_rows(tmp_path / "run", "step") if row["epoch"] == progress[-1].epoch]
    assert result.last_loss == pytest.approx(sum(last) / len(last))
    assert progress[-1].loss == result.last_loss
    assert "loss" in progress[0].sentence


def test_run_too_short_for_its_average_warns(tmp_path: Path) -> None:
    config = make_config(write_world(tmp_path / "world"))
    config = replace(config, optimiser=replace(config.optimiser, average=0.999, average_ramp=False))
    with pytest.warns(UserWarning, match="still is 9. % the initial weights"):
        train(config, tmp_path / "run")


def test_grid_is_read_from_features_json(tmp_path: Path) -> None:
    config = make_config(write_world(tmp_path / "world"))
    assert config.data.grid == (4, 16)
    entry = VideoEntry("video00.npy", 64, 12.5, 64, 10.0, "", (0, 0))
    record = asdict(FeatureOrigin("puppet_net", None, 8, 1, "all", 8)) | {
        "format": 1,
        "videos": {"video00": asdict(entry)},
    }
    (Path(config.data.features) / "features.json").write_text(json.dumps(record))
    assert make_config(tmp_path / "world").data.grid == (1, 8)
    assert make_config(tmp_path / "world").data.rates == {"video00.npy": 12.5}
    assert make_config(tmp_path / "world", data={"stride": 2}).data.grid == (2, 8)
