"""Films for the inspector, drawn as unlike each other as can be: undamaged content that an inspector must not report.

Textures, shapes, stills and puppets before a camera that pans, zooms, turns and shakes; things that pass before it;
cuts, fades, flashes, captions, focus that is pulled or never there; noise, bars, slow rates; and then a codec.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Frames
from jostle.corruptions.kernels.textures import cloud
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.datasets.puppets.scenery import texture_of
from jostle.io.video.codec import Codec, transcode

Rng = np.random.Generator
Picture = npt.NDArray[np.uint8]
SOURCES = (
    *("cloud", "shapes", "scenery", "puppets", "puppets"),
    *("strokes", "strokes", "strokes", "still", "still", "still", "still"),
)
NAMED = ("cuts", "fades", "flashes", "blurred", "shaking", "passing")  # sets of what is no damage, each by itself
RATE = Fraction(25)


def draw_film(name: str, frames: int, *, seed: int, stills: Sequence[Picture] = (), only: str = "") -> Frames:
    """Draw a film of so many frames, (T, H, W, 3), and code it.

    Args:
        stills: pictures that may stand in for a scene.
        only: one of `NAMED`: that happens for certain, and nothing else.
    """
    rng = rng_for(seed, "inspector film", name)
    height = int(rng.integers(48, 150) if rng.random() < 0.75 else rng.integers(150, 240)) * 2
    width = int(height * rng.uniform(1.0, 1.8)) // 2 * 2
    shots = int(rng.integers(3, 7)) if only == "cuts" else 1 if only else int(rng.choice([1, 1, 2, 3]))
    ends = np.sort(rng.choice(np.arange(8, frames - 8), shots - 1, replace=False)) if shots > 1 else np.zeros(0, int)
    parts = []
    for number, (lo, hi) in enumerate(zip([0, *ends], [*ends, frames], strict=True)):
        parts.append(_shot(f"{name}/{number}", int(hi - lo), height, width, rng, stills, seed, only))
    film = np.concatenate(parts)
    film = _light(film, rng, only)
    if only != "blurred" and rng.random() < 0.3:
        _sharpen(film, rng)
    if not only and rng.random() < 0.15:
        _caption(film, rng)
    if not only and rng.random() < 0.1:
        film = np.repeat(film[:: (step := int(rng.integers(2, 4)))], step, axis=0)[:frames]
    if rng.random() < 0.4:
        noise = rng.normal(0, rng.uniform(0.5, 6), (8, *film.shape[1:])).astype(np.float32)
        for t in range(len(film)):
            rolled = np.roll(noise[int(rng.integers(8))], int(rng.integers(1, width)), axis=1)
            film[t] = np.clip(film[t] + rolled, 0, 255)
    if rng.random() < 0.1:
        film[...] = film.mean(-1, keepdims=True).astype(np.uint8)
    if not only and rng.random() < 0.12:
        bars = int(height * rng.uniform(0.05, 0.16))
        film[:, :bars] = film[:, -bars:] = int(rng.choice([0, 16]))
    return coded(film, rng)


def coded(film: Frames, rng: Rng) -> Frames:
    """Encode and decode a film by a random codec, or return it as it is."""
    chance = rng.random()
    if chance < 0.8:
        codec = Codec("libx264", "h264", {"crf": int(rng.integers(16, 38)), "preset": "veryfast"})
    elif chance < 0.9:
        codec = Codec("mpeg4", "mpeg4", {"qmin": (q := int(rng.integers(2, 14))), "qmax": q})
    else:
        return film
    return np.stack(list(transcode(iter(film), codec, fps=RATE)))


def _shot(
    name: str, frames: int, height: int, width: int, rng: Rng, stills: Sequence[Picture], seed: int, only: str
) -> Frames:
    """Draw one shot: a scene before a camera, and objects that move in it."""
    source = str(rng.choice(SOURCES))
    if source == "still" and not stills:
        source = str(rng.choice(["shapes", "scenery", "puppets"]))
    if source == "puppets":
        scene = _puppets(name, frames, rng, seed)
        if rng.random() < 0.5 and only != "shaking":
            return _resize(scene, height, width, rng)
    else:
        scene = _canvas(source, name, rng, stills, seed)[None]
    film = _film_scene(scene, frames, height, width, rng, shaking=only == "shaking")
    if only == "passing" or (not only and rng.random() < 0.4):
        _draw_passing(film, _canvas("cloud" if rng.random() < 0.5 else "shapes", name, rng, stills, seed), rng, only)
    if only == "blurred" or (not only and rng.random() < 0.12):
        _blur(film, np.full(frames, rng.uniform(0.006, 0.03) * height))
    elif not only and rng.random() < 0.1:
        _blur(film, _pull_focus(frames, rng) * rng.uniform(0.006, 0.025) * height)
    return film


def _puppets(name: str, frames: int, rng: Rng, seed: int) -> Frames:
    film = untrimmed(seed, f"inspector/{name}", cast=(*CASTS["training"], *CASTS["extractor"]))
    first = int(rng.integers(film.frames - frames))
    return film.draw(first, first + frames)


def _resize(film: Frames, height: int, width: int, rng: Rng) -> Frames:
    how = int(rng.choice([cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_LANCZOS4]))
    return np.stack([np.asarray(cv2.resize(frame, (width, height), interpolation=how), np.uint8) for frame in film])


def _canvas(source: str, name: str, rng: Rng, stills: Sequence[Picture], seed: int) -> Picture:
    """Return a large picture that a camera can move over."""
    side = 512
    if source == "still" and stills:
        picture = stills[int(rng.integers(len(stills)))]
        grown = side / min(picture.shape[:2])
        return np.asarray(cv2.resize(picture, None, fx=grown, fy=grown, interpolation=cv2.INTER_CUBIC), np.uint8)
    if source == "scenery":
        texture = texture_of(seed, f"inspector/{name}", float(rng.random()))
        return np.asarray(cv2.resize(texture, (819, 512), interpolation=cv2.INTER_CUBIC), np.uint8)
    if source == "shapes":
        return _shapes(side, rng)
    if source == "strokes":
        return _strokes(int(rng.choice([side, 2 * side])), key_for(seed, name, "ground"), rng)
    planes = [_even(cloud(side, float(rng.uniform(1.05, 2.0)), key_for(seed, name, c))[:side, :side]) for c in range(3)]
    mixed = np.stack(planes, -1) @ rng.dirichlet(np.ones(3) * rng.uniform(0.3, 3), 3).T
    low, span = rng.uniform(0, 90), rng.uniform(60, 165)
    return np.clip(low + span * mixed, 0, 255).astype(np.uint8)


def _even(plane: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (plane - plane.min()) / max(float(np.ptp(plane)), 1e-6)


def _shapes(side: int, rng: Rng) -> Picture:
    """Draw rectangles, discs, lines, stripes and letters over a plain ground."""
    picture = np.full((side, side, 3), rng.integers(0, 256, 3), np.uint8)
    for _ in range(int(rng.integers(10, 160))):
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        a, b = rng.integers(0, side, 2).tolist(), rng.integers(0, side, 2).tolist()
        size = int(rng.integers(2, side // 5))
        kind = rng.integers(5)
        if kind == 0:
            cv2.rectangle(picture, a, (a[0] + size, a[1] + int(rng.integers(2, side // 4))), colour, -1)
        elif kind == 1:
            cv2.circle(picture, a, size // 2 + 1, colour, -1, cv2.LINE_AA)
        elif kind == 2:
            cv2.line(picture, a, b, colour, int(rng.integers(1, 9)), cv2.LINE_AA)
        elif kind == 3:
            step = int(rng.integers(3, 14))
            for x in range(a[0], min(a[0] + 2 * size, side), 2 * step):
                cv2.rectangle(picture, (x, a[1]), (x + step - 1, a[1] + size), colour, -1)
        else:
            text = "".join(rng.choice(list("abcdefghij klmnop QRST 0123")) for _ in range(int(rng.integers(3, 14))))
            cv2.putText(picture, text, a, cv2.FONT_HERSHEY_SIMPLEX, float(rng.uniform(0.4, 2)), colour, 2, cv2.LINE_AA)
    if rng.random() < 0.5:
        grain = rng.normal(0, rng.uniform(1, 14), picture.shape)
        picture = np.clip(picture + grain, 0, 255).astype(np.uint8)
    return picture


def _strokes(side: int, key: int, rng: Rng) -> Picture:
    """Draw thousands of fine strokes and specks over a cloud, like grass, leaves, gravel, foam or fur."""
    ground = _even(cloud(side, float(rng.uniform(1.1, 2.0)), key)[:side, :side])
    colours = rng.integers(0, 256, (3, 3)).astype(np.float32)
    picture = np.clip(colours[0] + ground[..., None] * (colours[1] - colours[0]), 0, 255).astype(np.uint8)
    many = int(side * side / np.exp(rng.uniform(np.log(6), np.log(300))))
    at = rng.integers(0, side, (many, 2))
    angle = rng.uniform(0, np.pi) + rng.normal(0, rng.choice([0.2, 3.0]), many)
    long = rng.uniform(0.5, 1.5, many) * rng.choice([2, 6, 16])
    to = (at + np.stack([np.cos(angle), np.sin(angle)], -1) * long[:, None]).astype(int)
    light = rng.normal(0, rng.uniform(8, 70), many)
    for a, b, more in zip(at.tolist(), to.tolist(), light.tolist(), strict=True):
        near = picture[a[1], a[0]].astype(np.float32) * 0.7 + colours[2] * 0.3 + more
        cv2.line(picture, a, b, tuple(float(v) for v in np.clip(near, 0, 255)), 1, cv2.LINE_AA)
    return picture


def _wander(frames: int, rng: Rng, smooth: float) -> npt.NDArray[np.float64]:
    """Return a random path with steps of about 1 a frame, smoothed over so many frames."""
    steps = rng.normal(0, 1, frames + 64)
    kernel = np.exp(-0.5 * (np.arange(-32, 33) / smooth) ** 2)
    path = np.convolve(steps, kernel / np.sqrt((kernel**2).sum()), "same")
    return path[32 : 32 + frames]


def _film_scene(scene: Frames, frames: int, height: int, width: int, rng: Rng, *, shaking: bool) -> Frames:
    """Film a scene, a picture or a film, by a moving camera whose shutter blurs fast motion."""
    tall, wide = scene.shape[1:3]
    fit = min(tall / height, wide / width)
    zoom = fit * rng.uniform(0.35, 0.9) * np.exp(np.linspace(0, rng.normal(0, 0.25), frames))
    turn = np.linspace(0, rng.normal(0, 0.15), frames) + rng.normal(0, 0.02)
    still = not shaking and rng.random() < 0.3
    pans = [np.linspace(-1, 1, frames) * rng.normal(0, 0.4) for _ in range(2)]
    hand = rng.uniform(0.5, 3.0) if shaking else rng.choice([0.0, 0.2, 0.6]) * rng.random()
    shake = [_wander(frames, rng, float(rng.uniform(1.0, 6.0))) * hand * 0.02 for _ in range(3)]
    if not still and rng.random() < 0.15:  # a sudden swing of the camera
        at = rng.uniform(0.2, 0.8) * frames
        pans[0] = pans[0] + rng.normal(0, 0.6) * np.tanh((np.arange(frames) - at) / rng.uniform(1.5, 8))
    if still:
        pans, turn, zoom = [np.zeros(frames)] * 2, np.full(frames, turn[0]), np.full(frames, zoom[0])
    shutter = rng.choice([0.0, 0.4, 0.9])
    film = np.empty((frames, height, width, 3), np.uint8)
    bend = rng.random() < 0.2
    grid = np.stack(np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)), -1)
    phase, reach = rng.uniform(0, 6, 2), rng.uniform(0.005, 0.03) * height

    def where(t: float) -> npt.NDArray[np.float32]:
        at = np.arange(frames)
        size, angle = np.interp(t, at, zoom), np.interp(t, at, turn + 0.3 * shake[2])
        cos, sin = size * np.cos(angle), size * np.sin(angle)
        x = wide / 2 + wide * 0.3 * np.clip(np.interp(t, at, pans[0] + shake[0]), -1.4, 1.4)
        y = tall / 2 + tall * 0.3 * np.clip(np.interp(t, at, pans[1] + shake[1]), -1.4, 1.4)
        return np.array(
            [[cos, -sin, x - cos * width / 2 + sin * height / 2], [sin, cos, y - sin * width / 2 - cos * height / 2]],
            np.float32,
        )

    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    for t in range(frames):
        picture = scene[min(t, len(scene) - 1)]
        now, soon = where(t), where(t + shutter)
        moved = float(np.abs((soon - now) @ np.array([width / 2, height / 2, 1])).max() / max(zoom[t], 1e-6))
        parts = int(np.clip(moved / 2, 1, 6))
        total = np.zeros((height, width, 3), np.float32)
        for part in range(parts):
            matrix = now + (soon - now) * part / parts
            total += cv2.warpAffine(picture, matrix, (width, height), flags=flags, borderMode=cv2.BORDER_REFLECT_101)
        film[t] = total / parts
        if bend:
            sway = reach * np.stack(
                [
                    np.sin(grid[..., 1] / height * 5 + phase[0] + t / 7),
                    np.sin(grid[..., 0] / width * 4 + phase[1] + t / 9),
                ],
                -1,
            )
            film[t] = cv2.remap(film[t], grid + sway.astype(np.float32), None, cv2.INTER_LINEAR,
                                borderMode=cv2.BORDER_REFLECT_101)  # fmt: skip
    return film


def _draw_passing(film: Frames, canvas: Picture, rng: Rng, only: str) -> None:
    """Draw objects that pass before the scene, small ones or such that hide most of it for a while."""
    frames, height, width = film.shape[:3]
    for _ in range(int(rng.integers(1, 5))):
        near = only == "passing" or rng.random() < 0.3
        size = height * (rng.uniform(0.5, 1.3) if near else rng.uniform(0.06, 0.4))
        ends = rng.uniform(-0.4, 1.4, (2, 2)) * (width, height)
        if near:  # from outside, through, and out again
            ends[:, 0] = (-size, width + size) if rng.random() < 0.5 else (width + size, -size)
        begin = 0 if not near else int(rng.integers(0, max(frames // 2, 1)))
        last = frames if not near else min(frames, begin + int(rng.integers(10, 70)))
        tall, wide = int(size * rng.uniform(0.6, 1.2)) + 2, int(size * rng.uniform(0.4, 1.2)) + 2
        y0, x0 = (int(rng.integers(0, max(side - 2, 1))) for side in canvas.shape[:2])
        look = cv2.resize(canvas[y0 : y0 + tall, x0 : x0 + wide], (wide, tall), interpolation=cv2.INTER_LINEAR)
        look = (look * rng.uniform(0.15, 1.0)).astype(np.uint8)
        cover = np.zeros((tall, wide), np.uint8)
        cv2.ellipse(cover, (wide // 2, tall // 2), (wide // 2, tall // 2), 0, 0, 360, 255, -1, cv2.LINE_AA)
        if rng.random() < 0.3:
            cover[...] = 255
        wave = _wander(max(last - begin, 1), rng, 8.0) * height * 0.03
        for t in range(begin, last):
            share = (t - begin) / max(last - begin - 1, 1)
            x, y = ends[0] + (ends[1] - ends[0]) * share
            _paste(film[t], look, cover, int(y + wave[t - begin]) - tall // 2, int(x) - wide // 2)


def _paste(frame: Picture, look: Picture, cover: npt.NDArray[np.uint8], top: int, left: int) -> None:
    lo_y, lo_x = max(top, 0), max(left, 0)
    hi_y, hi_x = min(top + len(look), len(frame)), min(left + look.shape[1], frame.shape[1])
    if lo_y >= hi_y or lo_x >= hi_x:
        return
    part = slice(lo_y - top, hi_y - top), slice(lo_x - left, hi_x - left)
    share = cover[part][..., None].astype(np.float32) / 255
    below = frame[lo_y:hi_y, lo_x:hi_x]
    frame[lo_y:hi_y, lo_x:hi_x] = below * (1 - share) + look[part] * share


def _blur(film: Frames, sigmas: npt.NDArray[np.float64]) -> None:
    for t, sigma in enumerate(sigmas):
        if sigma > 0.3:
            film[t] = cv2.GaussianBlur(film[t], (0, 0), float(sigma))


def _sharpen(film: Frames, rng: Rng) -> None:
    """Sharpen edges, as cameras do."""
    sigma, much = float(rng.uniform(0.6, 1.6)), float(rng.uniform(0.3, 1.5))
    for frame in film:
        frame[...] = cv2.addWeighted(frame, 1 + much, cv2.GaussianBlur(frame, (0, 0), sigma), -much, 0)


def _pull_focus(frames: int, rng: Rng) -> npt.NDArray[np.float64]:
    """Return (T,) the blur of a focus that is lost and regained within a second or so."""
    middle, slow = rng.uniform(0, frames), rng.uniform(6, 40)
    return np.exp(-0.5 * ((np.arange(frames) - middle) / slow) ** 2)


def _light(film: Frames, rng: Rng, only: str) -> Frames:
    """Change the light: exposure, drift, fades and flashes."""
    frames, height, width = film.shape[:3]
    gain = np.full(frames, np.exp(rng.uniform(-0.9, 0.25)) if rng.random() < 0.5 else 1.0)
    if rng.random() < 0.2:
        gain *= np.exp(_wander(frames, rng, float(rng.uniform(2, 20))) * 0.08)
    lift = np.zeros(frames)
    if only == "fades" or (not only and rng.random() < 0.15):
        for _ in range(int(rng.integers(1, 3))):
            middle, black, slow = rng.uniform(0, frames), rng.uniform(0, 20), rng.uniform(5, 40)
            gain *= np.clip((np.abs(np.arange(frames) - middle) - black) / slow, 0, 1)
    if only == "flashes" or (not only and rng.random() < 0.12):
        for _ in range(int(rng.integers(2, 8))):
            at, fading = int(rng.integers(frames)), rng.uniform(0.3, 2.5)
            lift[at:] += rng.uniform(60, 230) * np.exp(-np.arange(frames - at) / fading)
    if np.all(gain == 1) and not lift.any():
        return film
    y, x = np.mgrid[:height, :width].astype(np.float32)
    spot, reach = rng.uniform(0, 1, 2) * (height, width), rng.uniform(0.3, 2.0) * height
    fall = np.exp(-((y - spot[0]) ** 2 + (x - spot[1]) ** 2) / reach**2)[..., None].astype(np.float32)
    out = np.empty_like(film)
    for t in range(frames):
        lighter = film[t] * np.float32(gain[t])
        if lift[t] > 1:
            lighter = lighter * (1 + fall * np.float32(lift[t] / 120)) + fall * np.float32(lift[t] * 0.5)
        out[t] = np.clip(lighter, 0, 255)
    return out


def _caption(film: Frames, rng: Rng) -> None:
    """Draw a line of text, or a panel with one, for a while."""
    frames, height, width = film.shape[:3]
    lo = int(rng.integers(0, frames))
    hi = frames if rng.random() < 0.5 else min(frames, lo + int(rng.integers(10, 90)))
    colour = tuple(int(v) for v in rng.integers(0, 256, 3))
    text = "".join(rng.choice(list("abcdefghij klmnop QRST 0123")) for _ in range(int(rng.integers(4, 24))))
    y = int(height * rng.uniform(0.1, 0.95))
    panel = rng.random() < 0.5
    for frame in film[lo:hi]:
        if panel:
            frame[max(y - height // 9, 0) : y + height // 30] = 255 - np.array(colour, np.uint8)
        cv2.putText(frame, text, (int(width * 0.05), y), cv2.FONT_HERSHEY_SIMPLEX, height / 300, colour, 1, cv2.LINE_AA)
