"""Registry of training tasks: the settings of each, and what makes its learner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.core.registry import Registry
from jostle.core.settings import make_settings, read_toml
from jostle.errors import BadValue
from jostle.training.config import RunConfig

if TYPE_CHECKING:
    from jostle.training.distributed import Processes
    from jostle.training.learner import Learner

MakeLearner = Callable[[Any, "Processes"], "Learner"]
M = TypeVar("M", bound=MakeLearner)

DEFAULT_TASK = "detection"  # of a file that names none


@dataclass(frozen=True)
class TrainingTask:
    """A registered training task."""

    name: str
    config: type[RunConfig]  # its settings
    make_learner: MakeLearner


training_tasks: Registry[TrainingTask] = Registry("training task", "jostle.training.tasks")


def training_task(name: str, config: type[RunConfig]) -> Callable[[M], M]:
    """Register the decorated learner as a training task, and return it unchanged.

    It is a `Learner` class whose constructor takes the settings and the processes, or a function that does.

    Args:
        name: value of `task` in a training file.
        config: its settings, a dataclass derived from `RunConfig`.
    """
    if not (isinstance(config, type) and issubclass(config, RunConfig) and "__dataclass_fields__" in vars(config)):
        raise BadValue(f"training task {name}: {config!r} are no settings; derive a dataclass from RunConfig")
    written = next(field.default for field in fields(config) if field.name == "task")
    if written is not MISSING and written != name:
        raise BadValue(f"training task {name}: {config.__name__} has the default task {written!r}; write {name!r}")

    def register(make_learner: M) -> M:
        training_tasks.add(name, TrainingTask(name, config, make_learner))
        return make_learner

    return register


def read_training(path: str | Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Read the settings of a run, whose `task` says which there are; a file without one is for detection."""
    content = read_toml(path)
    task = content.get("task", DEFAULT_TASK)
    if not isinstance(task, str):
        raise BadValue(f"{path}: task is the name of a training task, not {str(task)[:80]}", fault="F59")
    return make_settings(training_tasks[task].config, content, overrides, where=str(path))
