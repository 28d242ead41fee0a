"""The facts of a video: a path and what was learnt about it, no pixels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal


@dataclass(frozen=True)
class VideoFacts:
    """The facts of one video file, or of a folder of images.

    Attributes:
        path: absolute path of the file or folder.
        container: FFmpeg's name of the container format; "images" for images.
        codec: FFmpeg's name of the decoder; for images the ending of their names.
        width: pixels across as shown, after rotation.
        height: pixels down as shown, after rotation.
        rotation: degrees clockwise by which stored frames are turned to be shown: 0, 90, 180 or 270.
        fps: nominal frames a second, exact.
        time_base: seconds in a tick of the stream's clock.
        declared_frames: number of frames that the container claims, or None if it does not say.
        duration_s: length that the container claims, or None.
        pixel_format: FFmpeg's name of the stored pixel format.
        bit_depth: bits a stored sample.
        sample_aspect: width of a stored pixel over its height.
        interlaced: whether frames hold two fields; None if unknown.
        colour_range: "limited", "full" or None if the file does not say.
        bit_rate: bits a second of the whole file, or None.
        audio_codec: name of the first audio stream's codec, or None without sound.
        video_streams: number of streams with moving pictures.
        decoder: which library decodes it, "pyav" or "opencv"; "images" for images.
        warnings: what a reader should know before trusting the pixels or the times.
    """

    path: str
    container: str
    codec: str
    width: int
    height: int
    rotation: int
    fps: Fraction
    time_base: Fraction
    declared_frames: int | None
    duration_s: float | None
    pixel_format: str
    bit_depth: int
    sample_aspect: Fraction
    interlaced: bool | None
    colour_range: Literal["limited", "full"] | None
    bit_rate: int | None
    audio_codec: str | None
    video_streams: int
    decoder: Literal["pyav", "opencv", "images"]
    warnings: tuple[str, ...]
