"""Models that find the moments which sentences describe, as models of a benchmark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.language_model import build_language_model
from jostle.evaluation.tasks.requested_model import one_thread
from jostle.models.loading.reference import ModelRef

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig, LanguageInput
    from jostle.evaluation.inference.language import MomentPredictor


def build_moment_model(recipe: Recipe, config: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve a model that finds moments; see `Task.build_model`."""
    return build_language_model(recipe, config, device, _load_predictor, named=partial(_refuse_named, recipe.name))


def _refuse_named(benchmark: str, model: str) -> None:
    raise BadValue(
        f"{model}: answers questions, and {benchmark} asks for windows; give a function (frames, times, sentence, "
        "duration) -> windows that asks it and reads its text"
    )


def _load_predictor(source: ModelRef, language_input: LanguageInput) -> MomentPredictor:
    from jostle.evaluation.inference.language import MomentPredictor
    from jostle.models.language.callables import as_moment_model

    return MomentPredictor(as_moment_model(source.get(), language_input.frames), one_thread())
