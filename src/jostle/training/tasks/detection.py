"""Detectors on features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.training.detection_config import TrainingConfig
from jostle.training.task import training_task

if TYPE_CHECKING:
    from jostle.training.distributed import Processes
    from jostle.training.learner import Learner


@training_task("detection", TrainingConfig)
def make_learner(config: TrainingConfig, processes: Processes) -> Learner:
    """Return the learner, once its settings are known to be sound."""
    from jostle.training.detection import DetectionLearner

    return DetectionLearner(config, processes)
