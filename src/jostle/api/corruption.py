"""Verbs that corrupt frames and single videos."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.video import FramesOrClip, SegmentsLike, as_segments, single_video
from jostle.core.progress import Progress
from jostle.core.types.clip import Clip, Frame, check_frames, check_rate
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import corrupt_one, corrupted_frames
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_existing, refuse_output_in
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.corruptions.engine.placement import Placement
    from jostle.corruptions.engine.video import CorruptedVideo
    from jostle.io.video.video_source import OnMissing
    from jostle.reporting.figures.sheet import Sheet


SeveralSegments = Any  # SegmentsLike, of several clips a list of those


def corrupt(
    frames: FramesOrClip,
    spec: str | Spec | Sequence[str | Spec],
    *,
    seed: int = 0,
    video_id: str | Sequence[str] = "",
    placement: str | Placement | None = None,
    segments: SeveralSegments = None,
    fps: float = 30.0,
    jobs: int = 1,
) -> FramesOrClip:
    """The frames with a corruption applied: an array gives an array, a Clip a Clip, a tensor a tensor, as large.

    The same seed, video id and spec give the same bytes, whatever the chunking, order or number of threads; on a GPU,
    too, where a tensor that lies there stays.

    Args:
        frames: (T, H, W, 3) uint8 RGB, or a Clip; of a tensor also (B, T, H, W, 3), several clips.
        spec: `[profile/]name[:severity]`, or several, applied in order.
        video_id: of several clips one each.
        placement: which frames, such as `centre:5%`; by default what the spec says, for most of them everywhere.
        segments: the actions of the video as (start, end) pairs in seconds; without them the whole clip counts as one.
            Of several clips a list of theirs.
        fps: frame rate of an array or a tensor; a Clip knows its own.
        jobs: threads; a GPU needs none.

    >>> import numpy as np
    >>> clean = np.full((10, 64, 64, 3), 200, np.uint8)
    >>> hit = corrupt(clean, "thumos14-c/black_frame:3", segments=[(0.1, 0.25)])
    >>> [t for t in range(10) if not hit[t].any()]
    [5]
    """
    torch = sys.modules.get("torch")  # a caller with a tensor has loaded it
    if torch is not None and isinstance(frames, torch.Tensor):
        from jostle.corruptions.gpu.batch import corrupt_tensor

        names, actions = (video_id, segments) if frames.ndim == 5 else ([video_id], [segments])
        tensor: Any = corrupt_tensor(
            frames,
            _specs(spec),
            seed=seed,
            video_ids=names,
            placement=placement,
            segments=None if actions is None else [as_segments(own) for own in actions],
            fps=fps,
            jobs=jobs,
        )
        return tensor  # type: ignore[no-any-return]
    if not isinstance(video_id, str):
        raise BadValue("several video ids are for a tensor of several clips; an array of frames is one video")
    clip: Clip = frames if isinstance(frames, Clip) else Clip.at_rate(frames, fps)
    done = corrupted_frames(
        clip, _specs(spec), seed=seed, video_id=video_id, placement=placement, segments=as_segments(segments), jobs=jobs
    )
    return frames.with_frames(done) if isinstance(frames, Clip) else done


def corrupt_frame(
    frame: Frame, spec: str | Spec, *, index: int, seed: int = 0, video_id: str = "", fps: float = 30.0
) -> Frame:
    """One frame of a video, corrupted by itself: what `corrupt` gives for it at this index.

    For loops that read single frames. Only frame-level corruptions can do this; placement is the caller's business.

    Args:
        frame: (H, W, 3) uint8 RGB.
        index: the frame's number in its video, from 0.

    >>> import numpy as np
    >>> clip = np.full((5, 40, 40, 3), 90, np.uint8)
    >>> whole = corrupt(clip, "fog:3", video_id="v")
    >>> bool((corrupt_frame(clip[4], "fog:3", index=4, video_id="v") == whole[4]).all())
    True
    """
    if index < 0:
        raise BadValue(f"index counts frames from 0, got {index}")
    check_frames(frame[None])
    return corrupt_one(frame, Spec.parse(spec), index, fps=check_rate(fps), seed=seed, video_id=video_id)


def corrupt_file(
    source: str | Path,
    spec: str | Spec | Sequence[str | Spec],
    out: str | Path,
    *,
    seed: int = 0,
    video_id: str | None = None,
    placement: str | Placement | None = None,
    segments: SegmentsLike = None,
    truth: str | Path | None = None,
    lossless: bool = False,
    strict: bool = False,
    on_missing: OnMissing = "drop",
    fps: Fraction | float | None = None,
    overwrite: bool = True,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> CorruptedVideo:
    """Corrupt a video, streamed: memory does not grow with its length.

    Args:
        source: a local video file, or a folder of numbered images.
        out: .mp4 or .mkv, or a folder for images; it appears when it is complete, or not at all. Images are PNG; those
            of a folder of JPEG keep their names and are JPEG again, unless `lossless`.
        video_id: what the random draws are keyed by; by default the name of the file without its ending.
        truth: an annotation file to take the video's actions from, by its id.
        lossless: FFV1 instead of H.264, PNG instead of JPEG, so that reading it back gives every pixel.
        strict: refuse an input with any damage.
        on_missing: what becomes of frames that do not decode, or numbers that are missing: `error`, `drop` or `hold`.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
        jobs: threads; by default one for each core. The bytes do not depend on it.
        progress: called with (frames done, frames in all).
    """
    from jostle.corruptions.engine.video import corrupt_video
    from jostle.datasets.videos import id_at

    source, out = single_video(source), Path(out)
    refuse_output_in(source, out)
    refuse_existing(out, overwrite)
    identity = video_id if video_id is not None else id_at(source)
    return corrupt_video(
        source,
        _specs(spec),
        out,
        seed=seed,
        video_id=identity,
        placement=placement,
        segments=_actions(segments, truth, identity),
        lossless=lossless,
        jobs=jobs or available_cpus(),
        strict=strict,
        on_missing=on_missing,
        fps=None if fps is None else check_rate(fps),
        progress=progress,
    )


def sheet(
    source: str | Path | Clip,
    out: str | Path | None = None,
    spec: str | Sequence[str] | None = None,
    *,
    seed: int = 0,
    video_id: str | None = None,
    placement: str | Placement | None = None,
    segments: SegmentsLike = None,
    truth: str | Path | None = None,
    fps: Fraction | float | None = None,
    progress: Progress | None = None,
) -> Path | Sheet:
    """A contact sheet: one line a corruption, one column a severity.

    Args:
        source: a video file or a folder of images, of which the middle is drawn, or a Clip.
        out: a PNG file; without one the sheet comes back, and a notebook shows it.
        spec: corruptions to show; by default every one of jostle's own table.
        fps: the rate of images, where nothing else says it.
    """
    from jostle.api.catalogue import names
    from jostle.reporting.figures.sheet import SHEET_FRAMES, Sheet, draw_sheet, sheet_rows, write_png

    specs = _specs(spec or names("corruptions"))
    if isinstance(source, Clip):
        clip, identity = source, video_id or ""
    else:
        from jostle.datasets.videos import id_at
        from jostle.io.video.decode import Reader

        path = single_video(source)
        if out is not None:
            refuse_output_in(path, Path(out))
        identity = video_id if video_id is not None else id_at(path)
        with Reader(path, fps=fps) as reader:
            first = max(len(reader) // 2 - SHEET_FRAMES // 2, 0)
            stop = min(first + SHEET_FRAMES, len(reader))
            clip = Clip(reader.block(first, stop), reader.pts[first:stop], reader.fps)
    rows = sheet_rows(
        clip,
        specs,
        seed=seed,
        video_id=identity,
        placement=placement,
        segments=_actions(segments, truth, identity),
        progress=progress,
    )
    columns = ["clean", *(str(s + 1) for s in range(max(len(row.pictures) for row in rows) - 1))]
    image = draw_sheet(rows, columns)
    return Sheet(image) if out is None else write_png(image, out)


def _specs(spec: str | Spec | Sequence[str | Spec]) -> list[Spec]:
    return [Spec.parse(one) for one in ([spec] if isinstance(spec, (str, Spec)) else spec)]


def _actions(segments: SegmentsLike, truth: str | Path | None, video_id: str) -> Segments | None:
    if truth is None:
        return as_segments(segments)
    if segments is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    from jostle.io.files.annotations import segments_of

    return segments_of(truth, video_id)
