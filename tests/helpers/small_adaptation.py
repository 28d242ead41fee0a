"""Small networks with normalisation layers, and runs in which they adapt to a few short videos."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from helpers.small_recognition import CLASSES, RECIPE, SAMPLING, data_of
from jostle.datasets.class_matching import ClassMatch
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.source_statistics import CleanVideos
from jostle.evaluation.runner.treatments import add_adaptation
from jostle.mending.finders.known import KnownDamage
from jostle.models.adaptation.method import AdaptationOptions, Adapter
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
        nn.ReLU(inplace=True),
        nn.Conv3d(4, 5, 3, padding=1),
        nn.BatchNorm3d(5),
        nn.ReLU(inplace=True),
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


def adapter_of(
    network: nn.Module, method: str, protocol: Any = "episodic", *, source: Any = None, **settings: Any
) -> Adapter:
    return AdaptationOptions(method, protocol, settings, source).build(network)


def layer_norm_network() -> nn.Module:
    """A network of tokens with four layer norms, the last of which SAR leaves alone."""
    torch.manual_seed(0)
    blocks = [layer for _ in range(4) for layer in (nn.Linear(6, 6), nn.LayerNorm(6), nn.GELU())]
    return nn.Sequential(*blocks, nn.Linear(6, 5)).eval()


def recognition_predictor(network: nn.Module, mending: KnownDamage | None = None) -> RecognitionPredictor:
    recogniser = Recogniser(network, SPEC, name="small")
    return RecognitionPredictor(recogniser, SAMPLING, ClassMatch("by number", 3), mending=mending)


OWN = Recogniser(small_network(3), SPEC, classes=sorted(CLASSES), name="own")  # by name on the command line


def write_class_folders(videos: dict[str, Path], folder: Path) -> Path:
    """Copy videos into a folder for each class, and return the folder of these."""
    for number, (name, path) in enumerate(videos.items()):
        there = folder / CLASSES[number % len(CLASSES)] / f"{name}.mkv"
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)
    return folder


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
    mending = options.pop("mending", None)
    model = BenchmarkModel(
        partial(recognition_predictor, network or small_network(3), mending),
        model="small",
        weights=options.pop("weights", "sha256:1"),
    )
    if method is not None:
        clean = CleanVideos("clean", lambda: videos)
        adaptation = AdaptationOptions(method, protocol, settings or {})
        model = add_adaptation(
            model, adaptation, source_path=options.pop("source_path", None), out=out, clean_videos=clean
        )
    cells = select_cells(RECIPE, options.pop("cells", CELLS))
    return run_benchmark(RECIPE, data_of(videos), model, out, cells=cells, **options)
