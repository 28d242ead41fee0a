"""Training material of the look-ahead inspector: films, drawn and filmed, damaged in all ways of `world_variety`.

    python -m studies.lookahead_material BANKS --clips FOLDER --films 300 --minutes 25

Writes files of descriptors, `NNN.bank`, into BANKS as it goes along. Clips under MIT and Apache-2.0 are learned from;
all others only choose thresholds and measure. The kind of damage is the first part of a span's name.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.io.video.decode import Reader
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CHANNELS, COLOUR, DETAIL, LIGHT, Descriptors
from jostle.training.descriptor_bank import (
    CorruptedFilm,
    FilmBank,
    corrupt_span,
    draw_spec,
    picture_corruptions,
    write_bank,
)
from studies.harness import parse_arguments
from studies.inspector_films import NAMED, RATE, Picture, coded, draw_film
from studies.world_variety import draw_damage, hard_clean

LEARNED = ("cctv_fi001", "cctv_fi002", "cctv_fi003", "v_GGSY1Qvo990", "flipping_a_pancake")
FRAMES, LONG = 160, 170  # frames of a drawn film, and of a piece of a clip
SPANS = 9  # damaged spans of a film
LENGTHS = (1, 60)
OWN = 0.25  # share of spans that jostle's own corruptions damage
A_FILE = 24  # films of a file
SEED = 32
SIZES = (96, 360)  # rows of a film
# Word in the name of one of jostle's corruptions, and the kind of damage that it is; the rest is unknown.
OWN_KINDS = {
    "black": "black",
    "mix": "unknown",
    "blur": "blurred",
    "noise": "noisy",
    "occlusion": "covered",
    "spatter": "covered",
    "bit_error": "blocky",
    "loss": "blocky",
    "h264": "blocky",
    "h265": "blocky",
    "mpeg": "blocky",
    "jpeg": "blocky",
    "pixelate": "blocky",
    "overexposure": "overexposed",
    "brightness": "overexposed",
    "saturate": "colour_cast",
}
OWN_OFTEN = ("black_frame", "motion_blur", "occlusion", "packet_loss", "overexposure")
# Motion, a turned picture and averages are no damage that a camera shows.
SPECS = tuple(
    spec
    for spec in picture_corruptions()
    if not any(word in spec for word in ("rotate", "translate", "jitter", "average"))
) + tuple(f"thumos14-c/{name}" for name in OWN_OFTEN for _ in range(4))


def main() -> None:
    """Make banks until time or films run out."""
    arguments = parse_arguments(__doc__, clips=Path, films=300, minutes=25.0, first=0, every=1)
    begun, films = time.monotonic(), []
    clips = [] if arguments.clips is None else sorted(p for p in arguments.clips.glob("*") if p.suffix in SUFFIXES)
    stills = tuple(still for path in clips if path.stem in LEARNED for still in _stills(path))
    many = 0
    for number in range(arguments.first, arguments.films, arguments.every):
        film = make_film(number, clips, stills)
        films.append(_coarse(film))
        ended = time.monotonic() - begun > 60 * arguments.minutes
        if len(films) == A_FILE or ended or number + arguments.every >= arguments.films:
            path = arguments.work / f"{number:04d}.bank"
            write_bank(FilmBank.of(films), path)
            many += len(films)
            print(f"{many} films, {path.stat().st_size / 1e6:.1f} MB, {time.monotonic() - begun:.0f} s", flush=True)
            films = []
        if ended:
            break


SUFFIXES = (".mp4", ".avi", ".mkv")


def make_film(number: int, clips: list[Path], stills: tuple[Picture, ...]) -> CorruptedFilm:
    """Make the film of a number: every third is filmed, one in ten is held out."""
    rng = rng_for(SEED, "lookahead material", number)
    if number % 3 == 0 and clips:
        number //= 3
        held = number % 5 == 4
        paths = [path for path in clips if (path.stem not in LEARNED) == held]
        path = paths[(number // 5 if held else number) % len(paths)]
        frames = _piece(path, rng, varied=not held or number >= 25)
        name, kind = f"{path.stem} {number}", f"{'choose' if held else 'learn'} filmed"
    else:
        held, name = number % 12 == 1, f"drawn {number:04d}"
        only = str(rng.choice(NAMED)) if rng.random() < 0.15 else ""
        frames = draw_film(f"lookahead {number}", FRAMES, seed=SEED, stills=() if held else stills, only=only)
        kind = "choose drawn" if held else "learn drawn"
    if rng.random() < (0.2 if "filmed" in kind else 0.45):
        sort, frames = hard_clean(frames, rng)
        frames = coded(frames, rng)
        name += f" {sort}"
    return damage_film(name, kind, frames, rng)


def damage_film(name: str, kind: str, frames: Frames, rng: np.random.Generator) -> CorruptedFilm:
    """Describe a film and some damaged spans of it."""
    spans = []
    clip = Clip.at_rate(frames, RATE)
    for number in range(SPANS):
        most = np.log(min(LENGTHS[1], len(frames)) + 0.49)
        many = min(
            round(float(np.exp(rng.uniform(np.log(LENGTHS[0]) if number % 2 else np.log(8), most)))), len(frames)
        )
        at = int(rng.integers(len(frames) - many + 1))
        if rng.random() < OWN:
            spec = draw_spec(SPECS, (2, 3, 4, 5), rng)
            damaged = corrupt_span(clip, spec, at, at + many, seed=key_for(SEED, name, number), video_id=name)
            words = [word for part, word in OWN_KINDS.items() if part in str(spec)]
            label = f"{words[0] if words else 'unknown'}/jostle {str(spec).replace('/', ' ')}"
        else:
            damage = draw_damage(rng)
            lead = min(damage.margin, at)
            damaged = damage.draw(frames[at - lead : at + many], rng)[lead:]
            label = f"{damage.kind}/{damage.name}"
            if rng.random() < 0.1:  # two things at once
                other = draw_damage(rng)
                damaged, label = other.draw(damaged, rng), f"unknown/{damage.name} and {other.name}"
        if rng.random() < 0.3 and len(damaged) > 2:
            damaged = coded(damaged, rng)
        spans.append((label, at, describe_frames(damaged)))
    return CorruptedFilm(name, kind, describe_frames(frames), tuple(spans))


def _stills(path: Path) -> list[Picture]:
    with Reader(path) as reader:
        return [reader.block(at, at + 1)[0] for at in range(0, len(reader), 60)]


def _piece(path: Path, rng: np.random.Generator, *, varied: bool) -> Frames:
    """Read a piece of a clip; if varied, cropped, at another size and coded once more."""
    with Reader(path) as reader:
        first = int(rng.integers(max(len(reader) - LONG, 0) + 1))
        frames = reader.block(first, min(first + LONG, len(reader)))
    if not varied:
        return frames
    height, width = frames.shape[1:3]
    part = rng.uniform(0.45, 1.0) if rng.random() < 0.6 else 1.0
    tall, wide = int(height * part), int(width * part)
    y, x = int(rng.integers(height - tall + 1)), int(rng.integers(width - wide + 1))
    frames = frames[:, y : y + tall, x : x + wide]
    rows = int(np.exp(rng.uniform(*np.log(SIZES)))) // 2 * 2
    size = (max(int(rows * wide / tall) // 2 * 2, 64), rows)
    frames = np.stack([np.asarray(cv2.resize(f, size, interpolation=cv2.INTER_AREA), np.uint8) for f in frames])
    return coded(frames, rng) if rng.random() < 0.7 else frames


def _coarse(film: CorruptedFilm) -> CorruptedFilm:
    """Store descriptors in fewer steps, so that a file is small; training adds noise of that size."""
    steps = np.ones((CHANNELS, 1, 1), np.uint8)
    steps[LIGHT], steps[COLOUR], steps[DETAIL] = COARSE

    def rounded(values: Descriptors) -> Descriptors:
        return (values // steps) * steps

    spans = tuple((kind, at, rounded(values)) for kind, at, values in film.spans)
    return replace(film, clean=rounded(film.clean), spans=spans)


COARSE = (2, 4, 8)  # steps of light, colour and detail


if __name__ == "__main__":
    main()
