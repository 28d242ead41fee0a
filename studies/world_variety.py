"""Damage that cameras, cables, codecs and hands do to film, drawn with as much variety as possible, for training.

Each kind of damage is a function of some frames and a random generator, listed in `DAMAGES` with the word for what is
wrong. `draw_damage` draws one of them. Nothing here is used to judge an inspector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frames
from jostle.io.video.codec import Codec, transcode

Rng = np.random.Generator
Floats = npt.NDArray[np.float32]
Draw = Callable[[Frames, Rng], Frames]
RATE = Fraction(25)


@dataclass(frozen=True)
class Damage:
    """A way to damage frames.

    Attributes:
        kind: word for what is wrong with the picture.
        name: name of this way.
        draw: returns damaged frames, as many as it is given.
        often: how often it is drawn, relative to others.
        margin: frames before the damaged ones that it needs.
    """

    kind: str
    name: str
    draw: Draw
    often: float = 1.0
    margin: int = 0


# Covers


def smooth_noise(height: int, width: int, cells: float, rng: Rng) -> Floats:
    """Draw a smooth random field from 0 to 1 with about `cells` bumps along a side."""
    size = max(2, round(cells))
    small = rng.random((size + 1, size + 1)).astype(np.float32)
    field = np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)
    return np.clip((field - field.min()) / max(float(np.ptp(field)), 1e-6), 0, 1)


def texture(height: int, width: int, rng: Rng) -> Floats:
    """Draw the surface of a cover: skin, cloth, card, tape, leather or something plain; (H, W, 3) from 0 to 255."""
    base = rng.uniform(0, 1, 3)
    choice = rng.random()
    if choice < 0.35:  # skin, in any light
        base = np.array([0.85, 0.6, 0.48]) * rng.uniform(0.25, 1.1) * (1 + rng.normal(0, 0.06, 3))
    elif choice < 0.65:  # dark: little light comes past a cover on the lens
        base = base * rng.uniform(0.0, 0.3)
    elif choice < 0.8:
        base = np.full(3, rng.uniform(0, 1)) * (1 + rng.normal(0, 0.03, 3))
    picture = np.broadcast_to(base.astype(np.float32), (height, width, 3)).copy()
    shade = 1 + rng.uniform(0, 0.7) * (smooth_noise(height, width, rng.uniform(1, 5), rng) - 0.5)
    picture *= shade[..., None]
    pattern = rng.random()
    if pattern < 0.2:  # weave or stripes
        y, x = np.mgrid[:height, :width].astype(np.float32)
        angle, period = rng.uniform(0, np.pi), rng.uniform(2, height / 6)
        wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / period)
        if rng.random() < 0.5:
            wave = wave * np.sin((y * np.cos(angle) - x * np.sin(angle)) * 2 * np.pi / period)
        picture *= (1 + rng.uniform(0.05, 0.5) * wave)[..., None].astype(np.float32)
    elif pattern < 0.4:
        picture *= (1 + rng.uniform(0.05, 0.5) * (smooth_noise(height, width, height / rng.uniform(2, 12), rng) - 0.5))[
            ..., None
        ]
    if rng.random() < 0.6:
        picture = np.asarray(cv2.GaussianBlur(picture, (0, 0), float(rng.uniform(0.005, 0.05) * height)), np.float32)
    return np.clip(picture * 255, 0, 255).astype(np.float32)


def cover_mask(height: int, width: int, rng: Rng, *, least: float = 0.12) -> Floats:
    """Draw the outline of a cover as an opacity from 0 to 1: a hand, a finger, a board, a blob or the whole lens."""
    tall, wide = 2 * height, 2 * width  # drawn with room around, since it moves
    for _ in range(8):
        mask = np.zeros((tall, wide), np.float32)
        centre = np.array([wide, tall]) / 2 + rng.normal(0, 0.28, 2) * (width, height)
        size = height * np.exp(rng.uniform(np.log(0.2), np.log(1.1)))
        shape = rng.integers(6)
        if shape == 0:
            axes = (max(int(size * rng.uniform(0.3, 0.9)), 2), max(int(size * rng.uniform(0.3, 0.9)), 2))
            cv2.ellipse(mask, centre.astype(int).tolist(), axes, float(rng.uniform(0, 180)), 0, 360, 1.0, -1)
        elif shape == 1:  # palm and fingers
            _hand(mask, centre, size * 0.6, rng)
        elif shape == 2:  # a finger or an arm from an edge
            angle, length = rng.uniform(0, 2 * np.pi), 2.0 * height
            end = centre + length * np.array([np.cos(angle), np.sin(angle)])
            thick = max(int(size * rng.uniform(0.25, 0.9)), 3)
            cv2.line(mask, centre.astype(int).tolist(), end.astype(int).tolist(), 1.0, thick, cv2.LINE_AA)
        elif shape == 3:  # a board with a straight edge
            angle, shift = rng.uniform(0, 2 * np.pi), rng.uniform(-0.35, 0.3) * height
            y, x = np.mgrid[:tall, :wide].astype(np.float32)
            mask[(x - wide / 2) * np.cos(angle) + (y - tall / 2) * np.sin(angle) > shift] = 1
        elif shape == 4:  # a rag or a blob
            field = smooth_noise(tall, wide, rng.uniform(3, 9), rng)
            y, x = np.mgrid[:tall, :wide].astype(np.float32)
            far = np.hypot(x - centre[0], y - centre[1]) / size
            mask[field + 0.6 - 0.7 * far > 0.5] = 1
        else:
            corners = centre + size * rng.uniform(-1, 1, (int(rng.integers(3, 7)), 2))
            cv2.fillConvexPoly(mask, cv2.convexHull(corners.astype(np.int32)), 1.0, cv2.LINE_AA)
        inside = mask[height // 2 : height // 2 + height, width // 2 : width // 2 + width].mean()
        if inside >= least:
            break
    soft = height * np.exp(rng.uniform(np.log(0.003), np.log(0.15)))
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), float(soft)), np.float32)


def _hand(mask: Floats, centre: npt.NDArray[np.float64], size: float, rng: Rng) -> None:
    turn = rng.uniform(0, 2 * np.pi)
    middle = centre.astype(int).tolist()
    cv2.ellipse(mask, middle, (int(size * 0.8) + 1, int(size) + 1), float(np.degrees(turn)), 0, 360, 1.0, -1)
    for finger in range(int(rng.integers(3, 6))):
        angle = turn - 0.9 + 0.42 * finger + rng.normal(0, 0.07)
        end = centre + size * rng.uniform(1.5, 2.4) * np.array([np.cos(angle), np.sin(angle)])
        thick = max(int(size * rng.uniform(0.25, 0.45)), 2)
        cv2.line(mask, middle, end.astype(int).tolist(), 1.0, thick, cv2.LINE_AA)
    wrist = centre - 3 * size * np.array([np.cos(turn), np.sin(turn)])
    cv2.line(mask, middle, wrist.astype(int).tolist(), 1.0, max(int(size * 0.9), 2), cv2.LINE_AA)


def draw_cover(frames: Frames, rng: Rng) -> Frames:
    """Put a cover before the lens, which comes at once or moves in, then rests, trembles or wanders."""
    count, height, width = frames.shape[:3]
    mask, look = cover_mask(height, width, rng), texture(2 * height, 2 * width, rng)
    opacity = 1.0 if rng.random() < 0.75 else rng.uniform(0.6, 1.0)
    path = np.cumsum(rng.normal(0, rng.choice([0, 0, 0.002, 0.01]) * height, (count, 2)), 0)
    path += np.arange(count)[:, None] * rng.normal(0, rng.choice([0, 0, 0.004]) * height, 2)
    if rng.random() < 0.4 and count > 6:  # moves in and, perhaps, out
        slow = min(int(rng.integers(2, 10)), count // 2)
        away = rng.normal(0, 1, 2)
        away *= 1.1 * max(height, width) / max(float(np.hypot(*away)), 1e-6)
        path[:slow] += np.linspace(0.8, 0, slow)[:, None] * away
        if rng.random() < 0.5:
            path[-slow:] += np.linspace(0, 0.8, slow)[:, None] * away
    dim = 1.0 if rng.random() < 0.7 else rng.uniform(0.3, 1.0)  # light that the cover takes from the rest
    pulse = 1 + rng.choice([0.0, 0.0, 0.15]) * np.sin(np.arange(count) * rng.uniform(0.1, 1.5))
    light = np.clip(frames.reshape(count, -1).mean(1) / 110, 0.3, 1.3) if rng.random() < 0.5 else np.ones(count)
    out = np.empty_like(frames)
    for t in range(count):
        y = int(np.clip(height / 2 - path[t, 1], 0, height))
        x = int(np.clip(width / 2 - path[t, 0], 0, width))
        share = (mask[y : y + height, x : x + width] * opacity)[..., None]
        surface = look[y : y + height, x : x + width] * np.float32(pulse[t] * light[t])
        out[t] = np.clip(frames[t] * np.float32(dim) * (1 - share) + surface * share, 0, 255)
    return out


def draw_tape(frames: Frames, rng: Rng) -> Frames:
    """Stick one to three strips of tape, card or dirt over the lens."""
    height, width = frames.shape[1:3]
    mask = np.zeros((height, width), np.float32)
    for _ in range(int(rng.integers(1, 4))):
        ends = rng.uniform(-0.3, 1.3, (2, 2)) * (width, height)
        thick = max(int(height * rng.uniform(0.1, 0.45)), 3)
        cv2.line(mask, *ends.astype(int).tolist(), 1.0, thick, cv2.LINE_AA)
    mask = cv2.GaussianBlur(mask, (0, 0), float(height * rng.uniform(0.002, 0.06)))[..., None]
    share = mask * np.float32(rng.uniform(0.5, 1.0))
    look = texture(height, width, rng)
    return np.stack([np.clip(f * (1 - share) + look * share, 0, 255).astype(np.uint8) for f in frames])


def draw_drops(frames: Frames, rng: Rng) -> Frames:
    """Put drops of water or dirt on the glass, which smear and bend what is behind them and may run down."""
    count, height, width = frames.shape[:3]
    many = int(rng.integers(3, 60))
    radius = height * np.exp(rng.uniform(np.log(0.02), np.log(0.2), many))
    at = rng.uniform(0, 1, (many, 2)) * (width, height)
    speed = rng.choice([0.0, 0.0, 0.004]) * height * rng.random(many)
    soft, bright = float(height * rng.uniform(0.01, 0.06)), rng.uniform(-60, 70)
    out = np.empty_like(frames)
    mask = np.zeros((height, width), np.float32)
    for t in range(count):
        if t == 0 or speed.any():
            mask[...] = 0
            for (x, y), r, v in zip(at, radius, speed, strict=True):
                cv2.circle(mask, (int(x), int((y + v * t) % height)), max(int(r), 1), 1.0, -1, cv2.LINE_AA)
            share = cv2.GaussianBlur(mask, (0, 0), max(soft / 3, 0.5))[..., None]
        behind = cv2.GaussianBlur(cv2.flip(frames[t], int(rng.integers(1) or -1)), (0, 0), soft).astype(np.float32)
        out[t] = np.clip(frames[t] * (1 - share) + (behind + bright) * share, 0, 255)
    return out


def draw_condensation(frames: Frames, rng: Rng) -> Frames:
    """Fog the glass in part or altogether: less contrast, less detail, more grey light."""
    count, height, width = frames.shape[:3]
    field = smooth_noise(height, width, rng.uniform(1, 4), rng)
    share = np.clip((field - rng.uniform(-0.6, 0.4)) * rng.uniform(1, 4), 0, 1)[..., None] * rng.uniform(0.6, 0.98)
    sigma, grey = float(height * rng.uniform(0.01, 0.06)), rng.uniform(70, 220) * (1 + rng.normal(0, 0.04, 3))
    veil = np.float32(rng.uniform(0.3, 0.85))
    grow = np.linspace(rng.choice([1.0, 0.4]), 1, count).astype(np.float32)
    out = np.empty_like(frames)
    for t in range(count):
        fog = cv2.GaussianBlur(frames[t], (0, 0), sigma) * (1 - veil) + grey * veil
        now = share * grow[t]
        out[t] = np.clip(frames[t] * (1 - now) + fog * now, 0, 255)
    return out


def draw_threads(frames: Frames, rng: Rng) -> Frames:
    """Hang spider threads, hairs or a grid before the lens, unsharp and swaying."""
    count, height, width = frames.shape[:3]
    mask = np.zeros((height, width), np.float32)
    for _ in range(int(rng.integers(4, 40))):
        ends = rng.uniform(-0.2, 1.2, (2, 2)) * (width, height)
        cv2.line(mask, *ends.astype(int).tolist(), float(rng.uniform(0.5, 1)), int(rng.integers(1, 4)), cv2.LINE_AA)
    if rng.random() < 0.5:
        middle = rng.uniform(0, 1, 2) * (width, height)
        for ring in range(int(rng.integers(2, 7))):
            cv2.circle(mask, middle.astype(int).tolist(), int(height * 0.09 * (ring + 1)), 0.8, 1, cv2.LINE_AA)
    mask = np.clip(cv2.GaussianBlur(mask, (0, 0), float(height * rng.uniform(0.003, 0.015))) * 2.5, 0, 1)
    light, sway = rng.uniform(0, 255, 3) if rng.random() < 0.3 else np.full(3, rng.uniform(150, 255)), rng.uniform(0, 3)
    speed = rng.uniform(0.05, 0.6)
    out = np.empty_like(frames)
    for t in range(count):
        share = np.roll(mask, int(sway * np.sin(speed * t)), axis=1)[..., None]
        out[t] = np.clip(frames[t] * (1 - share) + light * share, 0, 255)
    return out


# Parts that are lost, and whole frames


def plain_colour(rng: Rng) -> npt.NDArray[np.float64]:
    """Draw a fill colour: grey, green, black, white, blue, magenta or any."""
    fills = ((128, 128, 128), (0, 135, 0), (0, 77, 0), (0, 0, 0), (255, 255, 255), (16, 16, 16), (0, 0, 255),
             (255, 0, 255), (112, 112, 112))  # fmt: skip
    if rng.random() < 0.6:
        return np.array(fills[int(rng.integers(len(fills)))], float)
    return rng.uniform(0, 255, 3)


def draw_missing(frames: Frames, rng: Rng) -> Frames:
    """Replace a band, a half, a rectangle or the rest of the picture from some macroblock on by one colour."""
    count, height, width = frames.shape[:3]
    mask = np.zeros((height, width), np.bool_)
    shape, block = rng.integers(6), int(rng.choice([1, 8, 16, 32]))
    cut = int(rng.uniform(0.15, 0.85) * height) // block * block
    if shape <= 1:
        mask[cut:] = True
    elif shape == 2:
        mask[: max(cut, block)] = True
    elif shape == 3:
        mask[cut : cut + max(int(height * rng.uniform(0.12, 0.5)), 4)] = True
    elif shape == 4:
        side = int(rng.uniform(0.2, 0.8) * width)
        mask[:, :side] = True
        mask = mask if rng.random() < 0.5 else mask[:, ::-1]
    else:
        tall, wide = (max(int(side * rng.uniform(0.3, 0.8)), 4) for side in (height, width))
        y, x = int(rng.integers(height - tall + 1)), int(rng.integers(width - wide + 1))
        mask[y : y + tall, x : x + wide] = True
    if shape <= 1 and rng.random() < 0.5:  # the first lost macroblock lies inside a row of them
        mask[cut : cut + block, : int(rng.integers(width))] = False
    colour, changing = plain_colour(rng), rng.random() < 0.25
    out = frames.copy()
    for t in range(count):
        here = np.roll(mask, int(rng.integers(height)), axis=0) if changing else mask
        out[t][here] = (plain_colour(rng) if changing and rng.random() < 0.2 else colour).astype(np.uint8)
    return out


def draw_stuck_rows(frames: Frames, rng: Rng) -> Frames:
    """Repeat one row or column over a part of the picture, or hold a part at what it was."""
    _count, height, width = frames.shape[:3]
    out = frames.copy()
    lo = int(rng.uniform(0, 0.8) * height)
    hi = min(height, lo + max(int(height * rng.uniform(0.15, 0.7)), 4))
    held = rng.random() < 0.4
    if rng.random() < 0.3:
        columns = slice(int(width * lo / height), max(int(width * hi / height), 4))
        out[:, :, columns] = frames[:, :, columns.start : columns.start + 1]
        return out
    out[:, lo:hi] = frames[:1, lo:hi] if held else frames[:, lo : lo + 1]
    return out


def draw_one_colour(frames: Frames, rng: Rng) -> Frames:
    """Replace the picture by one colour other than black, with or without a little noise."""
    colour = plain_colour(rng)
    if colour.max() < 40:
        colour = rng.uniform(60, 255, 3)
    return _plain(frames, colour, rng)


def draw_black(frames: Frames, rng: Rng) -> Frames:
    """Replace the picture by black, video black or nearly black."""
    return _plain(frames, np.full(3, rng.choice([0, 0, 16, rng.uniform(0, 24)])), rng)


def _plain(frames: Frames, colour: npt.NDArray[np.float64], rng: Rng) -> Frames:
    noise = rng.choice([0.0, 0.0, 1.0, 2.5])
    return np.clip(colour + noise * rng.normal(0, 1, frames.shape), 0, 255).astype(np.uint8)


# Sensors, lenses and light


def draw_noise(frames: Frames, rng: Rng) -> Frames:
    """Add sensor noise of any grain: white, coarse, coloured, salt and pepper, or rows and columns."""
    count, height, width = frames.shape[:3]
    strong = np.exp(rng.uniform(np.log(10), np.log(90)))
    grain, mono, style = rng.choice([1, 1, 1, 2, 3]), rng.random() < 0.4, rng.integers(5)
    out = np.empty_like(frames)
    for t in range(count):
        small = (-(-height // grain), -(-width // grain), 1 if mono else 3)
        if style == 0:
            share = rng.random((height, width, 1))
            salt = share < strong / 500
            out[t] = np.where(salt, rng.choice([0, 255], (height, width, 1)), frames[t])
            continue
        noise = rng.standard_normal(small, np.float32) * np.float32(strong)
        if style == 1:  # shot noise
            noise = noise * np.sqrt(cv2.resize(frames[t], (small[1], small[0])) / np.float32(128) + np.float32(0.05))
        if grain > 1:
            noise = np.repeat(np.repeat(noise, grain, 0), grain, 1)[:height, :width]
        out[t] = np.clip(frames[t] + noise, 0, 255)
    return out


def draw_hot_pixels(frames: Frames, rng: Rng) -> Frames:
    """Set many fixed pixels to bright, dark or coloured values."""
    height, width = frames.shape[1:3]
    hot = rng.random((height, width)) < np.exp(rng.uniform(np.log(0.01), np.log(0.15)))
    values = rng.integers(0, 256, (int(hot.sum()), 3)) if rng.random() < 0.5 else rng.choice([0, 255], (1, 3))
    out = frames.copy()
    out[:, hot] = values
    return out


def draw_banding(frames: Frames, rng: Rng) -> Frames:
    """Lay bands of light and dark over the picture, as a bad cable or a fluorescent lamp does."""
    count, height, width = frames.shape[:3]
    period, strong, speed = rng.uniform(0.01, 0.4) * height, rng.uniform(0.2, 0.9), rng.uniform(-1, 1)
    square, across = rng.random() < 0.4, rng.random() < 0.2
    axis = np.arange(width if across else height)
    out = np.empty_like(frames)
    for t in range(count):
        wave = np.sin(2 * np.pi * (axis / period + speed * t))
        wave = np.sign(wave) if square else wave
        gain = (1 + strong * wave).astype(np.float32)
        out[t] = np.clip(frames[t] * (gain[None, :, None] if across else gain[:, None, None]), 0, 255)
    return out


def draw_rows_of_noise(frames: Frames, rng: Rng) -> Frames:
    """Shift, brighten or replace single rows, as analogue lines and failing sensors do."""
    out = frames.copy()
    height = frames.shape[1]
    share, wide = rng.uniform(0.08, 0.6), max(1, int(rng.choice([1, 2, 4, 8])))
    for frame in out:
        rows = np.repeat(rng.random(-(-height // wide)) < share, wide)[:height]
        style = rng.integers(3)
        for y in np.flatnonzero(rows):
            if style == 0:
                frame[y] = np.roll(frame[y], int(rng.normal(0, 30)), axis=0)
            elif style == 1:
                frame[y] = np.clip(frame[y] + rng.normal(0, 90), 0, 255)
            else:
                frame[y] = rng.integers(0, 256, frame[y].shape)
    return out


def draw_overexposure(frames: Frames, rng: Rng) -> Frames:
    """Expose too long: gain or lift, clipped, with or without a glow."""
    gain, lift = np.exp(rng.uniform(np.log(1.5), np.log(7))), rng.uniform(0, 140) * (rng.random() < 0.6)
    glow = rng.random() < 0.3
    out = np.empty_like(frames)
    for t, frame in enumerate(frames):
        bright = np.clip(frame.astype(np.float32) * np.float32(gain) + np.float32(lift), 0, 255)
        if glow:
            sigma = len(frame) * 0.03
            bright = np.maximum(bright, cv2.GaussianBlur(np.clip(bright - 180, 0, 75) * 3, (0, 0), sigma))
        out[t] = np.clip(bright, 0, 255)
    return out


def draw_underexposure(frames: Frames, rng: Rng) -> Frames:
    """Expose too short: little light, and its noise."""
    gain, noise = np.exp(rng.uniform(np.log(0.02), np.log(0.3))), rng.choice([0, 1, 3])
    dark = frames.astype(np.float32) * np.float32(gain) - np.float32(rng.choice([0, 0, 6]))
    return np.clip(dark + noise * rng.standard_normal(frames.shape, np.float32), 0, 255).astype(np.uint8)


def draw_pumping(frames: Frames, rng: Rng) -> Frames:
    """Let the exposure swing strongly from frame to frame."""
    count = len(frames)
    wave = rng.uniform(0.7, 1.6) * np.sin(np.arange(count) * rng.uniform(0.4, 2.5) + rng.uniform(0, 6))
    if rng.random() < 0.4:
        wave = rng.normal(0, 0.9, count)
    gain = np.exp(wave).astype(np.float32)
    return np.clip(frames * gain[:, None, None, None], 0, 255).astype(np.uint8)


def draw_colour_cast(frames: Frames, rng: Rng) -> Frames:
    """Give the picture a wrong white balance, swapped or lost channels, or a wrong colour matrix."""
    style = rng.integers(6)
    x = frames.astype(np.float32)
    if style == 0:
        x = x[..., rng.permutation(3)] if rng.random() < 0.3 else x[..., ::-1]
    elif style == 1:
        x[..., rng.permutation(3)[: int(rng.integers(1, 3))]] *= rng.uniform(0, 0.3)
    elif style == 2:
        x = x * np.exp(rng.normal(0, 0.6, 3)).astype(np.float32)
    elif style == 3:
        colour, share = rng.uniform(0, 255, 3), rng.uniform(0.25, 0.7)
        x = x * (1 - share) + (x.mean(-1, keepdims=True) / 128) * colour * share
    elif style == 4:  # planes of colour at wrong levels: green or magenta pictures
        grey = x @ np.array([0.299, 0.587, 0.114], np.float32)
        blue, red = rng.uniform(-128, 128, 2) if rng.random() < 0.5 else rng.choice([-128, 128], 2)
        x = np.stack([grey + 1.402 * red, grey - 0.344 * blue - 0.714 * red, grey + 1.772 * blue], -1)
    else:
        x = x @ (np.eye(3) + rng.normal(0, 0.4, (3, 3))).astype(np.float32)
    return np.clip(x, 0, 255).astype(np.uint8)


def draw_wrong_range(frames: Frames, rng: Rng) -> Frames:
    """Invert, posterise, or show full range as limited and the reverse, more than once."""
    x = frames.astype(np.float32)
    style = rng.integers(4)
    if style == 0:
        x = 255 - x
    elif style == 1:
        levels = int(rng.integers(2, 6))
        x = np.round(x / 255 * levels) * (255 / levels)
    elif style == 2:
        for _ in range(int(rng.integers(2, 4))):
            x = np.clip((x - 16) * 255 / 219, 0, 255)
    else:
        x = frames.astype(np.int32).astype(np.float32) * 2 % 256  # a lost high bit
    return np.clip(x, 0, 255).astype(np.uint8)


def draw_defocus(frames: Frames, rng: Rng) -> Frames:
    """Put the lens out of focus, at once or slowly; with a disc or a Gaussian."""
    count, height = frames.shape[:2]
    sigma = height * np.exp(rng.uniform(np.log(0.012), np.log(0.07)))
    disc = rng.random() < 0.4
    ramp = np.ones(count) if rng.random() < 0.7 else np.clip(np.linspace(0.4, 1.6, count), 0, 1)
    out = np.empty_like(frames)
    for t in range(count):
        if disc:
            size = max(int(sigma * ramp[t] * 2), 1)
            kernel = np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * size + 1,) * 2), np.float32)
            out[t] = cv2.filter2D(frames[t], -1, kernel / kernel.sum())
        else:
            out[t] = cv2.GaussianBlur(frames[t], (0, 0), max(float(sigma * ramp[t]), 0.3))
    return out


def draw_shake(frames: Frames, rng: Rng) -> Frames:
    """Shake the camera: strong motion blur in changing directions, and jumps."""
    count, height, width = frames.shape[:3]
    length, jump = height * rng.uniform(0.05, 0.25), height * rng.choice([0, 0.03, 0.1])
    fixed = rng.uniform(0, np.pi) if rng.random() < 0.5 else None
    out = np.empty_like(frames)
    for t in range(count):
        size = max(int(length * rng.uniform(0.6, 1.2)) | 1, 3)
        angle = rng.uniform(0, np.pi) if fixed is None else fixed
        kernel = np.zeros((size, size), np.float32)
        step = np.array([np.cos(angle), np.sin(angle)]) * size / 2
        ends = [(size // 2 + way * step).astype(int).tolist() for way in (-1, 1)]
        cv2.line(kernel, *ends, 1.0, 1)
        move = np.array([[1, 0, rng.normal(0, 1) * jump], [0, 1, rng.normal(0, 1) * jump]], np.float32)
        shifted = cv2.warpAffine(frames[t], move, (width, height), borderMode=cv2.BORDER_REFLECT_101)
        out[t] = cv2.filter2D(shifted, -1, kernel / max(float(kernel.sum()), 1))
    return out


def draw_interlacing(frames: Frames, rng: Rng) -> Frames:
    """Weave rows of other frames in, or show single fields."""
    out = frames.copy()
    apart, wide = int(rng.integers(2, 8)), int(rng.choice([1, 1, 2]))
    rows = (np.arange(frames.shape[1]) // wide) % 2 == 1
    if rng.random() < 0.3:
        out[:, rows] = 0
        return out
    out[:, rows] = np.roll(frames, apart, axis=0)[:, rows]
    return out


def draw_wrong_scale(frames: Frames, rng: Rng) -> Frames:
    """Show the picture at a wrong size or place: squeezed, rolled over an edge, mirrored, doubled or a part of it."""
    height, width = frames.shape[1:3]
    style = rng.integers(5)
    if style == 0:  # loss of synchronisation
        return np.roll(frames, (int(rng.uniform(0.2, 0.8) * height), int(rng.uniform(0, 0.8) * width)), axis=(1, 2))
    if style == 1:
        return np.ascontiguousarray(frames[:, ::-1])
    if style == 2:  # tiled
        parts = int(rng.integers(2, 5))
        small = np.stack([cv2.resize(f, (max(width // parts, 2), max(height // parts, 2))) for f in frames])
        tiled = np.tile(small, (1, parts + 1, parts + 1, 1))[:, :height, :width]
        return np.ascontiguousarray(tiled)
    if style == 3:  # a small picture in a corner, the rest one colour
        part = rng.uniform(0.3, 0.7)
        out = np.empty_like(frames)
        out[...] = plain_colour(rng).astype(np.uint8)
        for t, frame in enumerate(frames):
            small = cv2.resize(frame, (max(int(width * part), 2), max(int(height * part), 2)))
            out[t, : len(small), : small.shape[1]] = small
        return out
    part = rng.uniform(0.15, 0.4)  # far too large
    top, left = int(rng.uniform(0, 1 - part) * height), int(rng.uniform(0, 1 - part) * width)
    crop = frames[:, top : top + max(int(part * height), 2), left : left + max(int(part * width), 2)]
    return np.stack([np.asarray(cv2.resize(f, (width, height)), np.uint8) for f in crop])


def draw_skew(frames: Frames, rng: Rng) -> Frames:
    """Read rows with a wrong stride, or tear the picture at some heights."""
    count, height, width = frames.shape[:3]
    out = np.empty_like(frames)
    slope = rng.choice([-1, 1]) * rng.uniform(0.3, 4)
    tears = rng.random() < 0.5
    for t in range(count):
        if tears:
            shifts = np.repeat(rng.normal(0, 0.25 * width, 6), -(-height // 6))[:height].astype(int)
        else:
            shifts = (slope * np.arange(height)).astype(int)
        columns = (np.arange(width) + shifts[:, None]) % width
        out[t] = np.take_along_axis(frames[t], columns[..., None], axis=1)
    return out


# Codecs


def draw_blocks(frames: Frames, rng: Rng) -> Frames:
    """Displace, repeat, flatten or recolour macroblocks."""
    count, height, width = frames.shape[:3]
    size = max(4, int(rng.choice([8, 16, 16, 32]) * rng.choice([1, 1, 2])))
    share, style, held = rng.uniform(0.1, 0.8), rng.integers(4), rng.random() < 0.6
    seed, out = int(rng.integers(2**32)), frames.copy()
    for t in range(count):
        own = np.random.default_rng(seed if held else seed + t)
        for y in range(0, height, size):
            for x in range(0, width, size):
                if own.random() >= share:
                    continue
                part = (slice(y, y + size), slice(x, x + size))
                if style == 0:
                    dy, dx = (own.normal(0, 2.5, 2) * size).astype(int)
                    block = frames[t][np.clip(np.arange(y, y + size) + dy, 0, height - 1)][
                        :, np.clip(np.arange(x, x + size) + dx, 0, width - 1)
                    ]
                    out[t][part] = block[: out[t][part].shape[0], : out[t][part].shape[1]]
                elif style == 1:
                    out[t][part] = frames[t][part].mean((0, 1))
                elif style == 2:
                    out[t][part] = own.integers(0, 256, 3) if own.random() < 0.3 else 128
                else:
                    out[t][part] = frames[max(t - int(own.integers(3, 20)), 0)][part]
    return out


def draw_pixelation(frames: Frames, rng: Rng) -> Frames:
    """Code the picture in far too few blocks."""
    height, width = frames.shape[1:3]
    size = int(np.exp(rng.uniform(np.log(6), np.log(40))))
    small = (max(width // size, 2), max(height // size, 2))
    how = cv2.INTER_NEAREST if rng.random() < 0.7 else cv2.INTER_LINEAR
    return np.stack(
        [
            np.asarray(
                cv2.resize(cv2.resize(f, small, interpolation=cv2.INTER_AREA), (width, height), interpolation=how)
            )
            for f in frames
        ]
    )


def draw_codec(rng: Rng) -> Codec:
    """Draw a codec whose stream is to be damaged."""
    group = int(rng.choice([12, 50, 250]))
    quality = int(rng.integers(18, 34))
    choice = rng.random()
    if choice < 0.45:
        slices = int(rng.choice([1, 1, 2, 4, 8]))
        x264 = {"crf": quality, "preset": "ultrafast", "g": group, "bf": 0, "x264-params": f"slices={slices}"}
        return Codec("libx264", "h264", {k: v for k, v in x264.items() if not (slices == 1 and k == "x264-params")})
    quantiser = int(rng.integers(3, 12))
    if choice < 0.65:
        return Codec("mpeg4", "mpeg4", {"qmin": quantiser, "qmax": quantiser, "g": group})
    if choice < 0.85:
        return Codec("mpeg2video", "mpeg2video", {"qmin": quantiser, "qmax": quantiser, "g": group})
    if choice < 0.93:
        options = {"crf": quality, "preset": "ultrafast", "g": group, "x265-params": "log-level=none:pools=none"}
        return Codec("libx265", "hevc", options)
    return Codec("libvpx-vp9", "vp9", {"crf": quality, "b": 0, "deadline": "realtime", "cpu-used": 8, "g": group})


def draw_concealment(frames: Frames, rng: Rng) -> Frames:
    """Lose packets, slices or bits of a real stream, and show what a real decoder makes of the rest."""
    codec = draw_codec(rng)
    count, lead = len(frames), min(8, len(frames) // 3)
    style, share = rng.integers(4), np.exp(rng.uniform(np.log(0.05), np.log(0.6)))
    start = rng.random() < 0.7  # so that damage begins with the first frame that counts

    def lose(payload: bytes, number: int) -> bytes | None:
        if number < lead or not (rng.random() < share or (start and number == lead)):
            return payload
        if style == 0 and len(payload) > 40:  # bit errors
            broken = bytearray(payload)
            for at in rng.integers(12, len(broken), max(1, int(len(broken) * rng.choice([0.0005, 0.003, 0.02])))):
                broken[int(at)] ^= 1 << int(rng.integers(8))
            return bytes(broken)
        if style == 1:  # the end of a picture
            return payload[: max(int(len(payload) * rng.uniform(0.1, 0.9)), 16)]
        if style == 2:  # a part in the middle: slices, or network packets
            lo = int(len(payload) * rng.uniform(0.05, 0.8))
            return payload[:lo] + payload[lo + max(int(len(payload) * rng.uniform(0.1, 0.5)), 8) :]
        return None if number > lead and rng.random() < 0.5 else payload[: max(len(payload) // 3, 16)]

    return np.stack(list(transcode(iter(frames), codec, fps=RATE, damage=lose)))[:count]


def draw_starved(frames: Frames, rng: Rng) -> Frames:
    """Code with far too few bits."""
    if rng.random() < 0.5:
        codec = Codec("libx264", "h264", {"crf": int(rng.integers(46, 52)), "preset": "ultrafast"})
    else:
        codec = Codec(str(rng.choice(["mpeg4", "mpeg2video"])), "", {"qmin": 28, "qmax": 31, "g": 250})
        codec = Codec(codec.encoder, codec.encoder, codec.options)
    return np.stack(list(transcode(iter(frames), codec, fps=RATE)))[: len(frames)]


DAMAGES = (
    Damage("covered", "cover", draw_cover, 7),
    Damage("covered", "tape", draw_tape, 1.2),
    Damage("covered", "drops", draw_drops, 1),
    Damage("covered", "condensation", draw_condensation, 1),
    Damage("covered", "threads", draw_threads, 0.5),
    Damage("missing_part", "region", draw_missing, 3.5),
    Damage("missing_part", "stuck rows", draw_stuck_rows, 1.2),
    Damage("one_colour", "one colour", draw_one_colour, 0.8),
    Damage("black", "black", draw_black, 0.8),
    Damage("noisy", "noise", draw_noise, 2),
    Damage("noisy", "hot pixels", draw_hot_pixels, 0.5),
    Damage("unknown", "banding", draw_banding, 0.8),
    Damage("unknown", "broken rows", draw_rows_of_noise, 0.8),
    Damage("overexposed", "overexposure", draw_overexposure, 2.5),
    Damage("underexposed", "underexposure", draw_underexposure, 1.5),
    Damage("unknown", "pumping", draw_pumping, 0.6),
    Damage("colour_cast", "colour cast", draw_colour_cast, 2.5),
    Damage("unknown", "wrong range", draw_wrong_range, 0.7),
    Damage("blurred", "defocus", draw_defocus, 2.2),
    Damage("blurred", "shake", draw_shake, 1.2),
    Damage("unknown", "interlacing", draw_interlacing, 0.5),
    Damage("unknown", "wrong scale", draw_wrong_scale, 0.7),
    Damage("unknown", "skew", draw_skew, 0.6),
    Damage("blocky", "blocks", draw_blocks, 2),
    Damage("blocky", "pixelation", draw_pixelation, 0.8),
    Damage("blocky", "concealment", draw_concealment, 5, margin=8),
    Damage("blocky", "starved", draw_starved, 0.7, margin=8),
)


def draw_damage(rng: Rng) -> Damage:
    """Draw one way to damage frames."""
    often = np.array([damage.often for damage in DAMAGES])
    return DAMAGES[int(rng.choice(len(DAMAGES), p=often / often.sum()))]


# Footage that looks damaged and is not


def hard_clean(frames: Frames, rng: Rng) -> tuple[str, Frames]:
    """Turn a film into clean footage of a hard sort, and return its name."""
    sorts: tuple[tuple[str, Draw], ...] = (
        ("night", _night),
        ("smoke", _smoke),
        ("strobe", _strobe),
        ("explosion", _explosion),
        ("titles", _titles),
        ("cartoon", _cartoon),
        ("monochrome", _monochrome),
        ("empty room", _empty_room),
        ("screen", _screen),
        ("tinted", _tinted),
        ("high key", _high_key),
    )
    name, draw = sorts[int(rng.integers(len(sorts)))]
    return name, draw(frames, rng)


def _night(frames: Frames, rng: Rng) -> Frames:
    height, width = frames.shape[1:3]
    dark = frames * np.float32(rng.uniform(0.06, 0.3))
    y, x = np.mgrid[:height, :width].astype(np.float32)
    for _ in range(int(rng.integers(0, 6))):
        at, reach = rng.uniform(0, 1, 2) * (width, height), height * rng.uniform(0.02, 0.2)
        lamp = np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / reach**2)[..., None] * rng.uniform(60, 255, 3)
        dark += lamp.astype(np.float32)
    noise = rng.standard_normal((4, *frames.shape[1:]), np.float32) * np.float32(rng.uniform(0.5, 5))
    return np.stack([np.clip(f + np.roll(noise[t % 4], 7 * t, 1), 0, 255).astype(np.uint8) for t, f in enumerate(dark)])


def _smoke(frames: Frames, rng: Rng) -> Frames:
    count, height, width = frames.shape[:3]
    fields = [smooth_noise(height, 2 * width, rng.uniform(3, 8), rng) for _ in range(2)]
    speed, grey, thick = rng.uniform(0.5, 4), rng.uniform(90, 230), rng.uniform(0.2, 0.75)
    swell = np.clip(np.linspace(*rng.uniform(0, 1.2, 2), count), 0, 1)
    out = np.empty_like(frames)
    for t in range(count):
        mixed = np.roll(fields[0], int(speed * t), 1) * np.roll(fields[1], -int(speed * t * 0.6), 1)
        share = np.clip(mixed[:, :width] * 2 * thick * swell[t], 0, 0.9)[..., None]
        out[t] = np.clip(frames[t] * (1 - share) + grey * share, 0, 255)
    return out


def _strobe(frames: Frames, rng: Rng) -> Frames:
    count = len(frames)
    period, dark = int(rng.integers(3, 14)), rng.uniform(0.1, 0.6)
    tints = rng.uniform(0.3, 1.6, (4, 3)).astype(np.float32)
    coloured = rng.random() < 0.5
    out = np.empty_like(frames)
    for t in range(count):
        on = t % period < max(period // 3, 1)
        gain = np.float32(rng.uniform(1.2, 2.2) if on else dark)
        out[t] = np.clip(frames[t] * (gain * (tints[(t // period) % 4] if coloured else 1)), 0, 255)
    return out


def _explosion(frames: Frames, rng: Rng) -> Frames:
    count, height, width = frames.shape[:3]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    out = frames.copy()
    for _ in range(int(rng.integers(1, 4))):
        at, start = rng.uniform(0.1, 0.9, 2) * (width, height), int(rng.integers(0, max(count - 10, 1)))
        field, colour = (
            smooth_noise(height, width, 7, rng),
            np.array([255, rng.uniform(130, 220), rng.uniform(20, 120)]),
        )
        fast, fading = rng.uniform(0.01, 0.06) * height, rng.uniform(8, 40)
        for t in range(start, count):
            age = t - start
            far = np.hypot(x - at[0], y - at[1]) / (height * 0.05 + fast * age)
            share = np.clip(1.6 - far + field - 0.5, 0, 1) * np.exp(-age / fading)
            out[t] = np.clip(out[t] * (1 - share[..., None]) + share[..., None] * colour, 0, 255)
            if age < 3:
                out[t] = np.clip(out[t].astype(np.float32) * (2.5 - 0.5 * age), 0, 255)
    return out


def _titles(frames: Frames, rng: Rng) -> Frames:
    count, height, width = frames.shape[:3]
    out = frames.copy()
    at = 0
    while at < count:
        stop = min(count, at + int(rng.integers(20, 90)))
        if rng.random() < 0.6:
            ground = np.zeros(3) if rng.random() < 0.6 else rng.uniform(0, 255, 3)
            card = np.empty((height, width, 3), np.uint8)
            card[...] = ground.astype(np.uint8)
            colour = (255 - ground).astype(int).tolist()
            for line in range(int(rng.integers(1, 7))):
                text = "".join(
                    rng.choice(list("abcdefghijklm nopqrst UVWXYZ 0123")) for _ in range(rng.integers(4, 22))
                )
                where = (int(width * rng.uniform(0.02, 0.3)), int(height * (0.2 + 0.12 * line)))
                cv2.putText(card, text, where, cv2.FONT_HERSHEY_SIMPLEX, height / rng.uniform(200, 500), colour, 1, 16)
            slow = int(rng.choice([0, 0, 8]))
            scroll = rng.choice([0.0, 0.0, 1.0]) * height * 0.006
            for t in range(at, stop):
                share = np.clip(min(t - at + 1, stop - t) / slow, 0, 1) if slow else 1.0
                out[t] = np.roll(card, -int(scroll * (t - at)), 0) * share
        at = stop
    return out


def _cartoon(frames: Frames, rng: Rng) -> Frames:
    levels, step = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    out = np.empty_like(frames)
    for t, frame in enumerate(frames):
        source = frames[t // step * step]
        flat = cv2.medianBlur(source, 7).astype(np.float32)
        flat = np.round(flat / 255 * levels) * (255 / levels)
        edges = cv2.Laplacian(cv2.cvtColor(source, cv2.COLOR_RGB2GRAY), cv2.CV_32F, ksize=5)
        flat[np.abs(edges) > rng.uniform(250, 260)] *= 0.2
        out[t] = np.clip(flat, 0, 255)
        del frame
    return out


def _monochrome(frames: Frames, rng: Rng) -> Frames:
    grey = frames @ np.array([0.299, 0.587, 0.114], np.float32)
    tint = np.array([1, 1, 1]) if rng.random() < 0.6 else np.array([1.05, 0.95, 0.75])
    grain = rng.standard_normal((4, *grey.shape[1:]), np.float32) * np.float32(rng.choice([0, 3, 8]))
    grey = grey + np.stack([grain[int(rng.integers(4))] for _ in frames])
    return np.clip(grey[..., None] * tint, 0, 255).astype(np.uint8)


def _empty_room(frames: Frames, rng: Rng) -> Frames:
    """A camera that sees one still picture, with the noise of its sensor, a clock and slow changes of the light."""
    count, height, _width = frames.shape[:3]
    still = cv2.GaussianBlur(frames[0], (0, 0), float(rng.uniform(0.3, 2))).astype(np.float32)
    noise = rng.standard_normal((6, *still.shape), np.float32) * np.float32(rng.choice([0, 0.6, 2, 4]))
    drift = 1 + rng.choice([0, 0.03]) * np.sin(np.arange(count) / rng.uniform(8, 60))
    clock = rng.random() < 0.5
    out = np.empty_like(frames)
    for t in range(count):
        out[t] = np.clip(still * np.float32(drift[t]) + np.roll(noise[int(rng.integers(6))], t, 1), 0, 255)
        if clock:
            size = height / 400
            cv2.putText(out[t], f"12:04:{t // 25:02d}", (5, height // 12), 0, size, (255, 255, 255), 1, cv2.LINE_AA)
    return out


def _screen(frames: Frames, rng: Rng) -> Frames:
    """A recording of a screen: flat panels, text, a part that moves, changes of the whole at once."""
    count, height, width = frames.shape[:3]
    out = np.empty_like(frames)
    at = 0
    while at < count:
        stop = min(count, at + int(rng.integers(25, 120)))
        page = np.empty((height, width, 3), np.uint8)
        page[...] = int(rng.choice([255, 245, 30, 0])) if rng.random() < 0.7 else rng.integers(0, 256, 3)
        for _ in range(int(rng.integers(2, 12))):
            y, x = int(rng.integers(height)), int(rng.integers(width))
            size = (x + int(rng.integers(8, width)), y + int(rng.integers(6, height // 2)))
            cv2.rectangle(page, (x, y), size, rng.integers(0, 256, 3).tolist(), -1)
        for line in range(int(rng.integers(2, 20))):
            text = "".join(rng.choice(list("abcdefghijklm nopqrst 0123 =()")) for _ in range(rng.integers(6, 40)))
            where = (int(width * 0.05), int(height * (0.06 + 0.045 * line)))
            cv2.putText(page, text, where, cv2.FONT_HERSHEY_PLAIN, height / 400, rng.integers(0, 256, 3).tolist(), 1)
        part = rng.uniform(0, 0.6)
        tall, wide = int(height * part), int(width * part)
        for t in range(at, stop):
            out[t] = page
            if tall > 8 and wide > 8:
                out[t, -tall:, -wide:] = cv2.resize(frames[t], (wide, tall))
        at = stop
    return out


def _tinted(frames: Frames, rng: Rng) -> Frames:
    """Stage light, dusk or a filter: one colour for the whole shot."""
    return np.clip(frames * np.exp(rng.normal(0, 0.45, 3)).astype(np.float32), 0, 255).astype(np.uint8)


def _high_key(frames: Frames, rng: Rng) -> Frames:
    """Snow, sky, a studio: bright throughout."""
    low = rng.uniform(60, 150)
    return np.clip(low + frames * np.float32((255 - low) / 255 * rng.uniform(0.8, 1.3)), 0, 255).astype(np.uint8)
