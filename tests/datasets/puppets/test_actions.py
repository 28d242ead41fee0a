"""Pose curves of the sixteen actions: start and end poses, and pairs that mirror each other in time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.datasets.puppets.actions import (
    APPROACH,
    CLASSES,
    REVERSED,
    ActionStyle,
    after,
    before,
    grasp,
    pose_curve,
    release,
)
from jostle.datasets.puppets.rig import EMPTY, Joint, Rest, rest_pose

PHASES = np.linspace(0.0, 1.0, 49)
STARTS = {"stand_up": Rest(seated=True), "lower": Rest(prop=0, raised=True), "raise": Rest(prop=0)}
STARTS |= {"put_down": Rest(prop=0), "throw": Rest(prop=0)}

styles = st.builds(
    ActionStyle,
    seconds=st.floats(1, 10),
    amplitude=st.floats(0.5, 1.15),
    warp=st.floats(-0.9, 0.9),
    arm=st.integers(0, 1),
    lean=st.floats(-0.15, 0.15),
    cycles=st.integers(1, 6),
    travel=st.floats(0.4, 2.0),
)


def test_there_are_sixteen_in_alphabetical_order() -> None:
    assert len(CLASSES) == 16
    assert list(CLASSES) == sorted(CLASSES)
    assert set(APPROACH) == set(CLASSES)


@pytest.mark.parametrize("label", CLASSES)
@given(style=styles, hand=st.integers(0, 1))
def test_an_action_goes_from_rest_to_rest(label: str, style: ActionStyle, hand: int) -> None:
    start = STARTS.get(label, Rest())
    pose = pose_curve(label, PHASES, style, start, hand)
    first, last = rest_pose(start, hand), rest_pose(after(label, start, 0), hand)
    if label in ("push", "pull"):
        first[Joint.TRAVEL], last[Joint.TRAVEL] = ((0, style.travel), (style.travel, 0))[label == "pull"]
    assert pose[0] == pytest.approx(first, abs=1e-6)
    assert pose[-1] == pytest.approx(last, abs=1e-6)
    assert np.abs(pose - pose[0]).max() > 0.2, "nothing moves"


@pytest.mark.parametrize("label", sorted(REVERSED))
@given(style=styles, hand=st.integers(0, 1))
def test_paired_actions_are_each_other_in_reverse(label: str, style: ActionStyle, hand: int) -> None:
    start = STARTS.get(label, Rest())
    forwards = pose_curve(REVERSED[label], PHASES, style, before(REVERSED[label], start), hand)
    backwards = pose_curve(label, 1.0 - PHASES, style, start, hand)
    assert np.array_equal(backwards, forwards) or np.allclose(backwards, forwards, atol=1e-9)
    assert grasp("pick_up", style) == pytest.approx(1 - grasp("put_down", style))
    assert release("throw", style) == pytest.approx(1 - release("catch", style))


@pytest.mark.parametrize("label", CLASSES)
def test_a_state_can_be_undone(label: str) -> None:
    start = STARTS.get(label, Rest())
    assert before(label, after(label, start, 0)) == start


@pytest.mark.parametrize(
    ("one", "other", "until"), [("wave", "salute", 0.08), ("squat", "jump", 0.08), ("bow", "pick_up", 0.1)]
)
def test_similar_actions_begin_alike(one: str, other: str, until: float) -> None:
    phase = np.linspace(0.0, until, 5)
    movements = [pose_curve(label, phase, ActionStyle(), Rest(), 0) - rest_pose(Rest(), 0) for label in (one, other)]
    assert np.abs(movements[0] - movements[1]).max() < 0.25


def test_a_throw_lets_go_while_the_arm_is_up() -> None:
    style = ActionStyle(seconds=4.0)
    pose = pose_curve("throw", np.array([release("throw", style)]), style, Rest(prop=0), 0)[0]
    assert pose[Joint.NEAR_ARM] > 1.5
    assert rest_pose(Rest(prop=EMPTY), 0)[Joint.NEAR_ARM] < 0.5
