"""Facts of a video, found without decoding more than its first frame."""

from __future__ import annotations

import os
from fractions import Fraction

from jostle.io.video.facts import VideoFacts, facts_of, require_pyav
from jostle.io.video.validation import Limits, PathLike, check_file


def probe(path: PathLike, *, limits: Limits | None = None, fps: Fraction | None = None) -> VideoFacts:
    """Return the facts of a video file or a folder of images; raises MediaError if it is not a video.

    Only local, regular files are opened, and nothing that they point to.

    Args:
        fps: the rate of images, where nothing else says it.
    """
    limits = limits or Limits()
    if os.path.isdir(path):
        from jostle.io.video.frame_folder import FrameFolder
        from jostle.io.video.images import ImageFrames

        return ImageFrames(FrameFolder(path, limits), limits=limits, fps=fps).facts
    name, identity = check_file(path)
    require_pyav("reading video")
    from jostle.io.video.ffmpeg import open_input, picture_stream

    with open_input(name, limits) as container:
        stream = picture_stream(container, name, limits)
        return facts_of(container, stream, name, identity.size)
