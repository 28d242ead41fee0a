"""Resting states of puppets: standing or seated, with empty hands, a prop in one, or held overhead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.datasets.puppets.rig import ARMS, JOINTS, STANCE, STAND, Joint, Pose

SEAT_X, SEAT_Y = -0.36, 0.52  # the hip of a seated puppet, in legs
EMPTY = -1


@dataclass(frozen=True)
class Rest:
    """A state that lasts until an action ends it.

    Attributes:
        seated: on the stool.
        prop: which of the film's props it holds; -1 for none.
        raised: holding it overhead with both arms.
    """

    seated: bool = False
    prop: int = EMPTY
    raised: bool = False


def rest_pose(rest: Rest, hand: int) -> Pose:
    """Return the pose of a state; `hand` (0 near, 1 far) is the one that holds."""
    pose = np.zeros(JOINTS)
    pose[Joint.HIP_Y] = STAND
    pose[Joint.NEAR_FOOT_X], pose[Joint.FAR_FOOT_X] = -STANCE, STANCE
    for arm, elbow in ARMS:
        pose[arm], pose[elbow] = 0.0, 0.25
    if rest.seated:
        pose[Joint.HIP_X], pose[Joint.HIP_Y] = SEAT_X, SEAT_Y
        pose[Joint.NEAR_FOOT_X], pose[Joint.FAR_FOOT_X] = 0.02, 0.16
        for arm, elbow in ARMS:
            pose[arm], pose[elbow] = 0.45, 0.55
    if rest.raised:
        pose[Joint.BOTH] = 1.0
        pose[Joint.HEAD] = -0.12
        for arm, elbow in ARMS:
            pose[arm], pose[elbow] = 2.85, 0.2
    elif rest.prop != EMPTY:
        arm, elbow = ARMS[hand]
        pose[arm], pose[elbow] = 0.3, 1.25
    return pose
