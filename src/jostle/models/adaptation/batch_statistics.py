"""BatchNorm statistics of test videos, blended with those of the source (Schneider et al., 2020; Nado et al., 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.adaptation.method import Adapter, State, method
from jostle.models.adaptation.norm_layers import BlendedNorm, find_batch_norms, replaced_forward


@dataclass(frozen=True)
class StatisticsSettings:
    """Settings of adapted BatchNorm statistics."""

    pseudo_count: float = 16.0  # N, frames that the source's statistics count for; 0 takes those of test videos alone


class StatisticsAdapter(Adapter):
    """Base of methods whose batch norms use statistics of test videos."""

    accumulates = False  # whether statistics are those of all videos so far, in the online protocol

    def __init__(self, network: nn.Module, settings: Any, protocol: Any, **more: Any) -> None:
        self.layers = find_batch_norms(network)
        accumulate = self.accumulates and protocol == "online"
        self.norms = {
            name: BlendedNorm(layer, settings.pseudo_count, accumulate=accumulate)
            for name, layer in self.layers.items()
        }
        super().__init__(network, settings, protocol, **more)

    def adapted_buffers(self) -> dict[str, Tensor]:
        """Return the running statistics of the batch norms."""
        buffers: dict[str, Tensor] = {}
        for name, layer in self.layers.items():
            assert layer.running_mean is not None
            assert layer.running_var is not None
            buffers |= {f"{name}.running_mean": layer.running_mean, f"{name}.running_var": layer.running_var}
        return buffers

    @contextmanager
    def blending(self, frames: int) -> Iterator[None]:
        """Let batch norms use blended statistics, with a batch of so many frames."""
        for norm in self.norms.values():
            norm.batch_count = float(frames)
        with replaced_forward({norm.layer: norm for norm in self.norms.values()}):
            yield

    def save_state(self) -> State:
        """Return a copy of all that adaptation has changed so far, with the statistics of earlier videos."""
        for name, norm in self.norms.items():
            if norm.accumulate:
                self.memory |= {f"{name}.{key}": value for key, value in norm.state().items()}
        return super().save_state()

    def load_state(self, state: State | None) -> None:
        """Set network, memory and statistics to a state, or to the source."""
        super().load_state(state)
        for name, norm in self.norms.items():
            keys = ("count", "mean", "variance")
            known = norm.accumulate and f"{name}.count" in self.memory
            norm.load_state({key: self.memory[f"{name}.{key}"] for key in keys} if known else None)


def refuse_without_batch_norms(layers: Mapping[str, nn.Module], method: str) -> None:
    """Raise if a network has no batch norms."""
    if not layers:
        raise BadValue(
            f"adaptation by {method} changes batch norms, and the network has none with statistics; take sar or vitta, "
            "which also work with layer and group norms"
        )


@method("bn")
class BatchStatistics(StatisticsAdapter):
    """BatchNorm means and variances of the video, blended with the source's; no gradients.

    Online, test statistics are those of all videos of the cell so far. Predictions follow.
    """

    settings_type = StatisticsSettings
    needs_classes = False
    accumulates = True

    def __init__(self, network: nn.Module, settings: Any, protocol: Any, **more: Any) -> None:
        refuse_without_batch_norms(find_batch_norms(network), "bn")
        super().__init__(network, settings, protocol, **more)

    def adapt(self, batch: Tensor, frames: int, second_view: Tensor | None = None) -> Tensor:
        """Blend statistics layer by layer in one forward pass."""
        with torch.no_grad(), self.blending(frames):
            return self.run(batch)
