"""Puppet skeletons: bone lengths, mirroring and posture."""

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
    appearance = look_of(0, seed % 50)
    pose = rng.uniform(-1.5, 1.5, (5, JOINTS))
    body = skeleton(pose, appearance, HEIGHT, np.full(5, 50 + 100j), np.full(5, facing))
    arm, leg = appearance.arm * HEIGHT / 2, appearance.leg * HEIGHT / 2
    for side in (0, 1):
        assert np.allclose(np.abs(body.elbows[side] - body.shoulders[side]), arm)
        assert np.allclose(np.abs(body.hands[side] - body.elbows[side]), arm)
        assert np.allclose(np.abs(body.knees[side] - body.hips[side]), leg, rtol=0.01)
        assert np.allclose(np.abs(body.ankles[side] - body.knees[side]), leg, rtol=0.01)
    assert np.allclose(np.abs(body.neck - body.hip), appearance.torso * HEIGHT)


def test_a_turned_puppet_is_a_mirror_image() -> None:
    pose = rest_pose(Rest(prop=0), 0)[None]
    appearance = look_of(0, 1)
    right = skeleton(pose, appearance, HEIGHT, np.array([0j]), np.array([1.0]))
    left = skeleton(pose, appearance, HEIGHT, np.array([0j]), np.array([-1.0]))
    for point, mirrored in ((right.head, left.head), (right.hands[0], left.hands[0]), (right.toes[1], left.toes[1])):
        assert point == pytest.approx(-np.conj(mirrored))


def test_a_standing_puppet_has_its_feet_on_the_floor_and_its_full_height() -> None:
    appearance = look_of(0, 4)
    body = skeleton(rest_pose(Rest(), 0)[None], appearance, HEIGHT, np.array([100j]), np.array([1.0]))
    assert body.ankles[0].imag == pytest.approx(100, abs=0.5)
    crown = body.head.imag - appearance.head * HEIGHT
    assert 100 - crown == pytest.approx(HEIGHT, rel=0.05)


def test_knees_bend_forwards() -> None:
    pose = rest_pose(Rest(), 0)[None].copy()
    pose[:, Joint.HIP_Y] = 0.6
    body = skeleton(pose, look_of(0, 2), HEIGHT, np.array([0j]), np.array([1.0]))
    assert (body.knees[0].real > body.ankles[0].real).all()


def test_appearances_differ_and_are_reproducible() -> None:
    assert look_of(0, 3) == look_of(0, 3)
    assert len({look_of(0, puppet) for puppet in range(40)}) == 40
    assert look_of(0, 3) != look_of(1, 3)
