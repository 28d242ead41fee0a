"""VSGN: windows, stitched copies, anchors and the graph of neighbours."""

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
from jostle.models.detection.detector import make_detector

Make = Callable[..., Any]


def test_batch_equals_single_videos(small: Make, rows: Make) -> None:
    """The batch has full windows, short ones that are stitched, and ones in between."""
    detector = small("vsgn").eval()
    videos = [rows(320, seed=1), rows(90, seed=2), rows(200, seed=3)]
    with torch.inference_mode():
        together = detector(*detector.batch(videos))
        assert together.stitching.stitched.tolist() == [False, True, False]
        for i, video in enumerate(videos):
            alone = detector(*detector.batch([video]))
            for name in ("logits", "boxes", "adjusted", "curves"):
                torch.testing.assert_close(getattr(together, name)[i], getattr(alone, name)[0], rtol=1e-4, atol=1e-4)


def test_long_videos_are_split_into_windows(small: Make, rows: Make) -> None:
    detector, video = small("vsgn"), rows(500)
    assert detector.windows(500) == [(0, 320), (80, 320), (160, 320), (240, 260), (320, 180), (400, 100), (480, 20)]
    candidates = detector.candidates(video)
    with torch.inference_mode():
        parts = [detector.decode(detector._outputs([video[a : a + n]]))[0] for a, n in detector.windows(500)]
    assert len(candidates) == sum(map(len, parts))
    assert candidates.segments.min() >= 0
    assert candidates.segments.max() <= 499
    with pytest.raises(BadValue, match="500 rows are more than the 320 of a window"):
        detector.raw(video)
    shrunk = small("vsgn", long_videos="shrink")
    assert [len(mask) for mask in shrunk.raw(video)["mask"]] == [160, 80, 40, 20]
    segments = shrunk.detect(video, fps=10, duration=50, stride=1, window=1)
    assert segments.end.max() <= 50
    assert segments.end.max() > 40  # the 500 rows are resized to 320 steps over the whole video


def test_positions_are_converted_to_seconds(small: Make, rows: Make) -> None:
    """A position of x rows is x strides in seconds, for any stride and window."""
    detector = small("vsgn", stitch=False)
    grid = detector.suppress(detector.candidates(rows(300)), seconds_a_step=0.1)
    segments = detector.detect(rows(300), fps=40, duration=1e6, stride=4, window=4)
    np.testing.assert_allclose(segments.start, grid.segments[:, 0] * 0.1, rtol=1e-5, atol=1e-5)
    later = detector.detect(rows(300), fps=40, duration=1e6, stride=4, window=16)
    np.testing.assert_allclose(later.start - segments.start, 6 / 40, rtol=0, atol=1e-5)


def test_stitched_copy_maps_boxes_and_actions_back() -> None:
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


def test_neighbours_connect_the_scales_of_a_stitched_video() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2, 8, 64, generator=draw)
    stitching = Stitching.of(torch.tensor([20, 64]), 64, 6, on=True)
    neighbours = nearest(x, 6, stitching)
    assert (neighbours[0, 26:, 3:] < 26).all()  # the second half of the neighbours of a copy are those of the video
    assert (neighbours[1, 26:, 3:] >= 26).any()
    assert all(len(set(row)) == 6 for row in neighbours.flatten(0, 1).tolist())
    assert (neighbours == torch.arange(64)[:, None]).any(-1).all()  # every position is its own neighbour


@pytest.mark.parametrize("length", [40, 320, 640])
def test_of_equally_near_steps_the_first_are_neighbours(length: int) -> None:
    x = torch.randint(
        -2, 3, (2, 3, length), generator=torch.Generator().manual_seed(0)
    ).float()  # exact, with many ties
    stitching = Stitching.of(torch.tensor([length // 5, length]), length, 4, on=True)
    for video, neighbours in enumerate(nearest(x, 12, stitching).tolist()):
        apart = (x[video].T[:, None] - x[video].T).square().sum(-1).tolist()
        for step, found in enumerate(neighbours):
            rising = sorted(range(length), key=lambda other, step=step: (apart[step][other], other))
            if video == 0:  # the second half never joins two steps of the copy
                copied = length // 5 + 4
                allowed = [other for other in rising if other not in rising[:6] and min(step, other) < copied]
                barred = [other for other in range(length) if other not in rising[:6] and min(step, other) >= copied]
                rising = [*rising[:6], *allowed, *barred]
            assert found == rising[:12], (video, step)


def test_boxes_without_overlap_have_no_loss() -> None:
    boxes = torch.tensor([[[0.0, 9.0], [20.0, 29.0]]])
    actions = Actions.of([([[0.0, 10.0], [50.0, 60.0]], [0, 1])])
    assert match(boxes, actions, threshold=0.5)[0].tolist() == [[True, False]]
    assert match(boxes, actions, threshold=0.5, reproduce_bugs=True)[0].tolist() == [[True, True]]
    none = Actions.of([([], [])])
    for faults in (False, True):
        assert not match(boxes, none, threshold=0.5, reproduce_bugs=faults)[0].any()


@pytest.mark.parametrize("classes", [1, 3])
def test_losses_of_processes_add_up(small: Make, rows: Make, classes: int) -> None:
    """Every process counts the positives of all, so that its losses are a share of the whole batch's."""
    detector = small("vsgn", classes=classes)
    videos = [rows(300, seed=1), rows(100, seed=2)]
    truth = [([[20.0, 60.0], [100.0, 220.0]], [0, 0]), ([[10.0, 50.0]], [0])]
    batch_losses = detector.loss(detector(*detector.batch(videos)), Actions.of(truth))
    recorded_counts: list[list[torch.Tensor]] = []
    for video, actions in zip(videos, truth, strict=True):
        counts: list[torch.Tensor] = []
        detector.positives_of_all = lambda count, counts=counts: counts.append(count) or count
        detector.loss(detector(*detector.batch([video])), Actions.of([actions]))
        recorded_counts.append(counts)
    parts = []
    for video, actions in zip(videos, truth, strict=True):
        totals = iter([a + b for a, b in zip(*recorded_counts, strict=True)])
        detector.positives_of_all = lambda count, totals=totals: next(totals)
        parts.append(detector.loss(detector(*detector.batch([video])), Actions.of([actions])))
    assert (parts[0].total + parts[1].total).item() == pytest.approx(batch_losses.total.item(), rel=1e-5)


def test_single_candidate_is_kept_unless_bugs_are_reproduced(small: Make, rows: Make) -> None:
    video = rows(200)
    every = small("vsgn", max_segments=10**6)
    faulty = small("vsgn", max_segments=10**6, reproduce_bugs=True)
    segments = every.suppress(every.candidates(video), seconds_a_step=0.01)
    lost = faulty.suppress(every.candidates(video), seconds_a_step=0.01)
    assert len(segments) == len(lost) + 1
    assert np.array_equal(segments.scores[:-1], lost.scores)


def test_segments_above_max_duration_are_removed(small: Make, rows: Make) -> None:
    detector, video = small("vsgn"), rows(300)
    segments = detector.detect(video, fps=1, duration=300, stride=1, window=1)
    assert (segments.end - segments.start < 50).all()
    segments = small("vsgn", max_duration=None).detect(video, fps=1, duration=300, stride=1, window=1)
    assert (segments.end - segments.start > 50).any()


def test_settings_without_a_graph_and_rows_beyond_a_window(small: Make) -> None:
    small("vsgn", graph=False, neighbours=21)
    with pytest.raises(BadValue, match="no setting centre_radius"):
        small("vsgn", centre_radius=1.5)
    detector = small("vsgn")
    with pytest.raises(BadValue, match="330 rows are more than the 320 of a window"):
        detector(torch.zeros(1, 12, 330), torch.tensor([330]))


def test_opentad_weights_are_detected(small: Make, tmp_path: Any) -> None:
    write_weights({"rpn_head.cls_head.weight": torch.zeros(1)}, tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match="OpenTAD's VSGN is another network than the original"):
        make_detector("vsgn", weights=tmp_path / "a.safetensors")
