"""Verbs that find the damaged frames of a video."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jostle.api.video import single_video
from jostle.core.finite import naming
from jostle.core.progress import Progress
from jostle.core.types.clip import Clip, Frame, Frames, Times, check_frames, check_rate, times_at_rate
from jostle.core.types.inspection import Inspection
from jostle.core.types.video_location import location_of
from jostle.errors import BadValue
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.corruptions.engine.damage_finder import DamageFinder
    from jostle.io.video.decode import Reader
    from jostle.io.video.frame_objects import ObjectReader
    from jostle.mending.damage_finders import OwnFinder
    from jostle.mending.inspection import Inspector
    from jostle.mending.rule_set import RuleSet


TALL = 120  # rows of the small copies, or a little more
DECODED = 8  # most threads that compute descriptors of a file: one thread decodes, and frames wait in memory
GPU_AT_ONCE = 512  # frames that a GPU looks at together


def inspect(
    frames: Frames | Clip | str | Path | Any,
    *,
    inspector: str | Path | Inspector | DamageFinder = "jostle",
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
        inspector: `jostle` for the one that comes along, weights of your own, an `Inspector`, or a damage finder: its
            name, its import path or the object. What it finds has the probability 1.
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
    inspector: str | Path | Inspector | DamageFinder = "jostle",
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
    from jostle.mending.damage_finders import find_own_finder
    from jostle.mending.loading import KNOWN, as_inspector, refuse_known

    if threshold is not None and not 0 <= threshold <= 1:
        raise BadValue(f"a threshold is a probability from 0 to 1, got {threshold}")
    own = find_own_finder(inspector)
    if own is not None:
        if causal or threshold is not None:
            what = "causal mode" if causal else "threshold"
            raise BadValue(f"{own.name} decides by itself, so it has no {what}; leave that out")
        return _inspection_by(own.to(device), frames, fps, pictures, progress)
    if isinstance(inspector, str) and inspector == KNOWN:
        refuse_known()
    one = as_inspector(inspector, device)
    if isinstance(frames, str | Path) or (not isinstance(frames, Clip) and is_frame_object(frames)):
        with _open_reader(frames, fps) as reader:
            passed = _Passed(reader, reader.pts, pictures, rules=one.rules and not causal)
            threads = min(available_cpus(), DECODED)
            with naming(video=location_of(frames).name if isinstance(frames, str | Path) else type(frames).__name__):
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


def _inspection_by(
    finder: OwnFinder, frames: Any, fps: Fraction | float | None, pictures: int, progress: Progress | None
) -> Inspection:
    """Return what a damage finder from outside finds in a video, as an inspection."""
    from jostle.core.types.video import ClipSource
    from jostle.io.video.frame_objects import is_frame_object

    if isinstance(frames, str | Path) or (not isinstance(frames, Clip) and is_frame_object(frames)):
        reader = _open_reader(frames, fps)
        name = Path(frames).name if isinstance(frames, str | Path) else type(frames).__name__
        with reader, naming(video=name):
            return _found_by(finder, reader, pictures, progress)
    clip = frames if isinstance(frames, Clip) else Clip.at_rate(check_frames(frames), 30 if fps is None else fps)
    return _found_by(finder, ClipSource(clip), pictures, progress)


def _found_by(finder: OwnFinder, source: Any, pictures: int, progress: Progress | None) -> Inspection:
    total = len(source)
    mask = finder.finder_for(source).find_damaged(source, np.arange(total))
    if progress is not None:
        progress(total, total)
    small = tuple(_small(source.block(t, t + 1)[0]) for t in sorted(_spread(total, pictures)))
    concealed = getattr(source, "concealed", None)
    decoded = 0 if concealed is None else int(concealed.sum()), int(getattr(source, "undecodable", 0))
    kinds = np.where(mask, "unknown", "clean")
    by = finder.name, finder.fingerprint or ""
    return Inspection(mask.astype(np.float64), 1.0, source.pts, source.fps, False, *by, kinds, small, *decoded)


def draw_inspection(inspection: Inspection, out: str | Path, *, title: str = "") -> Path:
    """Draw a strip of the frames that an inspection kept, and the curve of its probabilities.

    Args:
        out: a .png, .pdf or .svg file.
    """
    from jostle.reporting.charts.inspections import draw_inspection as draw
    from jostle.reporting.charts.save import save_as

    return save_as(draw(inspection, title), Path(out))


def _open_reader(source: str | Path | Any, fps: Fraction | float | None) -> Reader | ObjectReader:
    """Open a video for reading from its first frame to its last: a path, or an object with frames and timestamps."""
    from jostle.io.video.decode import Reader
    from jostle.io.video.frame_objects import ObjectReader, is_frame_object

    return ObjectReader(source, fps) if is_frame_object(source) else Reader(single_video(source), fps=fps)


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
