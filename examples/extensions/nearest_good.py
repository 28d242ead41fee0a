"""A mender of one's own: jostle mend in.mp4 -o out.mp4 --how nearest-good --import nearest_good"""

from jostle.extend import mender


@mender("nearest-good")
def nearest_good(frame, before, t, after):
    """The nearest intact frame, the earlier one in a tie."""
    return frame(before if t - before <= after - t else after)
