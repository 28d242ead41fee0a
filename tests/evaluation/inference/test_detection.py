"""User-defined detectors: callables on frames and on features."""

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
    WholeVideoPredictor,
    bind_supported_arguments,
)
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.io.video.decode import read
from jostle.mending.finders.known import KnownDamage

CELLS = (
    CLEAN_CELL,
    Cell("black_frame:1@frames:3-9", ("black_frame:1",), "frames:3-9", "", True),
    Cell(
        "black_frame:1@none", ("black_frame:1",), "centre:1%@activitynet", "", True
    ),  # rounds to no frame in so short an action
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> VideoJob:
    video = write_video(tmp_path_factory.mktemp("videos") / "a.mkv", 40)
    return VideoJob("a", video, CELLS, 0, Segments.from_pairs([(0.2, 1.0)]))


class FrameModel:
    """Frame model that returns one segment per video, scored by the mean of its frames."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frames: np.ndarray, duration: float, fps: float) -> Segments:
        assert (fps, duration) == (25.0, 1.6)
        self.calls += 1
        segments = Segments([0.0], [duration], [0], [float(frames.mean())], ("Jump",))
        frames[:] = 0  # writing into the frames must not affect the next call
        return segments


@pytest.mark.parametrize("mending", [None, KnownDamage()], ids=["as it is", "mended"])
def test_a_callable_receives_the_frames_of_every_cell(job: VideoJob, mending: KnownDamage | None) -> None:
    model = FrameModel()
    result = WholeVideoPredictor(model, mending=mending)(job)
    frames = np.array(read(job.path).frames)
    assert result.outputs["clean"].score.tolist() == [frames.mean()]
    if mending is None:
        frames[3:9] = 0
        assert result.mended is None
    else:  # by the nearest frames without damage
        frames[3:6], frames[6:9] = frames[2], frames[9]
        assert np.flatnonzero(result.mended[CELLS[1].name].damaged).tolist() == list(range(3, 9))
    assert result.outputs[CELLS[1].name].score.tolist() == [frames.mean()]
    assert result.outputs[CELLS[2].name] is result.outputs["clean"]
    assert model.calls == 2
    assert (result.clean.decoded, result.cells.decoded, result.cells.joined) == (40, 0, 1)


def test_a_callable_on_features_is_a_detector(job: VideoJob) -> None:
    def model(features: np.ndarray, *, stride: int) -> Segments:
        assert stride == 2
        return Segments([0.0], [1.0], [0], [float(features.sum())], ("Jump",))

    result = FeatureDetectionPredictor(TwoParts(8, 2), CallableDetector(model))(job)
    scores = [segments.score[0] for segments in result.outputs.values()]
    assert scores[0] == scores[2] != scores[1]


@pytest.mark.parametrize("output", [None, [1.0, 2.0], Segments([0.0], [1.0], [0], classes=("Jump",))])
def test_anything_but_scored_segments_is_refused(job: VideoJob, output: object) -> None:
    with pytest.raises(DataError, match=r"the model failed .TypeError: it"):
        WholeVideoPredictor(lambda frames: output)(job)


def test_a_video_too_long_for_a_callable_is_refused(job: VideoJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match="its 40 frames are too many to be passed at once"):
        WholeVideoPredictor(FrameModel())(job)


def test_only_supported_arguments_are_passed() -> None:
    facts = {"fps": 25.0, "duration": 2.0}
    assert bind_supported_arguments(lambda x: x, facts)(1) == 1
    assert bind_supported_arguments(lambda x, **rest: rest, facts)(1) == facts
    assert bind_supported_arguments(lambda x, duration=0, other=3: (duration, other), facts)(1) == (2.0, 3)
    assert bind_supported_arguments(len, facts)("abc") == 3


def test_features_are_mended_on_the_way_to_a_detector(job: VideoJob) -> None:
    def model(features: np.ndarray) -> Segments:
        return Segments([0.0], [1.0], [0], [float(features.astype(np.float64).sum())], ("Jump",))

    parts = (TwoParts(8, 2), CallableDetector(model))
    mended = FeatureDetectionPredictor(*parts, mending=KnownDamage())(job)
    plain = FeatureDetectionPredictor(*parts)(job)
    assert mended.mended is not None
    assert mended.outputs["clean"].score.tolist() == plain.outputs["clean"].score.tolist()
    assert mended.outputs[CELLS[1].name].score.tolist() != plain.outputs[CELLS[1].name].score.tolist()
    assert mended.cells.seen == 0
    assert plain.cells.seen == 1  # the black frame is encoded once
