"""Reading of training files, whose `task` selects the settings class."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jostle.core.settings import make_settings, read_toml
from jostle.errors import BadValue
from jostle.training.detection_config import FrameTrainingConfig, TrainingConfig
from jostle.training.inspection_config import InspectionConfig
from jostle.training.recognition_config import RecognitionConfig

Settings = TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig
TASKS: dict[str, type[Settings]] = {
    "detection": TrainingConfig,
    "end-to-end": FrameTrainingConfig,
    "recognition": RecognitionConfig,
    "inspection": InspectionConfig,
}


def read_training(path: str | Path, overrides: Iterable[str] = ()) -> Settings:
    """Read the settings of a run; a file without a task is for detection."""
    content = read_toml(path)
    task = content.get("task", "detection")
    if not isinstance(task, str) or task not in TASKS:
        raise BadValue(f"{path}: task is one of {', '.join(TASKS)}, not {str(task)[:80]!r}", fault="F59")
    return make_settings(TASKS[task], content, overrides, where=str(path))
