"""Frames of a video by number: their times, which decoded picture each shows, and what is damaged or missing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.errors import MediaError
from jostle.io.video.facts import VideoFacts
from jostle.io.video.timestamps import DecodeScan, Ticks, insert_lost, repair_timestamps, spans
from jostle.io.video.validation import printable_name
from jostle.io.video.video_source import ReadOptions


@dataclass(frozen=True)
class FrameIndex:
    """Frames of a video after a scan; the attributes of `Reader` with the same names are these.

    Attributes:
        pictures: (T,) number of the decoded picture that each frame shows.
    """

    fps: Fraction
    pts: Times
    ticks: Ticks
    first_tick: int
    stamps: tuple[int | None, ...]
    pictures: npt.NDArray[np.int64]
    damage: list[tuple[float, float]]
    concealed: npt.NDArray[np.bool_]
    undecodable: int
    warnings: tuple[str, ...]


def check_scan(scan: DecodeScan, facts: VideoFacts, options: ReadOptions, *, coded: bool) -> None:
    """Raise MediaError if too little of a video decodes for what the options ask.

    Args:
        coded: whether frames come from a coded stream.
    """
    strict, keep, on_missing = options.strict, options.keep, options.on_missing
    name, decoded, expected = printable_name(facts.path), len(scan.stamps), scan.expected
    if not decoded:
        raise MediaError(f"{name}: no frame decodes; download it again", fault="F4")
    if decoded < keep * expected:
        raise MediaError(
            f"{name}: only {decoded} of {expected} frames decode, less than {keep:.0%}; "
            "download it again, or read it with Reader(keep=...)",
            fault="F4",
        )
    missing = expected - decoded
    if not coded and scan.lost and (on_missing == "error" or strict):
        raise MediaError(
            f"{name}: {len(scan.lost)} images are missing or cannot be decoded"
            f"{''.join(f'; {note}' for note in (*facts.warnings, *scan.notes))}; put them there, or pass "
            "--on-missing hold to repeat the last good one",
            fault="F5",
        )
    if missing > 0 and on_missing == "error":
        raise MediaError(
            f"{name}: {missing} of {expected} frames did not decode; "
            "pass --on-missing hold to repeat the last good frame",
            fault="F5",
        )
    if strict and (scan.damaged or missing > 0):
        raise MediaError(
            f"{name}: damaged: {missing} of {expected} frames did not decode, "
            f"{len(scan.flagged)} are marked as damaged; leave out --strict to use the rest",
            fault="F5",
        )


def index_frames(scan: DecodeScan, facts: VideoFacts, options: ReadOptions, *, coded: bool) -> FrameIndex:
    """Return the frames that a scan found, in order of display; arguments as of `check_scan`."""
    notes = [*facts.warnings, *scan.notes]
    if options.fps is not None and coded and options.fps != facts.fps:
        notes.append(f"{float(options.fps):g} frames a second are for images; the file says {float(facts.fps):g}")
    stamps, fps, time_base = scan.stamps, facts.fps, facts.time_base
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) > 2 and known[-1] > known[0]:
        measured = Fraction(len(known) - 1) / ((known[-1] - known[0]) * time_base)
        if not measured / 2 < fps < measured * 2:
            notes.append(f"the file claims {float(fps):g} frames a second; {float(measured):g} are there")
            fps = measured.limit_denominator(1001)
    ticks, first_tick, repairs = repair_timestamps(stamps, 1 / (fps * time_base))
    lost = [tick - first_tick for tick in scan.lost]
    pictures = np.arange(len(ticks))
    displayed: tuple[int | None, ...] = tuple(stamps)
    repeated: list[int] = []
    in_order = len(known) == len(stamps) and all(a < b for a, b in pairwise(known))
    if options.on_missing == "hold" and lost and in_order:
        ticks, pictures = insert_lost(ticks, lost)
        repeated = np.flatnonzero(np.diff(pictures, prepend=-1) == 0).tolist()
        displayed = tuple(int(tick) + first_tick for tick in ticks)
    seconds = ticks * float(time_base.numerator) / float(time_base.denominator)
    pts: Times = np.asarray(seconds, np.float64)
    for array in (ticks, pts):
        array.flags.writeable = False
    hit = {int(np.searchsorted(pictures, number)) for number in scan.flagged} | set(repeated)
    lost_s = [(tick, float(tick * time_base)) for tick in lost]
    concealed = np.zeros(len(stamps), np.bool_)
    concealed[scan.concealed] = True
    missing = scan.expected - len(stamps)
    if not coded and repeated:
        notes.append(f"{len(repeated)} are held: the image before is displayed in their place")
    elif coded and missing > 0:
        fate = f"{len(repeated)} are held" if options.on_missing == "hold" else "they are left out"
        notes.append(f"{missing} of {scan.expected} frames did not decode; {fate}")
    if scan.flagged and coded:
        notes.append(f"{len(scan.flagged)} frames are marked as damaged by the decoder")
    return FrameIndex(
        fps,
        pts,
        ticks,
        first_tick,
        displayed,
        pictures,
        _damage(pts, ticks, fps, hit, lost_s),
        concealed[pictures],
        max(missing, 0),
        (*notes, *repairs),
    )


def _damage(
    pts: Times, ticks: Ticks, fps: Fraction, hit: set[int], lost: list[tuple[int, float]]
) -> list[tuple[float, float]]:
    """Return the intervals of damaged and repeated frames, and of lost ones, which are given as (tick, seconds).

    An interval of damage ends at the next displayed frame, and a lost frame lies inside one.
    """
    last = pts[-1] + float(1 / fps)
    ends = np.append(pts[1:], last)
    starts = [float(pts[i]) for i in sorted(hit)]
    stops = [float(ends[i]) for i in sorted(hit)]
    for tick, start in lost:
        after = int(np.searchsorted(ticks, tick, side="right"))
        starts.append(start)
        stops.append(float(pts[after]) if after < len(pts) else max(last, start + float(1 / fps)))
    return spans(starts, stops)
