"""Detectors over features or video."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.corrupting import SegmentsLike
from jostle.errors import BadValue, JostleError
from jostle.loading.detector import load_detector, looks_at_frames, name_classes
from jostle.loading.inspector import AskedMending
from jostle.types.predictions import Predictions
from jostle.types.truth import Truth

if TYPE_CHECKING:
    from jostle.corrupting.spec import Spec
    from jostle.detectors.detector import Detector
    from jostle.looking.detection import Grid
    from jostle.looking.video_detection import OnMended
    from jostle.models.extractor import Extractor
    from jostle.models.inspector import Inspector

Progress = Callable[[int, int], None]


def detect(
    source: str | Path,
    detector: str | Detector[Any],
    *,
    weights: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    truth: Truth | str | Path | None = None,
    grid: Grid | None = None,
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
    """What a detector finds in a feature file or a video, or in each of a folder.

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
        spec: corruptions that befall the video first, in order.
        placement: which frames they strike; by default what each spec says.
        segments: the actions of a single video, for placements that need them.
        video_id: of a single video; by default the name of the file without its ending.
        seed: of random draws.
        fps: the rate of images, where neither `times.json` nor the truth says it.
        jobs: videos at once, each in a process of its own; None for one a core, if detector and extractor are names.
        model_processes: processes that hold the models, for those that decode and corrupt to ask; 0 for models in each
            of those. By default one a GPU for names and several videos, and none on a CPU.
        device: of names: `auto`, `cpu` or `cuda`.
        mend: replace what struck frames of video touch by what lies around it: `jostle` for the inspector that comes
            along, weights of your own, or an `Inspector` says which they are. It runs on the detector's device, one
            video at a time.
        on_mended: told of each video what became of its struck frames.
        on_bad: told of a video of a folder that cannot be used, which is then left out.
    """
    from jostle.filing.files import read_truth
    from jostle.looking.detection import detect_features, grid_of, read_video_scores

    named = isinstance(detector, str)
    if not named and (weights is not None or settings):
        raise BadValue("weights and settings go with the name of a detector; one of your own has them already")
    known = truth if truth is None or isinstance(truth, Truth) else read_truth(truth)
    scores = None if video_scores is None else read_video_scores(video_scores)
    asked = AskedDetector(detector, weights, settings or {}, known, () if scores is None else scores.classes)
    made = asked.get()
    frames = looks_at_frames(made)
    if frames and extractor is not None:
        raise BadValue(f"{type(made).__name__} looks at frames itself; leave the extractor out")
    if extractor is None and not frames:
        if spec or placement is not None or segments is not None:
            raise BadValue("features cannot be corrupted any more: give the video and an extractor")
        if mend is not None:
            raise BadValue("struck frames are found in video: give that and an extractor, or extract with --mend")
        return detect_features(
            asked.moved(made, device),
            Path(source),
            grid_of(Path(source)) if grid is None else grid,
            truth=known,
            duration=duration,
            video_scores=scores,
            progress=progress,
        )
    from jostle.api.engines import place_of
    from jostle.api.sources import rates_of, videos_and_corruptions
    from jostle.looking.remote import look_from_afar
    from jostle.looking.video_detection import ByClips, ByFeatures, Find, detect_videos

    wanted = None if mend is None else AskedMending(mend)
    if wanted is not None:
        wanted.check(known=False)
        jobs, model_processes = 1, 0  # what finds struck frames and what looks share one process
    videos, corrupting = videos_and_corruptions(
        source, spec, placement, segments=segments, truth=known, subset=None, video_id=video_id, seed=seed
    )
    names = named and (extractor is None or isinstance(extractor, str))
    with place_of(
        "local",
        device if names else "cpu",  # things of the caller's are where they are
        jobs if jobs is not None or names else 1,
        many=names and len(videos) > 1 and jobs != 1,
        model_processes=model_processes,
    ) as place:
        load = partial(asked.looking, extractor, extractor_weights, place.device)
        with place.serving(load) as served:
            look = load(made) if served is None else look_from_afar(served)
            mending = None if wanted is None else wanted.get(str(getattr(look.detector, "device", "cpu")))
            told = None if mending is None else on_mended  # which need not travel to other processes
            find: Find = ByClips(look.detector, corrupting, scores, mending, told)
            if not frames:
                find = ByFeatures(look.detector, look.extractor, corrupting, scores, mending, told)
            rates = rates_of(videos, known, fps)
            return detect_videos(find, videos, rates=rates, on_bad=on_bad, jobs=place.jobs, progress=progress)


@dataclass(frozen=True)
class AskedDetector:
    """A detector as it was asked for; of a name, it travels to other processes and gives the detector there.

    Attributes:
        given: a name, or the thing itself.
        truth: gives names to classes that it knows by number.
        classes: of a video classifier's scores, which go before.
    """

    given: str | Detector[Any]
    weights: str | Path | None
    settings: Mapping[str, Any]
    truth: Truth | None
    classes: tuple[str, ...]

    def get(self) -> Detector[Any]:
        """The detector, its classes named."""
        made = self.given
        if isinstance(made, str):
            made = load_detector(made, weights=self.weights, **self.settings)
        if self.classes:
            made.config = replace(made.config, class_names=self.classes)
        elif self.truth is not None:
            name_classes(made, self.truth)
        return made

    def moved(self, made: Detector[Any], device: str) -> Detector[Any]:
        """On a device, if it is one by name; others are where they are."""
        if self._named and hasattr(made, "to"):
            from jostle.detectors.devices import device_for

            made.to(device_for(device))
        return made

    def looking(
        self, extractor: Any, weights: str | Path | None, device: str, loaded: Detector[Any] | None = None
    ) -> Any:
        """Both models, as they are asked.

        Args:
            loaded: the detector, where it is at hand.
        """
        from jostle.loading.extractor import load_extractor
        from jostle.looking.detecting import DetectingByClips, DetectingByFeatures
        from jostle.models.threads import one_thread

        made: Any = self.moved(self.get() if loaded is None else loaded, device)
        if looks_at_frames(made):
            return DetectingByClips(made, one_thread)
        if isinstance(extractor, str):
            extractor = load_extractor(extractor, weights=weights, device=device)
        return DetectingByFeatures(extractor, made, one_thread)

    @property
    def _named(self) -> bool:
        return isinstance(self.given, str)
