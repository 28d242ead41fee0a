"""Stream rules: the damage that each rule detects, and the content that it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import pytest

from helpers.moving_film import SIDE, moving_film, verdicts_on
from jostle.core.types.clip import Frames
from jostle.mending.stream import VideoStream
from jostle.mending.verdicts import KINDS


def kinds_of(frames: Sequence[np.ndarray], lookahead: int = 15, fps: float = 25) -> list[str]:
    verdicts = verdicts_on(VideoStream(lookahead=lookahead, fps=fps, use_network=False), frames)
    assert all(verdict.kind in KINDS and verdict.damaged == (verdict.kind != "clean") for verdict in verdicts)
    return [verdict.kind for verdict in verdicts]


def clean(count: int) -> list[str]:
    return ["clean"] * count


CONTENT = {
    "a moving scene": lambda: [moving_film(60)],
    "a static camera with noise": lambda: [moving_film(80, step=0)],
    "a static scene without noise": lambda: [moving_film(120, step=0, noise=0)],
    "cuts": lambda: [moving_film(40), moving_film(40, seed=7), moving_film(40, seed=8, step=0) // 3],
}


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("lookahead", [0, 15])
def test_content_is_clean(name: str, lookahead: int) -> None:
    film = np.concatenate(CONTENT[name]())
    assert kinds_of(film, lookahead) == clean(len(film))


COLOURS = {
    (0, 0, 0): "black",
    (16, 16, 16): "black",
    (0, 135, 0): "one_colour",
    (128, 128, 128): "one_colour",
    (255, 255, 255): "one_colour",
}


@pytest.mark.parametrize(("colour", "kind"), COLOURS.items())
@pytest.mark.parametrize("end", [30, 50])
def test_a_picture_that_turns_to_one_colour(colour: tuple[int, int, int], kind: str, end: int) -> None:
    film = moving_film(50)
    film[20:end] = colour
    assert kinds_of(film) == clean(20) + [kind] * (end - 20) + clean(50 - end)


def test_black_with_noise_is_black() -> None:
    film = moving_film(40)
    film[20:] = np.random.default_rng(0).integers(0, 24, film[20:].shape)
    assert kinds_of(film, 0) == clean(20) + ["black"] * 20


def test_a_fade_to_black_is_content_until_the_picture_stays_away() -> None:
    film = moving_film(240).astype(np.float32)
    film *= np.clip((60 - np.arange(240)) / 25, 0, 1)[:, None, None, None]
    kinds = kinds_of(film.astype(np.uint8), 0)
    assert kinds[:160] == clean(160)
    assert kinds[-30:] == ["black"] * 30


def test_a_white_flash_is_content_and_longer_white_is_not() -> None:
    film = moving_film(50)
    film[20:22] = 255
    assert kinds_of(film) == clean(50)
    film[20:23] = 255
    assert kinds_of(film)[20:23] == ["one_colour"] * 3


def test_black_between_two_scenes_is_an_edit_with_enough_lookahead() -> None:
    film = np.concatenate([moving_film(30), moving_film(30, seed=9)])
    film[30:] = 255 - film[30:] // 2
    film[26:30] = 0
    assert "black" not in kinds_of(film, 15)
    assert kinds_of(film, 0)[26:30] == ["black"] * 4


def test_a_frozen_picture_is_found_from_its_second_frame_on() -> None:
    film = moving_film(60)
    film[25:50] = film[25]
    assert kinds_of(film) == clean(26) + ["frozen"] * 24 + clean(10)
    late = kinds_of(film, 0)
    assert late[25:30] == clean(5)
    assert late[30:50] == ["frozen"] * 20


def test_a_frozen_picture_under_a_clock_is_found() -> None:
    film = moving_film(60)
    film[25:50] = film[25]
    for t in range(25, 50):
        film[t, 4:12, 4:30] = np.random.default_rng(t).integers(0, 256, (8, 26, 1))
    assert kinds_of(film)[27:50] == ["frozen"] * 23


def test_a_frozen_picture_that_a_codec_refines_is_found() -> None:
    film = moving_film(60).astype(np.float32)
    grain = np.random.default_rng(1).normal(0, 1, (25, *film.shape[1:]))
    film[25:50] = film[25] + np.cumsum(grain * (0.5 ** np.arange(25))[:, None, None, None], 0)
    assert kinds_of(np.clip(film, 0, 255).astype(np.uint8))[26:50] == ["frozen"] * 24


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 3), (0, 0, 1, 1), (0, 0, 0, 1, 1, 1)])  # pulldown, on twos, on threes
def test_repeated_frames_of_a_slower_film_are_content(order: tuple[int, ...]) -> None:
    film = moving_film(100)
    groups = max(order) + 1
    frames = [film[groups * (t // len(order)) + order[t % len(order)]] for t in range(80)]
    assert kinds_of(frames) == clean(80)


def test_a_still_title_after_a_cut_is_not_frozen() -> None:
    film = moving_film(90)
    title = np.full_like(film[0], 30)
    cv2.putText(title, "THE END", (20, 50), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (240, 240, 240), 2)
    film[30:] = title
    assert kinds_of(film) == clean(90)


@pytest.mark.parametrize("fill", [(128, 128, 128), (0, 135, 0), (0, 0, 0)])
@pytest.mark.parametrize("rows", [(48, 96), (0, 32), (30, 60)])
def test_a_band_of_a_decoders_fill_is_a_missing_part(fill: tuple[int, int, int], rows: tuple[int, int]) -> None:
    film = moving_film(50)
    film[20:40, rows[0] : rows[1]] = fill
    assert kinds_of(film, 0) == clean(20) + ["missing_part"] * 20 + clean(10)


def test_letterbox_bars_are_part_of_the_picture() -> None:
    film = moving_film(60)
    film[:, :18] = film[:, -18:] = 0
    assert kinds_of(film) == clean(60)


def test_a_cut_to_a_letterboxed_picture_is_no_missing_part() -> None:
    """The bars change more than the rest, as in a stream where a part is lost."""
    film = 150 + moving_film(80) // 3
    film[30:] = film[30:, ::-1, ::-1].copy()
    film[30:, :18] = film[30:, -18:] = 0
    assert kinds_of(film) == clean(80)


def test_frames_in_another_order_are_found_and_a_pan_is_not() -> None:
    film = moving_film(90, step=3)
    order = np.arange(90)
    rng = np.random.default_rng(4)
    for first in range(40, 70, 6):
        order[first : first + 6] = rng.permutation(order[first : first + 6])
    kinds = kinds_of(film[order])
    assert kinds[:38] == clean(38)
    assert kinds[40:70].count("out_of_order") >= 20


CHANGES = {
    "noisy": lambda film: film + np.random.default_rng(0).normal(0, 40, film.shape),
    "overexposed": lambda film: film * 2.6 + 20,
    "underexposed": lambda film: film * 0.25,
    "colour_cast": lambda film: film * np.array([1.6, 1.0, 0.4]),
    "blurred": lambda film: np.stack([cv2.GaussianBlur(frame, (0, 0), 4) for frame in film]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_sudden_change_of_one_scene_has_its_name(kind: str) -> None:
    film = moving_film(60, step=1)
    film[20:45] = np.clip(CHANGES[kind](film[20:45].astype(np.float32)), 0, 255)
    assert kinds_of(film, 5) == clean(20) + [kind] * 25 + clean(15)


def test_a_change_of_white_balance_is_not_damage() -> None:
    film = moving_film(60, step=1).astype(np.float32)
    film[20:45] *= np.array([1.1, 1.0, 0.78])
    assert kinds_of(np.clip(film, 0, 255).astype(np.uint8), 5) == clean(60)


def test_swapped_red_and_blue_are_a_colour_cast() -> None:
    film = moving_film(60)
    film[..., 0] = np.clip(film[..., 0].astype(np.int16) + 30, 0, 255)
    film[20:40] = film[20:40, ..., ::-1]
    assert kinds_of(film) == clean(20) + ["colour_cast"] * 20 + clean(20)


def test_the_end_of_an_undetected_change_is_no_damage() -> None:
    """The picture gradually loses focus and is suddenly sharp again, as it was seconds before."""
    film = moving_film(90, step=0)
    for t in range(31, 61):
        film[t] = cv2.GaussianBlur(film[t], (0, 0), 0.1 * (t - 28))
    assert kinds_of(film) == clean(90)


def test_the_end_of_an_undetected_cover_is_no_cover() -> None:
    """An object in focus leaves a plain wall, which then looks as it did before."""
    film = moving_film(90, step=0)
    film[:, 20:80, 20:80] = 120
    texture = np.random.default_rng(1).integers(0, 256, (60, 60, 3))
    film[30:60, 20:80, 20:80] = texture
    kinds = kinds_of(film)
    assert kinds[60:] == clean(30)


def test_a_dark_soft_cover_before_a_still_camera_is_found() -> None:
    film = moving_film(60, step=0)
    cover = np.zeros(film.shape[1:3], np.float32)
    cv2.ellipse(cover, (64, 48), (40, 34), 0, 0, 360, 1.0, -1)
    cover = cv2.GaussianBlur(cover, (0, 0), 3)[..., None]
    film[20:45] = film[20:45] * (1 - cover) + 15 * cover
    assert kinds_of(film, 5) == clean(20) + ["covered"] * 25 + clean(15)


def test_a_board_that_moves_in_before_a_panning_camera_is_covered() -> None:
    film = moving_film(70, step=1)
    for t in range(20, 50):
        film[t, 96 - min(16 * (t - 19), 72) :, 20:100] = (150, 120, 90)
    kinds = kinds_of(film, 15)
    assert kinds[:20] == clean(20)
    assert kinds[22:50] == ["covered"] * 28
    assert kinds[50:] == clean(20)


def test_the_end_of_a_missing_part_is_no_cover() -> None:
    film = moving_film(60, noise=0.5)
    film[:, 50:] = film[:, 50:] // 8 + 20
    film[20:40, 48:] = 128
    assert kinds_of(film, 5) == clean(20) + ["missing_part"] * 20 + clean(20)


def displace_blocks(frames: Frames, side: int, share: float) -> Frames:
    rng, out = np.random.default_rng(0), frames.copy()
    for frame, source in zip(out, frames, strict=True):
        blocks = np.argwhere(rng.random((SIDE // side, 128 // side)) < share) * side
        for y, x in blocks:
            v, u = blocks[rng.integers(len(blocks))]
            frame[y : y + side, x : x + side] = source[v : v + side, u : u + side]
    return out


@pytest.mark.parametrize("side", [16, 32])
def test_displaced_blocks_are_blocky(side: int) -> None:
    film = moving_film(60)
    film[20:45] = displace_blocks(film[20:45], side, 0.5)
    assert kinds_of(film, 5) == clean(20) + ["blocky"] * 25 + clean(15)


def test_the_grid_of_a_codec_in_bad_quality_is_content() -> None:
    film = moving_film(60)
    coarse = film[20:45].reshape(25, SIDE // 8, 8, 16, 8, 3).mean((2, 4)).repeat(8, 1).repeat(8, 2)
    film[20:45] = np.clip(film[20:45] * 0.5 + coarse * 0.5, 0, 255)
    assert "blocky" not in kinds_of(film, 5)


def test_light_that_comes_back_within_three_frames_is_a_flash() -> None:
    film = moving_film(50).astype(np.float32)
    for t, gain in zip(range(20, 24), (3.0, 2.2, 1.6, 1.2), strict=True):
        film[t] *= gain
    assert kinds_of(np.clip(film, 0, 255).astype(np.uint8)) == clean(50)
