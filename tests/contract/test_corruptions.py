"""Contract that every corruption fulfils: registering one is enough to be tested here."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.core.types.video import ClipSource, VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.corruptions.engine.stages import TimeStage, chain

OWN = list(corruptions)
PROFILED = [f"{table.name}/{name}" for table in profiles.values() for name in table.entries]
EVERY = OWN + PROFILED


def strongest(name: str) -> str:
    return f"{name}:{len(Spec.parse(name).entry.values)}"


def source_for(clip: Clip, spec: str) -> VideoSource:
    parsed = Spec.parse(spec)
    masks = masks_for([parsed], None, Timeline.of(clip.pts, clip.fps, None))
    return chain(ClipSource(clip), [parsed], masks, seed=3, video_id="v")


@pytest.mark.parametrize("name", EVERY)
def test_shape_is_kept_and_input_unchanged(name: str, clip: Clip) -> None:
    before = clip.frames.tobytes()
    out = jostle.corrupt(clip, strongest(name))
    assert out.frames.shape == clip.frames.shape
    assert out.frames.dtype == np.uint8
    assert np.array_equal(out.pts, clip.pts)
    assert out.fps == clip.fps
    assert clip.frames.tobytes() == before


@pytest.mark.parametrize("name", EVERY)
def test_frames_are_changed(name: str, long_clip: Clip) -> None:
    assert not np.array_equal(jostle.corrupt(long_clip, strongest(name)).frames, long_clip.frames)


@pytest.mark.parametrize("name", EVERY)
def test_severity_zero_is_the_identity(name: str, clip: Clip) -> None:
    assert np.array_equal(jostle.corrupt(clip, f"{name}:0").frames, clip.frames)


@pytest.mark.parametrize("name", EVERY)
def test_same_key_same_bytes(name: str, clip: Clip) -> None:
    spec = strongest(name)
    first = jostle.corrupt(clip, spec, seed=5, video_id="a")
    assert np.array_equal(first.frames, jostle.corrupt(clip, spec, seed=5, video_id="a").frames)


@pytest.mark.parametrize("name", EVERY)
def test_blocks_and_random_access_equal_the_whole_clip(name: str, clip: Clip) -> None:
    spec = strongest(name)
    whole = source_for(clip, spec).block(0, len(clip))
    for step in (1, 5):
        source = source_for(clip, spec)
        parts = [source.block(lo, min(lo + step, len(clip))) for lo in range(0, len(clip), step)]
        assert np.array_equal(np.concatenate(parts), whole), f"blocks of {step} differ from the whole"
    source = source_for(clip, spec)
    for t in (len(clip) - 1, 3, 11, 12, 0):
        assert np.array_equal(source.block(t, t + 1)[0], whole[t]), f"frame {t} read on its own differs"


@pytest.mark.parametrize("name", [name for name in EVERY if Spec.parse(name).corruption.level == "frame"])
def test_single_frame_equals_the_frame_of_the_clip(name: str, clip: Clip) -> None:
    spec = strongest(name)
    whole = jostle.corrupt(clip, spec, placement="everywhere", seed=3, video_id="v").frames
    for t in (0, 11, len(clip) - 1):
        alone = jostle.corrupt_frame(clip.frames[t], spec, index=t, seed=3, video_id="v", fps=24)
        assert np.array_equal(alone, whole[t])


@pytest.mark.parametrize("name", [name for name in EVERY if Spec.parse(name).corruption.level != "codec"])
def test_memory_layout_does_not_matter(name: str, clip: Clip) -> None:
    """Planar, transposed and strided arrays, as other libraries return them, give the same result."""
    frames = clip.frames[::2]
    whole = jostle.corrupt(np.array(frames), strongest(name))
    for order in ((3, 0, 1, 2), (0, 2, 1, 3)):
        reordered = np.ascontiguousarray(frames.transpose(order)).transpose(np.argsort(order))
        assert np.array_equal(jostle.corrupt(reordered, strongest(name)), whole)
    assert np.array_equal(jostle.corrupt(frames, strongest(name)), whole)


@pytest.mark.parametrize("name", OWN)
def test_number_of_threads_does_not_matter(name: str, clip: Clip) -> None:
    spec = strongest(name)
    assert np.array_equal(jostle.corrupt(clip, spec, jobs=4).frames, jostle.corrupt(clip, spec).frames)


@pytest.mark.parametrize("name", EVERY)
def test_frames_outside_the_placement_are_clean(name: str, clip: Clip) -> None:
    out = jostle.corrupt(clip, strongest(name), placement="frames:6-14")
    keep = np.r_[0:6, 14 : len(clip)]
    assert np.array_equal(out.frames[keep], clip.frames[keep])


def damage_of(clip: Clip, spec: str) -> float:
    """Return the distance of a corrupted clip from the clean one.

    Pixels say little about time: a shuffle of long pieces moves frames further than one of short pieces, yet leaves
    more of the order. For an index map it is the share of steps that are no longer one frame ahead, and of frames
    that are missing.
    """
    source = source_for(clip, spec)
    if isinstance(source, TimeStage):
        broken = np.mean(np.diff(source.indices) != 1)
        return float(broken + 1 - len(np.unique(source.indices)) / len(clip))
    change = source.block(0, len(clip)).astype(float) - clip.frames
    return float(np.abs(change).mean())


@pytest.mark.parametrize("name", OWN)
def test_damage_grows_with_severity(name: str, long_clip: Clip) -> None:
    damage = [damage_of(long_clip, f"{name}:{severity}") for severity in range(1, 6)]
    assert damage[0] > 0
    assert damage[-1] > damage[0]
    # A single step may be flat: a random pattern does not hit the same content at every severity.
    for weaker, stronger in pairwise(damage):
        assert stronger >= 0.9 * weaker, damage


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("frames", [1, 2])
def test_very_short_clips(name: str, frames: int, clip: Clip) -> None:
    assert jostle.corrupt(clip[:frames], strongest(name)).frames.shape == clip.frames[:frames].shape


@pytest.mark.parametrize("name", EVERY)
def test_odd_and_small_frames(name: str, clip: Clip) -> None:
    odd = np.ascontiguousarray(clip.frames[:4, :33, :35])
    assert jostle.corrupt(odd, strongest(name)).shape == odd.shape


@pytest.mark.parametrize("name", OWN)
def test_summary_and_citation(name: str) -> None:
    corruption = corruptions[name]
    assert re.fullmatch(r"[A-Z].*[.]", corruption.summary, re.DOTALL), corruption.summary
    bibliography = (Path(__file__).resolve().parents[2] / "docs" / "references.bib").read_text()
    assert corruption.cites == "jostle" or f"{{{corruption.cites}," in bibliography


@pytest.mark.parametrize("name", EVERY)
def test_static_clip_keeps_its_length(name: str) -> None:
    black = np.zeros((3, 40, 40, 3), np.uint8)
    assert jostle.corrupt(black, strongest(name)).shape == black.shape
