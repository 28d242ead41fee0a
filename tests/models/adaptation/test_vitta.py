"""ViTTA against a transcription of its formula: alignment by moving averages, two views, all weights by SGD."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers.small_adaptation import adapter_of, batches, layer_norm_network, small_network, tensors
from jostle.errors import BadValue

LR = 0.05


def statistics_by_hand(network: nn.Module, clips: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return mean and variance of the outputs of the second batch norm, and the logits."""
    features = network[:5](clips)
    mean = features.mean((0, 2, 3, 4))
    variance = ((features - mean[None, :, None, None, None]) ** 2).mean((0, 2, 3, 4))
    return mean, variance, network[5:](features.clone())


def source_by_hand(network: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and variance over all clean clips."""
    with torch.no_grad():
        mean, variance, _ = statistics_by_hand(network, torch.cat(batches(2)))
    return mean, variance


def transcribe(network: nn.Module, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
    source_mean, source_variance = source_by_hand(network)
    network = copy.deepcopy(network)
    average, outputs = None, []
    for first, second in pairs:
        mean, variance, logits = statistics_by_hand(network, torch.cat([first, second]))
        if average is not None:
            mean, variance = 0.1 * mean + 0.9 * average[0], 0.1 * variance + 0.9 * average[1]
        average = mean.detach(), variance.detach()
        p, q = logits.softmax(1).chunk(2)
        middle = (p + q) / 2
        loss = (mean - source_mean).abs().mean() + (variance - source_variance).abs().mean()
        loss = loss + 0.1 * ((p - middle).abs().mean() + (q - middle).abs().mean())
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for value, gradient in zip(network.parameters(), gradients, strict=True):
                value -= LR * gradient
            outputs.append(network(first))
    return outputs


def test_online_outputs_equal_the_formula() -> None:
    network = small_network()
    before = tensors(network)
    source = adapter_of(network, "vitta").measure_source([(batch, 8) for batch in batches(2)])
    torch.testing.assert_close(tuple(source.values()), source_by_hand(network), rtol=1e-4, atol=1e-5)
    adapter = adapter_of(network, "vitta", "online", source=source, lr=LR)
    pairs = [(batch, batch.flip(2) + 0.1) for batch in batches()]
    outputs, state = [], None
    for first, second in pairs:
        with adapter.state(state):
            outputs.append(adapter.adapt(first, 8, second))
            state = adapter.save_state()
    torch.testing.assert_close(outputs, transcribe(network, pairs), rtol=1e-3, atol=1e-4)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert (adapter.passes.forward, adapter.passes.backward) == (6, 3)


def test_steps_align_the_statistics_with_the_source() -> None:
    network, (_, _, batch) = small_network(), batches()
    source = adapter_of(network, "vitta").measure_source([(one, 8) for one in batches(2)])
    distances = []
    for steps in (1, 10):
        adapter = adapter_of(network, "vitta", source=source, lr=0.01, steps=steps, consistency=0.0)
        with adapter.state(None):
            adapter.adapt(batch, 8)
            with torch.no_grad():
                mean, variance, _ = statistics_by_hand(network, batch)
        distances.append(float((mean - source["4.mean"]).abs().sum() + (variance - source["4.variance"]).abs().sum()))
    assert distances[1] < distances[0]


def test_layer_norm_statistics_are_over_the_last_axis() -> None:
    network, clips = layer_norm_network(), torch.randn(3, 7, 6)
    source = adapter_of(network, "vitta", aligned_share=0.25).measure_source([(clips, 7)])
    assert list(source) == ["10.mean", "10.variance"]
    with torch.no_grad():
        features = network[:11](clips)
    torch.testing.assert_close(source["10.mean"], features.mean((0, 1)), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(source["10.variance"], features.var((0, 1), correction=0), rtol=1e-4, atol=1e-6)


def test_network_without_norms_is_refused() -> None:
    with pytest.raises(BadValue, match="vitta aligns outputs of batch, layer and group norms"):
        adapter_of(nn.Linear(3, 3), "vitta")
