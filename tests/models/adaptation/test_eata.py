"""EATA against a transcription of its formula: filters, weights, mean prediction, Fisher regulariser and SGD."""

from __future__ import annotations

import copy
import math

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers.small_adaptation import adapter_of, batches, small_network, tensors

SETTINGS = {"lr": 0.01, "entropy_share": 0.5, "redundancy": 0.995}


def sharp_network() -> nn.Module:
    """Return a network whose predictions differ between clips."""
    network = small_network()
    network[-1].weight.data.mul_(20)
    return network


def trainable_copy(network: nn.Module) -> tuple[nn.Module, list[nn.Parameter]]:
    network = copy.deepcopy(network)
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm3d)]
    for layer in norms:
        layer.train()
        layer.track_running_stats, layer.running_mean, layer.running_var = False, None, None
    return network, [value for layer in norms for value in layer.parameters()]


def fisher_by_hand(network: nn.Module, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    network, parameters = trainable_copy(network)
    total = [torch.zeros_like(value) for value in parameters]
    for batch in inputs:
        logits = network(batch)
        loss = nn.functional.nll_loss(logits.log_softmax(1), logits.max(1).indices)
        gradients = torch.autograd.grad(loss, parameters)
        total = [one + gradient.square() / len(inputs) for one, gradient in zip(total, gradients, strict=True)]
    return total


def transcribe(network: nn.Module, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """Return the outputs before each step, and the number of predictions used of each batch."""
    fisher = fisher_by_hand(network, batches(2))
    network, parameters = trainable_copy(network)
    start = [value.detach().clone() for value in parameters]
    optimiser = torch.optim.SGD(parameters, lr=SETTINGS["lr"], momentum=0.9)
    mean, outputs, counted = None, [], []
    for batch in inputs:
        logits = network(batch)
        outputs.append(logits.detach())
        p, q = logits.softmax(1), logits.detach().softmax(1)
        h = -(p * p.log()).sum(1)
        limit = SETTINGS["entropy_share"] * math.log(p.shape[1])
        chosen = [
            i
            for i in range(len(p))
            if h[i] < limit
            and (mean is None or abs(float(mean @ q[i] / mean.norm() / q[i].norm())) < SETTINGS["redundancy"])
        ]
        counted.append(len(chosen))
        if not chosen:
            continue
        new = p[chosen].mean(0).detach()
        mean = new if mean is None else 0.9 * mean + 0.1 * new
        loss = sum(torch.exp(limit - h[i].detach()) * h[i] for i in chosen) / len(chosen)
        for f, value, own in zip(fisher, parameters, start, strict=True):
            loss = loss + 2000 * (f * (value - own) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return outputs, counted


def test_online_outputs_equal_the_formula() -> None:
    network, louder = sharp_network(), torch.linspace(0.2, 3, 2).view(2, 1, 1, 1, 1)
    inputs = [one * louder for one in batches(5)]
    before = tensors(network)
    source = adapter_of(network, "eata", "online").measure_source([(batch, 8) for batch in batches(2)])
    adapter = adapter_of(network, "eata", "online", source=source, **SETTINGS)
    outputs, state = [], None
    for batch in inputs:
        with adapter.state(state):
            outputs.append(adapter.adapt(batch, 8))
            state = adapter.save_state()
    by_hand, counted = transcribe(network, inputs)
    assert set(counted) == {0, 1, 2}  # some predictions count, others do not
    torch.testing.assert_close(outputs, by_hand, rtol=1e-3, atol=1e-4)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_fisher_importance_is_the_mean_squared_gradient() -> None:
    network = small_network()
    source = adapter_of(network, "eata").measure_source([(batch, 8) for batch in batches(2)])
    torch.testing.assert_close(list(source.values()), fisher_by_hand(network, batches(2)), rtol=1e-3, atol=1e-7)


def test_batches_without_reliable_clips_change_nothing() -> None:
    network, (batch, *_) = small_network(), batches()
    adapter = adapter_of(network, "eata", entropy_share=0.0)
    with adapter.state(None):
        outputs = adapter.adapt(batch, 8)
    assert adapter.passes.backward == 0
    plain = adapter_of(network, "bn", pseudo_count=0)
    with plain.state(None):
        torch.testing.assert_close(outputs, plain.adapt(batch, 8))
