"""Verbs on single videos: read, corrupt, inspect, mend."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.core.types.clip import Clip, Frame, Frames, Times, check_frames, check_rate, times_at_rate
from jostle.core.types.inspection import Inspection
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import corrupt_one, corrupted_frames
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import refuse_output_in
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.corruptions.engine.placement import Placement
    from jostle.corruptions.engine.video import CorruptedVideo
    from jostle.datasets.dataset import Dataset
    from jostle.io.video.decode import OnMissing, Reader
    from jostle.io.video.frame_objects import ObjectReader
    from jostle.mending.inspector import Inspector
    from jostle.mending.repair import MendedVideo, MendMethod
    from jostle.mending.rule_set import RuleSet
    from jostle.reporting.figures.sheet import Sheet

FramesOrClip = TypeVar("FramesOrClip", Frames, Clip, Any)  # anything else is a tensor, of a library that may be absent
Progress = Callable[[int, int], None]
SegmentsLike = Segments | Iterable[Sequence[float]] | None
SeveralSegments = Any  # SegmentsLike, of several clips a list of those


def read(
    path: str | Path | Any,
    start: int | float | None = None,
    stop: int | float | None = None,
    *,
    fps: Fraction | float | None = None,
) -> Clip:
    """The frames of a video from `start` to before `stop`: frame numbers if whole, seconds if floats.

    Args:
        path: a local video file, or a folder of numbered images; or a torchcodec `VideoDecoder`, or another object with
            frames and timestamps.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
    """
    from jostle.io.video.decode import read as read_video
    from jostle.io.video.frame_objects import is_frame_object, read_object

    if is_frame_object(path):
        return read_object(path, start, stop, fps=fps)
    return read_video(path, start, stop, fps=fps)


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
    if not overwrite and out.exists():
        raise BadValue(f"{out} exists; pass --overwrite to replace it")
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


def single_video(source: str | Path) -> Path:
    """The path of a video; a folder has to be one, of images.

    Raises:
        DataError: if a folder holds no images, or video files beside them.
    """
    from jostle.datasets.videos import find_videos, holds_frames
    from jostle.io.files.video_ids import join_names, quote_name

    path = Path(source)
    if path.is_dir() and not holds_frames(path):
        videos = (quote_name(str(file.relative_to(path))) for file in find_videos(path).values())
        there = join_names(videos) or "no video either"
        raise DataError(f"{path}: no images in this folder, so it is not one video; it holds {there}", fault="F4")
    return path


def _specs(spec: str | Spec | Sequence[str | Spec]) -> list[Spec]:
    return [Spec.parse(one) for one in ([spec] if isinstance(spec, (str, Spec)) else spec)]


def _actions(segments: SegmentsLike, truth: str | Path | None, video_id: str) -> Segments | None:
    if truth is None:
        return as_segments(segments)
    if segments is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    from jostle.io.files.annotations import segments_of

    return segments_of(truth, video_id)


def as_segments(segments: SegmentsLike) -> Segments | None:
    """Segments from what a caller may give: Segments, pairs of seconds, or nothing."""
    if segments is None or isinstance(segments, Segments):
        return segments
    return Segments.from_pairs(segments)


TALL = 120  # rows of the small copies, or a little more
DECODED = 8  # most threads that compute descriptors of a file: one thread decodes, and frames wait in memory
GPU_AT_ONCE = 512  # frames that a GPU looks at together


def inspect(
    frames: Frames | Clip | str | Path | Any,
    *,
    inspector: str | Path | Inspector = "jostle",
    causal: bool = False,
    device: str = "cpu",
    fps: Fraction | float | None = None,
    progress: Progress | None = None,
) -> npt.NDArray[np.float64]:
    """Return (T,) probabilities that each frame is damaged: black, blurred, covered, broken, overexposed ...

    A network compares each frame with its neighbours on both sides, so that cuts, fades and flashes are not taken for
    damage, and plain rules find what it does not know, such as frozen or covered pictures: what a rule finds has the
    probability 1. Frames of one colour are damaged where the same scene goes on before and after them; if all frames
    are of one colour, all are damaged. A video is streamed, and frames are not kept.

    Args:
        frames: (T, H, W, 3) uint8 RGB, a Clip, the path of a video or of a folder of images, or a torchcodec
            `VideoDecoder`.
        inspector: `jostle` for the one that comes along, weights of your own, or an `Inspector`.
        causal: from what came before a frame alone, by the network alone; for live use there is `Watcher`.
        device: `auto`, `cpu` or `cuda`.
        fps: the rate of images that have no `times.json`.
        progress: called with (frames done, frames in all).
    """
    return inspection(
        frames, inspector=inspector, causal=causal, device=device, fps=fps, progress=progress
    ).probabilities


def inspection(
    frames: Frames | Clip | str | Path | Any,
    *,
    inspector: str | Path | Inspector = "jostle",
    causal: bool = False,
    device: str = "cpu",
    fps: Fraction | float | None = None,
    threshold: float | None = None,
    pictures: int = 0,
    progress: Progress | None = None,
) -> Inspection:
    """The same with the stretches, times and all that a record of it needs; arguments as of `inspect`.

    Args:
        threshold: the probability from which a frame counts as damaged; by default the inspector's own.
        pictures: small copies of so many frames are kept, for drawings.
    """
    from jostle.io.video.frame_objects import is_frame_object
    from jostle.mending.loading import load_inspector

    if threshold is not None and not 0 <= threshold <= 1:
        raise BadValue(f"a threshold is a probability from 0 to 1, got {threshold}")
    one = load_inspector(inspector, device=device) if isinstance(inspector, str | Path) else inspector
    if isinstance(frames, str | Path) or (not isinstance(frames, Clip) and is_frame_object(frames)):
        with _open_reader(frames, fps) as reader:
            passed = _Passed(reader, reader.pts, pictures, rules=one.rules and not causal)
            threads = min(available_cpus(), DECODED)
            with naming(video=Path(frames).name if isinstance(frames, str | Path) else type(frames).__name__):
                probabilities = _damage_probabilities(one, passed, len(reader), causal, threads, progress)
            pts, rate = reader.pts, reader.fps
    else:
        clip = frames if isinstance(frames, Clip) else None
        known = check_frames(frames) if clip is None else clip.frames
        rate = check_rate(30 if fps is None else fps) if clip is None else clip.fps
        pts = times_at_rate(len(known), rate) if clip is None else clip.pts
        passed = _Passed(known, pts, pictures, rules=one.rules and not causal)
        watched = passed if pictures or passed.by_rules else known  # an array by itself is read in larger parts
        probabilities = _damage_probabilities(one, watched, len(known), causal, available_cpus(), progress)
    if passed.blank:  # it has no scene to come back; live, nobody knows what follows
        probabilities[:] = 1.0
    least = one.threshold(causal=causal) if threshold is None else threshold
    kinds = passed.kinds(probabilities >= least)
    probabilities[(kinds != "clean") & (kinds != "unknown")] = 1.0
    by = one.name, one.fingerprint
    return Inspection(probabilities, least, pts, rate, causal, *by, kinds, tuple(passed.small), *passed.decoded)


def _open_reader(source: str | Path | Any, fps: Fraction | float | None) -> Reader | ObjectReader:
    """Open a video for reading from its first frame to its last: a path, or an object with frames and timestamps."""
    from jostle.io.video.decode import Reader
    from jostle.io.video.frame_objects import ObjectReader, is_frame_object

    return ObjectReader(source, fps) if is_frame_object(source) else Reader(single_video(source), fps=fps)


@contextmanager
def video_path(source: str | Path | Any, video_id: str | None, fps: Fraction | float | None = None) -> Iterator[Path]:
    """Give the path of a video; frames of an object are written as images, for as long as they are needed."""
    from jostle.io.files.video_ids import file_name_for
    from jostle.io.video.frame_objects import is_frame_object, write_object

    if not is_frame_object(source):
        yield Path(source)
        return
    if video_id is None:
        raise BadValue(f"a {type(source).__name__} has no name; pass video_id=", fault="F185")
    with TemporaryDirectory(prefix="jostle-") as folder:
        yield write_object(source, Path(folder, file_name_for(video_id, "")), fps=fps)


def with_videos(
    data: Dataset, videos: Mapping[str, Any] | None, folder: Path, fps: Fraction | float | None = None
) -> Dataset:
    """Return a data set with other videos in place of its files.

    Args:
        videos: by id, paths or objects with frames and timestamps.
        folder: where frames of objects are written.

    Raises:
        DataError: if the data set has no annotations of one of them.
    """
    from jostle.io.files.video_ids import file_name_for, join_names, quote_name
    from jostle.io.video.frame_objects import is_frame_object, write_object

    if not videos:
        return data
    listed = {*data.videos, *data.missing}
    strange = [quote_name(name) for name in videos if name not in listed]
    if strange:
        raise DataError(
            f"{data.name} has no annotations of {join_names(strange)}; it has {join_names(map(quote_name, listed))}",
            fault="F185",
        )
    paths = dict(data.videos)
    for name, video in videos.items():
        if is_frame_object(video):
            target = folder / file_name_for(name, "")
            shutil.rmtree(target, ignore_errors=True)  # of a run that goes on
            folder.mkdir(parents=True, exist_ok=True)
            paths[name] = write_object(video, target, fps=fps)
        else:
            paths[name] = single_video(video)
    return replace(data, videos=paths, missing=tuple(name for name in data.missing if name not in paths))


def draw_inspection(inspection: Inspection, out: str | Path, *, title: str = "") -> Path:
    """Draw a strip of the frames that an inspection kept, and the curve of its probabilities.

    Args:
        out: a .png, .pdf or .svg file.
    """
    from jostle.reporting.charts.inspections import draw_inspection as draw
    from jostle.reporting.charts.save import save_as

    return save_as(draw(inspection, title), Path(out))


def _damage_probabilities(
    inspector: Inspector, frames: Iterable[Frame], total: int, causal: bool, threads: int, progress: Progress | None
) -> npt.NDArray[np.float64]:
    """Return (T,) probabilities; for a GPU, threads compute descriptors and larger batches are used."""
    if inspector.device.type == "cuda":
        coming = inspector.inspect(frames, causal=causal, at_once=GPU_AT_ONCE, jobs=threads)
    else:
        coming = inspector.inspect(frames, causal=causal)  # a CPU is busy with the network itself

    def counted() -> Iterator[float]:
        for number, probability in enumerate(coming, 1):
            yield probability
            if progress is not None:
                progress(number, total)

    return np.fromiter(counted(), np.float64)


class _Passed:
    """Frames on their way past: the rules see them, and some are kept as small copies.

    Args:
        rules: whether the rules see them.

    Attributes:
        by_rules: the same.
        blank: whether nothing was to be seen in any of them, by the rules.
    """

    def __init__(self, frames: Iterable[Frame], pts: Times, pictures: int, *, rules: bool) -> None:
        from jostle.mending.rule_set import RuleSet
        from jostle.mending.video_rules import FindingLog

        self._frames, self._pts, self._wanted = frames, pts, _spread(len(pts), pictures)
        concealed = getattr(frames, "concealed", np.zeros(len(pts), np.bool_))
        self._concealed = concealed & rules
        self.decoded = int(concealed.sum()), int(getattr(frames, "undecodable", 0))  # what the decoder reports
        self._rules, self._findings = RuleSet() if rules else None, FindingLog()
        self.small, self.by_rules, self.blank = list[Frame](), rules, rules

    def __iter__(self) -> Iterator[Frame]:
        for number, frame in enumerate(self._frames):
            if self._rules is not None:
                self._apply_rules(self._rules, number, frame)
            if number in self._wanted:
                self.small.append(_small(frame))
            yield frame

    def kinds(self, by_network: npt.NDArray[np.bool_]) -> npt.NDArray[np.str_]:
        """Return (T,) the kinds of damage, by rules, network and what the decoder concealed."""
        from jostle.mending.video_rules import join_kinds

        return join_kinds(self._findings.kinds(len(self._pts)), by_network, self._concealed)

    def _apply_rules(self, rules: RuleSet, number: int, frame: Frame) -> None:
        from jostle.mending.blank_frames import find_blank
        from jostle.mending.descriptor import describe_frame
        from jostle.mending.frame_facts import frame_facts

        descriptor = describe_frame(frame)
        self.blank = self.blank and bool(find_blank(descriptor[None])[0])
        time, concealed = float(self._pts[number]), bool(self._concealed[number])
        self._findings.add(rules.push(number, time, frame_facts(frame, descriptor), concealed))


def _spread(total: int, pictures: int) -> set[int]:
    """So many frames, evenly spread."""
    return {(2 * i + 1) * total // (2 * pictures) for i in range(pictures)} if total else set()


def _small(frame: Frame) -> Frame:
    step = max(1, min(frame.shape[:2]) // TALL)
    return np.array(frame[::step, ::step])


def mend(
    frames: FramesOrClip,
    *,
    how: MendMethod = "blend",
    struck: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector = "jostle",
    device: str = "cpu",
) -> FramesOrClip:
    """Replace damaged frames by frames made from the intact ones around them; the others are untouched.

    Args:
        frames: (T, H, W, 3) uint8 RGB, or a Clip.
        how: `hold` the last whole frame, `blend` from the one before to the one after, or `motion`: blend what moves
            along the optical flow between the two, whose last bits depend on the build of OpenCV.
        struck: (T,) booleans, which frames are damaged; by default the inspector decides.
        inspector: `jostle` for the one that comes along, weights of your own, or an `Inspector`.
        device: where the inspector runs: `auto`, `cpu` or `cuda`.

    Raises:
        DataError: if every frame is damaged.

    >>> import numpy as np
    >>> clip = np.stack([np.full((4, 4, 3), 10 * t, np.uint8) for t in range(6)])
    >>> clip[2:4] = 255
    >>> mend(clip, struck=[False, False, True, True, False, False])[:, 0, 0, 0].tolist()
    [0, 10, 20, 30, 40, 50]
    """
    from jostle.corruptions.engine.stages import ClipSource
    from jostle.mending.repair import MendedSource, damage_mask

    clip = frames if isinstance(frames, Clip) else Clip.at_rate(check_frames(frames), 30)
    mask = inspection(clip, inspector=inspector, device=device).struck if struck is None else damage_mask(struck)
    repaired = MendedSource(ClipSource(clip), mask, how).block(0, len(clip))
    return clip.with_frames(repaired) if isinstance(frames, Clip) else np.array(repaired)


def mend_file(
    source: str | Path,
    out: str | Path,
    *,
    how: MendMethod = "blend",
    struck: npt.ArrayLike | None = None,
    inspector: str | Path | Inspector = "jostle",
    threshold: float | None = None,
    device: str = "cpu",
    lossless: bool = False,
    fps: Fraction | float | None = None,
    overwrite: bool = True,
    progress: Progress | None = None,
) -> MendedVideo:
    """Mend a video, streamed; times and sound stay as they are. Arguments as of `mend`.

    Args:
        source: a local video file, or a folder of numbered images.
        out: .mp4 or .mkv, or a folder for images; it appears when it is complete, or not at all.
        threshold: the probability from which a frame counts as damaged; by default the inspector's own.
        lossless: FFV1 instead of H.264, PNG instead of JPEG.
        fps: the rate of images that have no `times.json`; 30 if nothing says it.
        progress: called with (frames done, frames in all), once for each pass.
    """
    from jostle.io.video.decode import Reader
    from jostle.mending.repair import damage_mask, mend_video

    source, out = single_video(source), Path(out)
    refuse_output_in(source, out)
    if not overwrite and out.exists():
        raise BadValue(f"{out} exists; pass --overwrite to replace it")
    if struck is None:
        result = inspection(source, inspector=inspector, threshold=threshold, device=device, fps=fps, progress=progress)
        mask = result.struck
    else:
        mask = damage_mask(struck)
    with Reader(source, fps=fps) as reader:
        return mend_video(reader, mask, out, how, lossless=lossless, progress=progress)
