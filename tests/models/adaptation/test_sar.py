"""SAR against a transcription of its formula: filters, the step from the worst point nearby, and recovery."""

from __future__ import annotations

import copy
import math

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers.small_adaptation import adapter_of, batches, layer_norm_network, small_network, tensors
from jostle.errors import BadValue
from jostle.models.adaptation.sar import default_lr

LR, SHARE = 0.05, 0.99


def transcribe(network: nn.Module, inputs: list[torch.Tensor], reset_below: float) -> tuple[list[torch.Tensor], int]:
    """Return the outputs before each step of a network with layer norms, and the number of resets."""
    network = copy.deepcopy(network)
    parameters = [value for number in (1, 4, 7) for value in network[number].parameters()]  # not the last of four
    start = [value.detach().clone() for value in parameters]
    velocity, mean, outputs, resets = None, None, [], 0

    def losses(rows: torch.Tensor) -> torch.Tensor:
        p = network(rows).softmax(1)
        return -(p * p.log()).sum(1)

    for batch in inputs:
        outputs.append(network(batch).detach())
        limit = SHARE * math.log(5)
        reliable = batch[losses(batch) < limit]
        if not len(reliable):
            continue
        gradients = torch.autograd.grad(losses(reliable).mean(), parameters)
        length = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        with torch.no_grad():
            for value, gradient in zip(parameters, gradients, strict=True):
                value += 0.05 * gradient / length
        reliable = reliable[losses(reliable) < limit]
        loss = losses(reliable).mean()
        worst = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for value, gradient in zip(parameters, gradients, strict=True):
                value -= 0.05 * gradient / length
            velocity = worst if velocity is None else [0.9 * v + g for v, g in zip(velocity, worst, strict=True)]
            for value, step in zip(parameters, velocity, strict=True):
                value -= LR * step
            mean = float(loss) if mean is None else 0.9 * mean + 0.1 * float(loss)
            if mean < reset_below:
                resets += 1
                velocity = mean = None
                for value, own in zip(parameters, start, strict=True):
                    value.copy_(own)
    return outputs, resets


@pytest.mark.parametrize("reset_below", [0.2, 1.56])
def test_online_outputs_equal_the_formula(reset_below: float) -> None:
    network, generator = layer_norm_network(), torch.Generator().manual_seed(2)
    inputs = [torch.randn(6, 6, generator=generator) for _ in range(5)]
    before = tensors(network)
    adapter = adapter_of(network, "sar", "online", lr=LR, entropy_share=SHARE, reset_below=reset_below)
    outputs, state = [], None
    for batch in inputs:
        with adapter.state(state):
            outputs.append(adapter.adapt(batch, 6))
            state = adapter.save_state()
    by_hand, resets = transcribe(network, inputs, reset_below)
    assert (resets > 0) == (reset_below > 1)
    torch.testing.assert_close(outputs, by_hand, rtol=1e-3, atol=1e-4)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_batch_norms_are_adapted_but_the_last_layers_are_not() -> None:
    network, (batch, *_) = small_network(), batches()
    source = network[1].weight.detach().clone()
    adapter = adapter_of(network, "sar", lr=0.1, entropy_share=2.0, frozen_share=0.5)
    assert set(adapter.parameters) == {"1.weight", "1.bias"}
    with adapter.state(None):
        adapter.adapt(batch, 8)
        assert not torch.equal(network[1].weight, source)
    assert (adapter.passes.forward, adapter.passes.backward) == (3, 2)


def test_learning_rates_are_those_of_the_paper() -> None:
    assert default_lr(64, batch_norms=True) == 2.5e-4
    assert default_lr(64, batch_norms=False) == 1e-3
    assert default_lr(16, batch_norms=True) == 2.5e-4 * 16 / 64 * 2


def test_network_without_norms_is_refused() -> None:
    with pytest.raises(BadValue, match="sar changes batch, layer and group norms, and the network has none"):
        adapter_of(nn.Linear(3, 3), "sar")
