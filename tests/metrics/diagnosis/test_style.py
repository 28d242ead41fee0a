"""Styles of diagnosis: buckets, edges and thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types.truth import CHARACTERISTICS
from jostle.errors import BadValue, UnknownName
from jostle.metrics.diagnosis import Buckets, Style, styles


def test_buckets_include_the_upper_edge_and_the_first_also_the_lower() -> None:
    buckets = Buckets("length", (0, 3, 6, np.inf), ("XS", "S", "M"))
    values = np.array([0, 1e-9, 3, np.nextafter(3, 4), 6, 7, 1e9])
    assert buckets.sort(values).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_missing_and_outside_values_have_no_bucket() -> None:
    buckets = Buckets("coverage", (0, 0.5, 1), ("S", "L"))
    assert buckets.sort(np.array([-0.1, 1.1, np.nan])).tolist() == [-1, -1, -1]
    assert buckets.sort(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("name", list(styles))
def test_styles_use_known_characteristics(name: str) -> None:
    names = [buckets.characteristic for buckets in styles[name].buckets]
    assert names == [known for known in CHARACTERISTICS if known in names]


def test_published_thresholds_and_edges() -> None:
    assert styles["thumos14"].tious == (0.5,)
    assert styles["activitynet"].tious == tuple(np.linspace(0.5, 0.95, 10).tolist())
    edges = {buckets.characteristic: buckets.edges for buckets in styles["thumos14"].buckets}
    assert edges["num-instances"] == (-1, 1, 40, 80, np.inf)
    assert {len(style.buckets) for style in styles.values()} == {3, 6}


def test_invalid_buckets_and_styles_are_refused() -> None:
    with pytest.raises(BadValue, match="'length' need rising edges, one more than labels; got 2 edges and 2 labels"):
        Buckets("length", (0, 1), ("a", "b"))
    with pytest.raises(BadValue, match="rising edges"):
        Buckets("length", (0, 2, 1), ("a", "b"))
    with pytest.raises(BadValue, match="style 'mine' needs thresholds above 0"):
        Style("mine", (), (), "all")
    with pytest.raises(UnknownName, match="no style is called 'thumos'"):
        styles["thumos"]
