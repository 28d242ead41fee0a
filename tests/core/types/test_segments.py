"""Segments: columns of equal length, validated on creation."""

from __future__ import annotations

import numpy as np
import pytest

from jostle import Segments
from jostle.errors import BadValue


def test_slicing_gives_segments() -> None:
    all_of_them = Segments([0.0, 2.0], [1.0, 3.0], [0, 1], [0.5, 0.9], ("a", "b"))  # type: ignore[arg-type]
    best = all_of_them[np.array([False, True])]
    assert best.start.tolist() == [2.0]
    assert best.score is not None
    assert best.score.tolist() == [0.9]
    assert repr(best) == "Segments(1 scored, 2 classes)"


@pytest.mark.parametrize("pair", [(2.0, 1.0), (1.0, 1.0), (-1.0, 1.0), (0.0, np.nan), (0.0, np.inf)])
def test_a_bad_segment_is_named(pair: tuple[float, float]) -> None:
    with pytest.raises(BadValue, match=r"segment 1 is \[.*\): a segment needs 0 <= start < end"):
        Segments.from_pairs([(0.0, 1.0), pair])


def test_columns_must_have_one_length() -> None:
    with pytest.raises(BadValue, match="must have one length"):
        Segments([0.0], [1.0, 2.0], [0])  # type: ignore[arg-type]


def test_labels_point_into_the_classes() -> None:
    with pytest.raises(BadValue, match=r"labels must lie in 0\.\.0, got 3"):
        Segments([0.0], [1.0], [3])  # type: ignore[arg-type]


def test_empty_segments_are_allowed() -> None:
    assert len(Segments.from_pairs([])) == 0


def test_from_pairs_refuses_triples() -> None:
    with pytest.raises(BadValue, match="pairs in seconds"):
        Segments.from_pairs([(0.0, 1.0, 2.0)])
