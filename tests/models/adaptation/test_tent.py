"""Tent against a transcription of its formula, with torch's own Adam and batch norms in training mode."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers.small_adaptation import adapter_of, batches, small_network, tensors
from jostle.models.adaptation.state_files import read_state, write_state


def transcribe(network: nn.Module, inputs: list[torch.Tensor], steps: int, lr: float) -> list[torch.Tensor]:
    """Return the outputs before the steps of each batch, of a copy with batch norms in training mode."""
    network = copy.deepcopy(network)
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm3d)]
    for layer in norms:
        layer.train()
        layer.track_running_stats, layer.running_mean, layer.running_var = False, None, None
    optimiser = torch.optim.Adam([value for layer in norms for value in layer.parameters()], lr=lr)
    outputs = []
    for batch in inputs:
        for step in range(steps):
            probabilities = network(batch).softmax(1)
            if step == 0:
                outputs.append(network(batch).detach())
            loss = -(probabilities * probabilities.log()).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    outputs.append(network(inputs[-1]).detach())
    return outputs


@pytest.mark.parametrize("steps", [1, 3])
def test_online_outputs_precede_the_step(steps: int) -> None:
    network = small_network()
    before, adapter = tensors(network), adapter_of(network, "tent", "online", steps=steps, lr=0.01)
    outputs, state = [], None
    for batch in batches():
        with adapter.state(state):
            outputs.append(adapter.adapt(batch, 8))
            state = adapter.save_state()
    by_hand = transcribe(network, batches(), steps, 0.01)[:-1]
    torch.testing.assert_close(outputs, by_hand, rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert (adapter.passes.forward, adapter.passes.backward) == (3 * steps, 3 * steps)


def test_episodic_outputs_follow_the_step() -> None:
    network, (batch, *_) = small_network(), batches()
    adapter = adapter_of(network, "tent", steps=2, lr=0.01)
    with adapter.state(None):
        outputs = adapter.adapt(batch, 8)
    torch.testing.assert_close(outputs, transcribe(network, [batch], 2, 0.01)[-1], rtol=1e-4, atol=1e-5)
    assert (adapter.passes.forward, adapter.passes.backward) == (3, 2)


def test_entropy_decreases() -> None:
    network, (batch, *_) = small_network(), batches()
    entropies = []
    for steps in (1, 20):
        adapter = adapter_of(network, "tent", steps=steps, lr=0.01)
        with adapter.state(None):
            probabilities = adapter.adapt(batch, 8).softmax(1)
        entropies.append(float(-(probabilities * probabilities.log()).sum(1).mean()))
    assert entropies[1] < entropies[0]


def test_stored_state_resumes_bit_exactly(tmp_path: Path) -> None:
    network = small_network()
    for method in ("bn", "tent"):
        adapter, (first, second, _) = adapter_of(network, method, "online"), batches()
        with adapter.state(None):
            adapter.adapt(first, 8)
            state = adapter.save_state()
        write_state(tmp_path / "state.npz", "seen", state)
        history, again = read_state(tmp_path / "state.npz")
        outputs = []
        for one in (state, again):
            with adapter.state(one):
                outputs.append(adapter.adapt(second, 8))
        assert history == "seen"
        assert torch.equal(*outputs)
    (tmp_path / "state.npz").write_bytes(b"PK damaged")
    assert read_state(tmp_path / "state.npz") is None
