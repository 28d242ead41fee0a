"""Clips, segments, and tables of truth, predictions and labels: validated on creation, read-only, cut consistently."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from jostle import Clip, Segments
from jostle.core.types import Predictions, Spans, Truth, VideoLabels
from jostle.core.types.clip import check_rate
from jostle.errors import BadValue


def frames(n: int = 4) -> np.ndarray:
    return np.zeros((n, 6, 8, 3), np.uint8)


def clip(n: int = 4) -> Clip:
    return Clip.at_rate(frames(n), 25)


def truth(**changes: Any) -> Truth:
    columns = {"video": [0, 1, 1], "start": [1.0, 2.0, 5.0], "end": [3.0, 4.0, 5.0], "label": [0, 1, 0]}
    return Truth(**({"videos": ("a", "b"), "classes": ("Jump", "Run")} | columns | changes))


def predictions(**changes: Any) -> Predictions:
    columns = {"video": [0, 0], "start": [1.0, 9.0], "end": [3.0, 8.0], "label": [0, 0], "score": [0.5, 0.25]}
    return Predictions(**({"videos": ("a",), "classes": ("Jump",)} | columns | changes))


def at_times(times: list[float]) -> Callable[[], Clip]:
    return lambda: Clip(frames(), np.array(times, float), Fraction(25))


def with_pair(start: float, end: float) -> Callable[[], Segments]:
    return lambda: Segments.from_pairs([(0.0, 1.0), (start, end)])


NO_PAIR = r"segment 1 is \[.*\): a segment needs 0 <= start < end"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clip.at_rate(np.zeros((4, 6, 8), np.uint8), 25), r"shape \(T, H, W, 3\), got \(4, 6, 8\)"),
        (lambda: Clip.at_rate(np.zeros((4, 6, 8, 4), np.uint8), 25), r"got \(4, 6, 8, 4\)"),
        (lambda: Clip.at_rate(np.zeros((4, 6, 8, 3), np.float32), 25), "must be uint8 in 0..255, got float32"),
        (lambda: Clip.at_rate(np.zeros((4, 0, 8, 3), np.uint8), 25), "must have a height and a width"),
        (lambda: Clip.at_rate([[1]], 25), "must be a NumPy array"),  # type: ignore[arg-type]
        (at_times([0, 1, 1, 2]), "finite and strictly increasing"),
        (at_times([0, 2, 1, 3]), "finite and strictly increasing"),
        (at_times([0, 1, np.nan, 3]), "finite and strictly increasing"),
        (at_times([0, 1, 2]), "4 frames needs 4 timestamps"),
        (lambda: clip().with_frames(frames(3)), r"must stay \(4, 6, 8, 3\) uint8"),
        (lambda: clip()[1], "cut with a slice"),
        (with_pair(2.0, 1.0), NO_PAIR),
        (with_pair(1.0, 1.0), NO_PAIR),
        (with_pair(-1.0, 1.0), NO_PAIR),
        (with_pair(0.0, np.nan), NO_PAIR),
        (with_pair(0.0, np.inf), NO_PAIR),
        (lambda: Segments.from_pairs([(0.0, 1.0, 2.0)]), "pairs in seconds"),
        (lambda: Segments([0.0], [1.0, 2.0], [0]), "must have one length"),
        (lambda: Segments([0.0], [1.0], [3]), r"labels must lie in 0\.\.0, got 3"),
        (lambda: truth(end=[3.0, 1.0, 6.0]), r"instance 1 is \[2.0, 1.0\): it needs 0 <= start <= end, in seconds"),
        (lambda: truth(start=[-1.0, 2.0, 5.0]), "instance 0"),
        (lambda: truth(start=[np.nan, 2.0, 5.0]), "column 'start' must be finite; 1 are not, the first in row 0"),
        (lambda: truth(start=[[1.0]]), "must be one-dimensional"),
        (lambda: truth(label=[0, 2, 0]), "column 'label' must lie in 0..1, got 2"),
        (lambda: truth(video=[0, 1]), "columns must have one length, got {'video': 2"),
        (lambda: truth(videos=("a", "a")), "video 'a' appears twice"),
        (lambda: truth(duration=[3.0]), "'duration' must have 2 entries, got 1"),
        (lambda: truth(label_ids=(1,)), "'label_ids' must have 2 entries, got 1"),
        (lambda: truth(characteristics={"length": [1.0]}), "one length"),
        (lambda: truth(ambiguous=Spans([7], [0.0], [1.0])), "video of ambiguous stretches"),
        (lambda: predictions(score=[np.inf, 0.1]), "column 'score' must be finite"),
        (lambda: predictions(score=[0.1]), "one length"),
        (lambda: predictions(label=[0, 1]), "column 'label' must lie in 0..0, got 1"),
        (lambda: predictions(video=[0, -1]), "column 'video' must lie in 0..0, got -1"),
        (lambda: predictions(classes=("Jump", "Jump")), "class 'Jump' appears twice"),
        (lambda: VideoLabels(("a",), ("x",), [0], [3]), "'label' must lie in"),
        *((lambda fps=fps: check_rate(fps), "fps must be a positive number") for fps in (0, -1, "fast", None)),
        *((lambda fps=fps: check_rate(fps), "fps must be a positive number") for fps in (float("nan"), float("inf"))),
    ],
)
def test_wrong_content_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        make()


def test_frames_and_columns_are_read_only_and_the_input_stays_writeable() -> None:
    array = frames()
    for column in (Clip.at_rate(array, 25).frames, truth().start, predictions().score):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    array[0] = 1
    assert array.flags.writeable


def test_clips_keep_their_times() -> None:
    part = clip(10)[4:6]
    assert (len(part), part.pts.tolist()) == (2, [0.16, 0.2])
    one = clip()
    other = one.with_frames(frames() + 7)
    assert other.pts is one.pts
    assert other.frames.min() == 7
    with pytest.raises(ValueError, match="read-only"):
        other.frames[0] = 1
    assert repr(one) == "Clip(4 frames of 8x6, 0.000-0.120 s, 25.000 fps)"


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        (29.97, Fraction(30000, 1001)),
        (23.976, Fraction(24000, 1001)),
        (59.94, Fraction(60000, 1001)),
        (30.0, Fraction(30)),
        (25, Fraction(25)),
        ("30000/1001", Fraction(30000, 1001)),
        (12.5, Fraction(25, 2)),
        (29.5, Fraction(59, 2)),
    ],
)
def test_rates_are_fractions(value: float | str, rate: Fraction) -> None:
    assert check_rate(value) == rate


def test_slicing_gives_segments() -> None:
    best = Segments([0.0, 2.0], [1.0, 3.0], [0, 1], [0.5, 0.9], ("a", "b"))[np.array([False, True])]
    assert (best.start.tolist(), best.score.tolist()) == ([2.0], [0.9])
    assert repr(best) == "Segments(1 scored, 2 classes)"
    assert repr(VideoLabels(("a",), ("x",), [0], [0], [0.5])) == "VideoLabels(1 scored labels of 1 videos, 1 classes)"


def test_empty_segments_and_reversed_predictions_are_allowed() -> None:
    assert len(Segments.from_pairs([])) == len(Predictions.from_segments({})) == 0
    assert len(predictions()) == 2


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
