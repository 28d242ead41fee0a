"""A training file: its `task` says which settings it holds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from jostle.errors import BadValue
from jostle.settings import read_settings
from jostle.training.config import TrainingConfig
from jostle.training.recognition_config import RecognitionConfig

TASKS: dict[str, type[TrainingConfig] | type[RecognitionConfig]] = {
    "detection": TrainingConfig,
    "recognition": RecognitionConfig,
}


def read_training(path: str | Path, overrides: Iterable[str] = ()) -> TrainingConfig | RecognitionConfig:
    """The settings of a run; a file without a task is of detection.

    Raises:
        BadValue: the file is not TOML, its task is not known, or it holds a key or a value that settings do not have.
    """
    task = _task(Path(path))
    if task not in TASKS:
        raise BadValue(f"{path}: task is one of {', '.join(TASKS)}, not {task!r}", fault="F59")
    return read_settings(TASKS[task], path, overrides)


def _task(path: Path) -> str:
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("task", "detection"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return "detection"  # whatever is wrong is said by who reads the settings
