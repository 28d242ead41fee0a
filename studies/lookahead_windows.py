"""Training windows of the look-ahead inspector: films in sequence, with damage from the bank and damage drawn anew.

Rows, lighting and the parameters of damage are drawn on the CPU. `render` gathers the descriptors on their device and
damages them there: covers, constant regions and exposures, which descriptors show exactly enough.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.mending.descriptor_layout import CELLS, CHANNELS, COLOUR, DETAIL, FINEST, LIGHT, TOP
from jostle.mending.lookahead_network import DAMAGE_KINDS
from jostle.training.descriptor_bank import MIN_CHANGE, BankFilm, FilmBank
from jostle.training.inspection_windows import BRIGHT_ENOUGH, STRIDES, WindowBatch, draw_lighting, light_windows

Rng = np.random.Generator
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
CLEAN, UNKNOWN = -1, -2  # kinds besides the indices of `DAMAGE_KINDS`
FILMED = 0.5  # share of filmed pieces
WHOLE = 0.06  # chance of a piece that is damaged throughout
LONG = 0.12  # chance of a piece whose damage lasts to its end
STAYS = ("covered", "noisy", "blocky", "missing_part", "one_colour", "black")  # kinds that are seen without a contrast
FREEZE, REORDER = 0.18, 0.06  # chances of each in a window
EVENTS = {"cover": 0.4, "region": 0.2, "exposure": 0.18}  # chance of damage drawn anew in a window
MIN_MOTION = 2.0  # mean change of light below which a film hardly moves, and a frozen one looks the same
HELD_FRAMES = 2  # frames of a freeze that could be a slow film
COARSE = (2, 4, 8)  # steps of light, colour and detail in the bank
TEXTURES = 1021  # rows of noise

KIND_INDEX = {kind: index for index, kind in enumerate(DAMAGE_KINDS)} | {"unknown": UNKNOWN}


@dataclass(frozen=True, eq=False)
class LiveWindows:
    """A batch of windows.

    Attributes:
        lighting: rows and lighting, as inspectors are trained with.
        clean: (B, T) rows of the same frames without damage.
        kind: (B, T) index of the kind of damage, or `CLEAN` or `UNKNOWN`.
        weight: (B, T) weight of each frame.
        filmed: (B,) whether the window's first film was filmed.
        tint: (B, 3) factor of the colours and what is added to them, as another camera would.
        events: for each sort of damage drawn anew, (N,) flat frames and (N, parameters).
    """

    lighting: WindowBatch
    clean: Ints
    kind: npt.NDArray[np.int64]
    weight: Floats
    filmed: npt.NDArray[np.bool_]
    tint: Floats
    events: dict[str, tuple[Ints, Floats]]

    def to(self, device: torch.device) -> dict[str, Any]:
        """Return the fields as tensors on a device."""
        values: dict[str, Any] = {
            one.name: torch.from_numpy(getattr(self.lighting, one.name)).to(device) for one in fields(self.lighting)
        }
        for name in ("clean", "kind", "weight", "filmed", "tint"):
            values[name] = torch.from_numpy(getattr(self, name)).to(device)
        values["events"] = {
            name: tuple(torch.from_numpy(part).to(device) for part in parts) for name, parts in self.events.items()
        }
        return values


def draw_live_windows(bank: FilmBank, rng: Rng, batch: int, length: int, *, damage: bool = True) -> LiveWindows:
    """Draw a batch of windows of `length` frames; without damage all frames are clean."""
    films = {
        filmed: [film for film in bank.films if film.kind.endswith("filmed") == filmed] for filmed in (False, True)
    }
    parts: list[tuple[Any, ...]] = []
    events: dict[str, list[tuple[Ints, Floats]]] = {name: [] for name in EVENTS}
    for number in range(batch):
        rows, clean, kind, cuts, filmed = _draw_rows(films, rng, length, damage=damage)
        weight = np.ones(length, np.float32)
        if damage:
            _draw_freeze(rows, kind, weight, cuts, rng)
            _draw_reorder(rows, kind, weight, cuts, rng)
        before = kind.copy()
        for name, chance in EVENTS.items() if damage else ():
            if rng.random() < chance:
                for _ in range(1 + int(rng.random() < 0.3)):
                    where, values = _draw_event(name, kind, before, rng, length)
                    events[name].append((where + number * length, values))
        light = draw_lighting(bank, rows, (kind != CLEAN).astype(np.float32), np.array(cuts), rng)
        gain, share = light[5], light[2]
        dim = (before != CLEAN) & ((gain <= BRIGHT_ENOUGH) | (share >= 0.5))  # what is drawn anew is not lit
        weight[dim & (kind == before)] = 0
        tint = np.array([rng.uniform(0.4, 1.4), *rng.normal(0, 8, 2)] if rng.random() < 0.5 else [1, 0, 0], np.float32)
        parts.append((light, clean, kind, weight, np.bool_(filmed), tint))
    lighting = WindowBatch(*(np.stack(values) for values in zip(*(part[0] for part in parts), strict=True)))
    clean, kind, weight, filmed, tint = (np.stack([part[i] for part in parts]) for i in range(1, 6))
    joined = {
        name: (np.concatenate([one[0] for one in some]), np.concatenate([one[1] for one in some]))
        for name, some in events.items()
        if some
    }
    return LiveWindows(lighting, clean, kind, weight, filmed, tint, joined)


def _draw_rows(films: dict[bool, list[BankFilm]], rng: Rng, length: int, *, damage: bool) -> tuple[Any, ...]:
    share = float(rng.choice([0.0, 0.0, 0.05, 0.15, 0.3, 0.5])) if damage else 0.0
    rows_of, clean_of, kind_of, cuts = [], [], [], [0]
    first_filmed = False
    while cuts[-1] < length:
        filmed = bool(films[True]) and (not films[False] or rng.random() < FILMED)
        film = films[filmed][int(rng.integers(len(films[filmed])))]
        left = length - cuts[-1]
        many = left if rng.random() < 0.55 else int(rng.integers(min(12, left), left + 1))
        chance = rng.random()
        if damage and chance < WHOLE + LONG:
            rows, clean, kind = _lasting_piece(film, rng, many, whole=chance < WHOLE)
        else:
            rows, clean, kind = _piece(film, rng, many, share)
        if cuts[-1] == 0:
            first_filmed = filmed
        rows_of.append(rows)
        clean_of.append(clean)
        kind_of.append(kind)
        cuts.append(cuts[-1] + len(rows))
    return np.concatenate(rows_of), np.concatenate(clean_of), np.concatenate(kind_of), cuts, first_filmed


def bounce(times: Ints, count: int) -> Ints:
    """Fold frame numbers back and forth into a film."""
    if count == 1:
        return np.zeros_like(times)
    folded = np.abs(times) % (2 * count - 2)
    return np.minimum(folded, 2 * count - 2 - folded)


def _steps(rng: Rng, many: int) -> Ints:
    stride = STRIDES[int(rng.integers(len(STRIDES)))]
    return np.arange(many) // 2 if stride == 0 else np.arange(many) * stride


def _piece(film: BankFilm, rng: Rng, many: int, share: float) -> tuple[Ints, Ints, Ints]:
    """Draw frames of a film back and forth, and damage at most a share of them."""
    times = bounce(int(rng.integers(2 * film.count)) + _steps(rng, many), film.count)
    clean = film.first + times
    rows, kind, left = clean.copy(), np.full(many, CLEAN), share * many
    for number in rng.permutation(len(film.spans)) if share else ():
        span = film.spans[number]
        lo, hi = span.at, span.at + span.count
        if rng.random() < 0.5:
            size = max(1, round(float(np.exp(rng.uniform(0, np.log(span.count))))))
            lo += int(rng.integers(span.count - size + 1))
            hi = lo + size
        inside = np.flatnonzero((times >= lo) & (times < hi))
        if not len(inside):
            continue
        runs = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
        run = runs[int(rng.integers(len(runs)))]
        if len(run) > max(left, 1) or left <= 0 or (kind[max(run[0] - 1, 0) : run[-1] + 2] != CLEAN).any():
            continue
        rows[run] = span.first + times[run] - span.at
        kind[run] = KIND_INDEX[span.kind.partition("/")[0]]
        left -= len(run)
    return rows, clean, kind


def _lasting_piece(film: BankFilm, rng: Rng, many: int, *, whole: bool) -> tuple[Ints, Ints, Ints]:
    """Draw a piece whose damage lasts to its end, or from its beginning to its end."""
    spans = [s for s in film.spans if s.count >= 12 and (not whole or s.kind.partition("/")[0] in STAYS)]
    if not spans:
        return _piece(film, rng, many, 0.3)
    span = spans[int(rng.integers(len(spans)))]
    begin = 0 if whole or many < 8 else int(rng.integers(many // 8, many))
    within = bounce(np.arange(many - begin), span.count)
    times = np.concatenate([bounce(span.at - begin + np.arange(begin), film.count), span.at + within])
    clean = film.first + times
    rows, kind = clean.copy(), np.full(many, CLEAN)
    rows[begin:] = span.first + within
    kind[begin:] = KIND_INDEX[span.kind.partition("/")[0]]
    return rows, clean, kind


def _draw_freeze(rows: Ints, kind: Ints, weight: Floats, cuts: list[int], rng: Rng) -> None:
    """Repeat one frame for a while, in place."""
    if rng.random() >= FREEZE:
        return
    length = len(rows)
    size = int(np.exp(rng.uniform(np.log(6), np.log(length))))
    at = int(rng.integers(1, length))
    stop = length if rng.random() < 0.3 else min(at + size, length)
    free = kind[at:stop] == CLEAN
    rows[at:stop] = np.where(free, rows[at - 1], rows[at:stop])
    if kind[at - 1] == CLEAN:
        kind[at:stop][free] = KIND_INDEX["frozen"]
        weight[at : min(at + HELD_FRAMES, stop)] = 0
    else:
        kind[at:stop][free] = UNKNOWN
    del cuts


def _draw_reorder(rows: Ints, kind: Ints, weight: Floats, cuts: list[int], rng: Rng) -> None:
    """Shuffle some frames, or throw single earlier frames in, in place."""
    if rng.random() >= REORDER:
        return
    length = len(rows)
    size = int(rng.integers(4, 40))
    at = int(rng.integers(1, max(length - size, 2)))
    stop = min(at + size, length)
    if (kind[at:stop] != CLEAN).any() or any(at - 30 < cut <= stop for cut in cuts[1:-1]) or at < 30:
        return
    if rng.random() < 0.5:
        rows[at:stop] = rows[at:stop][rng.permutation(stop - at)]
    else:
        back = np.flatnonzero(rng.random(stop - at) < 0.4) + at
        rows[back] = rows[back - rng.integers(4, 30, len(back))]
    kind[at:stop] = KIND_INDEX["out_of_order"]
    weight[at:stop] = 0.3
    weight[at : at + 1] = 0


def _draw_event(name: str, kind: Ints, before: Ints, rng: Rng, length: int) -> tuple[Ints, Floats]:
    """Draw when damage happens and its parameters for each frame; marks `kind` in place."""
    size = max(1, int(np.exp(rng.uniform(0, np.log(length)))))
    at = int(rng.integers(length))
    stop = length if rng.random() < 0.25 else min(at + size, length)
    if name != "exposure" and rng.random() < 0.1:
        at, stop = 0, length if rng.random() < 0.5 else max(int(rng.integers(length)), 1)
    where = at + np.flatnonzero(kind[at:stop] == CLEAN)
    values, label = {"cover": _cover, "region": _region, "exposure": _exposure}[name](rng, len(where))
    kind[where] = KIND_INDEX[label]
    return where, values


def _colour(rng: Rng) -> npt.NDArray[np.float64]:
    """Draw light and the two colours, in a descriptor's units."""
    chance = rng.random()
    if chance < 0.35:
        red, green, blue = np.full(3, rng.uniform(0, 50)) * (1 + rng.normal(0, 0.15, 3))
    elif chance < 0.6:  # skin
        red, green, blue = np.array([217, 153, 122]) * rng.uniform(0.2, 1.15) * (1 + rng.normal(0, 0.05, 3))
    elif chance < 0.75:
        red, green, blue = np.full(3, rng.uniform(0, 255))
    else:
        red, green, blue = rng.uniform(0, 255, 3)
    red, green, blue = np.clip([red, green, blue], 0, 255)
    light = 0.3 * red + 0.586 * green + 0.113 * blue
    return np.array([light, (blue - light) / 2 + 128, (red - light) / 2 + 128])


def _cover(rng: Rng, many: int) -> tuple[Floats, str]:
    """Draw two rounded shapes that move: centre, angle, radii, power, softness; then colour, texture and opacity."""
    both = []
    middle = rng.uniform(1, CELLS - 1, 2)
    size = np.exp(rng.uniform(np.log(2.2), np.log(9)))
    turn = rng.uniform(0, np.pi)
    for part in range(2):
        if part == 0:
            radii = size * rng.uniform(0.4, 1, 2)
            centre = middle
        else:  # an arm or a second finger, or the same once more
            radii = np.array([rng.uniform(4, 14), size * rng.uniform(0.15, 0.6)]) if rng.random() < 0.5 else radii
            reach = radii[0] * rng.uniform(0.3, 0.9)
            centre = middle + reach * np.array([np.sin(turn), np.cos(turn)])
        power = float(rng.choice([2, 2, 2.5, 4, 8]))
        soft = np.exp(rng.uniform(np.log(0.02), np.log(0.4)))
        both.append(np.array([*centre, turn + rng.normal(0, 0.2) * part, *radii, power, soft]))
    texture = np.exp(rng.uniform(np.log(0.05), np.log(12)))
    fixed = np.array(
        [*_colour(rng), *rng.normal(0, 4, 2), texture, rng.uniform(0.75, 1) if rng.random() < 0.3 else 1.0,
         rng.uniform(0.4, 1.0) if rng.random() < 0.25 else 1.0, rng.uniform(0.01, 0.2)]
    )  # fmt: skip
    values = np.tile(np.concatenate([*both, fixed]), (many, 1))
    path = np.cumsum(rng.normal(0, rng.choice([0, 0, 0.03, 0.12]), (many, 2)), 0)
    path += np.arange(many)[:, None] * rng.normal(0, rng.choice([0, 0, 0.05]), 2)
    path = np.clip(path, -4, 4)
    slow = min(int(rng.integers(2, 12)), many)
    if rng.random() < 0.4:
        away = rng.normal(0, 1, 2)
        path[:slow] += np.linspace(0.7, 0, slow)[:, None] * away / max(np.hypot(*away), 1e-6) * 11
    values[:, [0, 1]] += path
    values[:, [7, 8]] += path
    values[:, 14] *= 1 + rng.choice([0, 0, 0.1]) * np.sin(np.arange(many) * rng.uniform(0.1, 1))
    return values.astype(np.float32), "covered"


def _region(rng: Rng, many: int) -> tuple[Floats, str]:
    """Draw a rectangle in cells, its colour and a little detail."""
    chance = rng.random()
    cut = rng.uniform(0.12, 0.88) * CELLS
    box = [0.0, CELLS, 0.0, CELLS]
    label = "missing_part"
    if chance < 0.3:
        box[0] = cut
    elif chance < 0.45:
        box[1] = cut
    elif chance < 0.55:
        box[2 + int(rng.integers(2))] = cut
    elif chance < 0.68:
        box[0], box[1] = cut - rng.uniform(0.8, 5), cut
    elif chance < 0.8:
        top, left = rng.uniform(0, CELLS - 3, 2)
        box = [top, top + rng.uniform(3, CELLS), left, left + rng.uniform(3, CELLS)]
    elif chance < 0.9:
        label = "black"
    else:
        label = "one_colour"
    colour = _colour(rng)
    if rng.random() < 0.4:
        colour = np.array([(128, 128, 128), (79, 88, 88), (45, 105, 105), (0, 128, 128), (255, 128, 128)][
            int(rng.integers(5))
        ], float)  # fmt: skip
    if label == "black":
        colour = np.array([rng.choice([0, 0, 16, rng.uniform(0, 20)]), 128, 128])
    elif label == "one_colour" and colour[0] < 30:
        colour[0] = rng.uniform(40, 255)
    values = np.tile(np.array([*box, *colour, rng.choice([0, 0, 0.3, 1.0])]), (many, 1))
    if label == "missing_part" and rng.random() < 0.2:
        values[:, [0, 1]] += rng.uniform(-2, 2, (many, 1))
    return values.astype(np.float32), label


def _exposure(rng: Rng, many: int) -> tuple[Floats, str]:
    """Draw gain, lift, the gain of colours and what is added to them."""
    chance = rng.random()
    if chance < 0.4:
        base = [np.exp(rng.uniform(np.log(1.5), np.log(6))), rng.uniform(0, 120) * (rng.random() < 0.5), 1, 0, 0]
        label = "overexposed"
    elif chance < 0.6:
        base, label = [np.exp(rng.uniform(np.log(0.02), np.log(0.25))), 0, 1, 0, 0], "underexposed"
    else:
        shift = rng.normal(0, 1, 2)
        shift *= rng.uniform(12, 60) / max(np.hypot(*shift), 1e-6)
        base, label = [rng.uniform(0.6, 1.1), 0, rng.choice([1, 1, -1, 0.3]), *shift], "colour_cast"
    values = np.tile(np.array(base, float), (many, 1))
    if label != "colour_cast":
        values[:, 0] *= 1 + rng.choice([0, 0.1]) * rng.normal(0, 1, many)
    return values.astype(np.float32), label


def dither_table(device: torch.device, seed: int = 0) -> Tensor:
    """Return (TEXTURES, CHANNELS, CELLS, CELLS) noise in place of what the bank's steps lost."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.ones(CHANNELS, 1, 1)
    steps[LIGHT], steps[COLOUR], steps[DETAIL] = COARSE
    return (torch.rand(TEXTURES, CHANNELS, CELLS, CELLS, generator=generator) * steps).to(device)


def render(bank: Tensor, dither: Tensor, windows: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Return (B, T, CHANNELS, CELLS, CELLS) bytes and (B, T) the weights, 0 where damage cannot be seen.

    Args:
        bank: frames of the bank.
        dither: from `dither_table`.
    """
    rows, kind = windows["rows"], windows["kind"]
    apart = (bank[rows].float() - bank[windows["clean"]].float()).abs()
    change = apart.mean((2, 3, 4))
    held = (kind == KIND_INDEX["frozen"]) | (kind == KIND_INDEX["out_of_order"])
    change[held & (apart[:, :, LIGHT].mean((2, 3, 4)) < MIN_MOTION)] = 0
    # Noise belongs to a row, so that a frame that is shown again stays the same. In half of the windows there is only
    # the middle of it, as in films without any.
    noisy = (torch.arange(len(rows), device=rows.device) % 2).float()[:, None, None, None, None]
    x = bank[rows].float() + torch.lerp(dither.mean((0, 2, 3), keepdim=True)[0], dither[rows % TEXTURES], noisy)
    if (windows["share"] > 0).any():
        x = torch.lerp(x, bank[windows["others"]].float(), windows["share"][..., None, None, None])
    x = light_windows(x, windows)
    factor, added = windows["tint"][:, None, :1, None, None], windows["tint"][:, None, 1:, None, None]
    lit = (x[:, :, LIGHT].mean(2, keepdim=True) / 128).clamp(max=1)  # black has no colour
    x[:, :, COLOUR] = (x[:, :, COLOUR] - 128) * factor + 128 + added * lit
    shape, flat = x.shape, x.flatten(0, 1)
    change = change.flatten()
    for name, apply in (("exposure", expose_cells), ("region", fill_cells), ("cover", cover_cells)):
        if name in windows["events"]:
            where, values = windows["events"][name]
            before = flat[where]
            after = apply(before, values)
            flat[where] = after
            change[where] = (after - before).abs().mean((1, 2, 3))
    seen = (kind == CLEAN) | (change.view(kind.shape) >= MIN_CHANGE)
    return flat.clamp_(0, 255).byte().view(shape), windows["weight"] * seen


def _plain_detail(x: Tensor) -> Tensor:
    return torch.expm1(x[:, DETAIL] / TOP) / FINEST


def _logarithmic(detail: Tensor) -> Tensor:
    return torch.log1p(FINEST * detail.clamp(min=0)) * TOP


def _quarters(channels: Tensor) -> Tensor:
    """Lay (N, 2 CELLS, 2 CELLS) quarters of cells out as the four channels of light."""
    return torch.stack([channels[:, i::2, j::2] for i in range(2) for j in range(2)], 1)


def cover_cells(x: Tensor, values: Tensor) -> Tensor:
    """Cover (N, CHANNELS, CELLS, CELLS) descriptors by shapes with the parameters of `_cover`."""
    v = values.unbind(1)
    device = x.device

    def opacity(y: Tensor, across: Tensor) -> Tensor:
        shapes = []
        for first in (0, 7):
            cy, cx, turn, long, short, power, soft = (v[first + i][:, None, None] for i in range(7))
            dy, dx = y[None, :, None] - cy, across[None, None, :] - cx
            along, beside = dx * turn.cos() + dy * turn.sin(), dy * turn.cos() - dx * turn.sin()
            far = ((along / long).abs() ** power + (beside / short).abs() ** power + 1e-6) ** (1 / power)
            shapes.append(((1 - far) / soft).sigmoid())
        return torch.maximum(*shapes) * v[20][:, None, None]

    fine = (torch.arange(2 * CELLS, device=device) + 0.5) / 2
    coarse = torch.arange(CELLS, device=device) + 0.5
    light, blue, red, down, right, texture, _, dim, edge = (v[14 + i][:, None, None] for i in range(9))
    shade = light + down * (fine[None, :, None] - 6) + right * (fine[None, None, :] - 6)
    share = _quarters(opacity(fine, fine))
    lights = x[:, LIGHT] * dim[:, None] * (1 - share) + _quarters(shade.clamp(0, 255)) * share
    first = opacity(coarse - 0.25, coarse - 0.25)[:, None]
    colours = x[:, COLOUR] * (1 - first) + torch.stack([blue, red], 1) * first
    middle = opacity(coarse, coarse)[:, None]
    scale = torch.tensor([0.7, 0.7, 0.6, 1.0, 5.0], device=device).view(1, 5, 1, 1)
    gap = (x[:, LIGHT].mean(1, keepdim=True) - light[:, None]).abs()
    bend = middle * (1 - middle) * gap * edge[:, None]
    detail = _plain_detail(x) * dim[:, None] * (1 - middle) + (texture[:, None] * middle + bend) * scale
    return torch.cat([lights, colours, _logarithmic(detail)], 1)


def fill_cells(x: Tensor, values: Tensor) -> Tensor:
    """Fill a rectangle of descriptors with one colour, with the parameters of `_region`."""
    top, bottom, left, right, light, blue, red, detail = (value[:, None, None] for value in values.unbind(1))

    def overlap(cells: int, lo: Tensor, hi: Tensor) -> Tensor:
        size = CELLS / cells
        begin = torch.arange(cells, device=x.device) * size
        inside = torch.minimum(begin + size, hi[:, 0]) - torch.maximum(begin, lo[:, 0])
        return (inside / size).clamp(0, 1)

    fine = overlap(2 * CELLS, top, bottom)[:, :, None] * overlap(2 * CELLS, left, right)[:, None, :]
    share = _quarters(fine)
    lights = x[:, LIGHT] * (1 - share) + light[:, None] * share
    first = fine[:, None, ::2, ::2]
    colours = x[:, COLOUR] * (1 - first) + torch.stack([blue, red], 1) * first
    middle = torch.arange(CELLS, device=x.device) + 0.5
    within = ((middle[None, :, None] > top) & (middle[None, :, None] < bottom)
              & (middle[None, None, :] > left) & (middle[None, None, :] < right))[:, None].float()  # fmt: skip
    details = _plain_detail(x) * (1 - within) + detail[:, None] * within
    return torch.cat([lights, colours, _logarithmic(details)], 1)


def expose_cells(x: Tensor, values: Tensor) -> Tensor:
    """Change light and colours of descriptors, with the parameters of `_exposure`."""
    gain, lift, saturation, blue, red = (value[:, None, None, None] for value in values.unbind(1))
    lights = x[:, LIGHT] * gain + lift
    clipped = ((lights.mean(1, keepdim=True) - 190) / 65).clamp(0, 1)
    colours = (x[:, COLOUR] - 128) * gain * saturation * (1 - clipped) + 128
    colours = colours + torch.cat([blue, red], 1) * (x[:, LIGHT].mean(1, keepdim=True) / 128).clamp(0.15, 1)
    detail = _plain_detail(x) * gain * (1 - clipped)
    return torch.cat([lights.clamp(0, 255), colours, _logarithmic(detail)], 1)
