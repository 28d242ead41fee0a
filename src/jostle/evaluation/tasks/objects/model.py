"""Object detectors as models of a benchmark."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jostle.core.types.frame_sets import BoxSets
from jostle.datasets.class_matching import ObjectMatch, match_objects
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.requested_model import identify, one_thread, own_model, refuse_others
from jostle.models.loading.reference import ModelRef

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.inference.single_frames import ObjectPredictor


def build_object_detector(recipe: Recipe, objects: BoxSets, config: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve an object detector; see `Task.build_model`."""
    from jostle.models.objects.object_detector import as_object_detector

    refuse_others(recipe, config, "extractor", "spec", "input")
    source = own_model("objects", config) or ModelRef("objects", str(config.model), config.weights)
    model = as_object_detector(source.get(), source.name)
    match = match_objects(source.name, getattr(model, "classes", ()), objects.classes)
    shown = {"classes": match.how, "known": list(match.known)}
    return BenchmarkModel(partial(_load_object_predictor, source, match, device), **identify(source), shown=shown)


def _load_object_predictor(source: ModelRef, match: ObjectMatch, device: str) -> ObjectPredictor:
    from jostle.evaluation.inference.single_frames import NamedObjectModel, ObjectPredictor
    from jostle.models.objects.object_detector import ObjectDetector

    model = source.get()
    if isinstance(model, ObjectDetector):
        model.to(device)
    return ObjectPredictor(NamedObjectModel(model, source.name), match, guard=one_thread())
