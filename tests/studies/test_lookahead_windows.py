"""Training windows of the look-ahead inspector: damage of descriptors is that of pixels, and labels are right."""

from __future__ import annotations

import numpy as np
import torch
from studies.lookahead_windows import (
    CLEAN,
    KIND_INDEX,
    cover_cells,
    dither_table,
    draw_live_windows,
    fill_cells,
    render,
)
from studies.world_variety import DAMAGES, hard_clean

from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_layout import CELLS, COLOUR, LIGHT
from jostle.training.descriptor_bank import CorruptedFilm, FilmBank


def film(count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(0)
    ground = np.repeat(np.repeat(rng.integers(0, 256, (12, 16, 3), np.uint8), 12, 0), 12, 1)
    return np.stack([np.roll(ground, 3 * t, axis=1) for t in range(count)])


def bank() -> FilmBank:
    clean = film()
    black = ("black/black", 10, describe_frames(np.zeros_like(clean[10:30])))
    films = [CorruptedFilm(name, f"learn {name}", describe_frames(clean), (black,)) for name in ("filmed", "drawn")]
    return FilmBank.of(films)


def test_a_region_filled_in_descriptors_is_that_of_pixels() -> None:
    frame = film(1)
    pixels = frame.copy()
    pixels[:, 72:] = 128
    values = torch.tensor([[CELLS / 2, CELLS, 0, CELLS, 128, 128, 128, 0]], dtype=torch.float32)
    filled = fill_cells(torch.from_numpy(describe_frames(frame)).float(), values).numpy()
    assert np.abs(filled - describe_frames(pixels)).max() <= 1


def test_a_cover_in_descriptors_is_that_of_pixels() -> None:
    frame = np.repeat(film(1), 4, 1).repeat(4, 2)  # (576, 768)
    pixels = frame.copy()
    y, x = np.mgrid[:576, :768] + 0.5
    pixels[:, np.hypot((y / 48 - 5) / 3, (x / 64 - 7) / 4) < 1] = 20
    shape = [5, 7, 0, 4, 3, 2, 0.01]
    values = torch.tensor([[*shape, *shape, 20, 128, 128, 0, 0, 0, 1, 1, 0]], dtype=torch.float32)
    covered = cover_cells(torch.from_numpy(describe_frames(frame)).float(), values).numpy()
    apart = np.abs(covered - describe_frames(pixels))
    before = np.abs(describe_frames(frame).astype(float) - describe_frames(pixels))
    for channels in (LIGHT, COLOUR):
        assert apart[:, channels].mean() < 0.12 * before[:, channels].mean()


def test_windows_are_labelled_by_what_was_put_into_them() -> None:
    films = bank()
    frames, dither = torch.from_numpy(films.frames), dither_table(torch.device("cpu"))
    windows = draw_live_windows(films, np.random.default_rng(3), 12, 48)
    values = windows.to(torch.device("cpu"))
    descriptors, weight = render(frames, dither, values)
    assert descriptors.shape[:2] == weight.shape == (12, 48)
    black = films.frames[windows.lighting.rows].max((2, 3, 4)) == 128  # black has no light, and colours in the middle
    drawn_anew = np.zeros(12 * 48, np.bool_)
    for where, _ in windows.events.values():
        drawn_anew[where] = True
    stored = black & ~drawn_anew.reshape(12, 48)
    assert stored.any()
    assert np.isin(windows.kind[stored], [KIND_INDEX["black"], KIND_INDEX["frozen"], -2]).all()
    assert (windows.kind != CLEAN).any(1).sum() > 4
    clean = draw_live_windows(films, np.random.default_rng(3), 6, 48, damage=False)
    assert (clean.kind == CLEAN).all()
    assert not clean.events
    assert (clean.lighting.rows == clean.clean).all()


def test_each_damage_returns_other_frames_of_the_same_size() -> None:
    frames = film(12)[:, :96, :128]
    for number, damage in enumerate(DAMAGES):
        before = frames.copy()
        damaged = damage.draw(frames, np.random.default_rng(number))
        assert damaged.shape == frames.shape
        assert damaged.dtype == np.uint8
        assert (frames == before).all(), f"{damage.name} changed its input"
        assert (damaged != frames).any(), damage.name
    for number in range(12):
        assert hard_clean(frames, np.random.default_rng(number))[1].shape == frames.shape
