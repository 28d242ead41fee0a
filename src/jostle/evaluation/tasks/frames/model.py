"""Frame classifiers as models of a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jostle.core.types.frame_sets import FrameSets
from jostle.datasets.class_matching import ClassMatch, Projection
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.recognition.model import RequestedRecogniser
from jostle.evaluation.tasks.requested_model import one_thread

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.inference.single_frames import FramePredictor
    from jostle.models.recognition.recogniser import Recogniser

PROJECTED: dict[str, Projection] = {"imagenet-vid-robust": "imagenet-vid", "ytbb-robust": "ytbb"}


def build_frame_classifier(recipe: Recipe, frames: FrameSets, config: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve a recogniser of single frames; see `Task.build_model`."""
    requested = RequestedRecogniser.of(recipe, config)
    model = requested.get()
    if model.spec is not None and model.spec.frames != 1:
        raise BadValue(f"{model.name} takes clips of {model.spec.frames} frames, and {recipe.name} uses single frames")
    labels = [label if isinstance(label, int) else max(label) for label in frames.labels.values()]
    match = ClassMatch("by number", None, least=max(labels) + 1, project=PROJECTED.get(recipe.dataset))
    return requested.benchmark_model(partial(_load_frame_predictor, requested.get, match, device), model, match)


def _load_frame_predictor(get: Callable[[], Recogniser], match: ClassMatch, device: str) -> FramePredictor:
    from jostle.evaluation.inference.single_frames import FramePredictor

    model = get().to(device)
    return FramePredictor(model, match, model.at_once, one_thread())
