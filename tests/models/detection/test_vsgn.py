"""What VSGN has of its own: windows, stitched copies, anchors, a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions, match
from jostle.models.detection.blocks.vsgn import Stitching, nearest
from jostle.models.detection.detector import load_detector

Make = Callable[..., Any]


def test_a_batch_is_as_one_by_one(small: Make, rows: Make) -> None:
    """Of whole windows, short ones that are stitched, and those between."""
    made = small("vsgn").eval()
    videos = [rows(320, seed=1), rows(90, seed=2), rows(200, seed=3)]
    with torch.inference_mode():
        together = made(*made.batch(videos))
        assert together.stitching.stitched.tolist() == [False, True, False]
        for i, video in enumerate(videos):
            alone = made(*made.batch([video]))
            for name in ("logits", "boxes", "adjusted", "curves"):
                torch.testing.assert_close(getattr(together, name)[i], getattr(alone, name)[0], rtol=1e-4, atol=1e-4)


def test_long_videos_are_seen_in_windows(small: Make, rows: Make) -> None:
    made, video = small("vsgn"), rows(500)
    assert made.windows(500) == [(0, 320), (80, 320), (160, 320), (240, 260), (320, 180), (400, 100), (480, 20)]
    found = made.candidates(video)
    with torch.inference_mode():
        parts = [made.decode(made._outputs([video[a : a + n]]))[0] for a, n in made.windows(500)]
    assert len(found) == sum(map(len, parts))
    assert found.segments.min() >= 0
    assert found.segments.max() <= 499
    with pytest.raises(BadValue, match="500 rows are more than the 320 of a window"):
        made.raw(video)
    shrunk = small("vsgn", long_videos="shrink")
    assert [len(mask) for mask in shrunk.raw(video)["mask"]] == [160, 80, 40, 20]
    segments = shrunk.detect(video, fps=10, duration=50, stride=1, window=1)
    assert segments.end.max() <= 50
    assert segments.end.max() > 40  # 320 steps of 500 rows reach as far as the video does


def test_a_row_reaches_from_its_number_to_the_next(small: Make, rows: Make) -> None:
    """Seconds of a place x are x rows on, for any stride and window."""
    made = small("vsgn", stitch=False)
    grid = made.suppress(made.candidates(rows(300)), seconds_a_step=0.1)
    found = made.detect(rows(300), fps=40, duration=1e6, stride=4, window=4)
    np.testing.assert_allclose(found.start, grid.segments[:, 0] * 0.1, rtol=1e-5, atol=1e-5)
    later = made.detect(rows(300), fps=40, duration=1e6, stride=4, window=16)
    np.testing.assert_allclose(later.start - found.start, 6 / 40, rtol=0, atol=1e-5)


def test_a_copy_brings_boxes_and_actions_there_and_back() -> None:
    stitching = Stitching.of(torch.tensor([100, 200]), 320, 20, on=True)
    actions = Actions.of([([[10.0, 40.0]], [2]), ([[10.0, 40.0]], [1])])
    placed = stitching.place(actions)
    assert placed.present.tolist() == [[True, True], [True, False]]
    assert placed.segments[0].tolist() == [[10, 40], [140, 200]]
    assert placed.labels[0].tolist() == [2, 2]
    back = stitching.back(placed.segments)
    assert back[0].tolist() == [[10, 40], [10, 40]]
    back = stitching.back(torch.tensor([[[150.0, 250.0]]]).expand(2, 1, 2))
    torch.testing.assert_close(back, torch.tensor([[[15.0, 65.0]], [[150.0, 199.0]]]))
    assert not Stitching.of(torch.tensor([100]), 320, 20, on=False).stitched.any()


def test_neighbours_join_the_scales_of_a_stitched_video() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2, 8, 64, generator=draw)
    stitching = Stitching.of(torch.tensor([20, 64]), 64, 6, on=True)
    found = nearest(x, 6, stitching)
    assert (found[0, 26:, 3:] < 26).all()  # the second half of a copy's neighbours are the video's
    assert (found[1, 26:, 3:] >= 26).any()
    assert all(len(set(row)) == 6 for row in found.flatten(0, 1).tolist())
    assert (found == torch.arange(64)[:, None]).any(-1).all()  # each is its own neighbour


def test_boxes_that_overlap_nothing_learn_nothing() -> None:
    boxes = torch.tensor([[[0.0, 9.0], [20.0, 29.0]]])
    actions = Actions.of([([[0.0, 10.0], [50.0, 60.0]], [0, 1])])
    assert match(boxes, actions, threshold=0.5)[0].tolist() == [[True, False]]
    assert match(boxes, actions, threshold=0.5, reproduce_bugs=True)[0].tolist() == [[True, True]]
    none = Actions.of([([], [])])
    for faults in (False, True):
        assert not match(boxes, none, threshold=0.5, reproduce_bugs=faults)[0].any()


@pytest.mark.parametrize("classes", [1, 3])
def test_no_actions_only_background(small: Make, rows: Make, classes: int) -> None:
    made = small("vsgn", classes=classes).train()
    losses = made.loss(made(*made.batch([rows(300), rows(50)])), Actions.of([([], []), ([], [])]))
    losses.total.backward()
    assert losses.regression.item() == losses.others["adjustment"].item() == 0
    assert losses.classification.item() > 0
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in made.parameters())


@pytest.mark.parametrize("classes", [1, 3])
def test_losses_of_processes_add_up(small: Make, rows: Make, classes: int) -> None:
    """Each process counts what all have, so that its losses are a share of those of the whole batch."""
    made = small("vsgn", classes=classes)
    videos = [rows(300, seed=1), rows(100, seed=2)]
    truth = [([[20.0, 60.0], [100.0, 220.0]], [0, 0]), ([[10.0, 50.0]], [0])]
    whole = made.loss(made(*made.batch(videos)), Actions.of(truth))
    seen: list[list[torch.Tensor]] = []
    for video, actions in zip(videos, truth, strict=True):
        counts: list[torch.Tensor] = []
        made.positives_of_all = lambda count, counts=counts: counts.append(count) or count
        made.loss(made(*made.batch([video])), Actions.of([actions]))
        seen.append(counts)
    parts = []
    for video, actions in zip(videos, truth, strict=True):
        totals = iter([a + b for a, b in zip(*seen, strict=True)])
        made.positives_of_all = lambda count, totals=totals: next(totals)
        parts.append(made.loss(made(*made.batch([video])), Actions.of([actions])))
    assert (parts[0].total + parts[1].total).item() == pytest.approx(whole.total.item(), rel=1e-5)


def test_one_candidate_is_found_unless_as_released(small: Make, rows: Make) -> None:
    video = rows(200)
    every = small("vsgn", max_segments=10**6)
    faulty = small("vsgn", max_segments=10**6, reproduce_bugs=True)
    kept = every.suppress(every.candidates(video), seconds_a_step=0.01)
    lost = faulty.suppress(every.candidates(video), seconds_a_step=0.01)
    assert len(kept) == len(lost) + 1
    assert np.array_equal(kept.scores[:-1], lost.scores)


def test_too_long_segments_go(small: Make, rows: Make) -> None:
    made, video = small("vsgn"), rows(300)
    found = made.detect(video, fps=1, duration=300, stride=1, window=1)
    assert (found.end - found.start < 50).all()
    found = small("vsgn", max_duration=None).detect(video, fps=1, duration=300, stride=1, window=1)
    assert (found.end - found.start > 50).any()


def test_settings_that_cannot_be(small: Make) -> None:
    for changes, message in (
        ({"dim": 48}, "dim 48 does not divide into the 32 groups"),
        ({"max_length": 312}, "4 levels need a max_length that can be halved 5 times, not 312"),
        ({"neighbours": 21}, "the coarsest graph has 20 steps, fewer than 21 neighbours"),
        ({"anchors": ()}, "anchors are lengths above 0"),
        ({"gap": 160}, "gap is from 0 to below half of max_length 320, not 160"),
        ({"long_videos": "cut"}, "long_videos"),
    ):
        with pytest.raises(BadValue, match=message):
            small("vsgn", **changes)
    small("vsgn", graph=False, neighbours=21)
    with pytest.raises(BadValue, match="no setting centre_radius"):
        small("vsgn", centre_radius=1.5)
    made = small("vsgn")
    with pytest.raises(BadValue, match="330 rows are more than the 320 of a window"):
        made(torch.zeros(1, 12, 330), torch.tensor([330]))


def test_weights_of_opentad_are_told(small: Make, tmp_path: Any) -> None:
    write_weights({"rpn_head.cls_head.weight": torch.zeros(1)}, tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match="OpenTAD's VSGN is another network than the original"):
        load_detector("vsgn", weights=tmp_path / "a.safetensors")
