"""Views of one video, clean and under a corruption: plain data of five kinds, for whoever draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from jostle.core.types.boxes import Boxes


@dataclass(frozen=True)
class AnnotatedAction:
    """Annotated action on a timeline."""

    start: float
    end: float
    label: str
    found_clean: bool  # whether a detection of its class took it on clean video
    found_corrupted: bool  # whether one did under the corruption

    @property
    def lost(self) -> bool:
        """Found on clean video, and missed under the corruption."""
        return self.found_clean and not self.found_corrupted


@dataclass(frozen=True)
class Detection:
    """Detection on a timeline, with its kind of error."""

    start: float
    end: float
    label: str
    score: float
    tiou: float  # its overlap with the action of any class that it overlaps most; 0 with none
    kind: str  # `true_positive`, or the kind of error, in the words of DETAD
    action: int | None  # the number of that action, or of the one it took; None if it touches none
    first: bool = True  # whether it counts where only the first one of its label does


@dataclass(frozen=True)
class TimelineView:
    """Actions and detections along a video.

    Attributes:
        video: its id.
        tiou: overlap from which a detection is right.
        tious: overlaps to choose from.
        actions: by their beginning.
        clean: detections on clean video, by their beginning.
        corrupted: detections under the corruption.
        length: duration of the video in seconds; None if unknown.
        threshold: score from which detections count.
        by_sentence: whether labels are sentences, each with windows of its own, of which the first counts.
    """

    kind: ClassVar[str] = "timeline"
    video: str
    tiou: float
    tious: tuple[float, ...]
    actions: tuple[AnnotatedAction, ...]
    clean: tuple[Detection, ...]
    corrupted: tuple[Detection, ...]
    length: float | None = None
    threshold: float = 0.0
    by_sentence: bool = False

    @property
    def end(self) -> float:
        """Time at which the last action or detection ends."""
        ends = [*(one.end for one in self.actions), *(one.end for one in (*self.clean, *self.corrupted))]
        return max(ends, default=0.0)


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class, clean and corrupted."""

    label: str
    clean: float
    corrupted: float
    true: bool  # whether the video is of this class


@dataclass(frozen=True)
class ClassScoresView:
    """Scores of the classes of a whole video."""

    kind: ClassVar[str] = "classes"
    video: str
    k: int  # how many guesses the model has
    # Whether a class of the video is among them
    right_clean: bool
    right_corrupted: bool
    # The classes of the video, and those that were scored highest, clean or corrupted; best clean first
    scores: tuple[ClassScore, ...]
    classes: int  # how many there are in all


@dataclass(frozen=True)
class GivenAnswer:
    """Answer to one question in one cell."""

    choice: int | None  # index of the option; None if it is unreadable or missing
    text: str  # the option, or `unreadable` or `missing`
    right: bool
    probabilities: tuple[float, ...] | None
    generated: str | None  # text of the model, where there is one


@dataclass(frozen=True)
class AnsweredItem:
    """Item that a model was asked about, with its options, and its answers on clean and on corrupted video."""

    id: str
    text: str
    kind: str
    options: tuple[str, ...]
    answer: int  # index of the right option
    needs_order: bool | None
    start: float | None  # of the stretch that it is about, in seconds; None for the whole video
    end: float | None
    clean: GivenAnswer
    corrupted: GivenAnswer


@dataclass(frozen=True)
class ItemTableView:
    """Items that a model was asked about, a row each."""

    kind: ClassVar[str] = "items"
    video: str
    items: tuple[AnsweredItem, ...]


@dataclass(frozen=True)
class FrameAnswer:
    """A frame before a classifier."""

    frame: str  # its name, `<video>/<frame>`
    classes: tuple[int, ...]  # those it may be taken for
    # The predicted class; None where the frame was not evaluated
    clean: int | None
    corrupted: int | None

    @property
    def right_clean(self) -> bool:
        """Whether the clean answer is one of the classes."""
        return self.clean in self.classes

    @property
    def right_corrupted(self) -> bool:
        """Whether the answer under the corruption is one of the classes."""
        return self.corrupted in self.classes


@dataclass(frozen=True)
class FrameSetAnswers:
    """An anchor and the frames that look like it."""

    anchor: FrameAnswer
    neighbours: tuple[FrameAnswer, ...]


@dataclass(frozen=True)
class FrameSetsView:
    """Sets of similar frames of a video, with a class for each frame."""

    kind: ClassVar[str] = "frames"
    video: str
    k: int  # radius in frames
    sets: tuple[FrameSetAnswers, ...]


@dataclass(frozen=True)
class BoxedFrame:
    """A frame with its true and its detected boxes."""

    frame: str  # its name, `<video>/<frame>`
    anchor: bool
    true: Boxes
    clean: Boxes | None  # None where the frame was not evaluated
    corrupted: Boxes | None


@dataclass(frozen=True)
class BoxesView:
    """Boxes of objects in frames of a video."""

    kind: ClassVar[str] = "boxes"
    video: str
    k: int  # radius in frames
    classes: tuple[str, ...]
    frames: tuple[BoxedFrame, ...]


VideoView: TypeAlias = TimelineView | ClassScoresView | ItemTableView | FrameSetsView | BoxesView
