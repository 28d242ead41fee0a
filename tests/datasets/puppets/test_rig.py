"""Bones keep their length whatever the pose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.datasets.puppets.figure import look_of
from jostle.datasets.puppets.rig import JOINTS, Joint, Rest, rest_pose, skeleton

HEIGHT = 60.0


@given(st.integers(0, 10**6), st.sampled_from([-1.0, 1.0]))
def test_bones_keep_their_length(seed: int, facing: float) -> None:
    rng = np.random.default_rng(seed)
    look = look_of(0, seed % 50)
    pose = rng.uniform(-1.5, 1.5, (5, JOINTS))
    body = skeleton(pose, look, HEIGHT, np.full(5, 50 + 100j), np.full(5, facing))
    arm, leg = look.arm * HEIGHT / 2, look.leg * HEIGHT / 2
    for side in (0, 1):
        assert np.allclose(np.abs(body.elbows[side] - body.shoulders[side]), arm)
        assert np.allclose(np.abs(body.hands[side] - body.elbows[side]), arm)
        assert np.allclose(np.abs(body.knees[side] - body.hips[side]), leg, rtol=0.01)
        assert np.allclose(np.abs(body.ankles[side] - body.knees[side]), leg, rtol=0.01)
    assert np.allclose(np.abs(body.neck - body.hip), look.torso * HEIGHT)


def test_a_turned_puppet_is_a_mirror_image() -> None:
    pose = rest_pose(Rest(prop=0), 0)[None]
    look = look_of(0, 1)
    right = skeleton(pose, look, HEIGHT, np.array([0j]), np.array([1.0]))
    left = skeleton(pose, look, HEIGHT, np.array([0j]), np.array([-1.0]))
    for here, there in ((right.head, left.head), (right.hands[0], left.hands[0]), (right.toes[1], left.toes[1])):
        assert here == pytest.approx(-np.conj(there))


def test_a_standing_puppet_has_its_feet_on_the_floor_and_its_full_height() -> None:
    look = look_of(0, 4)
    body = skeleton(rest_pose(Rest(), 0)[None], look, HEIGHT, np.array([100j]), np.array([1.0]))
    assert body.ankles[0].imag == pytest.approx(100, abs=0.5)
    crown = body.head.imag - look.head * HEIGHT
    assert 100 - crown == pytest.approx(HEIGHT, rel=0.05)


def test_knees_bend_forwards() -> None:
    pose = rest_pose(Rest(), 0)[None].copy()
    pose[:, Joint.HIP_Y] = 0.6
    body = skeleton(pose, look_of(0, 2), HEIGHT, np.array([0j]), np.array([1.0]))
    assert (body.knees[0].real > body.ankles[0].real).all()


def test_looks_differ_and_stay() -> None:
    assert look_of(0, 3) == look_of(0, 3)
    assert len({look_of(0, puppet) for puppet in range(40)}) == 40
    assert look_of(0, 3) != look_of(1, 3)
