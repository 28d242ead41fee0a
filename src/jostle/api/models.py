"""Verbs of models: features and detections of videos, training, and export as ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.video import SegmentsLike, as_segments, video_path
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
    from jostle.corruptions.engine.spec import Spec
    from jostle.evaluation.inference.feature_detection import FeatureGrid
    from jostle.evaluation.inference.video_detection import OnMended
    from jostle.features.folder import CorruptionOptions, ExtractionSummary
    from jostle.features.options import ReleasedBug, Rule
    from jostle.mending.inspector import Inspector
    from jostle.models.detection.detector import Detector
    from jostle.models.extractors.extractor import Extractor
    from jostle.models.extractors.protocol import FeatureExtractor
    from jostle.models.input_spec import InputSpec
    from jostle.models.onnx_export import OnnxFile
    from jostle.models.preprocessing.transforms import PreparationDifference
    from jostle.models.recognition.recogniser import Recogniser
    from jostle.training.detection_config import FrameTrainingConfig, TrainingConfig
    from jostle.training.events import Watch
    from jostle.training.inspection_config import InspectionConfig
    from jostle.training.loop import TrainingResult
    from jostle.training.recognition_config import RecognitionConfig

INSPECTOR = "inspector"  # name of the part to export


def videos_and_corruptions(
    source: str | Path,
    spec: str | Spec | Sequence[str | Spec],
    placement: str | None,
    *,
    segments: SegmentsLike,
    truth: Truth | str | Path | None,
    subset: str | None,
    video_id: str | None,
    seed: int,
) -> tuple[Mapping[str, Path], CorruptionOptions]:
    """Resolve the videos, and the corruptions to apply to each."""
    from jostle.corruptions.engine.placement import parse_placement
    from jostle.corruptions.engine.spec import Spec
    from jostle.datasets.videos import find_videos, id_at
    from jostle.features.folder import CorruptionOptions

    specs = tuple(str(Spec.parse(one)) for one in ([spec] if isinstance(spec, str | Spec) else spec))
    if placement is not None:
        parse_placement(placement)
        if not specs:
            raise BadValue("a placement says where a corruption strikes: name one as well, with -c SPEC")
    if segments is not None and truth is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    path = Path(source)
    found = find_videos(path) if path.is_dir() else None
    alone = found is None or list(found.values()) == [path]
    if found is not None and not alone:
        if video_id is not None or segments is not None:
            raise BadValue(f"{path} is a folder of them; an id or actions belong to a single video")
        if not found:
            raise DataError(f"{path}: no videos there; give a video, a folder of images, or a folder that holds some")
        videos: Mapping[str, Path] = found
    else:
        videos = {video_id if video_id is not None else id_at(path): path}
    actions, print_of = _actions(videos, as_segments(segments), truth, subset, alone=alone)
    if truth is not None:
        videos = {name: videos[name] for name in actions}
    return videos, CorruptionOptions(specs, placement, seed, actions if specs else {}, print_of if specs else None)


def rates_of(
    videos: Mapping[str, Path], truth: Truth | str | Path | None, fps: Fraction | float | None
) -> dict[str, Fraction]:
    """The rate of each folder of images, as annotations say it, or else as is given."""
    from jostle.errors import JostleError
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


def detect(
    source: str | Path,
    detector: str | Detector[Any],
    *,
    weights: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    truth: Truth | str | Path | None = None,
    grid: FeatureGrid | None = None,
    duration: float | None = None,
    video_scores: str | Path | None = None,
    extractor: str | Extractor | None = None,
    extractor_weights: str | Path | None = None,
    spec: str | Spec | Sequence[str | Spec] = (),
    placement: str | None = None,
    segments: SegmentsLike = None,
    video_id: str | None = None,
    seed: int = 0,
    fps: Fraction | float | None = None,
    jobs: int | None = 1,
    model_processes: int | None = None,
    device: str = "auto",
    mend: str | Path | Inspector | None = None,
    on_mended: OnMended | None = None,
    on_bad: Callable[[str, JostleError], None] | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Detect actions in a feature file, a video, or every file of a folder.

    Args:
        source: features as `.npy`; with an extractor or a detector of frames, video, as files or folders of images.
        detector: what `load_detector` gives, or what it takes.
        weights, settings: of a detector by name.
        truth: gives rate and duration of the videos, and which ones to look at; of video, their actions.
        grid: stride, window, rate and file names of the features; by default what `jostle extract` noted beside them.
        duration: of a single feature file, in seconds.
        video_scores: JSON of a video classifier, for class-agnostic detectors such as those for ActivityNet.
        extractor: makes features of video: what `load_extractor` gives, or a name.
        extractor_weights: of an extractor by name.
        spec: corruptions applied to the video first, in order.
        placement: which frames they corrupt; by default as each spec says.
        segments: the actions of a single video, for placements that need them.
        video_id: of a single video; by default the name of the file without its ending.
        seed: of random draws.
        fps: the rate of images, where neither `times.json` nor the truth says it.
        jobs: videos at once, each in a process of its own; None for one a core.
        model_processes: number of processes that hold the models; 0 for models in each process that decodes. By default
            one for each GPU if there are several videos, and none on a CPU. A detector or extractor that is an object
            stays in this process, unless this number is given.
        device: of names: `auto`, `cpu` or `cuda`.
        mend: replace what damaged frames of video touch by what lies around it: `jostle` for the inspector that comes
            along, weights of your own, or an `Inspector` says which they are. It runs on the detector's device, one
            video at a time.
        on_mended: called with each video and its damaged frames.
        on_bad: called with each unusable video of a folder, which is then left out.
    """
    from jostle.evaluation.inference.feature_detection import detect_features, read_grid, read_video_scores
    from jostle.io.files.annotations import read_truth

    named = isinstance(detector, str)
    if not named and (weights is not None or settings):
        raise BadValue("weights and settings go with the name of a detector; one of your own has them already")
    known = truth if truth is None or isinstance(truth, Truth) else read_truth(truth)
    scores = None if video_scores is None else read_video_scores(video_scores)
    spec_of_detector = DetectorSpec(detector, weights, settings or {}, known, () if scores is None else scores.classes)
    model = spec_of_detector.get()
    frames = looks_at_frames(model)
    if frames and extractor is not None:
        raise BadValue(f"{type(model).__name__} processes frames itself; leave the extractor out")
    if extractor is None and not frames:
        if spec or placement is not None or segments is not None:
            raise BadValue("features cannot be corrupted any more: give the video and an extractor")
        if mend is not None:
            raise BadValue("damaged frames are found in video: give that and an extractor, or extract with --mend")
        return detect_features(
            spec_of_detector.moved(model, device),
            Path(source),
            read_grid(Path(source)) if grid is None else grid,
            truth=known,
            duration=duration,
            video_scores=scores,
            progress=progress,
        )
    from jostle.api.engines import place_of
    from jostle.evaluation.inference.remote import connect_predictor
    from jostle.evaluation.inference.video_detection import ByClips, ByFeatures, Find, detect_videos

    mending_options = None if mend is None else MendingOptions(mend)
    if mending_options is not None:
        mending_options.check(known=False)
        jobs, model_processes = 1, 0  # `on_mended` is called in this process
    videos, corrupting = videos_and_corruptions(
        source, spec, placement, segments=segments, truth=known, subset=None, video_id=video_id, seed=seed
    )
    names = named and (extractor is None or isinstance(extractor, str))
    with place_of(
        "local",
        device if names else "cpu",  # things of the caller's are where they are
        jobs,
        many=len(videos) > 1 and jobs != 1,
        model_processes=model_processes,
        picklable=names,
    ) as place:
        load = partial(spec_of_detector.looking, extractor, extractor_weights, place.device)
        with place.serving(load) as served:
            predictor = load(model) if served is None else connect_predictor(served)
            where = str(getattr(predictor.detector, "device", "cpu"))
            mending = None if mending_options is None else mending_options.get(where)
            callback = None if mending is None else on_mended  # which need not travel to other processes
            find: Find = ByClips(predictor.detector, corrupting, scores, mending, callback)
            if not frames:
                find = ByFeatures(predictor.detector, predictor.extractor, corrupting, scores, mending, callback)
            rates = rates_of(videos, known, fps)
            return detect_videos(find, videos, rates=rates, on_bad=on_bad, jobs=place.jobs, progress=progress)


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


def extract(
    source: str | Path | Any,
    extractor: str | FeatureExtractor | Recogniser,
    out: str | Path,
    *,
    weights: str | Path | None = None,
    spec: str | Spec | Sequence[str | Spec] = (),
    placement: str | None = None,
    segments: SegmentsLike = None,
    truth: Truth | str | Path | None = None,
    subset: str | None = None,
    video_id: str | None = None,
    seed: int = 0,
    fps: Fraction | float | None = None,
    stride: int | None = None,
    rule: Rule = "all",
    reproduce_bugs: Sequence[ReleasedBug] = (),
    keep_frames: bool = False,
    clean: str | Path | None = None,
    mend: str | Path | Inspector | None = None,
    overwrite: bool = False,
    jobs: int | None = 1,
    model_processes: int | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> ExtractionSummary:
    """Write the features of a video, or of every video in a folder, as `<out>/<video id>.npy` and `features.json`.

    What is there already and was made the same way from the same video is left as it is, so a stopped run goes on.

    Args:
        source: a video file or a folder of numbered images, or a folder of either; or a torchcodec `VideoDecoder`, or
            another object with frames and timestamps, whose name is then `video_id`.
        extractor: one of `jostle names extractors`, or of `jostle names models`; `package.module:attribute`; or the
            thing itself, such as what `as_extractor` makes of a recogniser. See `load_extractor`.
        weights: its checkpoint; None for those that come with jostle.
        spec: corruptions to apply first, in order.
        placement: which frames they corrupt; by default as each spec says.
        segments: the actions of a single video as (start, end) pairs in seconds.
        truth: annotations to take actions from; of a folder only the videos named there are extracted.
        subset: only videos of this subset of the truth.
        video_id: of a single video; by default the name of the file without its ending.
        fps: the rate of images, where neither `times.json` nor the truth says it; 30 if nothing does.
        stride: frames from one window to the next, by default the extractor's.
        rule: how windows are counted; see `jostle.features.windows.WindowGrid`.
        reproduce_bugs: faults of the THUMOS14-C extractors to repeat; see there as well.
        keep_frames: also write what was seen of each frame, as `<out>/frames/<video id>.npy`.
        clean: folder of clean features made with `keep_frames`; then only what a corruption changes is computed.
        mend: replace what damaged frames touch by what lies around it: `jostle` for the inspector that comes along,
            weights of your own, or an `Inspector` says which they are. `clean` features are then those of the video as
            it is, not mended.
        overwrite: replace features in `out` that were made otherwise, instead of refusing to.
        jobs: videos at once, each in a process of its own; None for one a core.
        model_processes: number of processes that hold the extractor; 0 for one in each process that decodes. By default
            one for each GPU if there are several jobs, and none on a CPU. An extractor that is an object stays in this
            process, unless this number is given. Features do not depend on it.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (videos done, videos in all), or for a single video with frames.

    Raises:
        JostleError: if nothing could be made. Videos of a folder that cannot be read are set aside and listed.
    """
    need_torch("extractors")
    from jostle.api.engines import place_of
    from jostle.evaluation.inference.remote import connect_extractor, load_extractor_predictor
    from jostle.features.folder import extract_videos
    from jostle.models.devices import one_thread

    mending = None if mend is None else MendingOptions(mend)
    if mending is not None:
        mending.check(known=False)
    with video_path(source, video_id, fps) as path:
        videos, corrupting = videos_and_corruptions(
            path, spec, placement, segments=segments, truth=truth, subset=subset, video_id=video_id, seed=seed
        )
        changes = {} if stride is None else {"stride": stride}
        extractor_spec = ExtractorSpec(extractor, weights)
        named = isinstance(extractor, str)
        many = len(videos) > 1 and jobs != 1
        with place_of("local", device, jobs, many=many, model_processes=model_processes, picklable=named) as place:
            load: Callable[[], FeatureExtractor] = partial(extractor_spec.get, device=place.device, **changes)
            with place.serving(partial(load_extractor_predictor, load, one_thread)) as served:
                if served is not None:
                    load = partial(connect_extractor, served)
                here = place.device if served is None else "cpu"  # device of the inspector
                return extract_videos(
                    videos,
                    load,
                    Path(out),
                    name=extractor_spec.name,
                    weights=extractor_spec.fingerprint(),
                    corrupting=corrupting,
                    rule=rule,
                    reproduce_bugs=reproduce_bugs,
                    keep_frames=keep_frames,
                    clean=None if clean is None else Path(clean),
                    mend=None if mending is None else partial(mending.get, here),
                    rates=rates_of(videos, truth, fps),
                    overwrite=overwrite,
                    jobs=place.jobs,
                    progress=progress,
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
