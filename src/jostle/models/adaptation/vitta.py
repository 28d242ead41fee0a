"""ViTTA: statistics of features aligned with those of clean videos, and two views of a video with one prediction.

After Lin et al., "Video Test-Time Adaptation for Action Recognition", 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from jostle.errors import BadValue
from jostle.models.adaptation.method import Adapter, method
from jostle.models.adaptation.norm_layers import channel_statistics, find_norms, replaced_forward


@dataclass(frozen=True)
class VittaSettings:
    """Settings of adaptation by ViTTA."""

    lr: float = 5e-5  # of stochastic gradient descent; 1e-5 for Swin
    steps: int = 1  # for each video
    decay: float = 0.1  # share of a new video in the mean statistics of test videos; 0.05 for Swin
    consistency: float = 0.1  # lambda, weight of the difference of two views; 0.05 for Swin
    aligned_share: float = 0.5  # normalisation layers at the end of the network that are aligned
    source_videos: int = 2000  # clean videos that statistics are measured on, at most


@method("vitta")
class Vitta(Adapter):
    """Means and variances of features aligned with those of clean videos, by all weights of the network.

    Batch norms keep the statistics of the source. Predictions follow the step, as in the paper. Features of an
    extractor are aligned without the second view, as it has no classes.
    """

    settings_type = VittaSettings
    needs_classes = False
    needs_source = "the means and variances of its features"
    two_views = True

    def adapted_parameters(self) -> dict[str, nn.Parameter]:
        """Return all parameters of the network."""
        norms = find_norms(self.network)
        count = max(round(self.settings.aligned_share * len(norms)), 1)
        self.layers = dict(list(norms.items())[-count:])
        if not norms:
            raise BadValue(
                "adaptation by vitta aligns outputs of batch, layer and group norms, and the network has none; leave "
                "--adapt out"
            )
        return dict(self.network.named_parameters())

    def measure_source(self, clips: Iterable[tuple[Tensor, int]]) -> dict[str, Tensor]:
        """Return the mean and the variance of each layer's channels over clean clips."""
        counted, sums = 0, dict[str, tuple[Tensor, Tensor]]()
        with self.state(None), torch.no_grad():
            for batch, _ in clips:
                with self._recording() as statistics:
                    self.run(batch)
                for name, (mean, variance) in statistics.items():
                    square = variance.double() + mean.double() ** 2
                    before = sums.get(name, (torch.zeros_like(square), torch.zeros_like(square)))
                    sums[name] = before[0] + mean.double(), before[1] + square
                counted += 1
        source: dict[str, Tensor] = {}
        for name, (total, squares) in sums.items():
            mean = total / counted
            source |= {f"{name}.mean": mean.float(), f"{name}.variance": (squares / counted - mean**2).float()}
        return source

    def adapt(self, batch: Tensor, frames: int, second_view: Tensor | None = None) -> Tensor:
        """Take the steps, and return the outputs after them."""
        views = [batch] if second_view is None else [batch, second_view]
        before = {name: value for name, value in self.memory.items() if name.startswith("test.")}
        for _ in range(self.settings.steps):
            with torch.enable_grad(), self._recording() as statistics:
                outputs = self.run(torch.cat(views)).chunk(len(views))
            loss = self._alignment(statistics, before)
            if len(outputs) > 1:
                probabilities = [one.softmax(1) for one in outputs]
                mean = torch.stack(probabilities).mean(0)
                differences = [F.l1_loss(one, mean) for one in probabilities]
                loss = loss + self.settings.consistency * torch.stack(differences).sum()
            self.sgd_step(self.gradients(loss), lr=self.settings.lr)
        with torch.no_grad():
            return self.run(batch)

    def _alignment(self, statistics: dict[str, tuple[Tensor, Tensor]], before: dict[str, Tensor]) -> Tensor:
        """Return the distance of mean test statistics to the source's, averaged over channels, added over layers."""
        losses = []
        for name, values in statistics.items():
            for kind, value in zip(("mean", "variance"), values, strict=True):
                key = f"test.{name}.{kind}"
                if key in before:
                    value = self.settings.decay * value + (1 - self.settings.decay) * before[key]
                self.memory[key] = value.detach()
                losses.append(F.l1_loss(value, self.source[f"{name}.{kind}"]))
        return torch.stack(losses).sum()

    @contextmanager
    def _recording(self) -> Iterator[dict[str, tuple[Tensor, Tensor]]]:
        """Yield the statistics of the layers' outputs, which a forward pass fills in."""
        statistics: dict[str, tuple[Tensor, Tensor]] = {}
        functions: dict[nn.Module, Callable[[Tensor], Tensor]] = {}
        for name, layer in self.layers.items():
            compute = partial(normalise_as_source, layer) if isinstance(layer, _BatchNorm) else layer.forward
            functions[layer] = partial(_record, statistics, name, -1 if isinstance(layer, nn.LayerNorm) else 1, compute)
        with replaced_forward(functions):
            yield statistics


def normalise_as_source(layer: _BatchNorm, values: Tensor) -> Tensor:
    """Return the output of a batch norm with the statistics of its source."""
    mean, variance = layer.running_mean, layer.running_var  # none in a layer that always uses those of its input
    return F.batch_norm(values, mean, variance, layer.weight, layer.bias, mean is None, 0.0, layer.eps)


def _record(
    statistics: dict[str, tuple[Tensor, Tensor]],
    name: str,
    channel: int,
    compute: Callable[[Tensor], Tensor],
    values: Tensor,
) -> Tensor:
    """Compute the output of a layer, and record its mean and variance by channel."""
    output = compute(values)
    statistics[name] = channel_statistics(output, channel)
    return output.clone() if torch.is_grad_enabled() else output  # the next layer may work in place
