"""Mending: only damaged frames change, they are made of intact ones, and blocks give the same result."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.core.types.clip import Frames
from jostle.core.types.video import ClipSource
from jostle.errors import BadValue, DataError, UnknownName
from jostle.mending.repair import MendedSource

DAMAGED = np.isin(np.arange(20), [0, 1, 6, 7, 8, 9, 13, 18, 19])


def moving_square() -> Frames:
    """Return a bright square that moves two pixels per frame over a smooth background."""
    rows, columns = np.mgrid[:64, :96]
    ground = (60 + 20 * np.sin(rows / 9) + 20 * np.cos(columns / 7)).astype(np.uint8)
    film = np.repeat(ground[None, :, :, None], 20, axis=0).repeat(3, axis=3)
    for t in range(20):
        film[t, 20:40, 10 + 2 * t : 34 + 2 * t] = 200
    return film


def damaged_film() -> Frames:
    film = moving_square()
    film[DAMAGED] = 0
    return film


@pytest.mark.parametrize("how", ["hold", "blend", "motion"])
def test_only_damaged_frames_are_replaced(how: str) -> None:
    film = damaged_film()
    before = film.copy()
    mended = jostle.mend(film, how=how, damaged=DAMAGED)
    assert (film == before).all()
    assert (mended[~DAMAGED] == film[~DAMAGED]).all()
    assert (mended[:2] == film[2]).all()  # no frame before: the first after
    assert (mended[18:] == film[17]).all()
    if how == "hold":
        assert (mended[6:10] == film[5]).all()
    if how == "blend":
        mean = film[5].astype(float) + (film[10].astype(float) - film[5]) * 0.4
        assert np.abs(mended[7] - mean).max() <= 1


def test_motion_interpolation_is_closest_to_the_original() -> None:
    film, clean = damaged_film(), moving_square()
    errors = {
        how: float(np.abs(jostle.mend(film, how=how, damaged=DAMAGED)[6:10].astype(int) - clean[6:10]).mean())  # type: ignore[arg-type]
        for how in ("hold", "blend", "motion")
    }
    assert errors["motion"] < 0.5 * errors["blend"] < errors["hold"]


@pytest.mark.parametrize("how", ["hold", "blend", "motion"])
def test_blocks_are_mended_like_the_whole_video(how: str) -> None:
    expected = jostle.mend(damaged_film(), how=how, damaged=DAMAGED)  # type: ignore[arg-type]
    source = MendedSource(ClipSource(Clip.at_rate(damaged_film(), 25)), DAMAGED, how)  # type: ignore[arg-type]
    for lo, hi in ((18, 20), (7, 9), (0, 3), (5, 14)):
        assert (source.block(lo, hi) == expected[lo:hi]).all()


def test_mending_a_clip_returns_a_clip() -> None:
    clip = Clip.at_rate(damaged_film(), 25)
    mended = jostle.mend(clip, damaged=DAMAGED)
    assert isinstance(mended, Clip)
    assert (mended.pts == clip.pts).all()


def test_invalid_masks_and_methods_are_refused() -> None:
    film = damaged_film()
    with pytest.raises(DataError, match="every frame is damaged, so there is nothing to mend them with"):
        jostle.mend(film, damaged=np.ones(20, np.bool_))
    with pytest.raises(BadValue, match="one boolean a frame"):
        jostle.mend(film, damaged=DAMAGED[:5])
    with pytest.raises(BadValue, match="one boolean a frame, got an array of int64"):
        jostle.mend(film, damaged=np.zeros(20, np.int64))
    with pytest.raises(UnknownName, match="no mender is called 'holt': did you mean hold"):
        jostle.mend(film, damaged=DAMAGED, how="holt")
    with pytest.raises(BadValue, match="how is the name of a mender, or a function"):
        jostle.mend(film, damaged=DAMAGED, how=3)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="an Inspector or a damage finder, not 3"):
        jostle.mend(film, inspector=3)  # type: ignore[arg-type]
