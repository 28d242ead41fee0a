"""Treatments of a model: how its networks compute, mending of its frames, adaptation to its videos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import part_of
from jostle.errors import BadValue
from jostle.evaluation.config import InferenceConfig
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.task import tasks
from jostle.mending.loading import MendingOptions, on_cpu
from jostle.models.options import ComputeOptions
from jostle.models.weights.packaged import default_weights

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.inference.adaptation import AdaptedFeaturePredictor, AdaptedRecognitionPredictor
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.models.adaptation.method import AdaptationOptions


def build_benchmark_model(
    recipe: Recipe,
    data: Dataset,
    config: InferenceConfig,
    device: str,
    *,
    here: bool = True,
    out: Path | None = None,
    clean_videos: CleanVideos | None = None,
) -> BenchmarkModel:
    """Resolve what was requested of a model into a loadable model with its name and fingerprints.

    Args:
        here: whether this machine has the device, so that the model can be loaded and checked before the run starts.
        out: the run folder, which may hold statistics of clean videos.
        clean_videos: for methods of adaptation that need such statistics.

    Raises:
        BadValue: if the model does not suit the benchmark, or its classes are not those of the data set.
        CheckpointError: if the weights do not fit.
    """
    if config.weights is None and isinstance(config.model, str):
        config = replace(config, weights=default_weights(config.model))
    model = tasks[recipe.task].build_model(recipe, data, config, device, here=here)
    names = [name for name in (config.model, config.extractor or model.extractor) if isinstance(name, str)]
    model = replace(model, requested=tuple(names))
    model = _add_computing(model, part_of(ComputeOptions, config), device)
    if config.mend is not None:
        model = _add_mending(model, MendingOptions(config.mend))
    adaptation = config.adaptation()
    if adaptation is None:
        return model
    return add_adaptation(
        model, adaptation, seed=config.seed, source_path=config.adapt_source, out=out, clean_videos=clean_videos
    )


def _add_computing(model: BenchmarkModel, options: ComputeOptions, device: str) -> BenchmarkModel:
    """Return the model with its networks computing as requested."""
    left = replace(options, precision="float32") if model.precision == options.precision else options
    load = model.load
    if left != ComputeOptions():
        from jostle.models.devices import check_compute

        check_compute(left, device)
        load = partial(_load_computing, load, device, left)
    return replace(model, load=load, **vars(options))


def _load_computing(load: Callable[[], Any], device: str, options: ComputeOptions) -> Any:
    """Load a predictor whose networks compute as requested."""
    from jostle.models.devices import compute_as_requested

    return compute_as_requested(load(), device, options)


def _add_mending(model: BenchmarkModel, mend: MendingOptions) -> BenchmarkModel:
    """Return the model with corrupted frames mended before it processes a video."""
    finder = mend.get("cpu")
    load = partial(_load_with_mending, model.load, mend)
    name = mend.mend if isinstance(mend.mend, str) else None
    return replace(model, load=load, mend=finder.name, mend_weights=finder.fingerprint, finder=name)


def _load_with_mending(load: Callable[[], Any], mend: MendingOptions) -> Any:
    """Load a predictor and its mending, on the CPU: results must not depend on where frames are inspected."""
    return replace(load(), mending=on_cpu(mend.get("cpu")))


def add_adaptation(
    model: BenchmarkModel,
    options: AdaptationOptions,
    *,
    seed: int = 0,
    source_path: str | Path | None = None,
    out: Path | None = None,
    clean_videos: CleanVideos | None = None,
) -> BenchmarkModel:
    """Return the model with its network adapted to videos.

    Args:
        source_path: statistics of clean videos, or a run folder with them, for methods that need them.
        out: the run folder, which has them if it goes on.
        clean_videos: what they are measured on where there are none.

    Raises:
        BadValue: if the model is no recogniser or feature detector, or its network lacks what the method needs.
    """
    from jostle.evaluation.inference.adaptation import WINDOWS, AdaptedFeaturePredictor
    from jostle.evaluation.runner.source_statistics import find_statistics

    load = partial(_load_adapted, model.load, options)
    predictor = load()  # raises before the first video
    adapt, statistics = options.to_dict(), None
    if options.kind.needs_source is not None:
        identity = (model.extractor, model.extractor_weights) if model.extractor else (model.model, model.weights)
        network = " ".join(one for one in identity if one is not None)
        statistics = find_statistics(
            predictor, options, network, seed=seed, source_path=source_path, out=out, clean=clean_videos
        )
        adapt["source"] = statistics.to_dict()
        load = partial(_load_adapted, model.load, replace(options, source=statistics.tensors))
    elif source_path is not None:
        raise BadValue(f"adaptation by {options.method} needs no clean videos; leave --adapt-source out")
    if isinstance(predictor, AdaptedFeaturePredictor):
        adapt["windows"] = WINDOWS
    content = None if statistics is None else statistics.content
    return replace(model, load=load, adapt=adapt, source_statistics=content)


def _load_adapted(
    load: Callable[[], Any], options: AdaptationOptions
) -> AdaptedRecognitionPredictor | AdaptedFeaturePredictor:
    """Load a predictor and the adaptation of its network."""
    from jostle.evaluation.inference.adaptation import (
        AdaptedFeaturePredictor,
        AdaptedRecognitionPredictor,
        OnlineStates,
    )
    from jostle.evaluation.inference.detection import FeatureDetectionPredictor
    from jostle.evaluation.inference.recognition import RecognitionPredictor
    from jostle.models.adaptation.adapted_models import AdaptedExtractor, AdaptedRecogniser

    predictor, states = load(), OnlineStates(options.protocol == "online")
    if isinstance(predictor, RecognitionPredictor):
        model: Any = predictor.model
        return AdaptedRecognitionPredictor(predictor, AdaptedRecogniser(model, options), states)
    if isinstance(predictor, FeatureDetectionPredictor):
        return AdaptedFeaturePredictor(predictor, AdaptedExtractor(predictor.extractor, options), states)
    raise BadValue(
        "adaptation is for recognisers and for feature extractors, and this detector processes frames itself; leave "
        "--adapt out"
    )
