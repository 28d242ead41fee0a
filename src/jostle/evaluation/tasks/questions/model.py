"""Models that answer questions about videos, as models of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.language_model import build_language_model
from jostle.evaluation.tasks.requested_model import one_thread
from jostle.models.loading.reference import ModelRef

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig, LanguageInput
    from jostle.evaluation.inference.language import QuestionPredictor


def build_question_model(recipe: Recipe, config: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve a model that answers questions; see `Task.build_model`."""
    return build_language_model(recipe, config, device, _load_predictor, more=_orders)


def _orders(language_input: LanguageInput) -> dict[str, Any]:
    return {"orders": language_input.orders}


def _load_predictor(source: ModelRef, language_input: LanguageInput) -> QuestionPredictor:
    from jostle.evaluation.inference.language import QuestionPredictor
    from jostle.models.language.callables import as_question_model

    model = as_question_model(source.get(), language_input.frames)
    return QuestionPredictor(model, one_thread(), orders=language_input.orders)
