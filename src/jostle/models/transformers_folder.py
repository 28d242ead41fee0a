"""Model folders of transformers: the network, and its preprocessing settings."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.errors import CheckpointError, MissingExtra, ResourceError
from jostle.models.finite import check_weights

Triple = tuple[float, float, float]
IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
SOURCE = "a folder with config.json and model.safetensors, such as {} of https://huggingface.co"


def library_class(what: str, name: str) -> Any:
    """Import a class of transformers for a network, called `what` in messages."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise MissingExtra(what, "hf") from None
    try:
        return getattr(transformers, name)
    except (ImportError, AttributeError, RuntimeError) as error:
        raise ResourceError(
            f"{what}: transformers {transformers.__version__} has no {name} that loads ({error}); a torchvision "
            "that does not belong to the installed torch is the most common reason, and removing it helps"
        ) from None


def pretrained(folder: Path, what: str, network: str, head: str, **settings: Any) -> Any:
    """Return a network of transformers with the weights of a folder.

    Args:
        what: name of the network, for messages.
        network: its class in transformers.
        head: what a checkpoint from before fine-tuning lacks, in a word.
        settings: further arguments of the library, such as `dtype`.

    Raises:
        CheckpointError: F54 if the weights cannot be read, or are not all of them; F120 if one is not finite.
    """
    try:
        model, report = library_class(what, network).from_pretrained(
            folder, local_files_only=True, output_loading_info=True, **settings
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{folder}: the weights cannot be loaded: {error}", fault="F54") from None
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if lacking:  # the library would fill these with random numbers and go on
        raise CheckpointError(
            f"{folder}: {len(lacking)} of the tensors are not there or of another shape, such as {lacking[0]}; a "
            f"checkpoint from before fine-tuning has no {head}",
            fault="F54",
        )
    check_weights(model, str(folder))
    return model


def scale_of(settings: Mapping[str, Any], mean: Triple, std: Triple) -> tuple[Triple, Triple]:
    """Return mean and standard deviation for [0, 1] that implement a `preprocessor_config.json`.

    Args:
        settings: what the file holds.
        mean, std: where it does not say them.
    """
    # The library computes (value * factor - offset - mean) / std, of values up to 255.
    rescaled = settings.get("do_rescale", True)
    factor = 255 * float(settings.get("rescale_factor", 1 / 255)) if rescaled else 255.0
    offset = 1.0 if rescaled and settings.get("offset", False) else 0.0
    mean, std = settings.get("image_mean", mean), settings.get("image_std", std)
    if not settings.get("do_normalize", True):
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    (a, b, c), (d, e, f) = mean, std
    return ((a + offset) / factor, (b + offset) / factor, (c + offset) / factor), (d / factor, e / factor, f / factor)


def read_settings(path: Path, what: str) -> dict[str, Any]:
    """Read a settings file; `what` is the network, for messages."""
    try:
        settings = json.loads(path.read_bytes())
    except OSError as error:
        where = SOURCE.format(f"one of a {what}")
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); weights are {where}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is not JSON: {error}", fault="F53") from None
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path}: should hold settings by name", fault="F53")
    return settings
