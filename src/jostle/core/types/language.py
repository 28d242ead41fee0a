"""Questions about videos and moments that sentences describe, with the answers and windows of models."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from jostle.core.types.segments import Segments
from jostle.errors import BadValue, DataError

Item = TypeVar("Item", bound=Any)  # a dataclass with `id` and `video`
MAX_OPTIONS = 26  # letters
Window = tuple[float, float]  # start and end in seconds
ScoredWindow = tuple[float, float, float]  # start, end and score
# Lengths of true windows in seconds, above the first and up to the second.
RANGES = {"short": (0.0, 10.0), "middle": (10.0, 30.0), "long": (30.0, 150.0)}
# So many windows, none of which ends after one second, are taken for shares of the video where true ones end later.
MIN_WINDOWS, MAX_SHARE_END_S = 5, 3.0


@dataclass(frozen=True)
class VideoItems(Generic[Item]):
    """Annotations about the videos of a data set, in the order of the file."""

    noun: ClassVar[str] = "item"  # what one is called

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        if len(self.by_id) < len(self.items):
            ids = [item.id for item in self.items]
            twice = next(one for one in self.by_id if ids.count(one) > 1)
            raise BadValue(f"{self.noun} {twice!r} appears twice")

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """The items by their ids."""
        return {item.id: item for item in self.items}

    @cached_property
    def by_video(self) -> dict[str, tuple[Item, ...]]:
        """The items of each video."""
        groups: dict[str, list[Item]] = {}
        for item in self.items:
            groups.setdefault(item.video, []).append(item)
        return {video: tuple(group) for video, group in groups.items()}

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of the videos, in the order of their first items."""
        return tuple(self.by_video)

    def of_videos(self, names: Collection[str]) -> Self:
        """Return the items about the named videos."""
        selected = set(names)
        return type(self)(tuple(item for item in self.items if item.video in selected))

    def renamed(self, ids: Mapping[str, str]) -> Self:
        """Return the set with other video ids."""
        return type(self)(tuple(replace(item, video=ids.get(item.video, item.video)) for item in self.items))

    @property
    def fingerprint(self) -> str:
        """`sha256:` and a hash of all items, whatever their order."""
        rows = sorted((asdict(item) for item in self.items), key=lambda row: str(row["id"]))
        return f"sha256:{hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()}"

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} {self.noun}s about {len(self.videos)} videos)"


@dataclass(frozen=True, slots=True)
class QuestionItem:
    """One question about a video, with its options.

    Attributes:
        id: unique in its set.
        video: id of the video.
        text: the question, without its options.
        options: without letters, at least two.
        answer: index of the right option; None if it is not published.
        kind: type of question in its data set, or an empty string.
        start: first second of the stretch that the question is about; None for the beginning of the video.
        end: last second of the stretch; None for the end of the video.
        needs_order: whether the answer depends on the order of events; None if nobody says.
        names: how the published file labels each option, such as `Option 1`; empty for letters.
    """

    id: str
    video: str
    text: str
    options: tuple[str, ...]
    answer: int | None
    kind: str = ""
    start: float | None = None
    end: float | None = None
    needs_order: bool | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= MAX_OPTIONS:
            raise BadValue(f"question {self.id!r}: has {len(self.options)} options; 2 to {MAX_OPTIONS} are possible")
        if self.answer is not None and not 0 <= self.answer < len(self.options):
            raise BadValue(
                f"question {self.id!r}: the right option is {self.answer}, and there are {len(self.options)}; "
                "options count from 0"
            )
        if self.names and len(self.names) != len(self.options):
            raise BadValue(f"question {self.id!r}: has {len(self.names)} names for {len(self.options)} options")
        if self.start is not None and self.end is not None and not 0 <= self.start < self.end < math.inf:
            raise BadValue(f"question {self.id!r}: its stretch {self.start} to {self.end} s has no length; correct it")


@dataclass(frozen=True, repr=False)
class QuestionSet(VideoItems[QuestionItem]):
    """Questions about the videos of a data set, in the order of the file."""

    noun = "question"
    task: ClassVar[str] = "questions"
    holds: ClassVar[str] = "questions"
    unit: ClassVar[str] = "questions"

    def of_kind(self, kind: str) -> QuestionSet:
        """Return the questions of one type."""
        return QuestionSet(tuple(item for item in self.items if item.kind == kind))

    @property
    def answered(self) -> QuestionSet:
        """The questions whose right option is known."""
        return QuestionSet(tuple(item for item in self.items if item.answer is not None))


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """Answer of a model to one question.

    Attributes:
        choice: index of the option; None if no rule could read the answer.
        probabilities: one an option, which sum to 1; None where only the choice is known.
        text: the generated text, where there is one.
    """

    choice: int | None
    probabilities: tuple[float, ...] | None = None
    text: str | None = None


@dataclass(frozen=True)
class AnswerSet:
    """Answers of one model by the ids of questions."""

    answers: Mapping[str, QuestionAnswer]

    def checked(self, questions: QuestionSet) -> AnswerSet:
        """Return the answers to these questions.

        Raises:
            DataError: F154 if a choice is no option, F156 if probabilities do not fit the options, F152 if no
                question of the set is answered.
        """
        own = {item.id: self.answers[item.id] for item in questions.items if item.id in self.answers}
        if not own and len(questions):
            given = next(iter(self.answers), None)
            raise DataError(
                f"none of the {len(self.answers)} answers is to a question of the set: its ids are like "
                f"{questions.items[0].id!r}, those of the answers like {given!r}; give the ids of the annotations",
                fault="F152",
            )
        for name, answer in own.items():
            options = len(questions.by_id[name].options)
            if answer.choice is not None and not 0 <= answer.choice < options:
                counted = "; options count from 0" if answer.choice == options else ""
                raise DataError(
                    f"question {name!r}: the choice {answer.choice} is none of its {options} options{counted}",
                    fault="F154",
                )
            check_probabilities(name, answer.probabilities, options)
        return AnswerSet(own)

    def __len__(self) -> int:
        return len(self.answers)


def check_probabilities(question: str, probabilities: tuple[float, ...] | None, options: int) -> None:
    """Raise F156 unless probabilities are one for each option, not negative, and sum to 1."""
    if probabilities is None:
        return
    if len(probabilities) != options:
        raise DataError(
            f"question {question!r}: has {len(probabilities)} probabilities for {options} options; give one each",
            fault="F156",
        )
    if not all(math.isfinite(one) and one >= 0 for one in probabilities) or abs(math.fsum(probabilities) - 1) > 1e-3:
        raise DataError(
            f"question {question!r}: its probabilities must be at least 0 and sum to 1; normalise them over the "
            f"options, or give the choice alone; got {', '.join(f'{one:g}' for one in probabilities[:6])}",
            fault="F156",
        )


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
    task: ClassVar[str] = "moments"
    holds: ClassVar[str] = "sentences and their moments"
    unit: ClassVar[str] = "sentences"

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
