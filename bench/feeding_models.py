"""Models with random weights for `bench.feeding`: from a large transformer to a stub without cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bench.timing import synchronize
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.class_matching import ClassMatch
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.sampling import RemoteInputSpec, Sampling
from jostle.features.deferred_corruption import DeferredCorruptions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from jostle.models.recognition.recogniser import Recogniser

STUBS = {"cpu": "stub", "cuda": "stub on a GPU"}  # prefixes of the names of stubs, by device
SECONDS = 3.0  # duration of the timing of a network


@dataclass(frozen=True)
class FeedingModel:
    """A model of the benchmark.

    Attributes:
        frames, step: number of frames of a recogniser's clip, and their distance.
    """

    name: str
    task: str = "recognition"
    frames: int = 16
    step: int = 4


MODELS = {
    "videomae_b": FeedingModel("videomae_b"),
    "slowfast_r50": FeedingModel("slowfast_r50", frames=32, step=2),
    "x3d_m": FeedingModel("x3d_m", step=5),
    "puppet_net": FeedingModel("puppet_net", "detection"),
    "small": FeedingModel("small"),
}
# Input size, and arguments of `build_transformer`, of the networks defined here.
TRANSFORMERS = {"videomae_b": (224, ()), "small": (112, (192, 4, 3, 112))}


def build_transformer(dim: int = 768, depth: int = 12, heads: int = 12, size: int = 224, frames: int = 16) -> nn.Module:
    """Return a transformer over tubes of 2 x 16 x 16 pixels, by default of the size of VideoMAE-B."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            parts = self.qkv(self.norm(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            attention = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            x = x + self.out(attention.transpose(1, 2).flatten(2))
            output: torch.Tensor = x + self.mlp(self.second(x))
            return output

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tubes = nn.Conv3d(3, dim, (2, 16, 16), (2, 16, 16))
            self.positions = nn.Parameter(torch.randn(1, frames // 2 * (size // 16) ** 2, dim) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.head = nn.Linear(dim, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.tubes(x).flatten(2).transpose(1, 2) + self.positions
            scores: torch.Tensor = self.head(self.blocks(x).mean(1))
            return scores

    return Transformer()


def load_random_recogniser(name: str) -> Recogniser:
    """Return a recogniser with random weights, the same in every process."""
    import torch

    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser, recognisers

    if name not in TRANSFORMERS:
        return recognisers[name].load("random", {})
    size, arguments = TRANSFORMERS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build_transformer(*arguments)
    spec = InputSpec(frames=16, stride=64, step=4, resize=size, size=size, mean=(0.45,) * 3, std=(0.225,) * 3)
    return Recogniser(network, spec, name=name)


class Stub:
    """Base of models without cost.

    Args:
        on_gpu: whether frames stay clean if a GPU could corrupt them.
    """

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu

    def can_corrupt(self, spec: str) -> bool:
        from jostle.corruptions.gpu.batch import gpu_kernel

        return self._on_gpu and gpu_kernel(Spec.parse(spec)) is not None


class StubRecogniser(Stub):
    """A recogniser that returns zeros."""

    def __init__(self, model: FeedingModel, *, on_gpu: bool) -> None:
        super().__init__(on_gpu=on_gpu)
        self.name = model.name
        spread: dict[str, Any] = {"spread": "span"} if model.name in ("slowfast_r50", "x3d_m") else {}
        self.spec = RemoteInputSpec(model.frames, step=model.step, **spread)

    def __call__(self, clip_frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        return np.zeros((len(clip_frames), 2), np.float32)


class StubExtractor(Stub):
    """An extractor that returns zeros."""

    dim, frame_dim = 4, 4

    def __init__(self, spec: Any, *, on_gpu: bool) -> None:
        super().__init__(on_gpu=on_gpu)
        self.spec = spec

    def __call__(self, clip_frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        return np.zeros((len(clip_frames), 4), np.float32)

    def submit(
        self,
        method: str,
        *inputs: npt.NDArray[Any],
        corruptions: DeferredCorruptions = DeferredCorruptions(),  # noqa: B008
    ) -> Callable[[], npt.NDArray[np.float32]]:
        return lambda: np.zeros((len(inputs[0]) * corruptions.copies, 4), np.float32)

    def see(self, frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        return np.zeros((len(frames), 4), np.float32)

    def join(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.zeros((len(seen), 4), np.float32)


class StubDetector:
    """A detector that returns the same segment for every video."""

    def detect(self, features: npt.ArrayLike, **facts: Any) -> Segments:
        return Segments([0.0], [1.0], [0], [0.5], ("wave",))


def load_predictor(name: str, device: str, precision: str, clips: int = 4) -> Any:
    """Return the predictor of a model.

    Args:
        name: a key of `MODELS`. With the prefix `stub:` the model has no cost; with `stub on a GPU:`, in addition,
            frames are not corrupted if a GPU could corrupt them.
    """
    prefix, _, key = name.rpartition(":")
    model = MODELS[key]
    match = ClassMatch("by number", None)
    if prefix:
        on_gpu = prefix == STUBS["cuda"]
        if model.task == "detection":
            return FeatureDetectionPredictor(StubExtractor(_puppet_spec(), on_gpu=on_gpu), StubDetector())
        return RecognitionPredictor(StubRecogniser(model, on_gpu=on_gpu), Sampling(clips=clips), match)
    from jostle.models.devices import compute_context

    guard = partial(compute_context, device, precision)
    if model.task == "detection":
        from jostle.models.loading.detectors import load_detector
        from jostle.models.loading.extractors import load_extractor

        detector: Any = load_detector("temporalmaxer_puppets", weights="clean").to(device)
        return FeatureDetectionPredictor(load_extractor("puppet_net", device=device), detector, guard)
    recogniser = load_random_recogniser(key).to(device)
    return RecognitionPredictor(recogniser, Sampling(clips=clips), match, recogniser.at_once, guard)


def _puppet_spec() -> RemoteInputSpec:
    from jostle.models.loading.extractors import load_extractor

    spec = RemoteInputSpec.of(load_extractor("puppet_net").spec)
    assert spec is not None
    return spec


def batch_size(model: FeedingModel, device: str) -> int:
    """Return the number of clips or frames in a batch."""
    from jostle.models.extractors.extractor import FRAMES_AT_ONCE
    from jostle.models.recognition.recogniser import CROPS_AT_ONCE

    return (CROPS_AT_ONCE if model.task == "recognition" else FRAMES_AT_ONCE)[device]


def measure_network(model: FeedingModel, device: str, precision: str) -> float:
    """Return the clips or frames a second of the network alone, on a preprocessed batch on the device."""
    import torch

    from jostle.models.devices import compute_context, inference_mode

    size = batch_size(model, device)
    predictor = load_predictor(model.name, device, precision)
    rng = np.random.default_rng(0)
    with compute_context(device, precision), inference_mode():
        compute: Callable[[], object]
        if model.task == "recognition":
            clip = torch.from_numpy(rng.integers(0, 256, (model.frames, 256, 340, 3), np.uint8)).to(device)
            crops = torch.cat([predictor.model.spec.prepare(clip)] * size)
            compute = partial(predictor.model.network, crops)
        else:
            frames = torch.from_numpy(rng.integers(0, 256, (size, 256, 340, 3), np.uint8)).to(device)
            extractor = predictor.extractor
            compute = partial(extractor.network.see, extractor.spec.prepare_frames(frames))
        for _ in range(3):
            compute()
        synchronize(device)
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            for _ in range(5 if device == "cuda" else 1):
                compute()
                calls += 1
            synchronize(device)
        return size * calls / (time.perf_counter() - start)


def device_name(device: str) -> str:
    """Return the name of the GPU, or "no GPU"."""
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "no GPU"
