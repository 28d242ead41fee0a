"""Training windows of inspectors: pieces of films in sequence, with some frames replaced by corrupted ones.

Only row indices are drawn here. Lighting (fades, flashes, dissolves, another exposure) is applied to the descriptors on
their device, and is no damage: such frames are clean.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.mending.descriptor_layout import CELLS, DETAIL, FINEST, TOP
from jostle.training.descriptor_bank import BankFilm, CorruptedSpan, FilmBank

Rng = np.random.Generator
Floats = npt.NDArray[np.float32]
STRIDES = (1, 1, 1, 1, 1, 1, 2, 2, 3, 0)  # frame steps to draw from; 0 repeats each frame
WHOLE = 0.08  # chance of a window that is corrupted from end to end
# In the names of corruptions that no genuine video looks like.
ARTIFICIAL = ("noise", "loss", "error", "black", "glass", "pixelate", "occlusion", "mix", "frost", "spatter", "elastic")
BRIGHT_ENOUGH = 0.2  # share of its light that a corrupted frame must keep to be recognisable


@dataclass(frozen=True, eq=False)
class WindowBatch:
    """A batch of training windows.

    Attributes:
        rows: (B, T) rows of the bank.
        others: (B, T) rows that are dissolved in.
        share: (B, T) weight of those.
        damaged: (B, T) 1 for a corrupted frame.
        weight: (B, T) 0 where the damage is invisible.
        gain: (B, T) factor of the light.
        flash: (B, T) grey levels that a flash adds at its centre.
        place: (B, 3) row and column of that centre in cells, and the radius.
        sharper: (B, T) added to existing detail, to imitate other lenses and codecs.
        mirrored: (B,) whether left and right are swapped.
        turned: (B,) whether top and bottom are swapped.
    """

    rows: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    share: Floats
    damaged: Floats
    weight: Floats
    gain: Floats
    flash: Floats
    place: Floats
    sharper: Floats
    mirrored: npt.NDArray[np.bool_]
    turned: npt.NDArray[np.bool_]

    def shard(self, rank: int, count: int) -> WindowBatch:
        """Return the share of one process of several."""
        return WindowBatch(*(getattr(self, one.name)[rank::count] for one in fields(self)))

    def to(self, device: torch.device) -> dict[str, Tensor]:
        """Return the fields as tensors on a device."""
        return {one.name: torch.from_numpy(getattr(self, one.name)).to(device) for one in fields(self)}


def draw_windows(bank: FilmBank, rng: Rng, batch: int, length: int) -> WindowBatch:
    """Draw a batch of windows of `length` frames."""
    windows = [_draw_window(bank, rng, length) for _ in range(batch)]
    return WindowBatch(*(np.stack(part) for part in zip(*windows, strict=True)))


def render_windows(bank: Tensor, windows: dict[str, Tensor]) -> Tensor:
    """Return (B, T, CHANNELS, CELLS, CELLS) bytes of a batch, with its lighting applied.

    Args:
        bank: the frames of the bank, on the device of `windows`.
    """
    x = bank[windows["rows"]].float()
    if (windows["share"] > 0).any():
        x = torch.lerp(x, bank[windows["others"]].float(), windows["share"][..., None, None, None])
    return light_windows(x, windows).byte()


def light_windows(x: Tensor, windows: dict[str, Tensor]) -> Tensor:
    """Apply the mirroring and lighting of a batch to its descriptors; returns floats to be cut to bytes."""
    x = torch.where(windows["mirrored"][:, None, None, None, None], mirror(x), x)
    x = torch.where(windows["turned"][:, None, None, None, None], flip(x), x)
    gain = windows["gain"][..., None, None, None]
    cells = torch.arange(CELLS, device=x.device)
    down, across, reach = (windows["place"][:, i, None, None] for i in range(3))
    spread = torch.exp(-((cells[:, None] - down) ** 2 + (cells - across) ** 2) / reach**2)  # (B, CELLS, CELLS)
    lift = windows["flash"][..., None, None, None] * spread[:, None, None]
    light = x[:, :, :4] * gain + lift
    clipped = ((light.mean(2, keepdim=True) - 200) / 55).clamp(0, 1)  # clipped light has no detail
    colour = (x[:, :, 4:6] - 128) * gain * (1 - clipped) + 128
    there = (x[:, :, DETAIL] / 32).clamp(max=1)  # none is added where there is none
    detailed = x[:, :, DETAIL] + windows["sharper"][..., None, None, None] * there
    plain = torch.expm1(detailed / TOP) / FINEST * gain * (1 - clipped)
    detail = torch.log1p(FINEST * plain) * TOP
    return torch.cat([light, colour, detail], 2).add_(0.5).clamp_(0, 255)


def mirror(x: Tensor) -> Tensor:
    """Swap left and right, also of the quarters of a cell."""
    return x[:, :, [1, 0, 3, 2, *range(4, x.shape[2])]].flip(-1)


def flip(x: Tensor) -> Tensor:
    """Swap top and bottom, also of the quarters of a cell."""
    return x[:, :, [2, 3, 0, 1, *range(4, x.shape[2])]].flip(-2)


def _draw_window(bank: FilmBank, rng: Rng, length: int) -> tuple[Any, ...]:
    if rng.random() < WHOLE:
        rows = _draw_corrupted_window(bank, rng, length)
        if rows is not None:
            return draw_lighting(bank, rows, np.ones(length, np.float32), np.array([0, length]), rng)
    share = float(rng.choice([0.0, 0.05, 0.15, 0.3, 0.5]))
    rows_of, damaged_of, cuts = [], [], [0]
    while cuts[-1] < length:
        left = length - cuts[-1]
        many = left if rng.random() < 0.5 else int(rng.integers(min(12, left), left + 1))
        rows, damaged = _draw_piece(bank.films[int(rng.integers(len(bank.films)))], rng, many, share)
        rows_of.append(rows)
        damaged_of.append(damaged)
        cuts.append(cuts[-1] + len(rows))
    return draw_lighting(bank, np.concatenate(rows_of), np.concatenate(damaged_of), np.array(cuts), rng)


def _draw_piece(film: BankFilm, rng: Rng, many: int, share: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Draw rows of at most `many` frames of a film, and which of them are corrupted: at most a share."""
    stride = STRIDES[int(rng.integers(len(STRIDES)))]
    many = min(many, 2 * film.count if stride == 0 else -(-film.count // stride))
    span = (many + 1) // 2 if stride == 0 else (many - 1) * stride + 1
    first = int(rng.integers(film.count - span + 1))
    times = first + (np.arange(many) // 2 if stride == 0 else np.arange(many) * stride)
    row, hit = film.first + np.arange(film.count), np.zeros(film.count, np.float32)
    left = share * span
    for number in rng.permutation(len(film.spans)):
        lo, hi = _draw_part(film.spans[number], rng)
        inside = min(hi, first + span) - max(lo, first)
        if 0 < inside <= max(left, 1) and left > 0 and not hit[max(lo - 1, 0) : hi + 1].any():
            row[lo:hi] = film.spans[number].first + np.arange(lo, hi) - film.spans[number].at
            hit[lo:hi] = 1
            left -= inside
    if rng.random() < 0.3:
        times = times[::-1]
    return row[times], hit[times]


def _draw_part(span: CorruptedSpan, rng: Rng) -> tuple[int, int]:
    """Draw a part of a corrupted span: all of it, or as little as one frame."""
    if rng.random() < 0.4:
        return span.at, span.at + span.count
    many = max(1, round(float(np.exp(rng.uniform(0, np.log(span.count))))))
    lo = span.at + int(rng.integers(span.count - many + 1))
    return lo, lo + many


def _draw_corrupted_window(bank: FilmBank, rng: Rng, length: int) -> npt.NDArray[np.int64] | None:
    """Fill a window with an unmistakably corrupted span, back and forth; None if the film has none."""
    film = bank.films[int(rng.integers(len(bank.films)))]
    long = [one for one in film.spans if one.count >= 12 and not _could_be_filmed(one.kind)]
    if not long:
        return None
    one = long[int(rng.integers(len(long)))]
    turned = np.arange(length) % (2 * one.count - 2)
    return one.first + np.minimum(turned, 2 * one.count - 2 - turned)


def _could_be_filmed(kind: str) -> bool:
    """Return whether a whole video with this corruption could be genuine: unsharp, bright, grey, moved."""
    name = kind.rpartition("/")[2].partition(":")[0]
    return not any(word in name for word in ARTIFICIAL)


def draw_lighting(
    bank: FilmBank, rows: npt.NDArray[np.int64], damaged: Floats, cuts: npt.NDArray[np.int64], rng: Rng
) -> tuple[Any, ...]:
    """Draw the lighting of a window, and return its fields in the order of `WindowBatch`."""
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
        if chance < 0.06:  # fade to black, which may last
            _fade(gain[lo:hi], int(rng.integers(0, max((hi - lo) // 3, 1))), rng)
        elif chance < 0.12:  # or from black; a cut to lasting black would look like a lost picture
            _fade(gain[lo:hi][::-1], 0, rng)
        elif chance < 0.22 and hi < length:
            _dissolve(rows, damaged, others, share, lo, hi, rng)
    if rng.random() < 0.15:
        for _ in range(int(rng.integers(1, 4))):
            at, peak, fading = int(rng.integers(length)), rng.uniform(40, 220), rng.uniform(0.3, 3.0)
            flash[at:] += peak * np.exp(-np.arange(length - at) / fading)
    place = np.array([*rng.uniform(0, CELLS, 2), rng.uniform(4, 30)], np.float32)
    visible = (damaged == 0) | (bank.visible[rows] & (gain > BRIGHT_ENOUGH) & (share < 0.5))
    mirrored, turned = np.bool_(rng.random() < 0.5), np.bool_(rng.random() < 0.1)
    return rows, others, share, damaged, visible.astype(np.float32), gain, flash, place, sharper, mirrored, turned


def _fade(gain: Floats, black: int, rng: Rng) -> None:
    """Fade the light to black at the end, and keep it there for `black` frames."""
    many = min(int(rng.integers(4, 40)), len(gain) - black)
    stop = len(gain) - black
    gain[stop - many : stop] *= np.linspace(1, 0, many + 1, dtype=np.float32)[1:]
    gain[stop:] = 0


def _dissolve(
    rows: npt.NDArray[np.int64],
    damaged: Floats,
    others: npt.NDArray[np.int64],
    share: Floats,
    lo: int,
    hi: int,
    rng: Rng,
) -> None:
    """Dissolve the last clean frames before a cut into the first one after it."""
    many = min(int(rng.integers(4, 24)), hi - lo)
    if damaged[hi - many : hi + 1].any():
        return
    others[hi - many : hi] = rows[hi]
    share[hi - many : hi] = np.linspace(0, 1, many + 2, dtype=np.float32)[1:-1]
