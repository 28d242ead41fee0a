"""Detection from feature files: a file or a folder of them, with rates and durations of the videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import describe, join_names
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.videos import find_videos
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.inference.jobs import call_model
from jostle.features.store import VideoEntry, read_store
from jostle.io.files.arrays import check_length, read_features
from jostle.io.files.text import read_json
from jostle.io.files.video_ids import normalize_id
from jostle.io.video.video_source import video_suffixes


class DetectsInFeatures(Protocol):
    """Protocol of detectors that find segments in features; jostle's feature detectors implement it."""

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
class FeatureGrid:
    """Temporal layout of features, and how their files are named."""

    stride: int = 4  # frames between two rows
    window: int = 16  # frames that one row covers
    fps: float | None = None  # rate of videos without a rate in the ground truth
    prefix: str = ""  # part of a file name before the video id
    suffix: str = ".npy"  # part of a file name after the video id


@dataclass(frozen=True)
class VideoScores:
    """Scores of whole videos by a classifier."""

    scores: Mapping[str, npt.NDArray[np.float64]]  # by video id without `v_`, (C,) each
    classes: tuple[str, ...] = ()  # names of the classes; empty if the file gives none

    def of(self, video_id: str) -> npt.NDArray[np.float64]:
        """Return the scores of one video, whether or not its id starts with `v_`."""
        scores = self.scores.get(video_id.removeprefix("v_"))
        if scores is None:
            raise DataError(
                f"no video scores for {video_id}; the file has those of {join_names(self.scores)}", fault="F21"
            )
        return scores


def read_grid(source: Path) -> FeatureGrid:
    """Read the grid that `jostle extract` recorded beside features; by default that of THUMOS14.

    Raises:
        DataError: if the record is damaged.
    """
    recorded = read_store(source if source.is_dir() else source.parent)
    return FeatureGrid() if recorded is None else FeatureGrid(recorded[0].stride, recorded[0].window)


def holds_video(source: Path, prefix: str, suffix: str) -> bool:
    """Return whether a path has to be decoded: a video, or a folder with videos and without features."""
    if not source.is_dir():
        return source.suffix.lower() in video_suffixes()
    return next(source.glob(f"{prefix}*{suffix}"), None) is None and bool(find_videos(source))


def feature_files(source: Path, grid: FeatureGrid) -> dict[str, Path]:
    """Return the feature files of a folder, or one file, by video id in the order of their names."""
    if not source.exists():
        raise DataError(f"{source}: no such file or folder; give a .npy file of features or a folder of them")
    paths = [source] if source.is_file() else sorted(source.glob(f"{grid.prefix}*{grid.suffix}"))
    recorded = {entry.file: name for name, entry in _read_entries(source).items()}
    files = {
        recorded.get(path.name) or normalize_id(path.name.removeprefix(grid.prefix).removesuffix(grid.suffix)): path
        for path in paths
    }
    if not files:
        raise DataError(f"{source}: no file is called {grid.prefix}<video id>{grid.suffix}; check prefix and suffix")
    return files


def read_video_scores(path: str | Path) -> VideoScores:
    """Read video scores as ActivityNet's classifiers write them: `{"results": {id: [scores]}, "class": [names]?}`."""
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
        scores[normalize_id(name).removeprefix("v_")] = row
    if len({len(row) for row in scores.values()}) > 1:
        raise DataError(f"{path}: videos have different numbers of scores; each class needs one", fault="F36")
    names = content.get("class", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: 'class' is {describe(names)}, not the names of the classes", fault="F45")
    return VideoScores(scores, tuple(names))


def detect_features(
    detector: DetectsInFeatures,
    source: Path,
    grid: FeatureGrid,
    *,
    truth: Truth | None = None,
    duration: float | None = None,
    video_scores: VideoScores | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Run a detector on each feature file.

    Rate and duration of a video are those that `jostle extract` recorded beside its features, if it did.

    Args:
        truth: rate and duration of other videos; files of videos it does not contain are skipped.
        duration: of a single video, in seconds; by default the recorded one, or the extent of the features.
    """
    files = feature_files(source, grid)
    if truth is not None:
        matched = {name: files[name] for name in truth.videos if name in files}
        if not matched:
            raise DataError(
                f"{source}: none of its {len(files)} files belongs to a video of the truth; they are "
                f"{join_names(files)}, the videos {join_names(truth.videos)}; check prefix and suffix",
                fault="F21",
            )
        files = matched
    rows = {name: i for i, name in enumerate(truth.videos)} if truth is not None else {}
    recorded = _read_entries(source)
    segments: dict[str, Segments] = {}
    for done, (name, path) in enumerate(files.items(), 1):
        fps, length = _facts(truth, rows.get(name), recorded.get(name), grid, duration, name)
        features = read_features(path)
        try:
            if length is not None:
                check_length(features, length, fps, grid.stride, grid.window)
            finish = submit_detection(
                detector, features, grid, name=name, fps=fps, duration=length, video_scores=video_scores
            )
            segments[name] = finish()
        except JostleError as error:
            error.add_note(f"in {path}")
            raise
        if progress is not None:
            progress(done, len(files))
    return Predictions.from_segments(segments)


def submit_detection(
    detector: DetectsInFeatures,
    features: npt.NDArray[np.float32],
    grid: FeatureGrid,
    *,
    name: str,
    fps: float,
    duration: float | None,
    video_scores: VideoScores | None = None,
    cell: str = "",
) -> Callable[[], Segments]:
    """Run a detector on the features of one video; the returned function waits for its segments.

    Args:
        duration: seconds; None for the extent of the features.
        cell: of a benchmark, for messages.

    Raises:
        DataError: F78 if the detector fails or returns something else, F121 if its output is not finite.
        ResourceError: if memory ran out.
    """
    reach = ((len(features) - 1) * grid.stride + grid.window) / fps
    extra: dict[str, Any] = {} if video_scores is None else {"video_scores": video_scores.of(name)}
    features.flags.writeable = False  # other detectors share this array
    facts = {"fps": fps, "duration": duration or reach, "stride": grid.stride, "window": grid.window}
    if hasattr(detector, "submit"):
        pending = detector.submit(features, **facts, **extra)
        return lambda: call_model(name, lambda: check_segments(pending()), "detector", cell)
    segments = call_model(name, lambda: check_segments(detector.detect(features, **facts, **extra)), "detector", cell)
    return lambda: segments


def _read_entries(source: Path) -> dict[str, VideoEntry]:
    """Read the entries that `jostle extract` recorded for the videos of a folder, or of a file's folder."""
    recorded = read_store(source if source.is_dir() else source.parent)
    return {} if recorded is None else recorded[1]


def check_segments(output: object) -> Segments:
    """Return a detector's output if it is scored segments, else raise TypeError."""
    if not isinstance(output, Segments):
        raise TypeError(f"it returned {type(output).__name__}, not Segments")
    if output.score is None:
        raise TypeError("its segments have no scores")
    return output


def _facts(
    truth: Truth | None,
    row: int | None,
    recorded: VideoEntry | None,
    grid: FeatureGrid,
    duration: float | None,
    name: str,
) -> tuple[float, float | None]:
    fps, length = grid.fps, duration
    if truth is not None and row is not None:
        if np.isfinite(truth.fps[row]):
            fps = float(truth.fps[row])
        if length is None and np.isfinite(truth.duration[row]):
            length = float(truth.duration[row])
    if recorded is not None:  # the rate of the features, which may differ from the video's
        fps, length = recorded.fps, length or recorded.duration
    if fps is None:
        raise BadValue(f"video {name}: its frame rate is not known; give --fps, or --truth with 'fps' for each video")
    return fps, length
