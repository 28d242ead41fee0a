"""Detectors on frames, end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.training.detection_config import FrameTrainingConfig
from jostle.training.task import training_task

if TYPE_CHECKING:
    from jostle.training.distributed import Processes
    from jostle.training.learner import Learner


@training_task("end-to-end", FrameTrainingConfig)
def make_learner(config: FrameTrainingConfig, processes: Processes) -> Learner:
    """Return the learner, once its settings are known to be sound."""
    from jostle.training.end_to_end import EndToEndLearner

    return EndToEndLearner(config, processes)
