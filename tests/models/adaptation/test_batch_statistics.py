"""Blended BatchNorm statistics against the formula, layer by layer, and restoring of the network."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers.small_adaptation import adapter_of, batches, small_network, tensors
from jostle.errors import BadValue, UnknownName
from jostle.models.adaptation.method import AdaptationOptions


def blended_by_hand(
    network: nn.Module, batches_so_far: list[torch.Tensor], source_count: float, count: float
) -> torch.Tensor:
    """Return outputs of the last batch, with (N source + n test) / (N + n) over all batches seen, layer by layer."""
    values = batches_so_far
    for layer in network:
        if isinstance(layer, nn.BatchNorm3d):
            pooled = torch.cat(values).double()
            axes = (0, 2, 3, 4)
            mean, variance = pooled.mean(axes), ((pooled - pooled.mean(axes, keepdim=True)) ** 2).mean(axes)
            n = count * len(values)
            mean = (source_count * layer.running_mean + n * mean) / (source_count + n)
            variance = (source_count * layer.running_var + n * variance) / (source_count + n)
            shape = (1, -1, 1, 1, 1)
            scale, shift = layer.weight.view(shape), layer.bias.view(shape)
            values = [
                ((one.double() - mean.view(shape)) / (variance.view(shape) + layer.eps).sqrt()).float() * scale + shift
                for one in values
            ]
        else:
            values = [layer(one) for one in values]
    return values[-1]


@pytest.mark.parametrize("source_count", [0.0, 16.0])
def test_blended_statistics_equal_the_formula(source_count: float) -> None:
    network, (batch, *_) = small_network(), batches()
    before = tensors(network)
    adapter = adapter_of(network, "bn", pseudo_count=source_count)
    with torch.no_grad():
        by_hand = blended_by_hand(network, [batch], source_count, 8)
    with adapter.state(None):
        outputs = adapter.adapt(batch, 8)
        torch.testing.assert_close(network(batch), outputs)  # the statistics stay in the network meanwhile
        assert not torch.equal(network[1].running_mean, before["1.running_mean"])
    torch.testing.assert_close(outputs, by_hand, rtol=1e-5, atol=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert (adapter.passes.forward, adapter.passes.backward) == (1, 0)


def test_online_statistics_are_blended_over_all_videos_so_far() -> None:
    """Computed by hand for the first layer, whose inputs do not depend on earlier statistics."""
    network = nn.Sequential(*list(small_network())[:2])
    adapter = adapter_of(network, "bn", "online", pseudo_count=3.0)
    videos, state = batches(), None
    for number, batch in enumerate(videos, 1):
        with torch.no_grad():
            by_hand = blended_by_hand(network, videos[:number], 3.0, 8)
        with adapter.state(state):
            outputs = adapter.adapt(batch, 8)
            state = adapter.save_state()
        torch.testing.assert_close(outputs, by_hand, rtol=1e-4, atol=1e-5)


def test_episodic_videos_are_independent() -> None:
    network, (first, second, _) = small_network(), batches()
    alone, after = adapter_of(network, "bn"), adapter_of(network, "bn")
    with after.state(None):
        after.adapt(first, 8)
    outputs = []
    for adapter in (alone, after):
        with adapter.state(None):
            outputs.append(adapter.adapt(second, 8))
    assert torch.equal(*outputs)


def test_batch_norm_1d_and_2d_are_adapted_too() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 5), nn.BatchNorm1d(5))
    adapter = adapter_of(network.eval(), "bn", pseudo_count=0)
    with adapter.state(None):
        outputs = adapter.adapt(torch.randn(7, 3, 6, 6), 7)
    torch.testing.assert_close(outputs.mean(0), torch.zeros(5), rtol=0, atol=1e-6)


def test_source_weights_are_restored_after_an_error() -> None:
    network, (batch, *_) = small_network(), batches()
    network[0].weight.requires_grad_(False)
    network[1].weight.grad = gradient = torch.ones(4)
    before, adapter = tensors(network), adapter_of(network, "tent", lr=0.1)
    with pytest.raises(RuntimeError), adapter.state(None):
        adapter.adapt(batch[:, :2], 8)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert network[1].weight.grad is gradient
    assert [value.requires_grad for value in network.parameters()] == [False, *[True] * 9]
    assert not any(layer.training for layer in network.modules())
    assert "forward" not in vars(network[1])


def test_wrong_options_are_refused() -> None:
    with pytest.raises(UnknownName, match="no adaptation method is called 'tint'"):
        AdaptationOptions("tint").check()
    with pytest.raises(BadValue, match="a protocol of adaptation is episodic or online, not 'continual'"):
        AdaptationOptions("bn", "continual").check()  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="adaptation by tent has no setting momentum"):
        AdaptationOptions("tent", changes={"momentum": 0.5}).check()
    with pytest.raises(BadValue, match="pseudo_count must be not below 0, got -1"):
        AdaptationOptions("bn", changes={"pseudo_count": -1.0}).check()
    for method in ("bn", "tent"):
        with pytest.raises(BadValue, match=f"adaptation by {method} changes batch norms, and the network has none"):
            adapter_of(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), method)
