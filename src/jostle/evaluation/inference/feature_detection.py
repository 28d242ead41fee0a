"""Detections from feature files: a detector, a file or a folder of them, and what is known about their videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.inference.jobs import asked
from jostle.features.store import Entry, read_store
from jostle.io.files.arrays import check_length, read_features
from jostle.io.files.text import describe, read_json
from jostle.io.files.video_ids import listing, normal_id


class FeatureDetector(Protocol):
    """What finds segments in features; every detector of jostle does."""

    def detect(
        self,
        features: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        stride: float = 4,
        window: float = 16,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments: ...


@dataclass(frozen=True)
class Grid:
    """How features lie in time.

    Attributes:
        stride: frames between two rows.
        window: frames a row has seen.
        fps: rate of videos whose rate the truth does not give.
        prefix: what stands before the video's id in a file's name.
        suffix: what stands after it.
    """

    stride: int = 4
    window: int = 16
    fps: float | None = None
    prefix: str = ""
    suffix: str = ".npy"


@dataclass(frozen=True)
class VideoScores:
    """Scores of whole videos by a classifier.

    Attributes:
        scores: by video id without `v_`, (C,) each.
        classes: names of the classes; empty if the file gives none.
    """

    scores: Mapping[str, npt.NDArray[np.float64]]
    classes: tuple[str, ...] = ()

    def of(self, video_id: str) -> npt.NDArray[np.float64]:
        """The scores of one video, whether or not its id starts with `v_`."""
        found = self.scores.get(video_id.removeprefix("v_"))
        if found is None:
            raise DataError(
                f"no video scores for {video_id}; the file has those of {listing(self.scores)}", fault="F21"
            )
        return found


def grid_of(source: Path) -> Grid:
    """How the features in a folder, or in a file of it, lie in time: what `jostle extract` noted there, or THUMOS14's.

    Raises:
        DataError: if the note is damaged.
    """
    noted = read_store(source if source.is_dir() else source.parent)
    return Grid() if noted is None else Grid(noted[0].stride, noted[0].window)


def feature_files(source: Path, grid: Grid) -> dict[str, Path]:
    """The files of a folder, or one file, by video id in the order of their names.

    Raises:
        DataError: if there are none.
    """
    if not source.exists():
        raise DataError(f"{source}: no such file or folder; give a .npy file of features or a folder of them")
    paths = [source] if source.is_file() else sorted(source.glob(f"{grid.prefix}*{grid.suffix}"))
    noted = {entry.file: name for name, entry in _noted(source).items()}
    found = {
        noted.get(path.name) or normal_id(path.name.removeprefix(grid.prefix).removesuffix(grid.suffix)): path
        for path in paths
    }
    if not found:
        raise DataError(f"{source}: no file is called {grid.prefix}<video id>{grid.suffix}; check prefix and suffix")
    return found


def read_video_scores(path: str | Path) -> VideoScores:
    """Video scores as ActivityNet's classifiers publish them: `{"results": {id: [scores]}, "class": [names]?}`.

    Raises:
        DataError: if the file holds something else.
    """
    content = read_json(path)
    results = content.get("results")
    if not isinstance(results, dict):
        raise DataError(f"{path}: needs 'results', scores by video; it holds {describe(content)}", fault="F28")
    scores = {}
    for name, values in results.items():
        plain = isinstance(values, list) and all(type(value) in (int, float) for value in values)
        row = np.array(values if plain else [], np.float64)
        if not len(row) or not np.isfinite(row).all():
            raise DataError(f"{path}: video {name} has {describe(values)}, not a list of scores", fault="F40")
        scores[normal_id(name).removeprefix("v_")] = row
    if len({len(row) for row in scores.values()}) > 1:
        raise DataError(f"{path}: videos have different numbers of scores; each class needs one", fault="F36")
    names = content.get("class", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: 'class' is {describe(names)}, not the names of the classes", fault="F45")
    return VideoScores(scores, tuple(names))


def detect_features(
    detector: FeatureDetector,
    source: Path,
    grid: Grid,
    *,
    truth: Truth | None = None,
    duration: float | None = None,
    video_scores: VideoScores | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """What a detector finds in each feature file.

    Rate and duration of a video are those that `jostle extract` noted beside its features, where it did.

    Args:
        truth: gives rate and duration of other videos; only its videos are looked at.
        duration: of a single video, in seconds; by default what is known of it, or as far as the features reach.
        video_scores: for class-agnostic detectors.

    Raises:
        DataError: if no file belongs to a video of the truth, or features do not fit their video.
    """
    files = feature_files(source, grid)
    if truth is not None:
        wanted = {name: files[name] for name in truth.videos if name in files}
        if not wanted:
            raise DataError(
                f"{source}: none of its {len(files)} files belongs to a video of the truth; they are "
                f"{listing(files)}, the videos {listing(truth.videos)}; check prefix and suffix",
                fault="F21",
            )
        files = wanted
    place = {name: i for i, name in enumerate(truth.videos)} if truth is not None else {}
    noted = _noted(source)
    found: dict[str, Segments] = {}
    for done, (name, path) in enumerate(files.items(), 1):
        fps, length = _facts(truth, place.get(name), noted.get(name), grid, duration, name)
        features = read_features(path)
        try:
            if length is not None:
                check_length(features, length, fps, grid.stride, grid.window)
            finish = segments_later(
                detector, features, grid, name=name, fps=fps, duration=length, video_scores=video_scores
            )
            found[name] = finish()
        except JostleError as error:
            error.add_note(f"in {path}")
            raise
        if progress is not None:
            progress(done, len(files))
    return Predictions.from_segments(found)


def segments_later(
    detector: FeatureDetector,
    features: npt.NDArray[np.float32],
    grid: Grid,
    *,
    name: str,
    fps: float,
    duration: float | None,
    video_scores: VideoScores | None = None,
) -> Callable[[], Segments]:
    """What a detector finds in the features of one video: found here and now, or elsewhere, and then to be waited for.

    Args:
        duration: seconds; None for as far as the features reach.

    Raises:
        DataError: F78 if the detector fails or gives something else.
        ResourceError: if memory ran out.
    """
    reach = ((len(features) - 1) * grid.stride + grid.window) / fps
    extra: dict[str, Any] = {} if video_scores is None else {"video_scores": video_scores.of(name)}
    features.flags.writeable = False  # a detector that writes into its input would spoil the next one's
    facts = {"fps": fps, "duration": duration or reach, "stride": grid.stride, "window": grid.window}
    if hasattr(detector, "later"):
        later = detector.later(features, **facts, **extra)
        return lambda: asked(name, lambda: checked_segments(later()), "detector")
    found = asked(name, lambda: checked_segments(detector.detect(features, **facts, **extra)), "detector")
    return lambda: found


def _noted(source: Path) -> dict[str, Entry]:
    """What `jostle extract` noted of the videos of a folder, or of the folder of a file."""
    noted = read_store(source if source.is_dir() else source.parent)
    return {} if noted is None else noted[1]


def checked_segments(found: object) -> Segments:
    """What a detector gave back, if it is scored segments."""
    if not isinstance(found, Segments):
        raise TypeError(f"it gave {type(found).__name__}, not Segments")
    if found.score is None:
        raise TypeError("its segments have no scores")
    return found


def _facts(
    truth: Truth | None, row: int | None, noted: Entry | None, grid: Grid, duration: float | None, name: str
) -> tuple[float, float | None]:
    fps, length = grid.fps, duration
    if truth is not None and row is not None:
        if np.isfinite(truth.fps[row]):
            fps = float(truth.fps[row])
        if length is None and np.isfinite(truth.duration[row]):
            length = float(truth.duration[row])
    if noted is not None:  # the rate of the features themselves, whatever that of the video is
        fps, length = noted.fps, length or noted.duration
    if fps is None:
        raise BadValue(f"video {name}: its rate is not known; give --fps, or --truth with 'fps' for each video")
    return fps, length
