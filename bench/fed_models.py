"""Models of random weights for `bench.feeding`: from a large transformer to one that costs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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

NOTHING = {"cpu": "nothing", "cuda": "nothing on a GPU"}
SECONDS = 3.0  # that a network is timed for


@dataclass(frozen=True)
class Fed:
    """A model of the benchmark.

    Attributes:
        frames, step: of a clip that a recogniser is shown.
    """

    name: str
    task: str = "recognition"
    frames: int = 16
    step: int = 4


MODELS = {
    "videomae_b": Fed("videomae_b"),
    "slowfast_r50": Fed("slowfast_r50", frames=32, step=2),
    "x3d_m": Fed("x3d_m", step=5),
    "puppet_net": Fed("puppet_net", "detection"),
    "small": Fed("small"),
}
# Input size, and arguments of `transformer`, of the networks defined here.
TRANSFORMERS = {"videomae_b": (224, ()), "small": (112, (192, 4, 3, 112))}


def transformer(dim: int = 768, depth: int = 12, heads: int = 12, size: int = 224, frames: int = 16) -> nn.Module:
    """A transformer over tubes of 2 x 16 x 16 pixels, of the size of VideoMAE-B unless told otherwise."""
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
            seen = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            added: torch.Tensor = x + self.mlp(self.second(x))
            return added

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tubes = nn.Conv3d(3, dim, (2, 16, 16), (2, 16, 16))
            self.places = nn.Parameter(torch.randn(1, frames // 2 * (size // 16) ** 2, dim) * 0.02)
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.head = nn.Linear(dim, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.tubes(x).flatten(2).transpose(1, 2) + self.places
            scores: torch.Tensor = self.head(self.blocks(x).mean(1))
            return scores

    return Transformer()


def recogniser(name: str) -> Recogniser:
    """A recogniser of random weights, always the same."""
    import torch

    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser, recognisers

    if name not in TRANSFORMERS:
        return recognisers[name].load("random", {})
    size, arguments = TRANSFORMERS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = transformer(*arguments)
    spec = InputSpec(frames=16, stride=64, step=4, resize=size, size=size, mean=(0.45,) * 3, std=(0.225,) * 3)
    return Recogniser(network, spec, name=name)


class FreeModel:
    """Base of models that cost nothing.

    Args:
        on_gpu: whether frames come clean where a GPU would corrupt them.
    """

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu

    def can_corrupt(self, spec: str) -> bool:
        from jostle.corruptions.gpu.batch import gpu_kernel

        return self._on_gpu and gpu_kernel(Spec.parse(spec)) is not None


class Nothing(FreeModel):
    """A recogniser that returns zeros."""

    def __init__(self, fed: Fed, *, on_gpu: bool) -> None:
        super().__init__(on_gpu=on_gpu)
        self.name = fed.name
        own = {"spread": "span"} if fed.name in ("slowfast_r50", "x3d_m") else {}
        self.spec = RemoteInputSpec(fed.frames, step=fed.step, **own)  # type: ignore[arg-type]

    def __call__(self, clip_frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        return np.zeros((len(clip_frames), 2), np.float32)


class NoFeatures(FreeModel):
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


class NoDetector:
    """A detector that finds one thing everywhere."""

    def detect(self, features: npt.ArrayLike, **facts: Any) -> Segments:
        return Segments([0.0], [1.0], [0], [0.5], ("wave",))


def looking(name: str, device: str, precision: str, clips: int = 4) -> Any:
    """What looks at videos; `nothing:NAME` costs nothing, and `nothing on a GPU:NAME` is sent what would go to one."""
    kind, _, model = name.rpartition(":")
    fed = MODELS[model]
    match = ClassMatch("by number", None)
    if kind:
        there = kind == NOTHING["cuda"]
        if fed.task == "detection":
            return FeatureDetectionPredictor(NoFeatures(_puppet_spec(), on_gpu=there), NoDetector())
        return RecognitionPredictor(Nothing(fed, on_gpu=there), Sampling(clips=clips), match)
    from jostle.models.devices import compute_context

    guard = partial(compute_context, device, precision)
    if fed.task == "detection":
        from jostle.models.loading.extractor import load_extractor
        from jostle.models.loading.models import load_detector

        detector: Any = load_detector("temporalmaxer_puppets", weights="clean").to(device)
        return FeatureDetectionPredictor(load_extractor("puppet_net", device=device), detector, guard)
    loaded = recogniser(model).to(device)
    return RecognitionPredictor(loaded, Sampling(clips=clips), match, loaded.at_once, guard)


def _puppet_spec() -> RemoteInputSpec:
    from jostle.models.loading.extractor import load_extractor

    spec = RemoteInputSpec.of(load_extractor("puppet_net").spec)
    assert spec is not None
    return spec


def batch(fed: Fed, device: str) -> int:
    """Items that a network is given at once."""
    from jostle.models.extractors.extractor import FRAMES_AT_ONCE
    from jostle.models.recognition.recogniser import CROPS_AT_ONCE

    return (CROPS_AT_ONCE if fed.task == "recognition" else FRAMES_AT_ONCE)[device]


def own_rate(fed: Fed, device: str, precision: str) -> float:
    """Items a second of the network alone, on a batch that is prepared and on the device."""
    import torch

    from jostle.models.devices import compute_context, inference_mode

    size = batch(fed, device)
    look = looking(fed.name, device, precision)
    rng = np.random.default_rng(0)
    with compute_context(device, precision), inference_mode():
        compute: Callable[[], object]
        if fed.task == "recognition":
            clip = torch.from_numpy(rng.integers(0, 256, (fed.frames, 256, 340, 3), np.uint8)).to(device)
            crops = torch.cat([look.model.spec.prepare(clip)] * size)
            compute = partial(look.model.network, crops)
        else:
            frames = torch.from_numpy(rng.integers(0, 256, (size, 256, 340, 3), np.uint8)).to(device)
            compute = partial(look.extractor.network.see, look.extractor.spec.prepare_frames(frames))
        for _ in range(3):
            compute()
        _settle(device)
        begin, turns = time.perf_counter(), 0
        while time.perf_counter() - begin < SECONDS:
            for _ in range(5 if device == "cuda" else 1):
                compute()
                turns += 1
            _settle(device)
        return size * turns / (time.perf_counter() - begin)


def device_name(device: str) -> str:
    """What it is called."""
    import torch

    return torch.cuda.get_device_name() if device == "cuda" else "no GPU"


def _settle(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
