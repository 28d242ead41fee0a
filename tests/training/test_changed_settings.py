"""Runs that go on after a version that has more settings, and refusals that name what changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.small_world import make_config
from helpers.stopped_work import Stop, logged_rows
from jostle.core.settings import settings_as_dict
from jostle.errors import SourceChanged
from jostle.training.checkpoint import CHECKPOINT
from jostle.training.config import RunConfig, changed_settings
from jostle.training.detection_config import DataConfig, TrainingConfig


@dataclass(frozen=True)
class LaterData(DataConfig):
    """Data settings of a later version, which has one more."""

    blur: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LaterConfig(TrainingConfig):
    """Settings of a later version, which has two more."""

    data: LaterData
    extra: int = 0
    options: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FreeConfig(LaterConfig):
    """Settings one more of which may change while a run goes on."""

    FREE = (*RunConfig.FREE, "extra")


def make_later(config: TrainingConfig, *, blur: float = 0.0, **changes: Any) -> LaterConfig:
    """Return the same settings as a later version has them."""
    settings, data = ({one.name: getattr(part, one.name) for one in fields(part)} for part in (config, config.data))
    return LaterConfig(**settings | {"data": LaterData(**data, blur=blur)} | changes)


def watch_until(last_step: int) -> Callable[[Any], None]:
    """Return a callback that stops a run before the checkpoint of a step is written."""

    def watch(event: Any) -> None:
        if getattr(event, "step", 0) == last_step and hasattr(event, "epoch"):
            raise Stop

    return watch


@pytest.fixture
def started(world: Path, tmp_path: Path) -> tuple[TrainingConfig, Path]:
    """Return a run that was stopped, and its settings."""
    config = make_config(world, save_every=0.0, data={"select": 0.2})
    with pytest.raises(Stop):
        jostle.train(config, tmp_path / "run", watch=watch_until(7))
    return config, tmp_path / "run"


def test_a_run_goes_on_after_settings_with_defaults_were_added(
    started: tuple[TrainingConfig, Path], tmp_path: Path
) -> None:
    config, folder = started
    result = jostle.train(make_later(config), folder)
    whole = jostle.train(config, tmp_path / "whole")
    assert result.weights.read_bytes() == whole.weights.read_bytes()
    assert logged_rows(folder, "step") == logged_rows(tmp_path / "whole", "step")


def test_a_run_goes_on_where_free_settings_changed(started: tuple[TrainingConfig, Path], tmp_path: Path) -> None:
    config, folder = started
    result = jostle.train(replace(config, device="auto", save_every=30.0, tensorboard=False), folder)
    assert result.weights.read_bytes() == jostle.train(config, tmp_path / "whole").weights.read_bytes()


@pytest.mark.fault("F72")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: replace(one, data=replace(one.data, views=2)), "data.views was 1, and is 2"),
        (lambda one: replace(one, seed=4, protocol="anet"), "seed was 3, and is 4; protocol was 'thumos14', and is"),
        (lambda one: replace(one, settings={"dim": 16}), "settings.input_dim was 8, and is not set"),
        (lambda one: replace(one, settings={**one.settings, "centre_radius": 2}), "settings.centre_radius was not set"),
        (lambda one: make_later(one, extra=5), "extra was 0, and is 5"),
        (lambda one: make_later(one, blur=0.5), "data.blur was 0.0, and is 0.5"),
        (lambda one: make_later(one, options={"a": 1}), "options.a was not set, and is 1"),
    ],
)
def test_F72_settings_that_changed_are_named(
    started: tuple[TrainingConfig, Path], change: Callable[[Any], Any], message: str
) -> None:
    config, folder = started
    before = (folder / CHECKPOINT).read_bytes()
    with pytest.raises(SourceChanged, match="holds a run with other settings: ") as caught:
        jostle.train(change(config), folder)
    assert message in str(caught.value)
    assert str(caught.value).endswith("; train into another folder, or remove it")
    assert (folder / CHECKPOINT).read_bytes() == before


@pytest.mark.fault("F72")
def test_F72_a_setting_that_is_gone_is_named(started: tuple[TrainingConfig, Path]) -> None:
    config, folder = started
    record = json.loads((folder / "train.json").read_text())
    record["config"]["data"]["blur"] = 0.5
    (folder / "train.json").write_text(json.dumps(record))
    with pytest.raises(SourceChanged, match=r"data\.blur was 0\.5, and is not set"):
        jostle.train(config, folder)


@pytest.mark.fault("F72")
@pytest.mark.parametrize("content", [None, "", '{"config": 3}', '{"conf'])
def test_F72_without_stored_settings_all_must_be_equal(
    started: tuple[TrainingConfig, Path], tmp_path: Path, content: str | None
) -> None:
    """The fingerprint of the checkpoint decides, which does not name what differs."""
    config, folder = started
    (folder / "train.json").unlink()
    if content is not None:
        (folder / "train.json").write_text(content)
    with pytest.raises(SourceChanged, match="other data or first weights"):
        jostle.train(replace(config, seed=4), folder)
    result = jostle.train(config, folder)
    assert result.weights.read_bytes() == jostle.train(config, tmp_path / "whole").weights.read_bytes()


@pytest.mark.fault("F72")
def test_F72_stored_settings_that_were_edited_are_refused(started: tuple[TrainingConfig, Path]) -> None:
    config, folder = started
    record = json.loads((folder / "train.json").read_text())
    record["config"]["seed"] = 4
    (folder / "train.json").write_text(json.dumps(record))
    with pytest.raises(SourceChanged, match="other data or first weights"):
        jostle.train(replace(config, seed=4), folder)


def test_former_keys_of_settings_are_no_change(world: Path) -> None:
    config = make_config(world)
    stored = {"task": "detection", "consistency": {"released_faults": False}, "seed": 3, "device": "cuda"}
    settings = {"detector", "data", "optimiser", "settings"}
    changed = changed_settings(stored, config)
    assert {line.partition(" was ")[0].partition(".")[0] for line in changed} == settings
    assert changed_settings(stored | {"consistency": {"released_faults": True}}, config)[-1:] != changed[-1:]


def test_a_task_names_settings_that_may_change(world: Path) -> None:
    later = make_later(make_config(world))
    free = FreeConfig(**{one.name: getattr(later, one.name) for one in fields(later)} | {"extra": 7, "device": "cuda"})
    assert changed_settings(settings_as_dict(later), free) == []
    assert changed_settings(settings_as_dict(later), replace(free, seed=9)) == ["seed was 3, and is 9"]
