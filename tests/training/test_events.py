"""What a run says of itself, and that what it keeps has learned something."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from helpers.small_world import made_config, write_world
from jostle.features.store import FeatureOrigin, VideoEntry
from jostle.training.events import TrainingPlan, TrainingProgress
from jostle.training.loop import train
from jostle.training.optimisation import Average
from jostle.training.schedule import OptimiserConfig, first_share


def moved(ramp: bool, steps: int = 78) -> float:
    """Where the average is after so many steps at 1, when the first weights were at 0."""
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    average = Average(model, 0.99, ramp=ramp)
    with torch.no_grad():
        model.weight.fill_(1)
    for _ in range(steps):
        average.update(model)
    return float(average.weights["weight"])


def test_the_average_forgets_the_first_weights() -> None:
    assert moved(ramp=True) == pytest.approx(1, abs=1e-6)
    assert moved(ramp=False) == pytest.approx(1 - 0.99**78)  # as the released programs do it
    assert first_share(OptimiserConfig(average=0.99), 78) < 1e-9


def test_epochs_come_on_top_of_the_warm_up_and_it_is_said() -> None:
    intent = TrainingPlan("net", OptimiserConfig(warmup_epochs=3, epochs=10), 6, learn=210, choose=42)
    assert intent.sentence == (
        "net: 13 epochs (3 of warm-up, then 10) of 6 steps, 78 in all; 210 to learn from, 42 to choose the epoch by"
    )
    assert not intent.warning
    short = replace(intent, optimiser=replace(intent.optimiser, average=0.99, average_ramp=False))
    assert short.warning.startswith("after 78 steps the running average, which is what is kept, still is 46 %")


def test_a_run_tells_its_loss_and_its_score(tmp_path: Path) -> None:
    told: list[Any] = []
    done = train(made_config(write_world(tmp_path / "world")), tmp_path / "run", watch=told.append)
    intent, moments = told[0], told[1:]
    assert isinstance(intent, TrainingPlan)
    assert all(isinstance(moment, TrainingProgress) for moment in moments)
    assert [moment.step for moment in moments] == list(range(1, intent.steps + 1))
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    last = [row["total"] for row in rows if row["event"] == "step" and row["epoch"] == moments[-1].epoch]
    assert done.last_loss == pytest.approx(sum(last) / len(last))
    assert moments[-1].loss == done.last_loss
    assert "loss" in moments[0].sentence


def test_a_run_that_is_too_short_for_its_average_warns(tmp_path: Path) -> None:
    config = made_config(write_world(tmp_path / "world"))
    config = replace(config, optimiser=replace(config.optimiser, average=0.999, average_ramp=False))
    with pytest.warns(UserWarning, match="still is 9. % the initial weights"):
        train(config, tmp_path / "run")


def test_what_extract_noted_beside_features_says_their_grid(tmp_path: Path) -> None:
    config = made_config(write_world(tmp_path / "world"))
    assert config.data.grid == (4, 16)
    entry = VideoEntry("video00.npy", 64, 12.5, 64, 10.0, "", (0, 0))
    noted = asdict(FeatureOrigin("puppet_net", None, 8, 1, "all", 8)) | {
        "format": 1,
        "videos": {"video00": asdict(entry)},
    }
    (Path(config.data.features) / "features.json").write_text(json.dumps(noted))
    assert made_config(tmp_path / "world").data.grid == (1, 8)
    assert made_config(tmp_path / "world").data.rates == {"video00.npy": 12.5}
    assert made_config(tmp_path / "world", data={"stride": 2}).data.grid == (2, 8)
