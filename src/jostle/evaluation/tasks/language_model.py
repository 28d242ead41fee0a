"""Video-language models of a benchmark: by name, as a function, as an object, or by import path."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.requested_model import identify, own_model, refuse_others
from jostle.models.loading.reference import ModelRef
from jostle.models.options import Precision

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig, LanguageInput

Loader = Callable[["ModelRef", "LanguageInput"], Any]  # of a predictor


def build_language_model(
    recipe: Recipe,
    config: InferenceConfig,
    device: str,
    load_predictor: Loader,
    *,
    named: Callable[[str], None] | None = None,
    more: Callable[[LanguageInput], dict[str, Any]] | None = None,
) -> BenchmarkModel:
    """Resolve a model that is asked in words; see `Task.build_model`.

    Args:
        load_predictor: from a source and how words are put to it.
        named: refuses a named model that does not suit the task.
        more: further facts of how words are put to it.
    """
    from jostle.models.language.loading import SHIPPED, WAYS, is_question_model_name

    shipped = config.model == SHIPPED
    refuse_others(recipe, config, "extractor", "spec", *(() if shipped else ("weights",)))
    language_input = config.language_input()
    precision: Precision = "float32"
    source: ModelRef | None
    if isinstance(config.model, str) and is_question_model_name(config.model):
        if named is not None and not shipped:
            named(config.model)
        precision = precision if shipped else config.precision
        changes = {"precision": precision, "frames": language_input.frames, "device": device}
        source = ModelRef("language", config.model, config.weights, changes)
    else:
        source = own_model("language", config)
    if source is None:
        raise BadValue(f"{config.model}: no model of {recipe.task} has this name; give {WAYS}")
    load = partial(load_predictor, source, language_input)
    description = load().language_model.describe()
    facts = {} if more is None else more(language_input)
    shown = {"frames": description.get("frames", language_input.frames), **facts, "model": description}
    return BenchmarkModel(
        load, **identify(source), shown=json.loads(json.dumps(shown, default=str)), precision=precision
    )
