"""Mending: only struck frames change, they come from whole ones, and a film in pieces is mended alike."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import ClipSource
from jostle.errors import BadValue, DataError
from jostle.mending.repair import MendedSource

STRUCK = np.isin(np.arange(20), [0, 1, 6, 7, 8, 9, 13, 18, 19])


def moving() -> Frames:
    """A bright square that goes two pixels a frame over a soft ground."""
    rows, columns = np.mgrid[:64, :96]
    ground = (60 + 20 * np.sin(rows / 9) + 20 * np.cos(columns / 7)).astype(np.uint8)
    film = np.repeat(ground[None, :, :, None], 20, axis=0).repeat(3, axis=3)
    for t in range(20):
        film[t, 20:40, 10 + 2 * t : 34 + 2 * t] = 200
    return film


def struck_film() -> Frames:
    film = moving()
    film[STRUCK] = 0
    return film


@pytest.mark.parametrize("how", ["hold", "blend", "motion"])
def test_whole_frames_are_untouched_and_others_are_made_of_them(how: str) -> None:
    film = struck_film()
    before = film.copy()
    mended = jostle.mend(film, how=how, struck=STRUCK)  # type: ignore[arg-type]
    assert (film == before).all()
    assert (mended[~STRUCK] == film[~STRUCK]).all()
    assert (mended[:2] == film[2]).all()  # none before: the first after
    assert (mended[18:] == film[17]).all()
    if how == "hold":
        assert (mended[6:10] == film[5]).all()
    if how == "blend":
        mean = film[5].astype(float) + (film[10].astype(float) - film[5]) * 0.4
        assert np.abs(mended[7] - mean).max() <= 1


def test_motion_is_nearer_to_what_was_there_than_holding() -> None:
    film, clean = struck_film(), moving()
    off = {
        how: float(np.abs(jostle.mend(film, how=how, struck=STRUCK)[6:10].astype(int) - clean[6:10]).mean())  # type: ignore[arg-type]
        for how in ("hold", "blend", "motion")
    }
    assert off["motion"] < 0.5 * off["blend"] < off["hold"]


@pytest.mark.parametrize("how", ["hold", "blend", "motion"])
def test_pieces_are_mended_as_the_whole(how: str) -> None:
    whole = jostle.mend(struck_film(), how=how, struck=STRUCK)  # type: ignore[arg-type]
    source = MendedSource(ClipSource(Clip.at_rate(struck_film(), 25)), STRUCK, how)  # type: ignore[arg-type]
    for lo, hi in ((18, 20), (7, 9), (0, 3), (5, 14)):
        assert (source.block(lo, hi) == whole[lo:hi]).all()


def test_a_clip_gives_a_clip() -> None:
    clip = Clip.at_rate(struck_film(), 25)
    mended = jostle.mend(clip, struck=STRUCK)
    assert isinstance(mended, Clip)
    assert (mended.pts == clip.pts).all()


def test_what_cannot_be_mended_is_refused() -> None:
    film = struck_film()
    with pytest.raises(DataError, match="every frame is damaged, so there is nothing to mend them with"):
        jostle.mend(film, struck=np.ones(20, np.bool_))
    with pytest.raises(BadValue, match="one boolean a frame"):
        jostle.mend(film, struck=STRUCK[:5])
    with pytest.raises(BadValue, match="one boolean a frame, got an array of int64"):
        jostle.mend(film, struck=np.zeros(20, np.int64))
    with pytest.raises(BadValue, match="unknown mending method 'glue'; choose one of hold, blend, motion"):
        jostle.mend(film, struck=STRUCK, how="glue")  # type: ignore[arg-type]
