"""Short padding, batches and any length give the same results as full padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

NAMES = ("actionformer", "tridet", "temporalmaxer")
Make = Callable[..., Any]


def by_level(detector: Any, outputs: Any, video: int, lengths: list[int]) -> list[tuple[Any, Any]]:
    """Return logits and offsets at the valid points of each level."""
    sizes = list(outputs.points.sizes)
    offsets = detector.every_offset(outputs)
    pieces = zip(outputs.logits[video].split(sizes), offsets[video].split(sizes), lengths, strict=True)
    return [(logits[:n], ends[:n]) for logits, ends, n in pieces]


def halved(length: int, levels: int) -> list[int]:
    lengths = [length]
    for _ in range(levels - 1):
        lengths.append((lengths[-1] + 1) // 2)
    return lengths


@pytest.mark.parametrize("steps", [1, 2, 31, 64, 101, 290, 319, 320])
@pytest.mark.parametrize(
    ("name", "rules"),  # OpenTAD's TemporalMaxer does not pad
    [(name, "original") for name in NAMES] + [("actionformer", "opentad"), ("tridet", "opentad")],
)
def test_short_padding_equals_full_padding(name: str, rules: str, steps: int, small: Make, rows: Make) -> None:
    """Compare the padding that detectors keep with padding computed in full."""
    detector = small(name, rules=rules)
    features, lengths = detector.batch([rows(steps)])
    padded = torch.nn.functional.pad(features, (0, 320 - steps))
    with torch.inference_mode():
        actual, expected = detector(features, lengths), detector(padded, lengths)
    assert actual.padded == expected.padded == (320, 160, 80, 40)
    valid = halved(steps, 4)
    for short_level, full_level in zip(
        by_level(detector, actual, 0, valid), by_level(detector, expected, 0, valid), strict=True
    ):
        torch.testing.assert_close(short_level, full_level, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_batch_equals_single_videos(name: str, small: Make, rows: Make) -> None:
    detector = small(name)
    videos = [rows(n, seed=n) for n in (150, 7, 64)]
    with torch.inference_mode():
        together = detector(*detector.batch(videos))
        for i, video in enumerate(videos):
            valid = halved(len(video), 4)
            alone = detector(*detector.batch([video]))
            for batched, single in zip(
                by_level(detector, together, i, valid), by_level(detector, alone, 0, valid), strict=True
            ):
                torch.testing.assert_close(batched, single, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_losses_and_gradients_with_short_padding(name: str, small: Make, rows: Make) -> None:
    """Losses and gradients do not depend on the padding either."""
    from jostle.models.detection.blocks.assignment import Actions

    detector = small(name)
    features, lengths = detector.batch([rows(90), rows(40, seed=1)])
    actions = Actions.of([([[3.0, 9.0], [20.0, 61.0]], [0, 2]), ([[10.0, 30.0]], [1])])
    loss = detector.loss(detector(features, lengths), actions).total
    gradients = torch.autograd.grad(loss, list(detector.parameters()))
    expected_loss = detector.loss(detector(torch.nn.functional.pad(features, (0, 230)), lengths), actions).total
    expected_gradients = torch.autograd.grad(expected_loss, list(detector.parameters()))
    torch.testing.assert_close(loss, expected_loss, rtol=1e-5, atol=0)
    for a, b in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_videos_longer_than_max_length(name: str, small: Make, rows: Make) -> None:
    """Beyond `max_length` the padding grows to a multiple of it."""
    detector = small(name, max_length=32)
    raw = detector.raw(rows(1001))
    assert [int(mask.sum()) for mask in raw["mask"]] == halved(1001, 4)
    assert len(raw["mask"][0]) == (1024 if name == "actionformer" else 1008)  # multiples of 32 (window 5) and 8
    assert all(np.isfinite(x).all() for key in ("cls", "offsets") for x in raw[key])


@pytest.mark.parametrize("name", NAMES)
def test_raw_is_zero_outside_the_video(name: str, small: Make, rows: Make) -> None:
    raw = small(name).raw(rows(50))
    for cls, offsets, mask in zip(raw["cls"], raw["offsets"], raw["mask"], strict=True):
        assert cls.shape == (len(mask), 3)
        assert offsets.shape == ((len(mask), 3, 2) if name == "tridet" else (len(mask), 2))
        assert cls.dtype == offsets.dtype == np.float32
        assert not cls[~mask].any()
        assert not offsets[~mask].any()
        assert (offsets >= 0).all()


@pytest.mark.parametrize("steps", [319, 320])
def test_padding_stops_noise(steps: int, small: Make, rows: Make) -> None:
    detector = small("tridet", input_noise=0.1).train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        outputs = detector(*detector.batch([rows(steps)]))
    assert outputs.points.sizes == (steps, 160, 80, 40)
