"""Training and test data of the shipped inspector: descriptors of drawn films and filmed clips, clean and corrupted.

The source of a clip decides its use. Those under MIT and Apache-2.0 are for training; all others are for testing,
and so is every source that one of them comes from.
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
LENGTHS = (1, 60)  # of a corrupted stretch
TALL = 360  # rows of a training clip, at most
LONG = 170  # frames of a clip that are taken at once
TEST_FRAMES = 150  # of a test clip


@dataclass(frozen=True)
class FilmSource:
    """Source of a film of a bank: `how` is learn, choose or held."""

    how: str
    name: str
    clip: str = ""
    first: int = 0
    variant: int = 0
    only: str = ""


def make_banks(clips: Path | None, films: int, jobs: int, seed: int) -> tuple[FilmBank, FilmBank]:
    """Return the bank for training and choosing thresholds, and that for testing."""
    sources = [FilmSource("choose" if n % 12 == 0 else "learn", f"drawn {n:04d}") for n in range(films)]
    sources += [FilmSource("held", f"{only} {n}", only=only) for only in NAMED for n in range(3)]
    sources += [FilmSource("held", f"puppets {n}") for n in range(6)]
    stills = []
    for path in sorted(clips.rglob("*")) if clips is not None else ():
        if path.suffix not in (".mp4", ".avi", ".mkv"):
            continue
        if not path.name.startswith(LEARNED):
            sources.append(FilmSource("held", path.stem, str(path)))
            continue
        how = "choose" if path.name.startswith(CHOOSING) or _eighth(path.name) else "learn"
        with Reader(path) as reader:
            if how == "learn":
                stills.append(_limit_height(reader.block(len(reader) // 2, len(reader) // 2 + 1), 480)[0])
            for first in range(0, max(len(reader) - LONG // 3, 1), LONG):
                versions = range(2 if how == "learn" else 1)
                sources += [FilmSource(how, f"{path.stem} {first} {v}", str(path), first, v) for v in versions]
    learn: list[CorruptedFilm] = []
    held: list[CorruptedFilm] = []
    with Meter("films", sys.stderr) as meter:
        for done, (source, film) in enumerate(map_unordered(partial(_maker, tuple(stills), seed), sources, jobs), 1):
            (held if source.how == "held" else learn).append(film)
            meter.advance(done, len(sources))
    banks = [FilmBank.of(sorted(part, key=lambda film: film.name)) for part in (learn, held)]
    return banks[0], banks[1]


def _eighth(name: str) -> bool:
    return name.startswith("cctv_") and hashlib.sha256(name.encode()).digest()[0] % 8 == 0


def _maker(stills: tuple[Picture, ...], seed: int) -> Callable[[FilmSource], CorruptedFilm]:
    cv2.setNumThreads(1)
    return lambda source: _quantise(_draw_film(stills, seed, source))


def _quantise(film: CorruptedFilm) -> CorruptedFilm:
    """Quantise descriptors, so that a file of them is small; they lose 2 of 255 at most."""
    steps = np.ones((CHANNELS, 1, 1), np.uint8)
    steps[LIGHT], steps[COLOUR], steps[DETAIL] = 2, 2, 4

    def quantise(descriptors: Descriptors) -> Descriptors:
        return (descriptors // steps) * steps + steps // 2

    return replace(
        film, clean=quantise(film.clean), spans=tuple((kind, at, quantise(span)) for kind, at, span in film.spans)
    )


def _draw_film(stills: tuple[Picture, ...], seed: int, source: FilmSource) -> CorruptedFilm:
    if source.how == "held":
        return _draw_test_film(source, seed)
    rng = rng_for(seed, "material", source.name)
    if source.clip:
        frames = _vary(_read_frames(source.clip, source.first, LONG), source.variant, rng)
        kind = "filmed"
    else:
        frames = draw_film(source.name, FRAMES, seed=seed, stills=stills)
        kind = "drawn"
    clip = Clip.at_rate(frames, RATE)
    finish = (lambda corrupted: coded(corrupted, rng)) if rng.random() < 0.35 else None
    count = max(4, round(len(frames) / 14))
    if source.how == "choose":
        kind = "choose " + kind
    return corrupt_film(
        clip, SPECS, name=source.name, kind=kind, count=count, lengths=LENGTHS, seed=seed, finish=finish
    )


def _draw_test_film(source: FilmSource, seed: int) -> CorruptedFilm:
    """Return a test film: each of the five kinds corrupts five frames in a row, here and there."""
    if source.only:
        return CorruptedFilm(
            source.name,
            f"drawn {source.only}",
            describe_frames(draw_film(source.name, 100, seed=seed + 1, only=source.only)),
            (),
        )
    if source.clip:
        frames, kind = _read_frames(source.clip, 0, TEST_FRAMES), "filmed elsewhere"
    else:
        film = untrimmed(seed + 1, f"inspector/{source.name}", cast=tuple(CASTS["validation"]))
        frames, kind = film.draw(100, 260), "puppets of another cast"
    clip = Clip.at_rate(frames, RATE)
    spans: list[tuple[str, int, Descriptors]] = []
    many = min(max(len(clip) // 40, 2), 3)
    for which in FIVE:
        spec = Spec.parse(f"thumos14-c/{which}:2")
        for number in range(many):
            at = (2 * number + 1) * len(clip) // (2 * many) - 2
            corrupted = corrupt_span(clip, spec, at, at + 5, seed=seed, video_id=source.name)
            spans.append((str(spec), at, describe_frames(corrupted)))
    short = clip[: min(24, len(clip))]
    for text in THROUGHOUT:
        corrupted = corrupt_span(short, Spec.parse(text), 0, len(short), seed=seed, video_id=source.name)
        spans.append((WHOLE + text, 0, describe_frames(corrupted)))
    return CorruptedFilm(source.name, kind, describe_frames(clip.frames), tuple(spans))


def _read_frames(path: str, first: int, many: int) -> Frames:
    with Reader(path) as reader:
        return reader.block(first, min(first + many, len(reader)))


def _vary(frames: Frames, variant: int, rng: np.random.Generator) -> Frames:
    """Return a clip no taller than needed; its second variant smaller, and coded once more."""
    frames = _limit_height(frames, TALL)
    if not variant:
        return frames
    return coded(_limit_height(frames, max(int(len(frames[0]) * rng.uniform(0.3, 0.8)) // 2 * 2, 96)), rng)


def _limit_height(frames: Frames, tall: int) -> Frames:
    height, width = frames.shape[1:3]
    if height <= tall:
        return frames
    size = (round(width * tall / height / 2) * 2, tall)
    return np.stack([np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), np.uint8) for frame in frames])
