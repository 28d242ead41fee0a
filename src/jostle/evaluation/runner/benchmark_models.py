"""Construction of benchmark models from the options of a run: checked before a run starts, loaded by every worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import part_of
from jostle.core.plugins import is_import_path
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.evaluation.config import LANGUAGE_TASKS, InferenceConfig, LanguageInput
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.mending.loading import MendingOptions
from jostle.models.loading.extractor import ExtractorSpec
from jostle.models.loading.models import (
    ImportedModel,
    ModelObject,
    ModelSource,
    NamedRecogniser,
    load_detector,
    name_classes,
)
from jostle.models.loading.names import need_torch
from jostle.models.options import ClipsFrom, ComputeOptions, Precision
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.shipped import default_weights

if TYPE_CHECKING:
    from jostle.datasets.class_matching import ClassMatch, ObjectMatch, Projection
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.inference.adaptation import AdaptedFeaturePredictor, AdaptedRecognitionPredictor
    from jostle.evaluation.inference.detection import (
        ClipDetectionPredictor,
        FeatureDetectionPredictor,
        FrameDetectionPredictor,
    )
    from jostle.evaluation.inference.feature_detection import DetectsInFeatures
    from jostle.evaluation.inference.language import MomentPredictor, QuestionPredictor
    from jostle.evaluation.inference.recognition import RecognitionPredictor
    from jostle.evaluation.inference.single_frames import FramePredictor, ObjectPredictor
    from jostle.evaluation.runner.runner import BenchmarkModel
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.features.options import ReleasedBug, Rule
    from jostle.models.adaptation.method import AdaptationOptions
    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser

PROJECTED: dict[str, Projection] = {"imagenet-vid-robust": "imagenet-vid", "ytbb-robust": "ytbb"}


def build_benchmark_model(
    recipe: Recipe,
    data: Dataset,
    spec: InferenceConfig,
    device: str,
    *,
    here: bool = True,
    out: Path | None = None,
    clean_videos: CleanVideos | None = None,
) -> BenchmarkModel:
    """Resolve a model spec into a loadable model with its name and fingerprints.

    Args:
        here: whether this machine has the device, so that the model can be loaded and checked before the run starts.
        out: the run folder, which may hold statistics of clean videos.
        clean_videos: for methods of adaptation that need such statistics.

    Raises:
        BadValue: if the model does not suit the benchmark, or its classes are not those of the data set.
        CheckpointError: if the weights do not fit.
    """
    if spec.weights is None and isinstance(spec.model, str):
        spec = replace(spec, weights=default_weights(spec.model))
    if recipe.task == "detection":
        model = _build_detection(data, spec, device, here)
    elif recipe.task == "objects":
        model = _build_objects(recipe, data, spec, device)
    elif recipe.task in LANGUAGE_TASKS:
        model = _build_language(recipe, spec, device)
    else:
        model = _build_recognition(recipe, data, spec, device)
    names = [name for name in (spec.model, spec.extractor or model.extractor) if isinstance(name, str)]
    model = replace(model, requested=tuple(names))
    model = _add_computing(model, part_of(ComputeOptions, spec), device)
    if spec.mend is not None:
        model = _add_mending(model, MendingOptions(spec.mend))
    adaptation = spec.adaptation()
    if adaptation is None:
        return model
    return add_adaptation(
        model, adaptation, seed=spec.seed, source_path=spec.adapt_source, out=out, clean_videos=clean_videos
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
    inspector = mend.get("cpu")
    load = partial(_load_with_mending, model.load, mend)
    return replace(model, load=load, mend=inspector.name, mend_weights=inspector.fingerprint)


def _load_with_mending(load: Callable[[], Any], mend: MendingOptions) -> Any:
    """Load a predictor and its mending, on the CPU: results must not depend on where frames are inspected."""
    return replace(load(), mending=mend.get("cpu").to("cpu"))


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


def _build_detection(data: Dataset, spec: InferenceConfig, device: str, here: bool) -> BenchmarkModel:
    from jostle.evaluation.runner.runner import BenchmarkModel

    for name, value in (("spec", spec.spec), ("input", spec.input)):
        if value is not None:
            raise BadValue(f"{name} is for recognisers, and this benchmark is of detection; leave it out")
    user_model = _user_model(spec)
    if user_model is None:
        return _build_registered_detector(spec, data.truth, device, here)
    features = None if spec.extractor is None else _build_features(spec, spec.extractor)
    if features is None:
        _refuse_features(spec, f"{user_model.name} processes frames unless an extractor is named, --extractor NAME")
    load = partial(_load_user_detector, user_model, features, device)
    if here:
        load()
    return BenchmarkModel(load, **_identify(user_model), **({} if features is None else features.fields))


def _build_registered_detector(spec: InferenceConfig, truth: Truth, device: str, here: bool) -> BenchmarkModel:
    from jostle.evaluation.runner.runner import BenchmarkModel
    from jostle.io.video.source import file_fingerprint
    from jostle.models.checkpoints import read_metadata
    from jostle.models.detection.detector import detectors

    model = str(spec.model)
    if spec.weights is None:
        raise BadValue(f"{model} needs weights, and none come with jostle; give --weights")
    path = weights_path("detectors", model, spec.weights)
    if detectors[model].model.looks_at == "frames":
        if spec.extractor is not None:
            raise BadValue(f"{model} processes frames itself; leave the extractor out")
        _refuse_features(spec, f"{model} processes frames")
        load_frames = partial(_load_frame_detector, model, path, device, truth)
        if here:
            load_frames()
        return BenchmarkModel(load_frames, model=model, weights=file_fingerprint(path), weights_from="file")
    extractor = spec.extractor if spec.extractor is not None else read_metadata(path).get("extractor")
    if not extractor:
        raise BadValue(
            f"{path}: does not record the extractor it was trained with; name it with --extractor NAME; "
            "`jostle names extractors` lists them"
        )
    features = _build_features(spec, extractor)
    load = partial(_load_feature_detector, model, path, features, device, truth)
    if here:
        load()  # faults of the weights show before the first video
    return BenchmarkModel(load, model=model, weights=file_fingerprint(path), weights_from="file", **features.fields)


@dataclass(frozen=True)
class _Features:
    """Extractor of a detector, with its window options."""

    extractor: ExtractorSpec
    rule: Rule
    reproduce_bugs: tuple[ReleasedBug, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the `BenchmarkModel` that describe the features."""
        windows = {"rule": self.rule, "reproduce_bugs": self.reproduce_bugs}
        return {"extractor": self.extractor.name, "extractor_weights": self.extractor.fingerprint(), **windows}

    def predictor(self, detector: DetectsInFeatures, device: str) -> FeatureDetectionPredictor:
        """Return the predictor; one thread each, so that results do not depend on the machine or the processes."""
        from jostle.evaluation.inference.detection import FeatureDetectionPredictor

        return FeatureDetectionPredictor(
            self.extractor.get(device), detector, _one_thread(), self.rule, self.reproduce_bugs
        )


def _build_features(spec: InferenceConfig, extractor: Any) -> _Features:
    from jostle.features.windows import WindowGrid

    faults = tuple(sorted(set(spec.reproduce_bugs)))
    WindowGrid(1, 1, spec.rule, faults)  # validates both
    return _Features(ExtractorSpec(extractor, spec.extractor_weights), spec.rule, faults)


def _refuse_features(spec: InferenceConfig, why: str) -> None:
    """Raise if feature options are given where no features are computed."""
    if spec.extractor_weights is not None or spec.rule != "all" or spec.reproduce_bugs:
        raise BadValue(f"extractor weights, rule and reproduced bugs are options of feature extraction, and {why}")


def _load_feature_detector(
    model: str, weights: Path, features: _Features, device: str, truth: Truth
) -> FeatureDetectionPredictor:
    detector = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return features.predictor(detector, device)


def _load_frame_detector(model: str, weights: Path, device: str, truth: Truth) -> ClipDetectionPredictor:
    from jostle.evaluation.inference.detection import ClipDetectionPredictor

    detector: Any = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return ClipDetectionPredictor(detector, _one_thread())


def _load_user_detector(
    user_model: ModelSource, features: _Features | None, device: str
) -> FeatureDetectionPredictor | FrameDetectionPredictor:
    from jostle.evaluation.inference.detection import CallableDetector, FrameDetectionPredictor

    model = user_model.get()
    detects = hasattr(model, "detect")
    if not detects and not callable(model):
        raise BadValue(f"{user_model.name}: a detector is a callable on frames or features, or has a method detect")
    if features is None:
        if detects:
            raise BadValue(f"{user_model.name}: detects actions in features; name an extractor, --extractor NAME")
        return FrameDetectionPredictor(model, _one_thread())
    if detects and hasattr(model, "to"):
        model.to(device)
    return features.predictor(model if detects else CallableDetector(model), device)


def _build_recognition(recipe: Recipe, data: Dataset, spec: InferenceConfig, device: str) -> BenchmarkModel:
    from jostle.evaluation.runner.runner import BenchmarkModel

    if spec.extractor is not None:
        raise BadValue(f"an extractor is for detectors, and {recipe.name} is of {recipe.task}; leave it out")
    _refuse_features(spec, f"{recipe.name} is of {recipe.task}, which needs none")
    user_model = _user_model(spec)
    if user_model is None:
        if spec.spec is not None:
            raise BadValue(f"{spec.model} has an InputSpec of its own; change its fields by input, or --input")
        user_model = NamedRecogniser(str(spec.model), spec.weights, spec.changes())
    spec_changes = {} if isinstance(user_model, NamedRecogniser) else spec.changes()
    sampling = recipe.sampling or Sampling()
    classes = () if recipe.task == "frames" or data.labels.numbered else data.labels.classes
    get = partial(_load_recogniser, user_model, spec.spec, spec_changes, sampling, spec.clips, tuple(classes))
    model = get()
    load: Callable[[], RecognitionPredictor | FramePredictor]
    if recipe.task == "frames":
        if model.spec is not None and model.spec.frames != 1:
            raise BadValue(
                f"{model.name} takes clips of {model.spec.frames} frames, and {recipe.name} uses single frames"
            )
        match = _match_frame_classes(recipe, data)
        load = partial(_load_frame_predictor, get, match, device)
    else:
        from jostle.datasets.class_matching import match_classes

        labels = data.labels
        match = match_classes(model.name, model.classes, labels.classes, numbered=labels.numbered)
        load = partial(_load_recognition_predictor, get, sampling, match, device)
    input_config = {
        "input": None if model.spec is None else asdict(model.spec),
        "clips": spec.clips,
        "outputs": model.outputs,
        "classes": match.how,
        **({"network": options} if (options := _network_settings(user_model)) else {}),
        **({"prompts": prompts} if (prompts := getattr(model.network, "prompts", ())) else {}),
    }
    return BenchmarkModel(load, **_identify(user_model), shown=json.loads(json.dumps(input_config)))


def _build_objects(recipe: Recipe, data: Dataset, spec: InferenceConfig, device: str) -> BenchmarkModel:
    from jostle.datasets.class_matching import match_objects
    from jostle.evaluation.runner.runner import BenchmarkModel
    from jostle.models.loading.models import NamedObjectDetector
    from jostle.models.objects.object_detector import as_object_detector

    unsupported = (("an extractor", spec.extractor), ("spec", spec.spec), ("input", spec.input))
    for name, value in unsupported:
        if value is not None:
            raise BadValue(f"{name} is for other models, and {recipe.name} is of {recipe.task}; leave it out")
    _refuse_features(spec, f"{recipe.name} is of {recipe.task}, which needs none")
    user_model = _user_model(spec) or NamedObjectDetector(str(spec.model), spec.weights)
    model = as_object_detector(user_model.get(), user_model.name)
    match = match_objects(user_model.name, getattr(model, "classes", ()), data.objects.classes)
    input_config = {"classes": match.how, "known": list(match.known)}
    return BenchmarkModel(
        partial(_load_object_predictor, user_model, match, device),
        **_identify(user_model),
        shown=input_config,
    )


def _load_object_predictor(user_model: ModelSource, match: ObjectMatch, device: str) -> ObjectPredictor:
    from jostle.evaluation.inference.single_frames import NamedObjectModel, ObjectPredictor
    from jostle.models.objects.object_detector import ObjectDetector

    model = user_model.get()
    if isinstance(model, ObjectDetector):
        model.to(device)
    return ObjectPredictor(NamedObjectModel(model, user_model.name), match, guard=_one_thread())


def _build_language(recipe: Recipe, spec: InferenceConfig, device: str) -> BenchmarkModel:
    """Resolve a model that answers questions or finds sentences: a name, a function, an object, or an import path."""
    from jostle.evaluation.runner.runner import BenchmarkModel
    from jostle.models.language.loading import SHIPPED, WAYS, NamedQuestionModel, is_question_model_name

    shipped = spec.model == SHIPPED
    unsupported = (("an extractor", spec.extractor), ("spec", spec.spec), ("weights", spec.weights))
    for name, value in unsupported:
        if value is not None and not (shipped and name == "weights"):
            raise BadValue(f"{name} is for other models, and {recipe.name} is of {recipe.task}; leave it out")
    _refuse_features(spec, f"{recipe.name} is of {recipe.task}, which needs none")
    language_input = spec.language_input()
    precision: Precision = "float32"
    user_model: ModelSource | None
    if isinstance(spec.model, str) and is_question_model_name(spec.model):
        if recipe.task != "questions" and not shipped:
            raise BadValue(
                f"{spec.model}: answers questions, and {recipe.name} asks for windows; give a function (frames, times, "
                "sentence, duration) -> windows that asks it and reads its text"
            )
        precision = precision if shipped else spec.precision
        user_model = NamedQuestionModel(spec.model, device, precision, language_input.frames, spec.weights)
    else:
        user_model = _user_model(spec)
    if user_model is None:
        raise BadValue(f"{spec.model}: no model of {recipe.task} has this name; give {WAYS}")
    load = partial(_load_language_predictor, recipe.task, user_model, language_input)
    description = load().language_model.describe()
    orders = {"orders": language_input.orders} if recipe.task == "questions" else {}
    input_config = {"frames": description.get("frames", language_input.frames), **orders, "model": description}
    return BenchmarkModel(
        load,
        **_identify(user_model),
        shown=json.loads(json.dumps(input_config, default=str)),
        precision=precision,
    )


def _load_language_predictor(
    task: str, user_model: ModelSource, language_input: LanguageInput
) -> QuestionPredictor | MomentPredictor:
    from jostle.evaluation.inference.language import MomentPredictor, QuestionPredictor
    from jostle.models.language.callables import as_moment_model, as_question_model

    if task == "questions":
        model = as_question_model(user_model.get(), language_input.frames)
        return QuestionPredictor(model, _one_thread(), orders=language_input.orders)
    return MomentPredictor(as_moment_model(user_model.get(), language_input.frames), _one_thread())


def _identify(user_model: ModelSource) -> dict[str, Any]:
    """Return the facts of a run that name a model and its weights."""
    weights, weights_from = user_model.identity()
    return {"model": user_model.name, "weights": weights, "weights_from": weights_from}


def _network_settings(user_model: ModelSource) -> dict[str, Any]:
    """Return the settings of a registered recogniser's network."""
    from jostle.models.recognition.recogniser import find_kind

    return find_kind(user_model.name).settings(user_model.changes) if isinstance(user_model, NamedRecogniser) else {}


def _load_recogniser(
    user_model: ModelSource,
    spec: InputSpec | None,
    changes: Mapping[str, Any],
    sampling: Sampling,
    clips: ClipsFrom,
    classes: tuple[str, ...],
) -> Recogniser:
    """Load a recogniser, pass it the class names if it is a zero-shot one, and adapt its spec to the benchmark."""
    from jostle.models.recognition.recogniser import Recogniser, as_recogniser
    from jostle.models.recognition.zero_shot import ZeroShotRecogniser

    model = as_recogniser(user_model.get(), user_model.name, spec, changes)
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
    return RecognitionPredictor(model, chosen, match, model.at_once, _one_thread())


def _load_frame_predictor(get: Callable[[], Recogniser], match: ClassMatch, device: str) -> FramePredictor:
    from jostle.evaluation.inference.single_frames import FramePredictor

    model = get().to(device)
    return FramePredictor(model, match, model.at_once, _one_thread())


def _match_frame_classes(recipe: Recipe, data: Dataset) -> ClassMatch:
    from jostle.datasets.class_matching import ClassMatch

    labels = [label if isinstance(label, int) else max(label) for label in data.frames.labels.values()]
    project = PROJECTED.get(recipe.dataset)
    return ClassMatch("by number", None, least=max(labels) + 1, project=project)


def _user_model(spec: InferenceConfig) -> ModelSource | None:
    """Return the model that the caller brings along; None for a registered name."""
    if isinstance(spec.model, str) and not is_import_path(spec.model):
        return None
    if isinstance(spec.model, str):
        return ImportedModel(spec.model, spec.weights)
    if spec.weights is not None:
        raise BadValue("weights are for named models; a model object has its weights already; leave them out")
    return ModelObject(spec.model)


def _one_thread() -> Callable[[], AbstractContextManager[None]]:
    need_torch("models")
    from jostle.models.devices import one_thread

    return one_thread
