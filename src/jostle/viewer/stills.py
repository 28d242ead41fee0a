"""Single frames of a rendered video as JPEG, for a browser that cannot play it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from jostle.errors import MediaError
from jostle.media.decode import Reader

QUALITY = 90


def still(path: Path, number: int) -> bytes:
    """A frame of a video; a number beyond the last gives the last.

    Raises:
        MediaError: if it cannot be read.
    """
    with Reader(path, threads=1) as reader:
        frame = reader.frame(min(number, len(reader) - 1))
    done, data = cv2.imencode(".jpg", np.ascontiguousarray(frame[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise MediaError(f"{path.name}: frame {number} cannot be written as JPEG")
    return data.tobytes()
