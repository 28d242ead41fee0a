"""Damage finders: known damage, and an inspector that processes only changed frames."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
import jostle.api
from jostle import Clip
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.stages import MADE
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.mending.damage_finders import find_damaged
from jostle.mending.finders.known import KnownDamage
from jostle.mending.inspected_frames import InspectorFinder

FPS = 25


def test_known_damage_is_every_frame_that_is_not_in_its_place() -> None:
    finder = KnownDamage().finder_for(ClipSource(Clip.at_rate(np.zeros((5, 8, 8, 3), np.uint8), FPS)))
    came_from = np.array([0, MADE, 3, 2, 4])
    assert finder.find_damaged(None, came_from).tolist() == [False, True, True, True, False]
    assert (KnownDamage().name, KnownDamage().fingerprint) == ("known", None)


def make_frames(count: int) -> np.ndarray:
    return untrimmed(11, "inspected", cast=tuple(CASTS["validation"])).draw(200, 200 + count)


class CountingSource:
    """Source that counts the frames that are requested."""

    def __init__(self, frames: np.ndarray) -> None:
        self._clip = ClipSource(Clip.at_rate(frames, FPS))
        self.size, self.pts, self.fps, self.requested = self._clip.size, self._clip.pts, self._clip.fps, 0

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> np.ndarray:
        self.requested += hi - lo
        return self._clip.block(lo, hi)


def test_an_inspected_state_equals_its_video_and_reuses_untouched_frames() -> None:
    pytest.importorskip("torch")
    inspector = jostle.load_inspector()
    mending, frames = InspectorFinder(inspector), make_frames(200)
    clean, states = CountingSource(frames), {}
    finder = mending.finder_for(clean)
    before = finder.find_damaged(clean, np.arange(200))
    assert clean.requested == 200
    for name, affected in {"black": slice(90, 96), "late": slice(198, 200)}.items():
        corrupted = frames.copy()
        corrupted[affected] = 0
        top, came_from = CountingSource(corrupted), np.arange(200)
        came_from[affected] = MADE
        states[name] = finder.find_damaged(top, came_from)
        assert top.requested == affected.stop - affected.start
        source = ClipSource(Clip.at_rate(corrupted, FPS))
        expected = find_damaged(mending, source, {"": source})
        assert np.array_equal(states[name], expected[""])
    assert clean.requested == 200
    assert states["black"][90:96].sum() > before[90:96].sum()
    assert mending.name == "jostle"
    assert mending.fingerprint == inspector.fingerprint
    assert mending.to("cpu").fingerprint == inspector.fingerprint


@pytest.mark.parametrize("grey", [0, 90, 255])
def test_a_blank_video_is_damaged_from_end_to_end(grey: int) -> None:
    """A network cannot decide this: the video may be blank by intent, but then the verdict does no harm."""
    pytest.importorskip("torch")
    blank, frames = np.full((40, 112, 112, 3), grey, np.uint8), make_frames(40)
    assert jostle.api.inspection(blank).damaged.all()
    finder = InspectorFinder(jostle.load_inspector()).finder_for(ClipSource(Clip.at_rate(frames, FPS)))
    assert finder.find_damaged(ClipSource(Clip.at_rate(blank, FPS)), np.full(40, MADE)).all()
    assert not jostle.api.inspection(blank, causal=True).damaged.all()


def test_a_black_video_with_one_frame_of_content_is_not_damaged() -> None:
    pytest.importorskip("torch")
    frames = np.zeros((40, 112, 112, 3), np.uint8)
    frames[-1] = make_frames(1)[0]
    assert not jostle.api.inspection(frames).damaged.all()
