"""Recognisers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.training.recognition_config import RecognitionConfig
from jostle.training.task import training_task

if TYPE_CHECKING:
    from jostle.training.distributed import Processes
    from jostle.training.learner import Learner


@training_task("recognition", RecognitionConfig)
def make_learner(config: RecognitionConfig, processes: Processes) -> Learner:
    """Return the learner, once its settings are known to be sound."""
    from jostle.training.recognition import RecognitionLearner

    return RecognitionLearner(config, processes)
