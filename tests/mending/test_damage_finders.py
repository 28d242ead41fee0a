"""Which frames were struck: known, or told by an inspector, which looks at what changed alone."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
import jostle.api
from jostle import Clip
from jostle.corruptions.engine.stages import MADE, ClipSource
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.mending.damage_finders import Mending, find_damaged

FPS = 25


def test_known_frames_are_those_that_are_not_in_their_place() -> None:
    finding = Mending().finder_for(ClipSource(Clip.at_rate(np.zeros((5, 8, 8, 3), np.uint8), FPS)))
    came_from = np.array([0, MADE, 3, 2, 4])
    assert finding.find_damaged(None, came_from).tolist() == [False, True, True, True, False]
    assert (Mending().name, Mending().fingerprint) == ("known", None)


def film(count: int) -> np.ndarray:
    return untrimmed(11, "inspected", cast=tuple(CASTS["validation"])).draw(200, 200 + count)


class Asked:
    """A source that counts the frames that it is asked for."""

    def __init__(self, frames: np.ndarray) -> None:
        self._clip = ClipSource(Clip.at_rate(frames, FPS))
        self.size, self.pts, self.fps, self.asked = self._clip.size, self._clip.pts, self._clip.fps, 0

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> np.ndarray:
        self.asked += hi - lo
        return self._clip.block(lo, hi)


def test_an_inspector_finds_in_a_state_what_it_finds_in_its_frames_and_looks_at_untouched_ones_once() -> None:
    pytest.importorskip("torch")
    inspector = jostle.load_inspector()
    mending, frames = Mending(inspector), film(200)
    clean, others = Asked(frames), {}
    finding = mending.finder_for(clean)
    before = finding.find_damaged(clean, np.arange(200))
    assert clean.asked == 200
    for name, struck in {"black": slice(90, 96), "late": slice(198, 200)}.items():
        corrupted = frames.copy()
        corrupted[struck] = 0
        top, came_from = Asked(corrupted), np.arange(200)
        came_from[struck] = MADE
        others[name] = finding.find_damaged(top, came_from)
        assert top.asked == struck.stop - struck.start
        whole = ClipSource(Clip.at_rate(corrupted, FPS))
        alone = find_damaged(mending, whole, {"": whole})
        assert np.array_equal(others[name], alone[""])
    assert clean.asked == 200
    assert others["black"][90:96].sum() > before[90:96].sum()
    assert mending.name == "jostle"
    assert mending.fingerprint == inspector.fingerprint
    assert mending.to("cpu").fingerprint == inspector.fingerprint


@pytest.mark.parametrize("grey", [0, 90, 255])
def test_a_video_with_nothing_to_be_seen_is_struck_from_end_to_end(grey: int) -> None:
    """No network could tell it: it might have been filmed so, but then nothing is lost by saying it."""
    pytest.importorskip("torch")
    blank, frames = np.full((40, 112, 112, 3), grey, np.uint8), film(40)
    assert jostle.api.inspection(blank).struck.all()
    finding = Mending(jostle.load_inspector()).finder_for(ClipSource(Clip.at_rate(frames, FPS)))
    assert finding.find_damaged(ClipSource(Clip.at_rate(blank, FPS)), np.full(40, MADE)).all()
    assert not jostle.api.inspection(blank, causal=True).struck.all()


def test_one_frame_of_something_makes_a_black_video_content() -> None:
    pytest.importorskip("torch")
    frames = np.zeros((40, 112, 112, 3), np.uint8)
    frames[-1] = film(1)[0]
    assert not jostle.api.inspection(frames).struck.all()
