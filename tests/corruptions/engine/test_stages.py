"""Chains of stages: origins of frames, known before any frame is computed."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Entry, Spec
from jostle.corruptions.engine.stages import MADE, FrameStage, chain, origins, stretches
from jostle.errors import BadValue


def make_chain(clip: Clip, *steps: tuple[str, str]):
    timeline = Timeline(len(clip), None)
    specs = [Spec.parse(spec) for spec, _ in steps]
    masks = [masks_for([spec], placement, timeline)[0] for spec, (_, placement) in zip(specs, steps, strict=True)]
    return chain(ClipSource(clip), specs, masks, seed=0, video_id="v")


@pytest.mark.parametrize(
    "steps",
    [
        [("gaussian_noise:3", "frames:3-6")],
        [("frame_average:2", "frames:3-6")],
        [("freeze:4", "everywhere")],
        [("jumble:1", "frames:4-20"), ("black_frame:1", "frame:7")],
        [("black_frame:1", "frame:7"), ("jumble:1", "frames:4-20")],
        [("h264_crf:3", "frames:9-12"), ("freeze:5", "everywhere")],
        [("fog:0", "everywhere"), ("contrast:2", "frame:0")],
    ],
)
def test_a_frame_of_known_origin_is_that_frame(clip: Clip, steps: list[tuple[str, str]]) -> None:
    top = make_chain(clip, *steps)
    known_origins = origins(top)
    out = top.block(0, len(clip))
    assert known_origins.dtype == np.int64
    for t in np.flatnonzero(known_origins != MADE):
        assert np.array_equal(out[t], clip.frames[known_origins[t]]), t
    for t in np.flatnonzero(known_origins == MADE):  # no corruption used here leaves a frame unchanged
        assert not (out[t] == clip.frames).all((1, 2, 3)).any(), t


def test_untouched_frames_are_themselves(clip: Clip) -> None:
    assert origins(ClipSource(clip)).tolist() == list(range(len(clip)))
    assert origins(make_chain(clip, ("fog:0", "everywhere"))).tolist() == list(range(len(clip)))
    assert np.flatnonzero(origins(make_chain(clip, ("fog:3", "frames:2-5"))) == MADE).tolist() == [2, 3, 4]


def test_a_corruption_may_write_into_the_output_block(clip: Clip) -> None:
    canvases = []

    def darker(frame, value, at):
        out = at.canvas(frame)
        canvases.append(out)
        np.right_shift(frame, value, out=out)
        return out

    spec = Spec(None, "darker", 1, Entry("darker", (2,)))
    scene = ClipContext("darker", clip.size, clip.pts, clip.fps, np.ones(len(clip), np.bool_))
    corruption = Corruption("darker", darker, "frame", (2,) * 5, "jostle")
    out = FrameStage(ClipSource(clip), corruption, spec, scene).block(2, 5)
    assert np.array_equal(out, clip.frames[2:5] >> 2)
    assert all(np.shares_memory(canvas, out[i]) for i, canvas in enumerate(canvases))
    assert not np.shares_memory(darker(clip.frames[2], 2, scene.at(2)), out)


def test_stretches_of_consecutive_indices() -> None:
    assert stretches(np.array([1, 2, 3, 7, 9, 10])) == [(1, 4), (7, 8), (9, 11)]
    assert stretches(np.array([1, 2, 3, 7, 9, 10]), gap=2) == [(1, 4), (7, 11)]
    assert stretches(np.zeros(0, np.int64)) == []


@pytest.mark.parametrize("draws", [True, False])
def test_an_order_of_another_length_is_refused(clip: Clip, draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruptions, "_entries", dict(corruptions._entries))
    short = Corruption("short", lambda times, value, rng: np.arange(3), "time", (1,) * 5, "jostle", draws=draws)
    corruptions.add("short", short)
    with pytest.raises(BadValue, match=r"short returned \(3,\) indices for"):
        jostle.corrupt(clip, "short:2")
