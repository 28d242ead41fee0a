"""Remote models: the same results as local ones, and only what is needed is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
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
    WholeVideoPredictor,
)
from jostle.evaluation.inference.jobs import VideoJob, WorkerFactory
from jostle.evaluation.inference.remote import connect_predictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.models.loading.extractors import load_extractor
from jostle.parallel.serialization import dump_reply, dumps, load_reply, loads
from jostle.parallel.serving.client import batching_of
from jostle.parallel.workers import map_unordered


def load_predictor() -> FeatureDetectionPredictor:
    return small_run.load_predictor()


def load_released_predictor() -> FeatureDetectionPredictor:
    return replace(load_predictor(), rule="released", reproduce_bugs=("early-row",))


def load_flow_predictor() -> FeatureDetectionPredictor:
    return replace(load_predictor(), extractor=Moving(8, 2))


@cache
def load_two_stream_predictor() -> Any:
    return replace(load_predictor(), extractor=load_extractor("i3d_flow", weights="random"))


def load_frame_predictor() -> WholeVideoPredictor:
    return WholeVideoPredictor(detect_brightness)


def detect_brightness(frames: np.ndarray, fps: float) -> Segments:
    """A plain callable as a model of frames."""
    return Segments([0.1], [0.2 + fps / 100], [0], [float(frames.mean()) / 255], ("action",))


@dataclass(frozen=True)
class SerializingClient:
    """Client that calls a predictor in this process, with every request and reply serialized on the way."""

    load: Callable[[], Any]

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        request = dumps((function, arguments), "")
        called, values = loads(request, "")
        return load_reply(dump_reply(lambda: called(self.load(), *values)))

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        return partial(self, function, *arguments)


@pytest.fixture(scope="module")
def jobs(videos: dict[str, Path]) -> list[VideoJob]:
    actions, cells = TRUTH.actions, tuple(select_cells(RECIPE))
    return [VideoJob(name, videos[name], cells, 0, actions[name]) for name in NAMES]


def comparable(results: Any) -> dict[str, Any]:
    """Convert results to plain values that can be compared."""
    values = {}
    for job, result in results:
        assert not isinstance(result, JostleError), result
        values[job.name] = {
            cell: [np.asarray(getattr(segments, column)).tobytes() for column in ("start", "end", "label", "score")]
            for cell, segments in result.outputs.items()
        } | {"cost": (result.clean, result.cells)}
    return values


def load_clip_predictor(name: str) -> ClipDetectionPredictor:
    return ClipDetectionPredictor(detector_of(name))


@pytest.mark.parametrize(
    ("load", "few"),
    [
        *((load, 4) for load in (load_predictor, load_released_predictor, load_flow_predictor, load_frame_predictor)),
        *((partial(load_clip_predictor, name), 1) for name in ("afsd", "basictad", "e2e_tad")),
    ],
)
def test_remote_and_local_predictors_agree(jobs: list[VideoJob], load: Callable[[], Any], few: int) -> None:
    remote = partial(connect_predictor, SerializingClient(load))
    local, same = (comparable(map_unordered(WorkerFactory(one), jobs[:few], 1)) for one in (load, remote))
    assert local == same


def test_flow_of_bundled_extractors_is_computed_locally() -> None:
    extractor, remote = (
        load_two_stream_predictor().extractor,
        connect_predictor(SerializingClient(load_two_stream_predictor)).extractor,
    )
    frames = np.random.default_rng(0).integers(0, 256, (3, 40, 48, 3), np.uint8)
    assert remote.sees_flow
    assert remote.flow_maker is not None
    assert np.array_equal(remote.flow(frames[:-1], frames[1:]), extractor.flow(frames[:-1], frames[1:]))


def test_encodings_are_serialized_in_any_precision() -> None:
    detector = detector_of("afsd")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        encodings = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
        restored = detector.from_bytes(*detector.to_bytes(encodings))
        assert restored.dtype == dtype
        assert torch.equal(restored, encodings)


def test_rule_and_reproduced_bugs_are_sent_along() -> None:
    remote = connect_predictor(SerializingClient(load_released_predictor))
    assert (remote.rule, remote.reproduce_bugs) == ("released", ("early-row",))


class UnpicklableModel:
    """Model that fails when it is serialized."""

    spec, dim, frame_dim = load_predictor().extractor.spec, 4, None

    def __reduce__(self) -> Any:
        raise AssertionError("the model was to stay where it is")


def load_heavy_predictor() -> FeatureDetectionPredictor:
    return replace(load_predictor(), extractor=UnpicklableModel(), detector=UnpicklableModel())


def test_models_are_never_serialized() -> None:
    remote = connect_predictor(SerializingClient(load_heavy_predictor))
    assert (remote.extractor.dim, remote.extractor.frame_dim) == (4, None)
    assert remote.extractor.spec.stride == load_predictor().extractor.spec.stride


Pending = tuple[bytes | None, tuple[object, ...], list[Any]]  # kind, arguments, and the list that receives the reply
pending: list[Pending] = []
sizes: list[int] = []


@dataclass(frozen=True)
class BatchingClient(SerializingClient):
    """Client that holds requests until a result is awaited, then answers requests of one kind together."""

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        if together == 1:
            return partial(self, function, *arguments)
        own: Pending = (batching_of(function, arguments, together)[0], arguments, [])
        pending.append(own)

        def wait() -> Any:
            if not own[2]:
                batch = [request for request in pending if request[0] == own[0]][:together]
                pending[:] = [request for request in pending if not any(request is member for member in batch)]
                inputs = [loads(dumps(request[1], ""), "") for request in batch]
                replies = function.together(self.load(), inputs)  # type: ignore[attr-defined]
                sizes.append(len(batch))
                for request, reply in zip(batch, replies, strict=True):
                    request[2].append(reply)
            return own[2][0]

        return wait


@dataclass(frozen=True)
class BatchDetector:
    """NumPy detector that accepts four videos at once and processes each by itself."""

    detect: Callable[..., Segments]
    at_once: int = 4

    def detect_together(self, videos: Sequence[Any], facts: Sequence[dict[str, Any]]) -> list[Segments]:
        return [self.detect(video, **own) for video, own in zip(videos, facts, strict=True)]


def load_batching_predictor() -> FeatureDetectionPredictor:
    return replace(load_predictor(), detector=BatchDetector(load_predictor().detector.detect))


def test_states_of_a_video_are_detected_in_one_batch(jobs: list[VideoJob]) -> None:
    expected = comparable(map_unordered(WorkerFactory(load_predictor), jobs[:1], 1))
    batching = partial(connect_predictor, BatchingClient(load_batching_predictor))
    assert comparable(map_unordered(WorkerFactory(batching), jobs[:1], 1)) == expected
    assert max(sizes) == 4
    assert not pending
