"""Small networks with normalisation layers, and runs in which they adapt to a few short videos."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from helpers.small_recognition import RECIPE, SAMPLING, data_of
from jostle.datasets.class_matching import ClassMatch
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.benchmark_models import add_adaptation
from jostle.evaluation.runner.runner import BenchmarkModel, Run, run_benchmark
from jostle.models.adaptation.method import Adapter
from jostle.models.adaptation.options import AdaptationOptions
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Recogniser

SPEC = InputSpec(frames=4, resize=(16, 16), size=16, step=2, mean=(0.5,) * 3, std=(0.25,) * 3)
CELLS = ["ucf101-p/gaussian_noise:2", "kinetics-c/motion_blur:1"]


def small_network(classes: int = 6) -> nn.Module:
    """Two 3D convolutions with batch norms whose statistics are not those of a new layer, and a classifier."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv3d(3, 4, 3, padding=1),
        nn.BatchNorm3d(4),
        nn.ReLU(),
        nn.Conv3d(4, 5, 3, padding=1),
        nn.BatchNorm3d(5),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(5, classes),
    )
    for layer in (network[1], network[4]):
        nn.init.normal_(layer.running_mean, std=0.2)
        nn.init.uniform_(layer.running_var, 0.5, 1.5)
        nn.init.uniform_(layer.weight, 0.5, 1.5)
        nn.init.normal_(layer.bias, std=0.3)
    return network.eval()


def batches(count: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 3, 4, 6, 6, generator=generator) * (1 + i) + i for i in range(count)]


def tensors(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def adapter_of(network: nn.Module, method: str, protocol: str = "episodic", **settings: float) -> Adapter:
    return AdaptationOptions(method, protocol, settings).build(network)


def recognising(network: nn.Module) -> RecognitionPredictor:
    recogniser = Recogniser(network, SPEC, name="small")
    return RecognitionPredictor(recogniser, SAMPLING, ClassMatch("by number", 3))


def run(
    videos: dict[str, Path],
    out: Path,
    method: str | None = "tent",
    protocol: Any = "episodic",
    *,
    network: nn.Module | None = None,
    settings: dict[str, float] | None = None,
    **options: Any,
) -> Run:
    """Run the small benchmark of recognition with a small network that adapts."""
    model = BenchmarkModel(partial(recognising, network or small_network(3)), "small")
    if method is not None:
        model = add_adaptation(model, AdaptationOptions(method, protocol, settings or {}))
    cells = select_cells(RECIPE, options.pop("cells", CELLS))
    return run_benchmark(RECIPE, data_of(videos), model, out, cells=cells, **options)
