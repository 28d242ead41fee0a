"""Times of actions as stored by runs of recognition and of frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.evaluation.tasks.actions import action_pairs, known_actions, segments_from_pairs

LABELS = VideoLabels(("a", "b"), ("jump",), np.arange(2), np.zeros(2))
PAIRS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=4
)


def test_actions_are_known_if_annotated_beside_the_labels() -> None:
    truth = Truth.from_segments({"a": Segments.from_pairs([(1.0, 2.5)])})
    alone, both = (Dataset("folder", "test", Path("data"), parts, {}) for parts in ((LABELS,), (LABELS, truth)))
    assert known_actions(alone) == {}
    assert action_pairs(known_actions(both), LABELS.videos) == {"a": [[1.0, 2.5]]}


def test_action_pairs_contain_only_videos_of_the_run() -> None:
    actions = {name: Segments.from_pairs([(0.0, 1.0)]) for name in "abc"}
    assert list(action_pairs(actions, ["c", "a"])) == ["c", "a"]


@given(st.dictionaries(st.text(max_size=5), PAIRS, max_size=4))
def test_segments_survive_a_json_round_trip_exactly(pairs_by_video: dict[str, list[tuple[float, float]]]) -> None:
    actions = {name: Segments.from_pairs(pairs) for name, pairs in pairs_by_video.items()}
    restored = segments_from_pairs(json.loads(json.dumps(action_pairs(actions, actions))))
    assert list(restored) == list(actions)
    for name, own in actions.items():
        np.testing.assert_array_equal(restored[name].start, own.start)
        np.testing.assert_array_equal(restored[name].end, own.end)
