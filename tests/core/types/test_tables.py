"""Truth, predictions and video labels: columns validated on creation."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types import Predictions, Segments, Spans, Truth, VideoLabels
from jostle.errors import BadValue


def truth(**changes) -> Truth:
    facts = {
        "videos": ("a", "b"),
        "classes": ("Jump", "Run"),
        "video": [0, 1, 1],
        "start": [1.0, 2.0, 5.0],
        "end": [3.0, 4.0, 5.0],
        "label": [0, 1, 0],
    }
    return Truth(**(facts | changes))


def predictions(**changes) -> Predictions:
    facts = {
        "videos": ("a",),
        "classes": ("Jump",),
        "video": [0, 0],
        "start": [1.0, 9.0],
        "end": [3.0, 8.0],
        "label": [0, 0],
        "score": [0.5, 0.25],
    }
    return Predictions(**(facts | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end": [3.0, 1.0, 6.0]}, r"instance 1 is \[2.0, 1.0\): it needs 0 <= start <= end, in seconds"),
        ({"start": [-1.0, 2.0, 5.0]}, "instance 0"),
        ({"start": [np.nan, 2.0, 5.0]}, "column 'start' must be finite; 1 are not, the first in row 0"),
        ({"label": [0, 2, 0]}, "column 'label' must lie in 0..1, got 2"),
        ({"video": [0, 1]}, "columns must have one length, got {'video': 2"),
        ({"videos": ("a", "a")}, "video 'a' appears twice"),
        ({"duration": [3.0]}, "'duration' must have 2 entries, got 1"),
        ({"label_ids": (1,)}, "'label_ids' must have 2 entries, got 1"),
        ({"characteristics": {"length": [1.0]}}, "one length"),
        ({"ambiguous": Spans([7], [0.0], [1.0])}, "video of ambiguous stretches"),
        ({"start": [[1.0]]}, "must be one-dimensional"),
    ],
)
def test_truth_is_validated_on_creation(changes, message) -> None:
    with pytest.raises(BadValue, match=message):
        truth(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": [np.inf, 0.1]}, "column 'score' must be finite"),
        ({"score": [0.1]}, "one length"),
        ({"label": [0, 1]}, "column 'label' must lie in 0..0, got 1"),
        ({"video": [0, -1]}, "column 'video' must lie in 0..0, got -1"),
        ({"classes": ("Jump", "Jump")}, "class 'Jump' appears twice"),
    ],
)
def test_predictions_are_validated_on_creation(changes, message) -> None:
    with pytest.raises(BadValue, match=message):
        predictions(**changes)


def test_predictions_may_have_reversed_segments() -> None:
    assert len(predictions()) == 2


def test_columns_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        truth().start[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        predictions().score[0] = 9


def test_the_fingerprint_does_not_depend_on_order_or_metadata() -> None:
    one = truth()
    reordered = truth(
        videos=("b", "a"),
        video=[0, 1, 0],
        start=[5.0, 1.0, 2.0],
        end=[5.0, 3.0, 4.0],
        label=[0, 0, 1],
        fps=[25.0, 30.0],
    )
    assert one.fingerprint == reordered.fingerprint
    assert one.fingerprint.startswith("sha256:")
    assert one.fingerprint != truth(end=[3.0, 4.0, 5.5]).fingerprint
    assert one.fingerprint != truth(ambiguous=Spans([0], [0.0], [1.0])).fingerprint


def test_keep_counts_the_removed_instances() -> None:
    kept_truth = truth(characteristics={"length": [2.0, 2.0, 0.0]}).keep(np.array([True, True, False]), "empty")
    assert len(kept_truth) == 2
    assert kept_truth.left_out == {"empty": 1}
    assert kept_truth.characteristics["length"].tolist() == [2.0, 2.0]
    assert kept_truth.classes == ("Jump", "Run")
    assert kept_truth.counts.tolist() == [1, 1]
    unchanged = truth()
    assert unchanged.keep(np.ones(3, bool), "nothing") is unchanged


def test_of_videos_keeps_their_annotations() -> None:
    full = truth(subsets=("x", "y"), duration=[9.0, 8.0], ambiguous=Spans([0, 1], [0.0, 1.0], [1.0, 2.0]))
    part = full.of_videos(["b", "elsewhere"])
    assert (part.videos, part.subsets, part.duration.tolist()) == (("b",), ("y",), [8.0])
    assert (part.start.tolist(), part.video.tolist(), part.ambiguous.start.tolist()) == ([2.0, 5.0], [0, 0], [1.0])
    assert part.classes == full.classes
    assert not part.left_out


def test_the_subset_is_named_only_if_unique() -> None:
    assert truth(subsets=("test", "test")).subset == "test"
    assert truth(subsets=("test", "train")).subset is None
    assert truth().subset is None


def test_tables_from_segments() -> None:
    one = Segments([1.0, 4.0], [2.0, 5.0], [1, 0], [0.3, 0.9], ("Jump", "Run"))
    other = Segments([0.5], [0.7], [0], [0.1], ("Run",))
    predicted = Predictions.from_segments({"a": one, "b": other, "c": one[:0]})
    assert predicted.videos == ("a", "b", "c")
    assert [predicted.classes[i] for i in predicted.label] == ["Run", "Jump", "Run"]
    assert predicted.video.tolist() == [0, 0, 1]
    annotated = Truth.from_segments({"a": one, "b": other})
    assert annotated.classes == ("Run", "Jump")
    assert annotated.start.tolist() == [1.0, 4.0, 0.5]
    assert len(Predictions.from_segments({})) == 0


def test_labels_of_videos_are_checked() -> None:
    assert repr(VideoLabels(("a",), ("x",), [0], [0], [0.5])) == "VideoLabels(1 scored labels of 1 videos, 1 classes)"
    with pytest.raises(BadValue, match="'label' must lie in"):
        VideoLabels(("a",), ("x",), [0], [3])
