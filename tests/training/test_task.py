"""Registry of training tasks: declarations and learners that are wrong, and settings of another task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import jostle
from jostle.core import plugins
from jostle.errors import BadValue, UnknownName
from jostle.extend import Learner, RunConfig, training_task
from jostle.training.task import training_tasks


@dataclass(frozen=True, kw_only=True)
class LimeConfig(RunConfig):
    """Settings of a task."""

    task: str = "lime"


class Undecorated(RunConfig):
    """Settings that are no dataclass."""


class Lime(Learner):
    """A learner without a name."""

    def __init__(self, config: Any, processes: Any) -> None:
        self.config, self.processes = config, processes
        self.model, self.steps_an_epoch = torch.nn.Linear(1, 1), 1

    def losses(self, epoch: int, step: int) -> Any:
        yield {}


class Named(Lime):
    """A learner whose losses have no total."""

    name = "lime"


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unregister afterwards what a test registered."""
    list(training_tasks)
    monkeypatch.setattr(training_tasks, "_entries", dict(training_tasks._entries))
    monkeypatch.setattr(plugins, "_parts", dict(plugins._parts))
    yield
    plugins.origin_of.cache_clear()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (dict, r"training task lime: <class 'dict'> are no settings; derive a dataclass from RunConfig"),
        (Undecorated, "derive a dataclass from RunConfig"),
        (type(LimeConfig()), "LimeConfig has the default task 'lime'; write 'lemon'"),
    ],
)
def test_settings_of_a_task_are_checked_when_it_is_registered(config: Any, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        training_task("lemon" if config is LimeConfig else "lime", config)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (lambda config, processes: 3, "training task lime: 3 is no Learner; derive its class from Learner"),
        (Lime, "training task lime: its learner has no name; set it when it is made"),
        (Named, "training task lime: its losses have no total, which is what is minimised"),
    ],
)
def test_a_learner_that_is_none_is_explained(learner: Any, message: str, tmp_path: Path) -> None:
    training_task("lime", LimeConfig)(learner)
    with pytest.raises(BadValue, match=message):
        jostle.train(LimeConfig(), tmp_path)


def test_settings_of_another_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="training task detection takes a TrainingConfig, not a LimeConfig"):
        jostle.train(LimeConfig(task="detection"), tmp_path)
    with pytest.raises(BadValue, match="config is the path of a TOML file or the settings of a"):
        jostle.train({"task": "detection"}, tmp_path)  # type: ignore[arg-type]


def test_tasks_are_named_and_a_misspelt_one_is_refused_with_the_nearest(tmp_path: Path) -> None:
    assert jostle.names("trainingtasks") == ["detection", "end-to-end", "inspection", "recognition"]
    (tmp_path / "a.toml").write_text('task = "recogniton"\n')
    with pytest.raises(UnknownName, match="no training task is called 'recogniton': did you mean recognition"):
        jostle.train(tmp_path / "a.toml", tmp_path / "run")
    (tmp_path / "a.toml").write_text("task = 3\n")
    with pytest.raises(BadValue, match=r"a\.toml: task is the name of a training task, not 3"):
        jostle.train(tmp_path / "a.toml", tmp_path / "run")


@pytest.mark.parametrize("name", ["score_every", "bad_steps"])
def test_numbers_of_a_run_are_at_least_1(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f'task = "recognition"\n{name} = 0\n')
    with pytest.raises(BadValue, match=rf"a\.toml: {name}: 0 is not at least 1"):
        jostle.train(tmp_path / "a.toml", tmp_path / "run")
