"""Inspectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.training.inspection_config import InspectionConfig
from jostle.training.task import training_task

if TYPE_CHECKING:
    from jostle.training.distributed import Processes
    from jostle.training.learner import Learner


@training_task("inspection", InspectionConfig)
def make_learner(config: InspectionConfig, processes: Processes) -> Learner:
    """Return the learner, once its settings are known to be sound."""
    from jostle.training.inspection import InspectionLearner

    return InspectionLearner(config, processes)
