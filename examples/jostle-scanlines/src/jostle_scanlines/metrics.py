"""A metric: of recognition it gets scores (N, C) and the class of each row, and gives one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.extend import metric


@metric("balanced_accuracy", task="recognition")
def balanced_accuracy(scores: Any, labels: Any) -> float:
    """Return the mean of the accuracies of all classes."""
    correct = scores.argmax(1) == labels
    return float(np.mean([correct[labels == label].mean() for label in np.unique(labels)]))
