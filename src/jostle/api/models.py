"""Verbs of models: features and detections of videos, training, and export as ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.config import DetectConfig, ExtractConfig, VideoFeatureOptions
from jostle.api.video import as_segments, video_path
from jostle.core.options import takes
from jostle.core.types.clip import check_rate
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError, JostleError, UnknownName
from jostle.mending.loading import BUNDLED, MendingOptions, load_inspector
from jostle.models.loading.extractor import ExtractorSpec
from jostle.models.loading.models import load_detector, load_recogniser, looks_at_frames, name_classes
from jostle.models.loading.names import need_torch

if TYPE_CHECKING:
    from jostle.core.types.clip import Clip, Frames
    from jostle.evaluation.inference.feature_detection import VideoScores
    from jostle.features.folder import CorruptionOptions, ExtractionSummary
    from jostle.models.detection.detector import Detector
    from jostle.models.extractors.protocol import FeatureExtractor
    from jostle.models.input_spec import InputSpec
    from jostle.models.onnx_export import OnnxFile
    from jostle.models.preprocessing.transforms import PreparationDifference
    from jostle.training.detection_config import FrameTrainingConfig, TrainingConfig
    from jostle.training.events import Watch
    from jostle.training.inspection_config import InspectionConfig
    from jostle.training.loop import TrainingResult
    from jostle.training.recognition_config import RecognitionConfig

INSPECTOR = "inspector"  # name of the part to export


def videos_and_corruptions(
    config: VideoFeatureOptions, source: Path, truth: Truth | str | Path | None, subset: str | None = None
) -> tuple[Mapping[str, Path], CorruptionOptions]:
    """Resolve the videos, and the corruptions to apply to each."""
    from jostle.corruptions.engine.placement import parse_placement
    from jostle.corruptions.engine.spec import Spec
    from jostle.datasets.videos import find_videos, id_at
    from jostle.features.folder import CorruptionOptions

    spec, segments, video_id = config.spec, config.segments, config.video_id
    specs = tuple(str(Spec.parse(one)) for one in ([spec] if isinstance(spec, str | Spec) else spec))
    if config.placement is not None:
        parse_placement(config.placement)
        if not specs:
            raise BadValue("a placement says where a corruption strikes: name one as well, with -c SPEC")
    if segments is not None and truth is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    found = find_videos(source) if source.is_dir() else None
    alone = found is None or list(found.values()) == [source]
    if found is not None and not alone:
        if video_id is not None or segments is not None:
            raise BadValue(f"{source} is a folder of them; an id or actions belong to a single video")
        if not found:
            raise DataError(f"{source}: no videos there; give a video, a folder of images, or a folder that holds some")
        videos: Mapping[str, Path] = found
    else:
        videos = {video_id if video_id is not None else id_at(source): source}
    actions, print_of = _actions(videos, as_segments(segments), truth, subset, alone=alone)
    if truth is not None:
        videos = {name: videos[name] for name in actions}
    known = (actions, print_of) if specs else ({}, None)
    return videos, CorruptionOptions(specs, config.placement, config.seed, *known)


def rates_of(
    videos: Mapping[str, Path], truth: Truth | str | Path | None, fps: Fraction | float | None
) -> dict[str, Fraction]:
    """The rate of each folder of images, as annotations say it, or else as is given."""
    from jostle.io.files.annotations import read_truth

    frames = [name for name, path in videos.items() if path.is_dir()]
    if not frames:
        return {}
    requested = None if fps is None else check_rate(fps)
    known = truth
    if isinstance(truth, str | Path):
        try:
            known = read_truth(truth)
        except JostleError:  # a table of one video's actions; its reader reports what is wrong with it
            known = None
    recorded = {name: known.fps_of(name) for name in frames} if isinstance(known, Truth) else {}
    rates = {name: recorded.get(name) or requested for name in frames}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _actions(
    videos: Mapping[str, Path],
    segments: Segments | None,
    truth: Truth | str | Path | None,
    subset: str | None,
    *,
    alone: bool,
) -> tuple[dict[str, Segments], str | None]:
    """The actions of each video, and a fingerprint of where they come from."""
    from jostle.io.files.annotations import read_truth, segments_of
    from jostle.io.files.video_ids import join_names
    from jostle.io.video.source import file_fingerprint

    if truth is None:
        if segments is None:
            return {}, None
        own = dict.fromkeys(videos, segments)
        return own, Truth.from_segments(own).fingerprint
    fingerprint = truth.fingerprint if isinstance(truth, Truth) else None
    if alone and not isinstance(truth, Truth):
        own = {name: segments_of(truth, name, subset=subset) for name in videos}
    else:
        known = truth if isinstance(truth, Truth) else read_truth(truth, subset=subset)
        own = {name: actions for name, actions in known.actions.items() if name in videos}
        if not own:
            raise DataError(
                f"none of the videos ({join_names(videos)}) is in the truth ({join_names(known.videos)}); check ids",
                fault="F21",
            )
    if fingerprint is None:
        file = Path(str(truth))
        fingerprint = file_fingerprint(file) if file.is_file() else Truth.from_segments(own).fingerprint
    return own, fingerprint


Progress = Callable[[int, int], None]


@takes(DetectConfig)
def detect(config: DetectConfig) -> Predictions:
    """Detect actions in a feature file, a video, or every file of a folder.

    Models by name are loaded in as many processes as are of use; a detector or extractor that is an object stays in
    this process, unless `model_processes` is given. With `mend` videos are processed one at a time.
    """
    from jostle.evaluation.inference.feature_detection import read_video_scores
    from jostle.io.files.annotations import read_truth

    named = isinstance(config.detector, str)
    if not named and (config.weights is not None or config.settings):
        raise BadValue("weights and settings go with the name of a detector; one of your own has them already")
    known = config.truth if config.truth is None or isinstance(config.truth, Truth) else read_truth(config.truth)
    scores = None if config.video_scores is None else read_video_scores(config.video_scores)
    classes = () if scores is None else scores.classes
    spec = DetectorSpec(config.detector, config.weights, config.settings or {}, known, classes)
    model = spec.get()
    frames = looks_at_frames(model)
    if frames and config.extractor is not None:
        raise BadValue(f"{type(model).__name__} processes frames itself; leave the extractor out")
    if config.extractor is None and not frames:
        return _detect_in_features(config, spec, model, known, scores)
    return _detect_in_videos(config, spec, model, known, scores)


def _detect_in_features(
    config: DetectConfig, spec: DetectorSpec, model: Detector[Any], known: Truth | None, scores: VideoScores | None
) -> Predictions:
    from jostle.evaluation.inference.feature_detection import detect_features, read_grid

    if config.spec or config.placement is not None or config.segments is not None:
        raise BadValue("features cannot be corrupted any more: give the video and an extractor")
    if config.mend is not None:
        raise BadValue("damaged frames are found in video: give that and an extractor, or extract with --mend")
    return detect_features(
        spec.moved(model, config.device),
        Path(config.source),
        read_grid(Path(config.source)) if config.grid is None else config.grid,
        truth=known,
        duration=config.duration,
        video_scores=scores,
        progress=config.progress,
    )


def _detect_in_videos(
    config: DetectConfig, spec: DetectorSpec, model: Detector[Any], known: Truth | None, scores: VideoScores | None
) -> Predictions:
    from jostle.api.engines import place_of
    from jostle.evaluation.inference.remote import connect_predictor
    from jostle.evaluation.inference.video_detection import ByClips, ByFeatures, Find, detect_videos

    jobs, model_processes = config.jobs, config.model_processes
    mending_options = None if config.mend is None else MendingOptions(config.mend)
    if mending_options is not None:
        mending_options.check(known=False)
        jobs, model_processes = 1, 0  # `on_mended` is called in this process
    videos, corrupting = videos_and_corruptions(config, Path(config.source), known)
    names = isinstance(config.detector, str) and (config.extractor is None or isinstance(config.extractor, str))
    with place_of(
        "local",
        config.device if names else "cpu",  # things of the caller's are where they are
        jobs,
        many=len(videos) > 1 and jobs != 1,
        model_processes=model_processes,
        picklable=names,
    ) as place:
        load = partial(spec.looking, config.extractor, config.extractor_weights, place.device)
        with place.serving(load) as served:
            predictor = load(model) if served is None else connect_predictor(served)
            where = str(getattr(predictor.detector, "device", "cpu"))
            mending = None if mending_options is None else mending_options.get(where)
            callback = None if mending is None else config.on_mended  # which need not travel to other processes
            find: Find = ByClips(predictor.detector, corrupting, scores, mending, callback)
            if not looks_at_frames(model):
                find = ByFeatures(predictor.detector, predictor.extractor, corrupting, scores, mending, callback)
            rates = rates_of(videos, known, config.fps)
            return detect_videos(
                find, videos, rates=rates, on_bad=config.on_bad, jobs=place.jobs, progress=config.progress
            )


@dataclass(frozen=True)
class DetectorSpec:
    """Detector given by name or as an object; one given by name is loaded anew in each process."""

    given: str | Detector[Any]  # a name, or the thing itself
    weights: str | Path | None
    settings: Mapping[str, Any]
    truth: Truth | None  # gives names to classes that it knows by number
    classes: tuple[str, ...]  # of a video classifier's scores, which go before

    def get(self) -> Detector[Any]:
        """The detector, its classes named."""
        model = self.given
        if isinstance(model, str):
            model = load_detector(model, weights=self.weights, **self.settings)
        if self.classes:
            model.config = replace(model.config, class_names=self.classes)
        elif self.truth is not None:
            name_classes(model, self.truth)
        return model

    def moved(self, model: Detector[Any], device: str) -> Detector[Any]:
        """On a device, if it is one by name; others are where they are."""
        if self._named and hasattr(model, "to"):
            from jostle.models.devices import device_for

            model.to(device_for(device))
        return model

    def looking(
        self, extractor: Any, weights: str | Path | None, device: str, loaded: Detector[Any] | None = None
    ) -> Any:
        """Return the factory of detector and extractor.

        Args:
            loaded: the detector, where it is at hand.
        """
        from jostle.evaluation.inference.detection import ClipDetectionPredictor, FeatureDetectionPredictor
        from jostle.models.devices import one_thread
        from jostle.models.loading.extractor import load_extractor

        model: Any = self.moved(self.get() if loaded is None else loaded, device)
        if looks_at_frames(model):
            return ClipDetectionPredictor(model, one_thread)
        if isinstance(extractor, str):
            extractor = load_extractor(extractor, weights=weights, device=device)
        return FeatureDetectionPredictor(extractor, model, one_thread)

    @property
    def _named(self) -> bool:
        return isinstance(self.given, str)


@takes(ExtractConfig)
def extract(config: ExtractConfig) -> ExtractionSummary:
    """Write the features of a video, or of every video in a folder, as `<out>/<video id>.npy` and `features.json`.

    What is there already and was made the same way from the same video is left as it is, so a stopped run goes on. An
    extractor that is an object stays in this process, unless `model_processes` is given. `clean` features are those of
    the video as it is, not mended.

    Raises:
        JostleError: if nothing could be made. Videos of a folder that cannot be read are set aside and listed.
    """
    need_torch("extractors")
    from jostle.api.engines import place_of
    from jostle.evaluation.inference.remote import connect_extractor, load_extractor_predictor
    from jostle.features.folder import extract_videos
    from jostle.models.devices import one_thread

    mending = None if config.mend is None else MendingOptions(config.mend)
    if mending is not None:
        mending.check(known=False)
    with video_path(config.source, config.video_id, config.fps) as path:
        videos, corrupting = videos_and_corruptions(config, path, config.truth, config.subset)
        changes = {} if config.stride is None else {"stride": config.stride}
        spec = ExtractorSpec(config.extractor, config.weights)
        with place_of(
            "local",
            config.device,
            config.jobs,
            many=len(videos) > 1 and config.jobs != 1,
            model_processes=config.model_processes,
            picklable=isinstance(config.extractor, str),
        ) as place:
            load: Callable[[], FeatureExtractor] = partial(spec.get, device=place.device, **changes)
            with place.serving(partial(load_extractor_predictor, load, one_thread)) as served:
                if served is not None:
                    load = partial(connect_extractor, served)
                here = place.device if served is None else "cpu"  # device of the inspector
                return extract_videos(
                    videos,
                    load,
                    Path(config.out),
                    name=spec.name,
                    weights=spec.fingerprint(),
                    corrupting=corrupting,
                    rule=config.rule,
                    reproduce_bugs=config.reproduce_bugs,
                    keep_frames=config.keep_frames,
                    clean=None if config.clean is None else Path(config.clean),
                    mend=None if mending is None else partial(mending.get, here),
                    rates=rates_of(videos, config.truth, config.fps),
                    overwrite=config.overwrite,
                    jobs=place.jobs,
                    progress=config.progress,
                )


def _check_names(config: TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig) -> None:
    """Check names before torch is imported, which takes seconds."""
    from jostle.models.loading.names import check_known
    from jostle.training.detection_config import FrameTrainingConfig, TrainingConfig
    from jostle.training.inspection_config import InspectionConfig

    if isinstance(config, InspectionConfig):
        return
    if isinstance(config, TrainingConfig):
        check_known("detectors", config.detector)
        return
    if isinstance(config, FrameTrainingConfig):
        check_known("detectors", config.detector)
    elif config.model is None:
        check_known("models", config.recogniser)
    check_known("datasets", config.data.dataset)


def train(
    config: str | Path | TrainingConfig | RecognitionConfig | FrameTrainingConfig | InspectionConfig,
    out: str | Path,
    *,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> TrainingResult:
    """Train a detector or a recogniser, clean or robust, or an inspector; a run that was stopped in `out` goes on.

    Args:
        config: a TOML file, whose `task` says what is trained, or the settings themselves.
        out: folder for checkpoint, log and weights.
        overrides: `key=value`, on top of the file.
        progress: called with (steps done, steps in all).
        watch: called with what the run is going to do, then after each step with where it stands: loss and scores.
    """
    need_torch("training")
    from jostle.training.config_loading import read_training

    if isinstance(config, str | Path):
        config = read_training(config, overrides)
    elif list(overrides):
        raise BadValue("overrides go with a file of settings; change the settings themselves")
    _check_names(config)
    from jostle.training.loop import train as run

    return run(config, Path(out), on_step=progress, watch=watch)


def export(
    part: str | Any,
    out: str | Path,
    *,
    weights: str | Path | None = None,
    network: str = "causal",
    **changes: Any,
) -> OnnxFile:
    """Write a network as an ONNX file, compared with torch where ONNX Runtime is installed.

    Args:
        part: `inspector`, or the name of a recogniser or of a feature detector; or one that is loaded.
        out: the .onnx file to write; it appears when it is complete, or not at all.
        weights: of the part; for `inspector` by default the bundled ones.
        network: of an inspector: `causal` for live use, or `both`, which looks at both sides.
        changes: settings of a model, as when it is loaded.

    Raises:
        BadValue: if torch cannot export this network.
        MissingExtra: if onnx and onnxscript are not installed.
    """
    need_torch("export to ONNX")
    path = Path(out)
    if isinstance(part, str):
        part, name = _load_part(part, weights, changes), part
    elif weights is not None or changes:
        raise BadValue("weights and settings go with the name of a part; one that is loaded has them already")
    else:
        name = type(part).__name__
    from jostle.mending.exported_inspector import export_inspector
    from jostle.mending.inspector import Inspector
    from jostle.models.detection.detector import Detector
    from jostle.models.onnx_export import export_detector, export_recogniser
    from jostle.models.recognition.recogniser import Recogniser

    if isinstance(part, Inspector):
        return export_inspector(part, path, side=network)
    if isinstance(part, Recogniser):
        return export_recogniser(part, path)
    if isinstance(part, Detector):
        return export_detector(part, path, name)
    raise BadValue(f"{name}: only an inspector, a recogniser or a feature detector can be exported")


def _load_part(name: str, weights: str | Path | None, changes: dict[str, Any]) -> Any:
    from jostle.models.detection.detector import detectors
    from jostle.models.recognition.recogniser import recognisers

    if name == INSPECTOR:
        return load_inspector(weights or BUNDLED)
    if name in detectors:
        return load_detector(name, weights=weights, **changes)
    if name in recognisers or "/" in name or ":" in name:
        return load_recogniser(name, weights=weights, **changes)
    raise UnknownName("part to export", name, [INSPECTOR, *detectors, *recognisers])


def compare_preparation(
    model: str | InputSpec | Any, transform: str | Callable[[Any], Any], video: str | Path | Clip | Frames | None = None
) -> PreparationDifference:
    """Compare how a model's frames are prepared here with a transform of yours, as it was used in training.

    Args:
        model: a recogniser's name, an import path, an object with a `spec`, or an `InputSpec`.
        transform: a callable such as torchvision's `Compose`, or its import path. It is given a tensor (T, 3, H, W)
            uint8, or single pictures if it refuses that.
        video: a file, a clip or frames (T, H, W, 3) uint8; by default frames of odd sizes are made, at which ways of
            rounding differ.

    Raises:
        BadValue: if there is no spec, or F193 if the transform takes no frames.
    """
    need_torch("preparation of frames")
    from jostle.core.plugins import import_object, is_import_path
    from jostle.models.input_spec import InputSpec
    from jostle.models.preprocessing.transforms import compare_preparation as compare
    from jostle.models.recognition.recogniser import find_kind

    if isinstance(model, str):
        model = import_object(model, "model") if is_import_path(model) else find_kind(model).spec
    spec = model if isinstance(model, InputSpec) else getattr(model, "spec", None)
    if not isinstance(spec, InputSpec):
        raise BadValue(
            "the model has no InputSpec of its own: give an import path of an object with the attribute 'spec', or a "
            "name of `jostle names models` whose input does not come with its weights"
        )
    call = import_object(transform, "transform") if isinstance(transform, str) else transform
    if not callable(call):
        raise BadValue(f"the transform is a {type(call).__name__}, which cannot be called", fault="F193")
    if isinstance(video, str | Path):
        from jostle.api.video import read

        video = read(video)
    frames: Any = getattr(video, "frames", video)
    return compare(spec, call, frames)
