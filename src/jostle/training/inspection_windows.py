"""Windows an inspector learns from: pieces of films set end to end, some frames exchanged for struck ones.

Only row numbers are drawn here. What light does to a film (fades, flashes, dissolves, another exposure) is done to
glances where they lie, on a GPU if there is one, and is no damage: such frames are clean.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.mending.descriptor import CELLS, DETAIL, FINEST, TOP
from jostle.training.descriptor_bank import Film, FilmBank, Strike

Rng = np.random.Generator
Floats = npt.NDArray[np.float32]
STRIDES = (1, 1, 1, 1, 1, 1, 2, 2, 3, 0)  # frames from one shown to the next, one of these; 0 shows each twice
WHOLE = 0.08  # chance of a window that is struck from end to end
BRIGHT_ENOUGH = 0.2  # of its light that a struck frame must keep to be told as one


@dataclass(frozen=True, eq=False)
class Windows:
    """A batch.

    Attributes:
        rows: (B, T) of the bank.
        others: (B, T) rows that are dissolved in.
        share: (B, T) of those.
        struck: (B, T) 1 where a frame was.
        weight: (B, T) 0 where nobody could tell.
        gain: (B, T) what light is multiplied by.
        flash: (B, T) grey levels that a flash adds where it is brightest.
        place: (B, 3) row and column of that place in cells, and how far it reaches.
        sharper: (B, T) what is added to detail that is there, for other lenses and codecs.
        mirrored: (B,) whether left is right.
        turned: (B,) whether up is down.
    """

    rows: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    share: Floats
    struck: Floats
    weight: Floats
    gain: Floats
    flash: Floats
    place: Floats
    sharper: Floats
    mirrored: npt.NDArray[np.bool_]
    turned: npt.NDArray[np.bool_]

    def of(self, rank: int, count: int) -> Windows:
        """The share of one process of several."""
        return Windows(*(getattr(self, one.name)[rank::count] for one in fields(self)))

    def on(self, device: torch.device) -> dict[str, Tensor]:
        """As tensors."""
        return {one.name: torch.from_numpy(getattr(self, one.name)).to(device) for one in fields(self)}


def draw_windows(bank: FilmBank, rng: Rng, batch: int, length: int) -> Windows:
    """A batch of windows of so many frames."""
    made = [_window(bank, rng, length) for _ in range(batch)]
    return Windows(*(np.stack(part) for part in zip(*made, strict=True)))


def shown(bank: Tensor, windows: dict[str, Tensor]) -> Tensor:
    """(B, T, CHANNELS, CELLS, CELLS) bytes of a batch, in the light that was drawn for it.

    Args:
        bank: the frames of the bank, on the device of `windows`.
    """
    x = bank[windows["rows"]].float()
    if (windows["share"] > 0).any():
        x = torch.lerp(x, bank[windows["others"]].float(), windows["share"][..., None, None, None])
    x = torch.where(windows["mirrored"][:, None, None, None, None], mirror(x), x)
    x = torch.where(windows["turned"][:, None, None, None, None], turn(x), x)
    gain = windows["gain"][..., None, None, None]
    cells = torch.arange(CELLS, device=x.device)
    down, across, reach = (windows["place"][:, i, None, None] for i in range(3))
    spread = torch.exp(-((cells[:, None] - down) ** 2 + (cells - across) ** 2) / reach**2)  # (B, CELLS, CELLS)
    lift = windows["flash"][..., None, None, None] * spread[:, None, None]
    light = x[:, :, :4] * gain + lift
    clipped = ((light.mean(2, keepdim=True) - 200) / 55).clamp(0, 1)  # detail goes where light is at its end
    colour = (x[:, :, 4:6] - 128) * gain * (1 - clipped) + 128
    there = (x[:, :, DETAIL] / 32).clamp(max=1)  # where there is no detail, none comes
    seen = x[:, :, DETAIL] + windows["sharper"][..., None, None, None] * there
    plain = torch.expm1(seen / TOP) / FINEST * gain * (1 - clipped)
    detail = torch.log1p(FINEST * plain) * TOP
    return torch.cat([light, colour, detail], 2).add_(0.5).clamp_(0, 255).byte()


def mirror(x: Tensor) -> Tensor:
    """Left for right; the quarters of a cell change places, too."""
    return x[:, :, [1, 0, 3, 2, *range(4, x.shape[2])]].flip(-1)


def turn(x: Tensor) -> Tensor:
    """Up for down, likewise."""
    return x[:, :, [2, 3, 0, 1, *range(4, x.shape[2])]].flip(-2)


def _window(bank: FilmBank, rng: Rng, length: int) -> tuple[Any, ...]:
    if rng.random() < WHOLE:
        rows = _struck_throughout(bank, rng, length)
        if rows is not None:
            return _in_light(bank, rows, np.ones(length, np.float32), np.array([0, length]), rng)
    share = float(rng.choice([0.0, 0.05, 0.15, 0.3, 0.5]))
    rows_of, struck_of, cuts = [], [], [0]
    while cuts[-1] < length:
        left = length - cuts[-1]
        many = left if rng.random() < 0.5 else int(rng.integers(min(12, left), left + 1))
        rows, struck = _piece(bank.films[int(rng.integers(len(bank.films)))], rng, many, share)
        rows_of.append(rows)
        struck_of.append(struck)
        cuts.append(cuts[-1] + len(rows))
    return _in_light(bank, np.concatenate(rows_of), np.concatenate(struck_of), np.array(cuts), rng)


def _piece(film: Film, rng: Rng, many: int, share: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Rows of at most so many frames of a film, and which of them are struck: at most such a share."""
    stride = STRIDES[int(rng.integers(len(STRIDES)))]
    many = min(many, 2 * film.count if stride == 0 else -(-film.count // stride))
    span = (many + 1) // 2 if stride == 0 else (many - 1) * stride + 1
    first = int(rng.integers(film.count - span + 1))
    times = first + (np.arange(many) // 2 if stride == 0 else np.arange(many) * stride)
    row, hit = film.first + np.arange(film.count), np.zeros(film.count, np.float32)
    left = share * span
    for number in rng.permutation(len(film.strikes)):
        lo, hi = _part(film.strikes[number], rng)
        inside = min(hi, first + span) - max(lo, first)
        if 0 < inside <= max(left, 1) and left > 0 and not hit[max(lo - 1, 0) : hi + 1].any():
            row[lo:hi] = film.strikes[number].first + np.arange(lo, hi) - film.strikes[number].at
            hit[lo:hi] = 1
            left -= inside
    if rng.random() < 0.3:
        times = times[::-1]
    return row[times], hit[times]


def _part(strike: Strike, rng: Rng) -> tuple[int, int]:
    """Frames of a strike: all of it, or some as short as one."""
    if rng.random() < 0.4:
        return strike.at, strike.at + strike.count
    many = max(1, round(float(np.exp(rng.uniform(0, np.log(strike.count))))))
    lo = strike.at + int(rng.integers(strike.count - many + 1))
    return lo, lo + many


def _struck_throughout(bank: FilmBank, rng: Rng, length: int) -> npt.NDArray[np.int64] | None:
    """A strike that nobody takes for content, to and fro until the window is full; None where there is no such one."""
    film = bank.films[int(rng.integers(len(bank.films)))]
    long = [one for one in film.strikes if one.count >= 12 and not _like_content(one.kind)]
    if not long:
        return None
    one = long[int(rng.integers(len(long)))]
    turned = np.arange(length) % (2 * one.count - 2)
    return one.first + np.minimum(turned, 2 * one.count - 2 - turned)


def _like_content(kind: str) -> bool:
    """Whether a whole video that was struck so might have been filmed so: unsharp, bright, grey, moved."""
    name = kind.rpartition("/")[2].partition(":")[0]
    telling = (
        "noise",
        "loss",
        "error",
        "black",
        "glass",
        "pixelate",
        "occlusion",
        "mix",
        "frost",
        "spatter",
        "elastic",
    )
    return not any(word in name for word in telling)


def _in_light(
    bank: FilmBank, rows: npt.NDArray[np.int64], struck: Floats, cuts: npt.NDArray[np.int64], rng: Rng
) -> tuple[Any, ...]:
    length = len(rows)
    gain, flash = np.ones(length, np.float32), np.zeros(length, np.float32)
    share, others, sharper = np.zeros(length, np.float32), rows.copy(), np.zeros(length, np.float32)
    for lo, hi in itertools.pairwise(cuts):
        if rng.random() < 0.4:
            gain[lo:hi] *= np.exp(rng.uniform(-0.6, 0.3))
        if rng.random() < 0.15:
            gain[lo:hi] *= np.exp(np.cumsum(rng.normal(0, 0.02, hi - lo)))
        if rng.random() < 0.5:
            sharper[lo:hi] = rng.normal(0, 14)
        chance = rng.random()
        if chance < 0.06:  # into black, where the light may stay away for some time
            _fade(gain[lo:hi], int(rng.integers(0, max((hi - lo) // 3, 1))), rng)
        elif chance < 0.12:  # or out of it, at once: a cut to black that stays is what a lost picture looks like
            _fade(gain[lo:hi][::-1], 0, rng)
        elif chance < 0.22 and hi < length:
            _dissolve(rows, struck, others, share, lo, hi, rng)
    if rng.random() < 0.15:
        for _ in range(int(rng.integers(1, 4))):
            at, peak, fading = int(rng.integers(length)), rng.uniform(40, 220), rng.uniform(0.3, 3.0)
            flash[at:] += peak * np.exp(-np.arange(length - at) / fading)
    place = np.array([*rng.uniform(0, CELLS, 2), rng.uniform(4, 30)], np.float32)
    seen = (struck == 0) | (bank.visible[rows] & (gain > BRIGHT_ENOUGH) & (share < 0.5))
    mirrored, turned = np.bool_(rng.random() < 0.5), np.bool_(rng.random() < 0.1)
    return rows, others, share, struck, seen.astype(np.float32), gain, flash, place, sharper, mirrored, turned


def _fade(gain: Floats, black: int, rng: Rng) -> None:
    """Let the light go over some frames at the end, and stay away for so many."""
    many = min(int(rng.integers(4, 40)), len(gain) - black)
    stop = len(gain) - black
    gain[stop - many : stop] *= np.linspace(1, 0, many + 1, dtype=np.float32)[1:]
    gain[stop:] = 0


def _dissolve(
    rows: npt.NDArray[np.int64],
    struck: Floats,
    others: npt.NDArray[np.int64],
    share: Floats,
    lo: int,
    hi: int,
    rng: Rng,
) -> None:
    """Let the last clean frames before a cut go over into the first one after it."""
    many = min(int(rng.integers(4, 24)), hi - lo)
    if struck[hi - many : hi + 1].any():
        return
    others[hi - many : hi] = rows[hi]
    share[hi - many : hi] = np.linspace(0, 1, many + 2, dtype=np.float32)[1:-1]
