"""Image classifiers of timm by name, as `timm/resnet50.a1_in1k`, with timm's preprocessing settings.

A name without a tag, `timm/resnet50`, is that with timm's default tag. Pictures are prepared as timm's `validate.py`
does, at the size that a model is tested with, which is often larger than the one it was trained with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from jostle.core.state_dict import describe_mismatch
from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.image_classifier import OneFrame, library_module, picture_spec
from jostle.models.recognition.recogniser import Changes, Recogniser, RecogniserKind, Weights, changed, library
from jostle.models.weights.sources import WeightSource

SOURCE = "model.safetensors of the model's repository under https://huggingface.co/timm"
DEFAULT_CROP_SHARE = 0.875  # of a resized picture that a crop shows, where a model does not say


@library("timm", source=SOURCE)
def timm_model(inner: str) -> RecogniserKind:
    """Any image classifier of timm, on single frames."""
    name = f"timm/{inner}"
    settings = settings_of(inner)
    hub = settings.get("hf_hub_id")
    file = settings.get("hf_hub_filename") or "model.safetensors"
    return RecogniserKind(
        name,
        partial(_load, inner, settings),
        SOURCE,
        spec_of(name, settings),
        place=WeightSource(f"hf:{hub}/{file}") if hub else None,
    )


def settings_of(inner: str) -> Mapping[str, Any]:
    """Return timm's settings of a model and its weights, the `pretrained_cfg`."""
    timm = library_module(f"timm/{inner}", "timm", "timm")
    architecture, _, tag = inner.partition(".")
    if not timm.is_model(architecture):
        raise UnknownName("model of timm", architecture, timm.list_models())
    known = [name.partition(".")[2] for name in timm.list_models(f"{architecture}.*", pretrained=True)]
    if tag and tag not in known:
        raise UnknownName(f"tag of timm's {architecture}", tag, known)
    settings: Mapping[str, Any] = timm.models.get_pretrained_cfg(inner).to_dict()
    return settings


def spec_of(name: str, settings: Mapping[str, Any]) -> InputSpec:
    """Return the input spec of a model, from timm's settings.

    >>> spec = spec_of("timm/x", {"input_size": (3, 224, 224), "crop_pct": 0.95, "interpolation": "bicubic",
    ...                           "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "crop_mode": "squash"})
    >>> spec.resize, spec.size
    ((235, 235), 224)
    """
    _, *crop = settings.get("test_input_size") or settings["input_size"]
    share = settings.get("test_crop_pct") or settings.get("crop_pct") or DEFAULT_CROP_SHARE
    enlarged = math.floor(crop[0] / share)
    mode = settings.get("crop_mode") or "center"
    rest: dict[str, Any] = {"fit": "long", "beyond": "mean"} if mode == "border" else {}
    return picture_spec(
        name,
        (enlarged, enlarged) if mode == "squash" else enlarged,
        crop,
        settings.get("interpolation") or "bicubic",
        settings["mean"],
        settings["std"],
        **rest,
    )


def _load(inner: str, settings: Mapping[str, Any], weights: Weights, changes: Changes) -> Recogniser:
    name = f"timm/{inner}"
    spec = changed(name, spec_of(name, settings), changes)
    head = settings.get("classifier") or ""
    head = head if isinstance(head, str) else head[0]
    if not isinstance(weights, Mapping):
        if weights != "random":
            raise BadValue(f"{name}: weights are tensors by name or 'random', not {weights!r}; read the file first")
        if not settings["num_classes"]:
            raise BadValue(f"{name}: makes features and no scores: it is no classifier")
        network = _create_model(inner)
    else:
        network = _with_tensors(inner, settings, head, dict(weights))
    return Recogniser(OneFrame(network), spec, name=name, head=f"network.{head}" if head else "")


def _with_tensors(inner: str, settings: Mapping[str, Any], head: str, weights: dict[str, Tensor]) -> Any:
    """Create the network with tensors loaded by timm, which converts the names of older files."""
    bias = weights.get(f"{head}.bias")
    classes, background = settings["num_classes"], settings.get("label_offset") or 0
    if bias is None and not classes:
        raise CheckpointError(f"timm/{inner}: makes features and no scores: it is no classifier", fault="F54")
    if bias is not None and len(bias) != classes + background:
        classes, background = len(bias), 0
    overlay = {"state_dict": weights, "num_classes": classes, "label_offset": background, "custom_load": False}
    try:
        return _create_model(inner, pretrained=True, num_classes=classes, pretrained_cfg_overlay=overlay)
    except (RuntimeError, KeyError, AttributeError) as error:
        network = _create_model(inner, num_classes=classes)
        expected = {key: tuple(value.shape) for key, value in network.state_dict().items()}
        apart = describe_mismatch(expected, weights).replace("\n", "; ") or str(error)
        raise CheckpointError(f"timm/{inner}: the weights belong to another network: {apart}", fault="F54") from None


def _create_model(inner: str, **rest: Any) -> Any:
    timm = library_module(f"timm/{inner}", "timm", "timm")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model(inner, **rest)
