"""Models elsewhere: the same results as with models here, and only what is needed travels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluation.inference.test_clip_detection import detector_of

from helpers import small_run
from helpers.flow_extractor import Moving
from helpers.small_run import NAMES, RECIPE, TRUTH
from jostle.core.types import Segments
from jostle.errors import JostleError
from jostle.evaluation.inference.detection import (
    ClipDetectionPredictor,
    FeatureDetectionPredictor,
    FrameDetectionPredictor,
)
from jostle.evaluation.inference.jobs import VideoJob, WorkerFactory
from jostle.evaluation.inference.remote import connect_predictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.models.extractors.extractor import load_extractor
from jostle.parallel.serialization import dump_reply, dumps, load_reply, loads
from jostle.parallel.serving.client import batching_of
from jostle.parallel.workers import map_unordered


def look() -> FeatureDetectionPredictor:
    return small_run.looking()


def released_look() -> FeatureDetectionPredictor:
    return replace(look(), rule="released", reproduce_bugs=("early-row",))


def flow_look() -> FeatureDetectionPredictor:
    return replace(look(), extractor=Moving(8, 2))


@cache
def two_stream_look() -> Any:
    return replace(look(), extractor=load_extractor("i3d_flow", weights="random"))


def counting_look() -> FrameDetectionPredictor:
    return FrameDetectionPredictor(lit)


def lit(frames: np.ndarray, fps: float) -> Segments:
    """A model of frames, from which nothing is known but that it may be called."""
    return Segments([0.1], [0.2 + fps / 100], [0], [float(frames.mean()) / 255], ("action",))


@dataclass(frozen=True)
class Elsewhere:
    """Asks a look in this process, but all that goes to and fro is packed on the way."""

    load: Callable[[], Any]

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        question = dumps((function, arguments), "")
        asked, given = loads(question, "")
        return load_reply(dump_reply(lambda: asked(self.load(), *given)))

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        return partial(self, function, *arguments)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> list[VideoJob]:
    videos = small_run.write_videos(tmp_path_factory.mktemp("videos"))
    actions, cells = TRUTH.actions, tuple(select_cells(RECIPE))
    return [VideoJob(name, videos[name], cells, 0, actions[name]) for name in NAMES]


def told(results: Any) -> dict[str, Any]:
    """What was found, in plain values to compare."""
    found = {}
    for order, result in results:
        assert not isinstance(result, JostleError), result
        found[order.name] = {
            cell: [np.asarray(getattr(one, part)).tobytes() for part in ("start", "end", "label", "score")]
            for cell, one in result.outputs.items()
        } | {"cost": (result.clean, result.cells)}
    return found


@pytest.mark.parametrize("load", [look, released_look, flow_look, counting_look])
def test_stand_ins_find_the_same(orders: list[VideoJob], load: Callable[[], Any]) -> None:
    near = told(map_unordered(WorkerFactory(load), orders, 1))
    far = told(map_unordered(WorkerFactory(partial(connect_predictor, Elsewhere(load))), orders, 1))
    assert near == far


def clip_look(name: str) -> ClipDetectionPredictor:
    return ClipDetectionPredictor(detector_of(name))


@pytest.mark.parametrize("name", ["afsd", "basictad", "e2e_tad"])
def test_stand_ins_of_detectors_of_frames_find_the_same(orders: list[VideoJob], name: str) -> None:
    load = partial(clip_look, name)
    near = told(map_unordered(WorkerFactory(load), orders[:1], 1))
    far = told(map_unordered(WorkerFactory(partial(connect_predictor, Elsewhere(load))), orders[:1], 1))
    assert near == far


def test_flow_of_our_own_extractors_is_made_here() -> None:
    extractor, stand_in = two_stream_look().extractor, connect_predictor(Elsewhere(two_stream_look)).extractor
    frames = np.random.default_rng(0).integers(0, 256, (3, 40, 48, 3), np.uint8)
    assert stand_in.sees_flow
    assert stand_in.flow_maker is not None
    assert np.array_equal(stand_in.flow(frames[:-1], frames[1:]), extractor.flow(frames[:-1], frames[1:]))


def test_what_was_seen_is_carried_in_any_numbers() -> None:
    detector = detector_of("afsd")
    for numbers in (torch.float32, torch.bfloat16, torch.float16):
        seen = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0)).to(numbers)
        back = detector.from_bytes(*detector.to_bytes(seen))
        assert back.dtype == numbers
        assert torch.equal(back, seen)


def test_rule_and_faults_go_along() -> None:
    stand_in = connect_predictor(Elsewhere(released_look))
    assert (stand_in.rule, stand_in.reproduce_bugs) == ("released", ("early-row",))


class Heavy:
    """A model that cannot travel."""

    spec, dim, frame_dim = look().extractor.spec, 4, None

    def __reduce__(self) -> Any:
        raise AssertionError("the model was to stay where it is")


def heavy_look() -> FeatureDetectionPredictor:
    return replace(look(), extractor=Heavy(), detector=Heavy())


def test_no_model_travels() -> None:
    stand_in = connect_predictor(Elsewhere(heavy_look))
    assert (stand_in.extractor.dim, stand_in.extractor.frame_dim) == (4, None)
    assert stand_in.extractor.spec.stride == look().extractor.spec.stride


Waiting = tuple[bytes | None, tuple[object, ...], list[Any]]  # kind, arguments, and where the answer is to be put
waiting: list[Waiting] = []
sizes: list[int] = []


@dataclass(frozen=True)
class Gathering(Elsewhere):
    """Keeps questions until somebody waits, and has those that are alike answered together."""

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        if together == 1:
            return partial(self, function, *arguments)
        own: Waiting = (batching_of(function, arguments, together)[0], arguments, [])
        waiting.append(own)

        def awaited() -> Any:
            if not own[2]:
                some = [one for one in waiting if one[0] == own[0]][:together]
                waiting[:] = [one for one in waiting if not any(one is other for other in some)]
                given = [loads(dumps(one[1], ""), "") for one in some]
                answers = function.together(self.load(), given)  # type: ignore[attr-defined]
                sizes.append(len(some))
                for one, answer in zip(some, answers, strict=True):
                    one[2].append(answer)
            return own[2][0]

        return awaited


@dataclass(frozen=True)
class FourAtOnce:
    """A detector of NumPy's, which sees each video by itself in any company."""

    detect: Callable[..., Segments]
    at_once: int = 4

    def detect_together(self, videos: Sequence[Any], facts: Sequence[dict[str, Any]]) -> list[Segments]:
        return [self.detect(video, **own) for video, own in zip(videos, facts, strict=True)]


def four_look() -> FeatureDetectionPredictor:
    return replace(look(), detector=FourAtOnce(look().detector.detect))


def test_states_of_a_video_are_detected_together(orders: list[VideoJob]) -> None:
    near = told(map_unordered(WorkerFactory(look), orders[:1], 1))
    assert told(map_unordered(WorkerFactory(partial(connect_predictor, Gathering(four_look))), orders[:1], 1)) == near
    assert max(sizes) == 4
    assert not waiting
