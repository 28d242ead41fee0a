"""Objects task: boxes in each of several similar frames, scored by pm-k of mean average precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from jostle.core.schema import Bounds, Mismatch
from jostle.core.types.boxes import Boxes, FrameBoxes
from jostle.core.types.frame_sets import BoxSets
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.outputs import ObjectPredictions
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.actions import ActionSpans, check_spans
from jostle.evaluation.tasks.similar_frames import SimilarFramesTask, check_sets, video_of
from jostle.evaluation.tasks.task import Array, Need, task
from jostle.evaluation.tasks.views import BoxedFrame, BoxesView
from jostle.evaluation.tasks.words import Words
from jostle.io.formats.boxes import boxes_to_lists, boxes_to_table, read_boxes, table_to_boxes, write_boxes

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig

Side = Annotated[float, Bounds(-math.inf)]


@dataclass(frozen=True)
class BoxedFrames:
    """Content of truth.json: sets of frames and the objects in them."""

    classes: tuple[str, ...]  # class names by index
    sets: dict[str, tuple[str, ...]]  # frames similar to each anchor
    boxes: dict[str, tuple[tuple[Side, Side, Side, Side, Side], ...]]  # of each frame, rows of class, x1, y1, x2, y2
    actions: ActionSpans | None = None  # spans of the actions in videos, where known

    def __post_init__(self) -> None:
        check_spans(self.actions)
        check_sets(self.sets, self.boxes, "boxes")
        for frame, rows in self.boxes.items():
            if not all(row[0] in range(len(self.classes)) and row[1] <= row[3] and row[2] <= row[4] for row in rows):
                raise Mismatch("has an invalid box or class").under(frame).under("boxes")

    def annotations(self) -> BoxSets:
        """Return the sets that were stored."""
        boxes = {}
        for frame, rows in self.boxes.items():
            table = np.array(rows, np.float64).reshape(-1, 5)
            boxes[frame] = Boxes(table[:, 1:], table[:, 0].astype(np.int64))
        return BoxSets(self.classes, self.sets, boxes)


@task("objects")
class ObjectsTask(SimilarFramesTask[BoxSets, ObjectPredictions]):
    """Task with boxes per video, frames in the order of the sets; scored by pm-k of mean average precision."""

    words = Words(
        title="Object detection",
        tag="object-detection",
        predictions=(
            "`.npz` with `frames` (N,), `counts` (N,) of boxes, and `boxes` (M, 6): class, score, x1, y1, x2, y2"
        ),
        unit="frames",
        group_score="accuracy",
    )
    reads = BoxSets
    stored = BoxedFrames
    models = "objectdetectors"
    takes: ClassVar[Mapping[str, Need]] = {"k": "required"}
    refuses: ClassVar[Mapping[str, str]] = {
        **SimilarFramesTask.refuses,
        "adapt": "is of objects, and adaptation is for recognisers and feature extractors",
    }

    @property
    def classes(self) -> Sequence[str]:
        return self.annotations.classes

    def plain_truth(self) -> Mapping[str, Any]:
        whole = self.annotations
        return {
            "classes": list(whole.classes),
            "sets": {anchor: list(others) for anchor, others in whole.sets.items()},
            "boxes": {frame: boxes_to_lists(whole.boxes[frame]) for frame in whole.frames},
        }

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.objects.model import build_object_detector

        return build_object_detector(recipe, data.objects, config, device)

    def join_portions(self, outputs: Sequence[ObjectPredictions]) -> ObjectPredictions:
        return ObjectPredictions(tuple(boxes for one in outputs for boxes in one.boxes), outputs[0].known)

    def pack(self, outputs: Mapping[str, ObjectPredictions]) -> tuple[dict[str, Array], list[str]]:
        arrays: dict[str, Array] = {}
        known: tuple[str, ...] = ()
        for cell, one in outputs.items():
            counts, table = boxes_to_table(one.boxes)
            head = np.zeros((1, table.shape[1]))
            head[0, 0] = len(counts)
            # One array per cell: the number of frames, the number of boxes of each frame, then the boxes.
            lines = np.zeros((len(counts), table.shape[1]))
            lines[:, 0] = counts
            arrays[cell], known = np.concatenate([head, lines, table]), one.known
        return arrays, list(known)

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, ObjectPredictions]:
        outputs = {}
        for cell, array in arrays.items():
            frames = int(array[0, 0])
            counts = array[1 : 1 + frames, 0].astype(np.int64)
            outputs[cell] = ObjectPredictions(tuple(table_to_boxes(counts, array[1 + frames :])), tuple(classes))
        return outputs

    def write(self, path: Path, outputs: Mapping[str, ObjectPredictions]) -> None:
        found = self.to_predictions(outputs)
        write_boxes(path, found.boxes, found.classes)

    def read(self, path: Path) -> dict[str, ObjectPredictions]:
        by_frame, known = read_boxes(path)
        return {
            video: ObjectPredictions(tuple(by_frame[frame] for frame in frames), known)
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def to_predictions(self, outputs: Mapping[str, ObjectPredictions]) -> FrameBoxes:
        by_frame = {
            frame: boxes
            for video, one in outputs.items()
            for frame, boxes in zip(self.frames_of[video], one.boxes, strict=True)
        }
        return FrameBoxes(by_frame, next(iter(outputs.values())).known)

    def read_predictions(self, path: Path) -> FrameBoxes:
        return FrameBoxes(*read_boxes(path))

    def frames_in(self, predictions: FrameBoxes) -> Sequence[str]:
        return tuple(predictions.boxes)

    def view(
        self, name: str, clean: FrameBoxes, corrupted: FrameBoxes, *, tiou: float | None = None, brief: bool = False
    ) -> BoxesView | None:
        if brief:
            return None  # boxes belong onto frames, of which a report has few
        whole, sides = self.annotations, (clean.boxes, corrupted.boxes)
        frames = tuple(
            BoxedFrame(frame, frame in whole.sets, whole.boxes[frame], *(side.get(frame) for side in sides))
            for frame in whole.frames
            if video_of(frame) == name
        )
        return BoxesView(name, self.benchmark.k or 0, tuple(whole.classes), frames)
