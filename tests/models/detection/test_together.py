"""Videos that go through a network together: each is seen as if it were alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from jostle.core.types.segments import Segments
from jostle.models.detection.feature_detector import FeatureDetector

EVERY = ("actionformer", "tridet", "temporalmaxer", "vsgn")
FACTS = [{"fps": 30.0, "duration": 9.0 + n, "stride": 4, "window": 16, "video_scores": None} for n in range(4)]


def told(found: Segments) -> list[bytes]:
    return [np.asarray(getattr(found, part)).tobytes() for part in ("start", "end", "label", "score")]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="on a CPU each video is alone")
@pytest.mark.parametrize("name", EVERY)
def test_company_changes_no_bit(name: str, small: Any, rows: Any) -> None:
    detector = small(name).to("cuda")
    videos = [rows(90, 12, n) for n in range(4)]
    alone = [told(detector.detect(video, **facts)) for video, facts in zip(videos, FACTS, strict=True)]
    assert len({tuple(one) for one in alone}) == 4
    assert [told(found) for found in detector.detect_together(videos, FACTS)] == alone
    assert [told(found) for found in detector.detect_together(videos[2:], FACTS[2:])] == alone[2:]


@pytest.mark.parametrize("name", EVERY)
def test_each_is_answered_as_if_alone(name: str, small: Any, rows: Any, monkeypatch: Any) -> None:
    detector = small(name)
    videos = [rows(90, 12, n) for n in range(3)]
    with torch.inference_mode():
        alone = [detector._outputs([video]) for video in videos]
        monkeypatch.setattr(FeatureDetector, "at_once", 4)
        together = detector._outputs(videos)
    for i, one in enumerate(alone):
        assert torch.allclose(together.logits[i], one.logits[0], atol=1e-4)
        assert torch.allclose(together.offsets[i], one.offsets[0], atol=1e-3)
        assert not torch.allclose(together.logits[(i + 1) % 3], one.logits[0], atol=1e-2)
    assert len(detector._candidates(videos)) == 3  # and none of what filled up the batch


def test_of_each_it_is_checked_what_is_told(small: Any, rows: Any) -> None:
    from jostle.errors import BadValue

    with pytest.raises(BadValue, match="fps must be above 0, not 0"):
        small("temporalmaxer").detect_together([rows(90, 12)] * 2, [FACTS[0], FACTS[1] | {"fps": 0}])
