"""The verb on detection: in features, and in videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.config import DetectConfig
from jostle.api.features import rates_of, videos_and_corruptions
from jostle.core.options import takes
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video_location import location_of
from jostle.errors import BadValue
from jostle.mending.loading import MendingOptions
from jostle.models.loading.detectors import load_detector, looks_at_frames, name_classes

if TYPE_CHECKING:
    from jostle.evaluation.inference.feature_detection import VideoScores
    from jostle.models.detection.detector import Detector


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
        location_of(config.source),
        read_grid(location_of(config.source)) if config.grid is None else config.grid,
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
    videos, corrupting = videos_and_corruptions(config, location_of(config.source), known)
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
        from jostle.models.loading.extractors import load_extractor

        model: Any = self.moved(self.get() if loaded is None else loaded, device)
        if looks_at_frames(model):
            return ClipDetectionPredictor(model, one_thread)
        if isinstance(extractor, str):
            extractor = load_extractor(extractor, weights=weights, device=device)
        return FeatureDetectionPredictor(extractor, model, one_thread)

    @property
    def _named(self) -> bool:
        return isinstance(self.given, str)
