from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue, UnknownName
from jostle.metrics.class_projection import class_indices, class_names, project_classes


@pytest.mark.parametrize(("target", "count"), [("imagenet-vid", 30), ("ytbb", 24)])
def test_shapes_of_projected_classes(target: str, count: int) -> None:
    assert len(class_names(target)) == len(class_indices(target)) == count
    indices = [i for group in class_indices(target) for i in group]
    assert len(set(indices)) == len(indices)
    assert project_classes(np.zeros((2, 3, 1000)), target).shape == (2, 3, count)


def test_merge_functions() -> None:
    scores = np.zeros(1000, np.float32)
    scores[[294, 295, 296, 297]] = [1, 2, 3, 6]
    bear = class_names("ytbb").index("bear")
    merged = {m: project_classes(scores, "ytbb", merge=m)[bear] for m in ("max", "mean", "median", "sum")}
    assert merged == {"max": 6, "mean": 3, "median": 2.5, "sum": 12}


def test_classes_missing_in_imagenet_score_minus_infinity() -> None:
    projected = project_classes(np.zeros(1000, int), "ytbb")
    assert [name for name, score in zip(class_names("ytbb"), projected, strict=True) if score == -np.inf] == [
        "cow",
        "giraffe",
        "skateboard",
        "toilet",
        "none",
    ]


def test_invalid_targets_and_scores_are_refused() -> None:
    with pytest.raises(UnknownName, match="no set of classes is called 'ytb': did you mean ytbb"):
        project_classes(np.zeros(1000), "ytb")
    with pytest.raises(BadValue, match="merge must be one of max, mean, median, sum, got 'min'"):
        project_classes(np.zeros(1000), "ytbb", merge="min")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match=r"must have 1000 classes along the last axis, got shape \(30,\)"):
        project_classes(np.zeros(30), "ytbb")
