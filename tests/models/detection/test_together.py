"""Batched detection: every video gets the same result as on its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from jostle.core.cuda import CudaStreams
from jostle.core.types.segments import Segments
from jostle.models.detection.feature_detector import FeatureDetector

POINT_DETECTORS = ("actionformer", "tridet", "temporalmaxer")
DETECTORS = (*POINT_DETECTORS, "vsgn")
VIDEO_INFO = [{"fps": 30.0, "duration": 9.0 + n, "stride": 4, "window": 16, "video_scores": None} for n in range(4)]


def as_bytes(segments: Segments) -> list[bytes]:
    return [np.asarray(getattr(segments, field)).tobytes() for field in ("start", "end", "label", "score")]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="on a CPU each video is alone")
@pytest.mark.parametrize("name", DETECTORS)
def test_batched_detection_is_bit_exact(name: str, small: Any, rows: Any) -> None:
    detector = small(name).to("cuda")
    videos = [rows(90, 12, n) for n in range(4)]
    alone = [as_bytes(detector.detect(video, **info)) for video, info in zip(videos, VIDEO_INFO, strict=True)]
    assert len({tuple(fields) for fields in alone}) == 4
    assert [as_bytes(segments) for segments in detector.detect_together(videos, VIDEO_INFO)] == alone
    assert [as_bytes(segments) for segments in detector.detect_together(videos[2:], VIDEO_INFO[2:])] == alone[2:]


@pytest.mark.parametrize("name", DETECTORS)
def test_batched_outputs_equal_single_outputs(name: str, small: Any, rows: Any, monkeypatch: Any) -> None:
    detector = small(name)
    videos = [rows(90, 12, n) for n in range(3)]
    with torch.inference_mode():
        alone = [detector._outputs([video]) for video in videos]
        monkeypatch.setattr(FeatureDetector, "at_once", 4)
        together = detector._outputs(videos)
    for i, single in enumerate(alone):
        assert torch.allclose(together.logits[i], single.logits[0], atol=1e-4)
        assert torch.allclose(together.offsets[i], single.offsets[0], atol=1e-3)
        assert not torch.allclose(together.logits[(i + 1) % 3], single.logits[0], atol=1e-2)
    assert len(detector._candidates(videos)) == 3  # without the padding of the batch


def test_video_info_of_every_video_is_validated(small: Any, rows: Any) -> None:
    from jostle.errors import BadValue

    with pytest.raises(BadValue, match="fps must be above 0, not 0"):
        small("temporalmaxer").detect_together([rows(90, 12)] * 2, [VIDEO_INFO[0], VIDEO_INFO[1] | {"fps": 0}])


@pytest.mark.fault("F191")
@pytest.mark.parametrize("name", POINT_DETECTORS)
def test_F191_replayed_outputs_outlive_the_next_replay(name: str, small: Any, rows: Any) -> None:
    """While another thread replays a graph, all memory of the graph holds what that thread computes."""
    detector, replayed = small(name), []

    def replay(method: Any, *inputs: torch.Tensor) -> Any:
        replayed.append(method(*inputs))
        return replayed[-1]

    detector._replays = replay
    with torch.inference_mode():
        inputs = detector.batch([rows(90, 12)])
        (expected,) = detector.decode(detector(*inputs))
        outputs = detector._replay(*inputs)
        for holder in (replayed[0], replayed[0].points):
            for value in vars(holder).values():
                if isinstance(value, torch.Tensor):
                    value.zero_()
        (candidates,) = detector.decode(outputs)
    assert len(expected)
    assert [column.tobytes() for column in candidates.columns] == [column.tobytes() for column in expected.columns]


@pytest.mark.fault("F191")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", POINT_DETECTORS)
def test_F191_threads_that_share_a_detector_do_not_disturb_each_other(name: str, small: Any, rows: Any) -> None:
    detector = small(name).to("cuda")
    videos = [rows(90, 12, n) for n in range(4)]
    alone = [as_bytes(detector.detect(video, **VIDEO_INFO[0])) for video in videos]

    def detect_all(thread: int) -> list[list[bytes]]:
        with CudaStreams("cuda").stream():
            return [as_bytes(detector.detect(videos[n % 4], **VIDEO_INFO[0])) for n in range(thread, thread + 100)]

    with ThreadPoolExecutor(4) as pool:
        for thread, results in enumerate(pool.map(detect_all, range(4))):
            assert results == [alone[n % 4] for n in range(thread, thread + 100)]
