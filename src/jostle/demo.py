"""The demo: a short film made here, knocked about every way there is, and a page that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from jostle.corrupting.corruption import corruptions
from jostle.corruptions.kernels.textures import cloud
from jostle.types.clip import Clip, Frame

FPS = Fraction(24)
SIZE = (180, 320)
SECONDS = 3
CLIP_QUALITY = 27  # all clips travel inside the page

# The order of the page: from the sensor to the network to time.
FAMILIES = (
    *("noise", "blur", "weather", "light", "camera", "occlusion", "digital"),
    *("compression", "transmission", "order", "rate", "mix"),
)

Progress = Callable[[int, int], None]


def film() -> Clip:
    """A clip of a figure that waves, jumps and catches a ball, on a hill under a drifting sky."""
    frames = np.stack([_frame(t / float(FPS)) for t in range(SECONDS * FPS.numerator)])
    return Clip.at_rate(frames, FPS)


def write_demo(folder: Path, *, seed: int = 0, progress: Progress | None = None) -> Path:
    """Corrupt the film every way there is; write the film, the corrupted clips, a contact sheet and a page.

    Returns:
        The path of the page.
    """
    from jostle.corrupting.apply import corrupt_clip
    from jostle.corrupting.gallery import sheet_rows
    from jostle.corrupting.spec import Spec
    from jostle.media.encode import Writer
    from jostle.report.gallery import Exhibit, write_gallery
    from jostle.report.sheet import draw_sheet, write_png

    clips = folder / "clips"
    clips.mkdir(parents=True, exist_ok=True)
    clean = film()

    def save(clip: Clip, name: str) -> Path:
        path = clips / f"{name}.mp4"
        with Writer(path, size=clip.size, fps=clip.fps, quality=CLIP_QUALITY) as writer:
            for tick, frame in enumerate(clip.frames):
                writer.write(frame, tick)
        return path

    save(clean, "clean")
    exhibits = []
    names = list(corruptions)
    for done, name in enumerate(sorted(names, key=lambda name: FAMILIES.index(corruptions[name].family))):
        if progress:
            progress(done, len(names))
        spec = Spec.parse(f"{name}:4")
        path = save(corrupt_clip(clean, [spec], seed=seed, video_id="film"), name)
        found = corruptions[name]
        exhibits.append(Exhibit(name, found.family, found.level, found.summary.replace("`", ""), path))
    rows = sheet_rows(clean, [Spec.parse(name) for name in names], seed=seed)
    sheet = write_png(draw_sheet(rows, ["clean", *"12345"]), folder / "sheet.png")
    return write_gallery(folder / "index.html", exhibits, clips / "clean.mp4", sheet)


def _frame(time_s: float) -> Frame:
    sky = np.roll(_sky(), -int(14 * time_s), axis=1)[:, : SIZE[1]]
    image = np.array(sky)
    shift = int(9 * math.sin(time_s * 1.1))
    _hill(image, shift)
    _figure(image, time_s, shift)
    return image


@lru_cache(1)
def _sky() -> Frame:
    height = SIZE[0]
    clouds = cv2.GaussianBlur(cloud(512, 1.9, 7)[:height, :], (0, 0), 1.0)
    depth = np.linspace(0, 1, height)[:, None]
    top, low = np.array([92, 152, 214.0]), np.array([214, 228, 236.0])
    blue = top + (low - top) * depth[..., None]
    white = np.clip((clouds - 0.5) * 3, 0, 1)[..., None] * (1 - 0.5 * depth[..., None])
    return np.asarray(blue * (1 - white) + 250 * white, np.uint8)


def _hill(image: Frame, shift: int) -> None:
    height, width = SIZE
    x = np.arange(width)
    for base, swell, colour, speed in ((112, 16, (108, 140, 92), 1), (136, 10, (84, 122, 62), 2)):
        top = base + swell * np.sin((x + speed * shift) / 46 + base)
        outline = np.concatenate([np.stack([x, top], 1), [[width, height], [0, height]]])
        cv2.fillPoly(image, [outline.round().astype(np.int32)], colour, cv2.LINE_AA)
    grain = (cloud(512, 1.15, 3)[:height, :width] - 0.5) * 40
    ground = slice(140, height)
    image[ground] = np.clip(image[ground] + grain[ground, :, None], 0, 255).astype(np.uint8)
    cv2.rectangle(image, (36 + shift, 96), (42 + shift, 150), (96, 66, 44), -1)
    cv2.circle(image, (39 + shift, 84), 24, (58, 104, 52), -1, cv2.LINE_AA)


def _figure(image: Frame, time_s: float, shift: int) -> None:
    jump = max(math.sin(2 * math.pi * time_s / 1.5), 0.0) ** 2 * 26
    hip = np.array([168 + shift * 2, 128 - jump])
    neck = hip - (0, 40)
    wave = math.sin(2 * math.pi * time_s * 1.6)
    crouch = 6 * max(-math.sin(2 * math.pi * time_s / 1.5), 0.0)
    hip[1] += crouch
    limbs: list[tuple[Any, Any, tuple[int, int, int], int]] = [
        (hip, hip + (-11, 20), (46, 58, 96), 11),
        (hip + (-11, 20), hip + (-13, 38 - crouch), (46, 58, 96), 9),
        (hip, hip + (11, 20), (52, 66, 110), 11),
        (hip + (11, 20), hip + (14, 38 - crouch), (52, 66, 110), 9),
        (neck, hip, (198, 66, 52), 20),
        (neck + (0, 5), neck + (-22, 20), (186, 58, 46), 8),
        (neck + (-22, 20), neck + (-30, 2 + 6 * wave), (232, 190, 160), 7),
        (neck + (0, 5), neck + (22, -6), (198, 66, 52), 8),
        (neck + (22, -6), neck + (30 + 12 * wave, -30), (232, 190, 160), 7),
    ]
    for start, end, colour, width in limbs:
        a, b = (tuple(int(v) for v in np.round(point)) for point in (start, end))
        cv2.line(image, a, b, colour, width, cv2.LINE_AA)
    head = tuple(int(v) for v in np.round(neck - (0, 16)))
    cv2.circle(image, head, 12, (232, 190, 160), -1, cv2.LINE_AA)
    cv2.ellipse(image, (head[0], head[1] - 3), (13, 10), 0, 180, 360, (62, 44, 34), -1, cv2.LINE_AA)
    ball = (int(250 + shift), int(150 - 70 * abs(math.sin(math.pi * time_s / 0.9))))
    cv2.circle(image, ball, 9, (238, 176, 40), -1, cv2.LINE_AA)
    cv2.circle(image, (ball[0] - 3, ball[1] - 3), 3, (255, 232, 160), -1, cv2.LINE_AA)
