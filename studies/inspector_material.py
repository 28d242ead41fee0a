"""What the shipped inspector learns from, and what it is tried on: drawn films and filmed clips, struck and glanced at.

Clips are told apart by where they come from. Those under MIT and Apache-2.0 are learned from; all others are only for
trying, and so is every source that one of them comes from.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from jostle.core.progress import Meter
from jostle.core.random import rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.decode import Reader
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CHANNELS, COLOUR, DETAIL, LIGHT, Descriptors
from jostle.parallel.workers import map_unordered
from jostle.training.descriptor_bank import CorruptedFilm, FilmBank, corrupt_film, corrupt_span, picture_corruptions
from jostle.training.inspection import WHOLE
from studies.inspector_films import NAMED, RATE, Picture, coded, draw_film

LEARNED = ("cctv_", "v_GGSY1Qvo990", "flipping_a_pancake", "demo_", "structuralize", "mma_test", "archery", "eivideo")
CHOOSING = ("flipping_a_pancake", "eivideo")  # and some of the cameras
FIVE = ("black_frame", "motion_blur", "occlusion", "packet_loss", "overexposure")
THROUGHOUT = ("thumos14-c/black_frame:2", "thumos14-c/packet_loss:2", "thumos14-c/occlusion:2", "gaussian_noise:3")
# THUMOS14-C's five kinds in all its strengths as often as all the rest together.
SPECS = picture_corruptions() + tuple(
    f"thumos14-c{which}/{kind}" for which in ("", "", "", "-i3d", "-videomae") for kind in FIVE for _ in range(5)
)
FRAMES = 150  # of a drawn film
LENGTHS = (1, 60)  # of a stretch that is struck
TALL = 360  # rows of a clip that is learned from, at most
LONG = 170  # frames of a clip that are taken at once
TRIED = 150  # frames of a clip that is only for trying


@dataclass(frozen=True)
class Order:
    """A film to be made: `how` is learn, choose or held."""

    how: str
    name: str
    clip: str = ""
    first: int = 0
    variant: int = 0
    only: str = ""


def make_banks(clips: Path | None, films: int, jobs: int, seed: int) -> tuple[FilmBank, FilmBank]:
    """What is learned from and chosen by, and what is only for trying."""
    orders = [Order("choose" if n % 12 == 0 else "learn", f"drawn {n:04d}") for n in range(films)]
    orders += [Order("held", f"{only} {n}", only=only) for only in NAMED for n in range(3)]
    orders += [Order("held", f"puppets {n}") for n in range(6)]
    stills = []
    for path in sorted(clips.rglob("*")) if clips is not None else ():
        if path.suffix not in (".mp4", ".avi", ".mkv"):
            continue
        if not path.name.startswith(LEARNED):
            orders.append(Order("held", path.stem, str(path)))
            continue
        how = "choose" if path.name.startswith(CHOOSING) or _eighth(path.name) else "learn"
        with Reader(path) as reader:
            if how == "learn":
                stills.append(_no_taller(reader.block(len(reader) // 2, len(reader) // 2 + 1), 480)[0])
            for first in range(0, max(len(reader) - LONG // 3, 1), LONG):
                versions = range(2 if how == "learn" else 1)
                orders += [Order(how, f"{path.stem} {first} {v}", str(path), first, v) for v in versions]
    learn: list[CorruptedFilm] = []
    held: list[CorruptedFilm] = []
    with Meter("films", sys.stderr) as meter:
        for done, (order, film) in enumerate(map_unordered(partial(_maker, tuple(stills), seed), orders, jobs), 1):
            (held if order.how == "held" else learn).append(film)
            meter.advance(done, len(orders))
    banks = [FilmBank.of(sorted(part, key=lambda film: film.name)) for part in (learn, held)]
    return banks[0], banks[1]


def _eighth(name: str) -> bool:
    return name.startswith("cctv_") and hashlib.sha256(name.encode()).digest()[0] % 8 == 0


def _maker(stills: tuple[Picture, ...], seed: int) -> Callable[[Order], CorruptedFilm]:
    cv2.setNumThreads(1)
    return lambda order: _coarse(_made(stills, seed, order))


def _coarse(film: CorruptedFilm) -> CorruptedFilm:
    """Glances in fewer steps, so that a file of them is small; they lose 2 of 255 at most."""
    steps = np.ones((CHANNELS, 1, 1), np.uint8)
    steps[LIGHT], steps[COLOUR], steps[DETAIL] = 2, 2, 4

    def rounded(seen: Descriptors) -> Descriptors:
        return (seen // steps) * steps + steps // 2

    return replace(
        film, clean=rounded(film.clean), spans=tuple((kind, at, rounded(seen)) for kind, at, seen in film.spans)
    )


def _made(stills: tuple[Picture, ...], seed: int, order: Order) -> CorruptedFilm:
    if order.how == "held":
        return _tried(order, seed)
    rng = rng_for(seed, "material", order.name)
    if order.clip:
        frames = _varied(_frames(order.clip, order.first, LONG), order.variant, rng)
        kind = "filmed"
    else:
        frames = draw_film(order.name, FRAMES, seed=seed, stills=stills)
        kind = "drawn"
    clip = Clip.at_rate(frames, RATE)
    again = (lambda struck: coded(struck, rng)) if rng.random() < 0.35 else None
    strikes = max(4, round(len(frames) / 14))
    shown = "choose " + kind if order.how == "choose" else kind
    return corrupt_film(
        clip, SPECS, name=order.name, kind=shown, count=strikes, lengths=LENGTHS, seed=seed, finish=again
    )


def _tried(order: Order, seed: int) -> CorruptedFilm:
    """A film that is only for trying: five frames in a row are struck, here and there, by each of the five kinds."""
    if order.only:
        return CorruptedFilm(
            order.name,
            f"drawn {order.only}",
            describe_frames(draw_film(order.name, 100, seed=seed + 1, only=order.only)),
            (),
        )
    if order.clip:
        frames, kind = _frames(order.clip, 0, TRIED), "filmed elsewhere"
    else:
        film = untrimmed(seed + 1, f"inspector/{order.name}", cast=tuple(CASTS["validation"]))
        frames, kind = film.draw(100, 260), "puppets of another cast"
    clip = Clip.at_rate(frames, RATE)
    strikes = []
    many = min(max(len(clip) // 40, 2), 3)
    for which in FIVE:
        spec = Spec.parse(f"thumos14-c/{which}:2")
        for number in range(many):
            at = (2 * number + 1) * len(clip) // (2 * many) - 2
            strikes.append(
                (str(spec), at, describe_frames(corrupt_span(clip, spec, at, at + 5, seed=seed, video_id=order.name)))
            )
    short = clip[: min(24, len(clip))]
    for text in THROUGHOUT:
        struck = corrupt_span(short, Spec.parse(text), 0, len(short), seed=seed, video_id=order.name)
        strikes.append((WHOLE + text, 0, describe_frames(struck)))
    return CorruptedFilm(order.name, kind, describe_frames(clip.frames), tuple(strikes))


def _frames(path: str, first: int, many: int) -> Frames:
    with Reader(path) as reader:
        return reader.block(first, min(first + many, len(reader)))


def _varied(frames: Frames, variant: int, rng: np.random.Generator) -> Frames:
    """A clip no taller than is needed; the second time smaller, and coded once more."""
    frames = _no_taller(frames, TALL)
    if not variant:
        return frames
    return coded(_no_taller(frames, max(int(len(frames[0]) * rng.uniform(0.3, 0.8)) // 2 * 2, 96)), rng)


def _no_taller(frames: Frames, tall: int) -> Frames:
    height, width = frames.shape[1:3]
    if height <= tall:
        return frames
    size = (round(width * tall / height / 2) * 2, tall)
    return np.stack([np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), np.uint8) for frame in frames])
