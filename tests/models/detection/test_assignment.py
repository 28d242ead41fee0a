"""Assignment of points to actions, on small grids."""

from __future__ import annotations

import pytest
import torch

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions, assign, assign_by_cost
from jostle.models.detection.blocks.pyramid import Points

POINTS = Points.of((16, 8), ((0.0, 4.0), (4.0, 10000.0)), torch.device("cpu"))
ALL = torch.ones(1, 24, dtype=torch.bool)


def positives(actions: Actions, radius: float | None = 1.5, mask: torch.Tensor = ALL) -> list[int]:
    assignment = assign(POINTS, actions, mask, classes=3, radius=radius)
    return torch.nonzero(assignment.positive[0]).flatten().tolist()


def test_short_action_is_assigned_to_points_around_its_centre() -> None:
    actions = Actions.of([([[2.0, 8.0]], [1])])
    # 1.5 strides around 5; a far end at distance 4 belongs to both levels
    assert positives(actions) == [4, 5, 6, 16 + 2, 16 + 3]
    assignment = assign(POINTS, actions, ALL, classes=3, radius=1.5)
    assert assignment.offsets[0, 4].tolist() == [2.0, 4.0]
    assert assignment.classes[0, 4].tolist() == [0, 1, 0]
    assert assignment.classes[0, 16].sum() == 0


def test_without_a_radius_all_points_of_the_action_are_positive() -> None:
    actions = Actions.of([([[1.0, 14.0]], [1])])
    assert positives(actions) == [16 + 3, 16 + 4, 16 + 5]
    assert positives(actions, radius=None) == [16 + i for i in range(1, 7)]


def test_offsets_are_in_strides() -> None:
    assignment = assign(POINTS, Actions.of([([[1.0, 15.0]], [0])]), ALL, classes=3, radius=1.5)
    assert torch.nonzero(assignment.positive[0]).flatten().tolist() == [16 + 3, 16 + 4, 16 + 5]
    assert assignment.offsets[0, 16 + 4].tolist() == [3.5, 3.5]


def test_shortest_action_wins_and_equal_ones_share_a_point() -> None:
    actions = Actions.of([([[2.0, 8.0], [4.0, 6.0], [4.0, 6.0005]], [0, 1, 2])])
    assignment = assign(POINTS, actions, ALL, classes=3, radius=1.5)
    assert assignment.classes[0, 5].tolist() == [0, 1, 1]
    assert assignment.offsets[0, 5].tolist() == [1.0, 1.0]


def test_one_step_actions_and_no_actions() -> None:
    assert positives(Actions.of([([[4.5, 5.5]], [0])])) == [5]
    assert positives(Actions.of([([[4.2, 4.8]], [0])])) == []  # between two points
    assert positives(Actions.of([([], [])])) == []
    assert positives(Actions.of([([[5.0, 5.0]], [0])])) == []


def test_padding_is_never_positive() -> None:
    mask = ALL.clone()
    mask[:, 5:16] = False
    assert positives(Actions.of([([[2.0, 8.0]], [1])]), mask=mask) == [4, 16 + 2, 16 + 3]


def test_assign_by_cost_takes_the_cheapest_containing_action() -> None:
    actions = Actions.of([([[2.0, 8.0], [4.0, 6.0]], [0, 1])])
    logits, offsets = torch.zeros(1, 24, 3), torch.full((1, 24, 2), 3.0)  # the network sees the longer action
    assignment = assign_by_cost(POINTS, actions, ALL, radius=1.5, logits=logits, offsets=offsets)
    plain = assign(POINTS, actions, ALL, classes=3, radius=1.5)
    assert torch.equal(assignment.classes, plain.classes)
    assert torch.equal(assignment.positive, plain.positive)
    assert plain.offsets[0, 5].tolist() == [1.0, 1.0]
    assert assignment.offsets[0, 5].tolist() == [3.0, 3.0]


def test_segments_without_labels_are_refused() -> None:
    with pytest.raises(BadValue, match="video 0 of the batch has 1 segments and 2 labels"):
        Actions.of([([[0.0, 1.0]], [0, 1])])
