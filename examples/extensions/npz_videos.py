"""Videos kept as NumPy archives: `jostle corrupt film.npz -c fog:3 --import npz_videos -o out.mp4`."""

import numpy as np

from jostle.extend import Clip, video_source


@video_source("npz", suffixes=(".npz",))
def npz(location, options):
    """Frames under `frames`, (T, H, W, 3) uint8 RGB, at the rate under `fps`, if it is there."""
    with np.load(location) as content:
        rate = float(content["fps"]) if "fps" in content else options.fps or 25
        return Clip.at_rate(content["frames"], rate)
