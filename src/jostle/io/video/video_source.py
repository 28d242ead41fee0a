"""Video sources of plugins: the decorator that registers one, and its frames as a decoder gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from jostle.core.interruption import exits_as_errors
from jostle.core.registry import Registry
from jostle.core.types.clip import Clip, Frame, Frames, Times, check_rate
from jostle.core.types.video import ClipSource, VideoSource
from jostle.core.types.video_location import VideoAddress
from jostle.errors import BadValue, JostleError, MediaError, ResourceError
from jostle.io.files.video_ids import VIDEO_SUFFIXES
from jostle.io.video.facts import VideoFacts
from jostle.io.video.frame_folder import IMAGE_SUFFIXES
from jostle.io.video.rgb_pictures import RgbPictures
from jostle.io.video.timestamps import DecodeScan, exact_ticks
from jostle.io.video.validation import Limits, printable_name

OnMissing = Literal["error", "drop", "hold"]
BLOCK = 32  # frames requested from a source at once, when they are read in order


@dataclass(frozen=True)
class ReadOptions:
    """How a video is read.

    Attributes:
        fps: frame rate of what does not state its own; None if nobody says it.
        limits: what a video may claim before it is refused.
        threads: decoding threads; None uses one for each core.
        strict: refuse a video with any damage.
        keep: smallest share of the promised frames that must decode.
        on_missing: handling of frames that do not decode.
        once: whether frames are read once, from the first to the last.
        picture_bytes: cache size for decoded pictures.
    """

    fps: Fraction | None = None
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    strict: bool = False
    keep: float = 0.95
    on_missing: OnMissing = "drop"
    once: bool = False
    picture_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.on_missing not in ("error", "drop", "hold"):
            raise BadValue(f"on_missing must be error, drop or hold, got {self.on_missing!r}")


OpenVideo = Callable[[str, ReadOptions], VideoSource | Clip]
Opener = TypeVar("Opener", bound=OpenVideo)


@dataclass(frozen=True)
class SourceKind:
    """A registered kind of videos: by which files or addresses it is known, and the function that opens one."""

    name: str
    open: OpenVideo
    suffixes: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """First paragraph of the function's docstring, or what it opens."""
        opens = [*self.suffixes, *(f"{scheme}://" for scheme in self.schemes)]
        return " ".join((self.open.__doc__ or "").strip().split("\n\n")[0].split()) or ", ".join(opens)


video_sources: Registry[SourceKind] = Registry("video source")


def video_source(
    name: str, *, suffixes: tuple[str, ...] = (), schemes: tuple[str, ...] = ()
) -> Callable[[Opener], Opener]:
    """Register a function that opens videos which neither FFmpeg nor a folder of images holds.

    The function takes the absolute path of a file, or an address, and `ReadOptions`; it returns a `Clip`, or a
    `VideoSource` of which frames are read when they are needed. Files are found by the suffix, as videos are.

    Args:
        name: of the kind of videos.
        suffixes: of its files, in small letters, such as `.npz`.
        schemes: of its addresses, such as `camera` for `camera://7/2026-11-20`.

    Raises:
        BadValue: if nothing says which videos are meant, or jostle reads them itself.
    """
    known = set(suffixes) & {*VIDEO_SUFFIXES, *IMAGE_SUFFIXES}
    if known:
        raise BadValue(f"video source {name}: files that end in {', '.join(sorted(known))} are read by jostle itself")
    wrong = [one for one in suffixes if not one.startswith(".") or one != one.lower()]
    if wrong or not (suffixes or schemes):
        got = f"got {', '.join(map(repr, wrong))}" if wrong else "it has neither suffixes nor schemes"
        raise BadValue(f"video source {name}: name suffixes such as '.npz', or schemes such as 's3'; {got}")

    def register(function: Opener) -> Opener:
        video_sources.add(name, SourceKind(name, function, tuple(suffixes), tuple(schemes)))
        return function

    return register


def registered_kind(location: Path) -> SourceKind | None:
    """Return the registered kind of a video by its suffix or scheme, or None."""
    if isinstance(location, VideoAddress):
        return next((kind for kind in video_sources.values() if location.scheme in kind.schemes), None)
    suffix = location.suffix.lower()
    if not suffix or suffix in VIDEO_SUFFIXES:
        return None  # without a look at plugins
    return next((kind for kind in video_sources.values() if suffix in kind.suffixes), None)


def video_suffixes() -> frozenset[str]:
    """Return the suffixes of all video files: those of FFmpeg, and registered ones."""
    return VIDEO_SUFFIXES.union(*(kind.suffixes for kind in video_sources.values()))


class SourceFrames(RgbPictures):
    """Frame source of a registered kind: checks what the function gives, and reads it in blocks.

    Args:
        location: absolute path or address.
        size: bytes of the file; 0 if there is none.
    """

    coded_path, cache_bytes = None, None

    def __init__(self, location: str, size: int, kind: SourceKind, options: ReadOptions) -> None:
        self._name, self._kind = printable_name(location), kind
        with self._named():
            opened = kind.open(location, options)
            self._video: VideoSource = ClipSource(opened) if isinstance(opened, Clip) else opened
            self._size, pts, fps = self._checked(options.limits)
        self._ticks, time_base = exact_ticks(pts, fps)
        self.scan_key = f"{kind.name} at {options.fps}"
        height, width = self._size
        count = len(pts)
        duration_s = float(pts[-1] - pts[0]) + float(1 / fps)
        bit_rate = getattr(self._video, "bit_rate", None) or (round(size * 8 / duration_s) if size else None)
        self.facts = VideoFacts(
            path=location,
            container=kind.name,
            codec=kind.name,
            width=width,
            height=height,
            rotation=0,
            fps=fps,
            time_base=time_base,
            declared_frames=count,
            duration_s=duration_s,
            pixel_format="",
            bit_depth=8,
            sample_aspect=Fraction(1),
            interlaced=None,
            colour_range="full",
            bit_rate=bit_rate,
            audio_codec=None,
            video_streams=1,
            decoder="plugin",
            warnings=(),
        )

    def _checked(self, limits: Limits) -> tuple[tuple[int, int], Times, Fraction]:
        """Return size, times and rate of the opened source, or raise an error that says what is wrong with them."""
        video = self._video
        lacking = [name for name in ("size", "pts", "fps", "block", "__len__") if not hasattr(video, name)]
        if lacking:
            raise BadValue(
                f"returned a {type(video).__name__} without {', '.join(lacking)}; return a Clip or a VideoSource"
            )
        height, width = (int(side) for side in video.size)
        if not 0 < height * width <= limits.max_pixels:
            raise BadValue(
                f"claims {width}x{height}, and not 1 to {limits.max_pixels} pixels; JOSTLE_MAX_PIXELS raises the limit"
            )
        pts = np.asarray(video.pts, np.float64)
        if not 0 < len(video) <= limits.max_frames:
            raise BadValue(f"has {len(video)} frames; a video has 1 to {limits.max_frames}")
        if pts.shape != (len(video),) or not np.isfinite(pts).all() or (np.diff(pts) <= 0).any():
            raise BadValue(f"has {len(video)} frames, whose pts must be as many seconds that increase")
        return (height, width), pts, check_rate(video.fps)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn whatever the function of a plugin raises into an error that names video and kind."""
        try:
            with exits_as_errors():
                yield
        except (MediaError, ResourceError):
            raise
        except JostleError as error:
            raise MediaError(f"{self._name}: video source {self._kind.name}: {error}", fault=error.fault) from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise MediaError(f"{self._name}: video source {self._kind.name} failed ({why}); -vv shows where") from error

    @property
    def names(self) -> tuple[str, ...] | None:
        """Name of each frame, if the source has them."""
        names = getattr(self._video, "names", None)
        return None if names is None else tuple(names)

    @property
    def state(self) -> tuple[int, int] | None:
        """(size, version) that the source states of itself, or None."""
        state = getattr(self._video, "state", None)
        if state is None:
            return None
        with self._named():
            size, version = state()
            return int(size), int(version)

    def predict_scan(self, least_bytes: int) -> None:
        """Return None: there is nothing to scan."""

    def scan(self, keep: Any) -> DecodeScan:
        """Return the times of all frames; nothing is decoded, so `keep` is not called."""
        concealed = np.flatnonzero(np.asarray(getattr(self._video, "concealed", ()), np.bool_))
        stamps: list[int | None] = [*self._ticks.tolist()]
        return DecodeScan(stamps=stamps, concealed=concealed.tolist(), expected=len(stamps))

    def use_scan(self, scan: DecodeScan) -> None:
        """Ignore an earlier scan, which says nothing new."""

    def pictures(self, start: int) -> Iterator[tuple[int, Frame]]:
        """Yield (frame number, RGB) from a frame on; blocks grow with sequential use."""
        lo, step = start, 1
        while lo < len(self._ticks):
            hi = min(lo + step, len(self._ticks))
            yield from enumerate(self._block(lo, hi), lo)
            lo, step = hi, min(2 * step, BLOCK)

    def _block(self, lo: int, hi: int) -> Frames:
        with self._named():
            frames = self._video.block(lo, hi)
            if (
                not isinstance(frames, np.ndarray)
                or frames.shape != (hi - lo, *self._size, 3)
                or frames.dtype != np.uint8
            ):
                got = f"{getattr(frames, 'shape', type(frames).__name__)} {getattr(frames, 'dtype', '')}".strip()
                raise BadValue(f"block({lo}, {hi}) must be {(hi - lo, *self._size, 3)} uint8, got {got}")
        return frames

    def close(self) -> None:
        """Close the source, if it can be closed."""
        close = getattr(self._video, "close", None)
        if close is not None:
            with suppress(Exception):  # of a plugin, after its frames were used
                close()
