"""Videos that go through a network together: each is seen as if it were alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from jostle.detectors.feature_detector import VIDEOS_AT_ONCE
from jostle.types.segments import Segments

EVERY = ("actionformer", "tridet", "temporalmaxer", "vsgn")
DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")))
FACTS = [{"fps": 30.0, "duration": 9.0 + n, "stride": 4, "window": 16, "video_scores": None} for n in range(4)]


def told(found: Segments) -> list[bytes]:
    return [np.asarray(getattr(found, part)).tobytes() for part in ("start", "end", "label", "score")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EVERY)
def test_company_changes_nothing(name: str, device: str, small: Any, rows: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(VIDEOS_AT_ONCE, "cpu", 4)
    detector = small(name).to(device)
    videos = [rows(90, 12) * (1 + n / 4) for n in range(4)]
    alone = [told(detector.detect(video, **facts)) for video, facts in zip(videos, FACTS, strict=True)]
    assert len({tuple(one) for one in alone}) == 4
    assert [told(found) for found in detector.detect_together(videos, FACTS)] == alone
    assert [told(found) for found in detector.detect_together(videos[2:], FACTS[2:])] == alone[2:]


@pytest.mark.parametrize("name", EVERY)
def test_what_fills_up_a_batch_says_nothing(name: str, small: Any, rows: Any, monkeypatch: Any) -> None:
    detector, video = small(name), rows(400, 12)  # more than a window
    once = detector.candidates(video)
    monkeypatch.setitem(VIDEOS_AT_ONCE, "cpu", 4)
    filled = detector.candidates(video)
    assert len(once) == len(filled) > 0
    assert np.allclose(np.sort(once.scores), np.sort(filled.scores), atol=1e-5)


def test_of_each_it_is_checked_what_is_told(small: Any, rows: Any) -> None:
    from jostle.errors import BadValue

    with pytest.raises(BadValue, match="fps must be above 0, not 0"):
        small("temporalmaxer").detect_together([rows(90, 12)] * 2, [FACTS[0], FACTS[1] | {"fps": 0}])
