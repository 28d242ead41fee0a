"""Network blocks of detectors, each against a direct computation."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from jostle.models.detection.blocks.assignment import distance_iou, focal, iou
from jostle.models.detection.blocks.attention import banded_attention, wide_kernel
from jostle.models.detection.blocks.convolution import ChannelNorm, SequenceGroupNorm
from jostle.models.detection.blocks.levels import Row, masked_levels, padded_length, reaching_levels
from jostle.models.detection.blocks.pyramid import Points, ScaledDropPath, drop_path, sinusoids
from jostle.models.detection.config import default_ranges


def random_tensor(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("steps", [1, 9, 32, 33, 100])
@pytest.mark.parametrize("reach", [1, 9, 40])
def test_banded_attention(steps: int, reach: int) -> None:
    q, k, v = (random_tensor(2, 3, 8, steps, seed=seed) for seed in range(3))
    mask = (torch.arange(steps) < torch.tensor([[steps], [max(1, steps // 2)]]))[:, None]
    actual = banded_attention(q, k, v, mask, reach)
    near = (torch.arange(steps)[:, None] - torch.arange(steps)).abs() <= reach
    scores = (q.mT @ k / math.sqrt(8)).masked_fill(~(near & mask[:, :, None]), -1e4)
    expected = v @ scores.softmax(-1).mT
    assert actual.shape == expected.shape
    torch.testing.assert_close(actual * mask[:, None], expected * mask[:, None], rtol=0, atol=1e-5)


def test_channel_norm_is_layer_norm_with_and_without_gradients() -> None:
    x, norm = random_tensor(2, 6, 5), ChannelNorm(6)
    norm.weight.data, norm.bias.data = random_tensor(1, 6, 1, seed=1), random_tensor(1, 6, 1, seed=2)
    expected = F.layer_norm(x.mT, (6,), norm.weight.flatten(), norm.bias.flatten()).mT
    torch.testing.assert_close(norm(x), expected)
    before = x.clone()
    with torch.inference_mode():
        torch.testing.assert_close(norm(x), expected)
        torch.testing.assert_close(x, before)
        torch.testing.assert_close(norm(x.clone(), reuse=True), expected)


@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_accounts_for_missing_padding(affine: bool) -> None:
    level = masked_levels(torch.tensor([5, 3]), 5, 64, levels=1)[0]
    assert (level.columns, level.missing) == (6, 58)
    x = random_tensor(2, 8, 6)
    x[..., 5] = random_tensor(2, 8, seed=3)  # the constant of the padding
    norm = SequenceGroupNorm(4, 8, affine=affine)
    fully_padded = torch.cat([x, x[..., 5:].expand(-1, -1, 58)], -1)
    expected = F.group_norm(fully_padded, 4, norm.weight, norm.bias)[..., :6]
    torch.testing.assert_close(norm(x, level), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(level.mean(x), fully_padded.mean(-1, keepdim=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("length", "padded"), [(1200, 2304), (5, 2304), (2300, 2304), (2304, 2304), (400, 576)])
def test_split_levels_keep_front_and_tail_apart(length: int, padded: int) -> None:
    levels = reaching_levels(torch.tensor([length]), length, padded, reach=(10, 5, 5, 5, 5, 5))
    for level, before in zip(levels[1:], levels, strict=False):
        assert level.padded == -(-before.padded // 2)
        assert level.columns <= level.padded
        column, extra = level.cut
        assert before.columns // 2 + extra == level.columns
        if extra:
            assert level.points < column < level.columns - level.tail
    for level in levels:
        assert int(level.mask.sum()) == level.points
        if level.missing:
            assert level.columns - level.tail - 1 >= level.points + level.tail
            assert level.columns <= level.points + 30


def test_padded_length() -> None:
    assert padded_length(100, at_least=2304, multiple=576) == 2304
    assert padded_length(2305, at_least=2304, multiple=576) == 2880


def test_row_separates_levels() -> None:
    levels = masked_levels(torch.tensor([5, 4]), 5, 16, levels=2)
    row = Row.of(levels, gap=1)
    assert row.widths == (6, 4)
    assert row.starts == (0, 7)
    assert torch.nonzero(~row.inside[0, 0]).flatten().tolist() == [6]
    x = row.join([torch.ones(2, 1, level.columns) for level in levels])
    assert x[0, 0].tolist() == [1] * 6 + [0] + [1] * 4
    assert row.valid[1, 0].tolist() == [True] * 4 + [False] * 3 + [True] * 2 + [False] * 2
    assert row.points(x).shape == (2, 5 + 3, 1)
    assert row.spread(torch.tensor([2.0, 3.0])).tolist() == [2.0] * 7 + [3.0] * 4


def test_point_positions_of_each_level() -> None:
    points = Points.of((3, 2), default_ranges(2), torch.device("cpu"))
    assert points.position.tolist() == [0, 1, 2, 0, 2]
    assert points.stride.tolist() == [1, 1, 1, 2, 2]
    assert points.low.tolist() == [0, 0, 0, 4, 4]
    assert points.high.tolist() == [4, 4, 4, 10000, 10000]
    assert points.level.tolist() == [0, 0, 0, 1, 1]


def test_focal_loss_equals_the_formula() -> None:
    p = 0.3
    logit = torch.tensor([math.log(p / (1 - p))])
    assert focal(logit, torch.ones(1)).item() == pytest.approx(0.25 * 0.7**2 * -math.log(0.3), rel=1e-5)
    assert focal(logit, torch.zeros(1)).item() == pytest.approx(0.75 * 0.3**2 * -math.log(0.7), rel=1e-5)


def test_distance_iou_equals_the_formula() -> None:
    predicted, target = torch.tensor([2.0, 4.0]), torch.tensor([3.0, 1.0])
    assert iou(predicted, target).item() == pytest.approx(3 / 7)
    assert distance_iou(predicted, target).item() == pytest.approx(1 - 3 / 7 + (2.0 / 7) ** 2)
    nothing = torch.zeros(2, requires_grad=True)
    distance_iou(nothing, torch.zeros(2)).backward()
    assert torch.isfinite(nothing.grad).all()


def test_drop_path_drops_whole_videos_and_scales_the_others() -> None:
    path = ScaledDropPath(4, 0.5)
    assert path.scale.unique().tolist() == pytest.approx([1e-4])
    path.scale.data.fill_(2.0)
    x = torch.ones(64, 4, 3)
    assert (path.eval()(x) == 2).all()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        outputs = path.train()(x).flatten(1)
    assert set(outputs[:, 0].tolist()) == {0.0, 4.0}
    assert (outputs == outputs[:, :1]).all()
    assert not list(drop_path(4, 0.0).parameters())


def test_wide_kernel_sizes_of_the_published_settings() -> None:
    assert [wide_kernel(1, 5.0), wide_kernel(1, 1.3), wide_kernel(15, 1.3)] == [11, 3, 21]


def test_sinusoidal_position_encoding() -> None:
    table = sinusoids(50, 8)
    assert table.shape == (1, 8, 50)
    assert table[0, 2, 3].item() == pytest.approx(math.sin(3 * 10000 ** (-2 / 8)) / math.sqrt(8), rel=1e-6)
    assert table[0, 3, 3].item() == pytest.approx(math.cos(3 * 10000 ** (-2 / 8)) / math.sqrt(8), rel=1e-6)
