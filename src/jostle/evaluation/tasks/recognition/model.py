"""Recognisers as models of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import ClassMatch, match_classes
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.tasks.requested_model import identify, one_thread, own_model, refuse_features
from jostle.models.loading.reference import ModelRef
from jostle.models.options import ClipsFrom

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.inference.recognition import RecognitionPredictor
    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser


@dataclass(frozen=True)
class RequestedRecogniser:
    """Recogniser as requested for a benchmark: how it is loaded, and what a run records of it."""

    source: ModelRef
    get: Callable[[], Recogniser]
    clips: ClipsFrom

    @classmethod
    def of(cls, recipe: Recipe, config: InferenceConfig, classes: tuple[str, ...] = ()) -> RequestedRecogniser:
        """Return what was requested; options that do not suit recognisers are refused.

        Args:
            classes: names for a zero-shot model to choose from.
        """
        if config.extractor is not None:
            raise BadValue(f"an extractor is for detectors, and {recipe.name} is of {recipe.task}; leave it out")
        refuse_features(config, f"{recipe.name} is of {recipe.task}, which needs none")
        source = own_model("recogniser", config)
        if source is None:
            if config.spec is not None:
                raise BadValue(f"{config.model} has an InputSpec of its own; change its fields by input, or --input")
            source = ModelRef("recogniser", str(config.model), config.weights, config.changes())
        changes = {} if source.is_named else config.changes()
        sampling = recipe.sampling or Sampling()
        get = partial(_load_recogniser, source, config.spec, changes, sampling, config.clips, classes)
        return cls(source, get, config.clips)

    def benchmark_model(self, load: Callable[[], Any], model: Recogniser, match: ClassMatch) -> BenchmarkModel:
        """Return the model of a benchmark, with the facts that a run records of it.

        Args:
            load: predictor factory.
        """
        input_config = {
            "input": None if model.spec is None else asdict(model.spec),
            "clips": self.clips,
            "outputs": model.outputs,
            "classes": match.how,
            **({"network": options} if (options := _network_settings(self.source)) else {}),
            **({"prompts": prompts} if (prompts := getattr(model.network, "prompts", ())) else {}),
        }
        return BenchmarkModel(load, **identify(self.source), shown=json.loads(json.dumps(input_config)))


def build_recogniser(recipe: Recipe, labels: VideoLabels, config: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve a recogniser; see `Task.build_model`."""
    requested = RequestedRecogniser.of(recipe, config, () if labels.numbered else tuple(labels.classes))
    model = requested.get()
    match = match_classes(model.name, model.classes, labels.classes, numbered=labels.numbered)
    load = partial(_load_recognition_predictor, requested.get, recipe.sampling or Sampling(), match, device)
    return requested.benchmark_model(load, model, match)


def _load_recogniser(
    source: ModelRef,
    spec: InputSpec | None,
    changes: Mapping[str, Any],
    sampling: Sampling,
    clips: ClipsFrom,
    classes: tuple[str, ...],
) -> Recogniser:
    """Load a recogniser, pass it the class names if it is a zero-shot one, and adapt its spec to the benchmark."""
    from jostle.models.recognition.recogniser import Recogniser, as_recogniser
    from jostle.models.recognition.zero_shot import ZeroShotRecogniser

    model = as_recogniser(source.get(), source.name, spec, changes)
    if isinstance(model, ZeroShotRecogniser):
        model = model.for_classes(classes)
    if model.spec is None:
        return model
    spec = model.spec
    if clips == "benchmark":
        spec = _apply_benchmark_sizes(spec, sampling)
    if sampling.crops == "ten":
        spec = replace(spec, crops="ten")
    return Recogniser(model.network, spec, outputs=model.outputs, classes=model.classes, name=model.name)


def _apply_benchmark_sizes(spec: InputSpec, sampling: Sampling) -> InputSpec:
    """Return the spec with the clip length and frame size of the benchmark."""
    size = sampling.size or spec.size
    resize = sampling.short_side or spec.resize_for(size)
    return replace(spec, frames=sampling.frames or spec.frames, resize=resize, size=size)


def _load_recognition_predictor(
    get: Callable[[], Recogniser], sampling: Sampling, match: ClassMatch, device: str
) -> RecognitionPredictor:
    from jostle.evaluation.inference.recognition import RecognitionPredictor

    model = get().to(device)
    # The model's InputSpec sets clip length and frame size, if it has one.
    chosen = sampling if model.spec is None else replace(sampling, frames=None)
    return RecognitionPredictor(model, chosen, match, model.at_once, one_thread())


def _network_settings(source: ModelRef) -> dict[str, Any]:
    """Return the settings of a registered recogniser's network."""
    from jostle.models.recognition.recogniser import find_kind

    return find_kind(source.name).settings(source.changes) if source.is_named else {}
