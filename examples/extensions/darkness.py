"""A damage finder of one's own: jostle run puppets-c --model ... --mend darkness --import darkness"""

import numpy as np

from jostle.extend import damage_finder


@damage_finder("darkness")
class Darkness:
    """Frames that are nearly black."""

    name = "darkness"
    fingerprint = None  # of weights; there are none

    def finder_for(self, clean):
        """Return the finder for one video; one that compares states of it would read the clean frames here."""
        return self

    def find_damaged(self, state, origin):
        """Return which frames of a state of the video are damaged."""
        return np.array([state.block(t, t + 1).max() < 16 for t in range(len(state))])
