"""Recognisers of transformers, loaded from a folder on disk.

The folder is one that `save_pretrained` wrote or a copy of a published one. Its `config.json` says the network, length
and size; its `preprocessor_config.json` the scale of the values, and where there is none, the published one is taken.
We prepare frames ourselves, since the library's own way needs torchvision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue, CheckpointError
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, add_recogniser, changed
from jostle.models.transformers_folder import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    SOURCE,
    Triple,
    library_class,
    pretrained,
    read_settings,
    scale_of,
)

HALF: Triple = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class TransformersRecogniserFamily:
    """Settings of one transformers recogniser."""

    kind: str  # `model_type` of its `config.json`
    # names of its classes in transformers
    network: str
    config: str
    # names of the settings that hold the length of a clip and the size of a crop
    frames: str
    size: str
    step: int  # frames of the video from one frame of a clip to the next, by default
    enlarged: float  # short side that frames are resized to, as a multiple of the crop
    mean: Triple
    std: Triple
    argument: str = "pixel_values"  # of the network, which takes the frames


def _family(
    kind: str, stem: str, frames: str, size: str, step: int, enlarged: float, **rest: Any
) -> TransformersRecogniserFamily:
    return TransformersRecogniserFamily(
        kind, f"{stem}ForVideoClassification", f"{stem}Config", frames, size, step, enlarged, **rest
    )


_IMAGENET: dict[str, Any] = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD}
VIDEOMAE = _family("videomae", "VideoMAE", "num_frames", "image_size", 4, 1, **_IMAGENET)
TIMESFORMER = _family(
    "timesformer", "Timesformer", "num_frames", "image_size", 32, 1, mean=(0.45,) * 3, std=(0.225,) * 3
)
VIVIT = _family("vivit", "Vivit", "num_frames", "image_size", 2, 256 / 224, mean=HALF, std=HALF)
VJEPA2 = _family(
    "vjepa2", "VJEPA2", "frames_per_clip", "crop_size", 4, 256 / 224, argument="pixel_values_videos", **_IMAGENET
)


FAMILIES = {family.kind: family for family in (VIDEOMAE, TIMESFORMER, VIVIT, VJEPA2)}


def from_config(config: Any, changes: Changes = MappingProxyType({})) -> Recogniser:
    """Return a recogniser of settings such as a `VideoMAEConfig`, with random weights that are the same every time."""
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise BadValue(f"settings are those of {', '.join(FAMILIES)}, not of {config.model_type!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = library_class(family.kind, family.network)(config)
    return _wrapped(family, network, {}, changes)


class Logits(nn.Module):
    """Wrapper of a transformers network that returns only its logits."""

    def __init__(self, network: nn.Module, argument: str) -> None:
        super().__init__()
        self.network, self.argument = network, argument

    def forward(self, clips: Tensor) -> Tensor:
        output: Tensor = self.network(**{self.argument: clips}).logits
        return output


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    family = FAMILIES[name]
    if isinstance(weights, Mapping):
        raise BadValue(f"{family.kind}: weights are a folder with config.json and model.safetensors, not tensors")
    if weights == "random":
        return from_config(library_class(family.kind, family.config)(), changes)
    folder = Path(weights)
    kind = read_settings(folder / "config.json", family.kind).get("model_type")
    if kind != family.kind:
        hint = f"; load it as {kind!r}" if kind in FAMILIES else ""
        raise CheckpointError(f"{folder}: holds a {kind!r}, not a {family.kind!r}{hint}", fault="F54")
    network = pretrained(folder, family.kind, family.network, "classifier")
    files = [folder / name for name in ("video_preprocessor_config.json", "preprocessor_config.json")]
    settings = next((read_settings(path, family.kind) for path in files if path.is_file()), {})
    return _wrapped(family, network, settings, changes)


def _wrapped(
    family: TransformersRecogniserFamily, network: Any, settings: Mapping[str, Any], changes: Changes
) -> Recogniser:
    config = network.config
    frames, size = getattr(config, family.frames), getattr(config, family.size)
    if not isinstance(size, int):
        if len(set(size)) != 1:
            raise BadValue(f"{family.kind}: crops must be square, not {tuple(size)}")
        size = size[0]
    mean, std = scale_of(settings, family.mean, family.std)
    spec = InputSpec(
        frames=frames,
        stride=frames * family.step,
        step=family.step,
        resize=_resize(settings.get("size"), size, family),
        size=size,
        mean=mean,
        std=std,
        layout="TCHW",
        interpolation="bicubic" if settings.get("resample") == 3 else "bilinear",
    )
    names = [config.id2label[i] for i in range(config.num_labels)]
    spec = changed(family.kind, spec, changes)
    return Recogniser(
        Logits(network, family.argument), spec, classes=names, name=family.kind, head="network.classifier"
    )


def _resize(resize: Any, size: int, family: TransformersRecogniserFamily) -> int | tuple[int, int]:
    if isinstance(resize, Mapping) and "height" in resize:
        return int(resize["height"]), int(resize["width"])
    if isinstance(resize, Mapping) and "shortest_edge" in resize:
        return int(resize["shortest_edge"])
    return resize if isinstance(resize, int) else int(size * family.enlarged)


# What each is, and where public weights are.
RECOGNISERS = {
    "videomae": ("VideoMAE: a plain transformer over cubes of the video.", "MCG-NJU/videomae-base-finetuned-kinetics"),
    "timesformer": (
        "TimeSformer: attention over time and over space in turn.",
        "facebook/timesformer-base-finetuned-k400",
    ),
    "vivit": ("ViViT: a transformer over tubes of the video.", "google/vivit-b-16x2-kinetics400"),
    "vjepa2": ("V-JEPA 2 with an attentive classifier.", "facebook/vjepa2-vitl-fpc16-256-ssv2"),
}
for _name, (_summary, _repository) in RECOGNISERS.items():
    add_recogniser(_name, _summary, _load, source=SOURCE.format(_repository), takes="folder")
