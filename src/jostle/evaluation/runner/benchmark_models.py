"""From what a caller calls a model to what looks at videos: loaded by every worker, checked before any work is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import is_place
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.runner.model_spec import AskedModel, ClipsFrom
from jostle.mending.loading import AskedMending
from jostle.models.loading.detector import load_detector, name_classes
from jostle.models.loading.extractor import AskedExtractor
from jostle.models.loading.names import need_torch
from jostle.models.loading.user_model import Given, Imported, Model, NamedRecogniser
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.shipped import usual_weights

if TYPE_CHECKING:
    from jostle.datasets.class_matching import ClassMatch, Projection
    from jostle.datasets.dataset import Dataset
    from jostle.datasets.object_classes import ObjectMatch
    from jostle.evaluation.inference.detection import DetectingByClips, DetectingByFeatures, DetectingByFrames
    from jostle.evaluation.inference.feature_detection import FeatureDetector
    from jostle.evaluation.inference.object_detection import SeeingObjects
    from jostle.evaluation.inference.recognition import Recognising
    from jostle.evaluation.inference.single_frames import SeeingFrames
    from jostle.evaluation.runner.runner import Contestant
    from jostle.features.windows import ReleasedFault, Rule
    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser

PROJECTED: dict[str, Projection] = {"imagenet-vid-robust": "imagenet-vid", "ytbb-robust": "ytbb"}


def contestant_for(recipe: Recipe, data: Dataset, asked: AskedModel, device: str, *, here: bool = True) -> Contestant:
    """Everything that names stand for.

    Args:
        device: that networks run on.
        here: whether this machine has it, so that what is wrong with a model is found before the work begins.

    Raises:
        BadValue: if the model is not one for the benchmark, or its classes are not those of the data set.
        CheckpointError: if the weights do not fit.
    """
    if asked.weights is None and isinstance(asked.model, str):
        asked = replace(asked, weights=usual_weights(asked.model))
    if recipe.task == "detection":
        made = _detection(data, asked, device, here)
    elif recipe.task == "objects":
        made = _objects(recipe, data, asked, device)
    else:
        made = _recognition(recipe, data, asked, device)
    names = [name for name in (asked.model, asked.extractor or made.extractor) if isinstance(name, str)]
    made = replace(made, asked=tuple(names))
    if asked.compiled:
        from jostle.models.compilation import check_compiling

        check_compiling(device)
        made = replace(made, load=partial(_compiled, made.load), compiled=True)
    if asked.precision != "float32":
        from jostle.models.precision import check_precision

        check_precision(asked.precision, device)
        load = partial(_computing, made.load, device, asked.precision)
        made = replace(made, load=load, precision=asked.precision)
    return made if asked.mend is None else _mended(made, recipe, AskedMending(asked.mend), device)


def _mended(made: Contestant, recipe: Recipe, mend: AskedMending, device: str) -> Contestant:
    """The contestant with struck frames taken out before it looks."""
    if recipe.task in ("frames", "objects"):
        raise BadValue(f"{recipe.name} shows single frames, which have nothing around them to be mended with")
    known = mend.get("cpu")
    load = partial(_mending, made.load, mend, device)
    return replace(made, load=load, mend=known.name, mend_weights=known.fingerprint)


def _mending(load: Callable[[], Any], mend: AskedMending, device: str) -> Any:
    """What looks at videos, and what tells it which frames were struck."""
    return replace(load(), mending=mend.get(device))


def _compiled(load: Callable[[], Any]) -> Any:
    """What looks at videos, its networks compiled."""
    from jostle.models.compilation import compile_networks

    look = load()
    compile_networks(look)
    return look


def _computing(load: Callable[[], Any], device: str, precision: str) -> Any:
    """What looks at videos, with numbers of another precision."""
    from jostle.models.precision import computing

    return replace(load(), guard=partial(computing, device, precision))


def _detection(data: Dataset, asked: AskedModel, device: str, here: bool) -> Contestant:
    from jostle.evaluation.runner.runner import Contestant

    for name, value in (("spec", asked.spec), ("input", asked.input)):
        if value is not None:
            raise BadValue(f"{name} says what a recogniser wants to see, and this benchmark is of detection")
    own = _own(asked)
    if own is None:
        return _registered_detector(asked, data.truth, device, here)
    features = None if asked.extractor is None else _features(asked, asked.extractor)
    if features is None:
        _refuse_features(asked, f"{own.name} looks at frames unless an extractor is named, --extractor NAME")
    load = partial(_own_detector, own, features, device)
    if here:
        load()
    return Contestant(load, own.name, *own.identity(), **({} if features is None else features.known))


def _registered_detector(asked: AskedModel, truth: Truth, device: str, here: bool) -> Contestant:
    from jostle.evaluation.runner.runner import Contestant
    from jostle.io.files.fingerprint import file_fingerprint
    from jostle.models.checkpoints import read_metadata
    from jostle.models.detection.detector import detectors

    model = str(asked.model)
    if asked.weights is None:
        raise BadValue(f"{model} has to be given weights, by --weights: none come with jostle")
    found = weights_path("detectors", model, asked.weights)
    if detectors[model].model.looks_at == "frames":
        if asked.extractor is not None:
            raise BadValue(f"{model} looks at frames itself; leave the extractor out")
        _refuse_features(asked, f"{model} looks at frames")
        look = partial(_frame_detector, model, found, device, truth)
        if here:
            look()
        return Contestant(look, model, file_fingerprint(found), "file")
    extractor = asked.extractor if asked.extractor is not None else read_metadata(found).get("extractor")
    if not extractor:
        raise BadValue(
            f"{found}: does not say whose features it was trained on; name the extractor, --extractor NAME; "
            "`jostle names extractors` lists them"
        )
    features = _features(asked, extractor)
    load = partial(_detector, model, found, features, device, truth)
    if here:
        load()  # whatever is wrong with the weights is wrong before the first video
    return Contestant(load, model, file_fingerprint(found), "file", **features.known)


@dataclass(frozen=True)
class _Features:
    """What makes features for a detector, and of which windows."""

    extractor: AskedExtractor
    rule: Rule
    released_faults: tuple[ReleasedFault, ...]

    @property
    def known(self) -> dict[str, Any]:
        """What a contestant is known by on their account."""
        windows = {"rule": self.rule, "released_faults": self.released_faults}
        return {"extractor": self.extractor.name, "extractor_weights": self.extractor.fingerprint(), **windows}

    def looking(self, detector: FeatureDetector, device: str) -> DetectingByFeatures:
        """One thread each: the bits then do not depend on the machine or the number of processes."""
        from jostle.evaluation.inference.detection import DetectingByFeatures

        return DetectingByFeatures(self.extractor.get(device), detector, _one_thread(), self.rule, self.released_faults)


def _features(asked: AskedModel, extractor: Any) -> _Features:
    from jostle.features.windows import WindowGrid

    faults = tuple(sorted(set(asked.released_faults)))
    WindowGrid(1, 1, asked.rule, faults)  # says what is wrong with them
    return _Features(AskedExtractor(extractor, asked.extractor_weights), asked.rule, faults)


def _refuse_features(asked: AskedModel, why: str) -> None:
    """Raise if somebody says how features are to be made where none are."""
    if asked.extractor_weights is not None or asked.rule != "all" or asked.released_faults:
        raise BadValue(f"extractor weights, rule and released faults say how features are made, and {why}")


def _detector(model: str, weights: Path, features: _Features, device: str, truth: Truth) -> DetectingByFeatures:
    detector = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return features.looking(detector, device)


def _frame_detector(model: str, weights: Path, device: str, truth: Truth) -> DetectingByClips:
    from jostle.evaluation.inference.detection import DetectingByClips

    detector: Any = load_detector(model, weights=weights)
    name_classes(detector, truth)
    detector.to(device)
    return DetectingByClips(detector, _one_thread())


def _own_detector(own: Model, features: _Features | None, device: str) -> DetectingByFeatures | DetectingByFrames:
    from jostle.evaluation.inference.detection import CalledDetector, DetectingByFrames

    model = own.get()
    detects = hasattr(model, "detect")
    if not detects and not callable(model):
        raise BadValue(f"{own.name}: a detector is called on frames or features, or has a method detect")
    if features is None:
        if detects:
            raise BadValue(f"{own.name}: finds actions in features; name what makes them, --extractor NAME")
        return DetectingByFrames(model, _one_thread())
    if detects and hasattr(model, "to"):
        model.to(device)
    return features.looking(model if detects else CalledDetector(model), device)


def _recognition(recipe: Recipe, data: Dataset, asked: AskedModel, device: str) -> Contestant:
    from jostle.evaluation.runner.runner import Contestant

    if asked.extractor is not None:
        raise BadValue(f"an extractor makes features for detectors, and {recipe.name} is of {recipe.task}")
    _refuse_features(asked, f"{recipe.name} is of {recipe.task}, which needs none")
    own = _own(asked)
    if own is None:
        if asked.spec is not None:
            raise BadValue(f"{asked.model} brings its InputSpec along; change fields of it by input, or --input")
        own = NamedRecogniser(str(asked.model), asked.weights, asked.changes())
    spec_changes = {} if isinstance(own, NamedRecogniser) else asked.changes()
    sampling = recipe.sampling or Sampling()
    get = partial(_recogniser, own, asked.spec, spec_changes, sampling, asked.clips)
    model = get()
    load: Callable[[], Recognising | SeeingFrames]
    if recipe.task == "frames":
        if model.spec is not None and model.spec.frames != 1:
            raise BadValue(
                f"{model.name} takes clips of {model.spec.frames} frames, and {recipe.name} shows single ones"
            )
        match = _frame_classes(recipe, data)
        load = partial(_seeing_frames, get, match, device)
    else:
        from jostle.datasets.class_matching import match_classes

        labels = data.labels
        match = match_classes(model.name, model.classes, labels.classes, numbered=labels.numbered)
        load = partial(_recognising, get, sampling, match, device)
    shown = {
        "input": None if model.spec is None else asdict(model.spec),
        "clips": asked.clips,
        "outputs": model.outputs,
        "classes": match.how,
        **({"network": options} if (options := _options(own)) else {}),
    }
    return Contestant(load, own.name, *own.identity(), shown=json.loads(json.dumps(shown)))


def _objects(recipe: Recipe, data: Dataset, asked: AskedModel, device: str) -> Contestant:
    from jostle.datasets.object_classes import match_objects
    from jostle.evaluation.runner.runner import Contestant
    from jostle.models.loading.object_detector import NamedObjectDetector
    from jostle.models.objects.object_detector import as_object_detector

    given = (("an extractor", asked.extractor), ("spec", asked.spec), ("input", asked.input))
    for name, value in given:
        if value is not None:
            raise BadValue(f"{name} is for other models, and {recipe.name} is of {recipe.task}")
    _refuse_features(asked, f"{recipe.name} is of {recipe.task}, which needs none")
    own = _own(asked) or NamedObjectDetector(str(asked.model), asked.weights)
    model = as_object_detector(own.get(), own.name)
    match = match_objects(own.name, getattr(model, "classes", ()), data.objects.classes)
    shown = {"classes": match.how, "known": list(match.known)}
    return Contestant(partial(_seeing_objects, own, match, device), own.name, *own.identity(), shown=shown)


def _seeing_objects(own: Model, match: ObjectMatch, device: str) -> SeeingObjects:
    from jostle.evaluation.inference.object_detection import NamedModel, SeeingObjects
    from jostle.models.objects.object_detector import ObjectDetector

    model = own.get()
    if isinstance(model, ObjectDetector):
        model.to(device)
    return SeeingObjects(NamedModel(model, own.name), match, guard=_one_thread())


def _options(own: Model) -> dict[str, Any]:
    """Settings of a registered recogniser's network."""
    from jostle.models.recognition.recogniser import kind_of

    return kind_of(own.name).settings(own.changes) if isinstance(own, NamedRecogniser) else {}


def _recogniser(
    own: Model, spec: InputSpec | None, changes: Mapping[str, Any], sampling: Sampling, clips: ClipsFrom
) -> Recogniser:
    """The recogniser as the benchmark uses it."""
    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import Recogniser, changed

    model = own.get()
    if not isinstance(model, Recogniser):
        beside = getattr(model, "spec", None)
        model = Recogniser(model, spec or (beside if isinstance(beside, InputSpec) else None), name=own.name)
    elif spec is not None:
        raise BadValue(f"{own.name}: is a Recogniser, which has its InputSpec already; leave spec out")
    if model.spec is None:
        if changes:
            raise BadValue(f"{own.name}: has no InputSpec whose fields could be changed; give one as spec")
        return model
    wanted = changed(own.name, model.spec, changes)
    if clips == "benchmark":
        wanted = _as_published(wanted, sampling)
    if sampling.crops == "ten":
        wanted = replace(wanted, crops="ten")
    return Recogniser(model.network, wanted, outputs=model.outputs, classes=model.classes, name=model.name)


def _as_published(spec: InputSpec, sampling: Sampling) -> InputSpec:
    """The spec with frames and sizes of the benchmark."""
    size = sampling.size or spec.size
    resize = sampling.short_side or spec.resize_for(size)
    return replace(spec, frames=sampling.frames or spec.frames, resize=resize, size=size)


def _recognising(get: Callable[[], Recogniser], sampling: Sampling, match: ClassMatch, device: str) -> Recognising:
    from jostle.evaluation.inference.recognition import Recognising

    model = get().to(device)
    # Length and size are settled by the model's InputSpec, where it has one.
    chosen = sampling if model.spec is None else replace(sampling, frames=None)
    return Recognising(model, chosen, match, model.at_once, _one_thread())


def _seeing_frames(get: Callable[[], Recogniser], match: ClassMatch, device: str) -> SeeingFrames:
    from jostle.evaluation.inference.single_frames import SeeingFrames

    model = get().to(device)
    return SeeingFrames(model, match, model.at_once, _one_thread())


def _frame_classes(recipe: Recipe, data: Dataset) -> ClassMatch:
    from jostle.datasets.class_matching import ClassMatch

    labels = [label if isinstance(label, int) else max(label) for label in data.frames.labels.values()]
    project = PROJECTED.get(recipe.dataset)
    return ClassMatch("by number", None, least=max(labels) + 1, project=project)


def _own(asked: AskedModel) -> Model | None:
    """A model of the caller's own; None for a registered name."""
    if isinstance(asked.model, str) and not is_place(asked.model):
        return None
    if isinstance(asked.model, str):
        return Imported(asked.model, asked.weights)
    if asked.weights is not None:
        raise BadValue("weights go with the name of a model; one of your own has its weights already")
    return Given(asked.model)


def _one_thread() -> Callable[[], AbstractContextManager[None]]:
    need_torch("models")
    from jostle.models.precision import one_thread

    return one_thread
