"""Training, of detectors, recognisers and inspectors alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import BadValue
from jostle.loading.installed import need_torch

if TYPE_CHECKING:
    from jostle.training.config import TrainingConfig
    from jostle.training.frames_config import FrameTrainingConfig
    from jostle.training.inspection_config import InspectionConfig
    from jostle.training.loop import Trained
    from jostle.training.recognition_config import RecognitionConfig
    from jostle.training.telling import Watch

Progress = Callable[[int, int], None]


def _check_names(config: TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig) -> None:
    """A wrong name is told of before torch is imported, which takes seconds."""
    from jostle.loading.names import check_known
    from jostle.training.config import TrainingConfig
    from jostle.training.frames_config import FrameTrainingConfig
    from jostle.training.inspection_config import InspectionConfig

    if isinstance(config, InspectionConfig):
        return
    if isinstance(config, TrainingConfig):
        check_known("detectors", config.detector)
        return
    if isinstance(config, FrameTrainingConfig):
        check_known("detectors", config.detector)
    elif config.model is None:
        check_known("models", config.recogniser)
    check_known("datasets", config.data.dataset)


def train(
    config: str | Path | TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig,
    out: str | Path,
    *,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Train a detector or a recogniser, clean or robust, or an inspector; a run that was stopped in `out` goes on.

    Args:
        config: a TOML file, whose `task` says what is trained, or the settings themselves.
        out: folder for checkpoint, log and weights.
        overrides: `key=value`, on top of the file.
        progress: called with (steps done, steps in all).
        watch: called with what the run is going to do, then after each step with where it stands: loss and scores.
    """
    need_torch("training")
    from jostle.training.reading import read_training

    if isinstance(config, str | Path):
        config = read_training(config, overrides)
    elif list(overrides):
        raise BadValue("overrides go with a file of settings; change the settings themselves")
    _check_names(config)
    from jostle.training.loop import train as run

    return run(config, Path(out), on_step=progress, watch=watch)
