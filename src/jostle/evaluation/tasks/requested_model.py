"""Models as requested: the caller's own or a registered one, and which options suit neither."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import is_import_path
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.models.loading.names import need_torch
from jostle.models.loading.reference import Kind, ModelRef

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.inference.detection import WholeVideoPredictor

_TITLES = {"extractor": "an extractor"}


def own_model(kind: Kind, config: InferenceConfig) -> ModelRef | None:
    """Return the model of the caller; None for a registered name."""
    if isinstance(config.model, str) and not is_import_path(config.model):
        return None
    if config.weights is not None and not isinstance(config.model, str):
        raise BadValue("weights are for named models; a model object has its weights already; leave them out")
    return ModelRef(kind, config.model, config.weights)


def identify(source: ModelRef) -> dict[str, Any]:
    """Return the facts of a run that name a model and its weights."""
    weights, weights_from = source.identity()
    return {"model": source.name, "weights": weights, "weights_from": weights_from}


def one_thread() -> Callable[[], AbstractContextManager[None]]:
    """Return a guard that has one thread compute, so that results depend on neither the machine nor the processes."""
    need_torch("models")
    from jostle.models.devices import one_thread

    return one_thread


def refuse_features(config: InferenceConfig, why: str) -> None:
    """Raise if feature options are given where no features are computed."""
    if config.extractor_weights is not None or config.rule != "all" or config.reproduce_bugs:
        raise BadValue(f"extractor weights, rule and reproduced bugs are options of feature extraction, and {why}")


def refuse_others(recipe: Recipe, config: InferenceConfig, *names: str) -> None:
    """Raise if options of other tasks' models are given, or options of features.

    Args:
        names: of the options.
    """
    for name in names:
        if getattr(config, name) is not None:
            what = _TITLES.get(name, name)
            raise BadValue(f"{what} is for other models, and {recipe.name} is of {recipe.task}; leave it out")
    refuse_features(config, f"{recipe.name} is of {recipe.task}, which needs none")


def whole_video_model(recipe: Recipe, config: InferenceConfig, check: Callable[[Any], Any]) -> BenchmarkModel:
    """Resolve a callable from the frames of a whole video to a prediction.

    Args:
        check: converts what the callable returns, or refuses it; a function of a module, as workers import it.

    Raises:
        BadValue: if it is a name, or options of other models are given.
    """
    refuse_others(recipe, config, "extractor", "spec", "input")
    source = own_model("recogniser", config)
    if source is None:
        raise BadValue(
            f"{config.model}: no model of {recipe.task} has this name; give a callable or package.module:name"
        )
    return BenchmarkModel(partial(_load_predictor, source, check), **identify(source))


def _load_predictor(source: ModelRef, check: Callable[[Any], Any]) -> WholeVideoPredictor[Any]:
    from jostle.evaluation.inference.detection import WholeVideoPredictor

    return WholeVideoPredictor(source.get(), one_thread(), check=check)
