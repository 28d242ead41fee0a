"""Somebody's own detectors: callables on frames and on features."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.numpy_extractor import TwoParts, write_video
from jostle.core.types import Segments
from jostle.errors import DataError
from jostle.evaluation.inference import detection
from jostle.evaluation.inference.detection import (
    CallableDetector,
    FeatureDetectionPredictor,
    FrameDetectionPredictor,
    bind_supported_arguments,
)
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.io.video.decode import read
from jostle.mending.damage_finders import Mending

CELLS = (
    CLEAN_CELL,
    Cell("black_frame:1@frames:3-9", ("black_frame:1",), "frames:3-9", "", True),
    Cell("black_frame:1@none", ("black_frame:1",), "centre:1%@activitynet", "", True),  # of so short an action, nothing
)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> VideoJob:
    video = write_video(tmp_path_factory.mktemp("videos") / "a.mkv", 40)
    return VideoJob("a", video, CELLS, 0, Segments.from_pairs([(0.2, 1.0)]))


class Frames:
    """One segment a video that tells its frames apart."""

    def __init__(self) -> None:
        self.looked = 0

    def __call__(self, frames: np.ndarray, duration: float, fps: float) -> Segments:
        assert (fps, duration) == (25.0, 1.6)
        self.looked += 1
        found = Segments([0.0], [duration], [0], [float(frames.mean())], ("Jump",))
        frames[:] = 0  # whoever writes into them must not spoil the next look
        return found


def test_a_callable_is_given_the_frames_of_every_cell(order: VideoJob) -> None:
    model = Frames()
    looked = FrameDetectionPredictor(model)(order)
    frames = np.array(read(order.path).frames)
    assert looked.outputs["clean"].score.tolist() == [frames.mean()]
    frames[3:9] = 0
    assert looked.outputs[CELLS[1].name].score.tolist() == [frames.mean()]
    assert looked.outputs[CELLS[2].name] is looked.outputs["clean"]
    assert model.looked == 2
    assert (looked.clean.decoded, looked.cells.decoded, looked.cells.joined) == (40, 0, 1)


def test_a_callable_on_features_is_a_detector(order: VideoJob) -> None:
    def model(features: np.ndarray, *, stride: int) -> Segments:
        assert stride == 2
        return Segments([0.0], [1.0], [0], [float(features.sum())], ("Jump",))

    looked = FeatureDetectionPredictor(TwoParts(8, 2), CallableDetector(model))(order)
    sums = [found.score[0] for found in looked.outputs.values()]
    assert sums[0] == sums[2] != sums[1]


@pytest.mark.parametrize("given", [None, [1.0, 2.0], Segments([0.0], [1.0], [0], classes=("Jump",))])
def test_what_is_no_scored_segments_is_refused(order: VideoJob, given: object) -> None:
    with pytest.raises(DataError, match=r"the model failed .TypeError: it"):
        FrameDetectionPredictor(lambda frames: given)(order)


def test_a_video_too_long_to_hand_over_is_named(order: VideoJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match="its 40 frames are too many to be passed at once"):
        FrameDetectionPredictor(Frames())(order)


def test_facts_go_to_who_asks_for_them() -> None:
    facts = {"fps": 25.0, "duration": 2.0}
    assert bind_supported_arguments(lambda x: x, facts)(1) == 1
    assert bind_supported_arguments(lambda x, **rest: rest, facts)(1) == facts
    assert bind_supported_arguments(lambda x, duration=0, other=3: (duration, other), facts)(1) == (2.0, 3)
    assert bind_supported_arguments(len, facts)("abc") == 3


def test_a_callable_is_given_the_nearest_sound_frames(order: VideoJob) -> None:
    model = Frames()
    looked = FrameDetectionPredictor(model, mending=Mending())(order)
    frames = np.array(read(order.path).frames)
    frames[3:6], frames[6:9] = frames[2], frames[9]
    assert looked.outputs[CELLS[1].name].score.tolist() == [frames.mean()]
    assert looked.outputs[CELLS[2].name] is looked.outputs["clean"]
    assert model.looked == 2
    assert looked.mended is not None
    assert np.flatnonzero(looked.mended[CELLS[1].name].damaged).tolist() == list(range(3, 9))


def test_features_are_mended_on_the_way_to_a_detector(order: VideoJob) -> None:
    def lean(features: np.ndarray) -> Segments:
        return Segments([0.0], [1.0], [0], [float(features.astype(np.float64).sum())], ("Jump",))

    given = (TwoParts(8, 2), CallableDetector(lean))
    looked = FeatureDetectionPredictor(*given, mending=Mending())(order)
    plain = FeatureDetectionPredictor(*given)(order)
    assert looked.mended is not None
    assert looked.outputs["clean"].score.tolist() == plain.outputs["clean"].score.tolist()
    assert looked.outputs[CELLS[1].name].score.tolist() != plain.outputs[CELLS[1].name].score.tolist()
    assert looked.cells.seen == 0
    assert plain.cells.seen == 1  # a black frame is looked at once
