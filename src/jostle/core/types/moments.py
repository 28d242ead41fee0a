"""Moments that sentences describe, and the windows in which a model finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jostle.core.types.segments import Segments
from jostle.core.types.video_items import VideoItems
from jostle.errors import BadValue, DataError

Window = tuple[float, float]  # start and end in seconds
ScoredWindow = tuple[float, float, float]  # start, end and score
# So many windows, none of which ends after one second, are taken for shares of the video where true ones end later.
MIN_WINDOWS, MAX_SHARE_END_S = 5, 3.0


@dataclass(frozen=True, slots=True)
class MomentItem:
    """One sentence about a video, and the windows that it describes.

    Attributes:
        id: unique in its set.
        video: id of the video.
        text: the sentence.
        windows: the true windows in seconds; empty if they are not published.
        duration: of the video in seconds; None if the file does not say.
        clips: two-second clips of the video that annotators rated, by their numbers.
        saliency: ratings of each of these clips, 0 to 4, one an annotator.
    """

    id: str
    video: str
    text: str
    windows: tuple[Window, ...]
    duration: float | None = None
    clips: tuple[int, ...] = ()
    saliency: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for start, end in self.windows:
            if not (math.isfinite(start) and math.isfinite(end) and 0 <= start < end):
                raise BadValue(f"sentence {self.id!r}: its window {start} to {end} s has no length; correct it")
        if len(self.clips) != len(self.saliency) or len({len(row) for row in self.saliency}) > 1:
            raise BadValue(
                f"sentence {self.id!r}: rates {len(self.saliency)} of {len(self.clips)} clips; give one each"
            )


@dataclass(frozen=True, repr=False)
class MomentSet(VideoItems[MomentItem]):
    """Sentences about the videos of a data set, in the order of the file."""

    noun = "sentence"

    @property
    def actions(self) -> dict[str, Segments]:
        """The windows of each video, for placements; one that several sentences share counts once."""
        pairs = {
            video: sorted({window for item in items for window in item.windows})
            for video, items in self.by_video.items()
        }
        return {video: Segments.from_pairs(windows) for video, windows in pairs.items() if windows}

    @property
    def located(self) -> MomentSet:
        """The sentences whose windows are known."""
        return MomentSet(tuple(item for item in self.items if item.windows))


@dataclass(frozen=True, slots=True)
class MomentPrediction:
    """Windows that a model gives for one sentence, best first, and the saliency of the video's clips."""

    windows: tuple[ScoredWindow, ...]
    saliency: tuple[float, ...] = ()


@dataclass(frozen=True)
class MomentPredictions:
    """Predicted windows of one model by the ids of sentences."""

    predictions: Mapping[str, MomentPrediction]

    def checked(self, moments: MomentSet) -> MomentPredictions:
        """Return the predictions for these sentences.

        Raises:
            DataError: F155 if a window is not finite or ends before it begins, F158 if windows are shares of the video
                instead of seconds, F152 if no sentence of the set has any.
        """
        own = {item.id: self.predictions[item.id] for item in moments.items if item.id in self.predictions}
        if not own and len(moments):
            given = next(iter(self.predictions), None)
            raise DataError(
                f"none of the {len(self.predictions)} predictions is for a sentence of the set: its ids are like "
                f"{moments.items[0].id!r}, those of the predictions like {given!r}; give the ids of the annotations",
                fault="F152",
            )
        for name, prediction in own.items():
            for window in prediction.windows:
                if not all(map(math.isfinite, window)) or window[1] < window[0]:
                    raise DataError(
                        f"sentence {name!r}: the window {window[0]:g} to {window[1]:g} s with score {window[2]:g} is "
                        "not finite or ends before it begins; correct or remove it",
                        fault="F155",
                    )
            if not all(map(math.isfinite, prediction.saliency)):
                raise DataError(f"sentence {name!r}: a saliency is not finite; correct it", fault="F155")
        _refuse_shares(own, moments)
        return MomentPredictions(own)

    def __len__(self) -> int:
        return len(self.predictions)


def _refuse_shares(predictions: Mapping[str, MomentPrediction], moments: MomentSet) -> None:
    """Raise F158 if every predicted window lies within one second and the true ones do not."""
    ends = [window[1] for one in predictions.values() for window in one.windows]
    true_ends = sorted(end for name in predictions for _, end in moments.by_id[name].windows)
    if len(ends) >= MIN_WINDOWS and max(ends) <= 1 and true_ends and true_ends[len(true_ends) // 2] > MAX_SHARE_END_S:
        raise DataError(
            f"all {len(ends)} predicted windows end within the first second, and half of the true ones after "
            f"{true_ends[len(true_ends) // 2]:g} s: these look like shares of the video; multiply by its duration",
            fault="F158",
        )
