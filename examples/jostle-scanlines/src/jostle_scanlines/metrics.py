"""A metric: of recognition it gets scores (N, C) and the class of each row, and gives one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.extend import metric


@metric("balanced_accuracy", task="recognition")
def balanced_accuracy(scores: Any, labels: Any) -> float:
    """The mean over classes of the share of their clips that are told right."""
    right = scores.argmax(1) == labels
    return float(np.mean([right[labels == label].mean() for label in np.unique(labels)]))
