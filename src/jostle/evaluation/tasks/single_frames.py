"""Tasks over sets of similar frames: frame classification and object detection, scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.core.types.boxes import FrameBoxes
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.core.types.score_table import ScoreTable
from jostle.datasets.class_matching import Scores
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.inference.single_frames import ObjectPredictions
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Item, Task, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.io.formats.boxes import boxes_to_lists, boxes_to_table, read_boxes, table_to_boxes, write_boxes

PORTION = 256  # frames per results file, so that a slow network on a long video can be stopped at any time


class SingleFramesTask(Task[Output]):
    """Base of tasks whose model processes the frames of sets one by one."""

    def uses_video(self, name: str) -> bool:
        return name in self.frames_of

    @cached_property
    def frames_of(self) -> dict[str, tuple[str, ...]]:
        """Frames with a file, by video."""
        by_video: dict[str, list[str]] = defaultdict(list)
        for frame in self.annotations.without(self.data.missing).frames:
            by_video[frame.rpartition("/")[0]].append(frame)
        return {video: tuple(frames) for video, frames in by_video.items()}

    def portions(self, name: str) -> Sequence[int | None]:
        count = -(-len(self.frames_of[name]) // PORTION)
        return range(count) if count > 1 else (None,)

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        frames = self.frames_of[name]
        if portion is not None:
            frames = frames[portion * PORTION : (portion + 1) * PORTION]
        return VideoJob(
            name, path, cells, seed, self.actions.get(name), frames, fps=self.data.rate_of(name), portion=portion
        )


@task("frames")
class FramesTask(SingleFramesTask[Scores]):
    """Task with (frames, classes) scores per video, frames in the order of the sets; scored by pm-k."""

    suffix: ClassVar[str] = ".npz"
    loss_rule: ClassVar[str] = "the best class of the anchor frame is none of its labels"

    @property
    def annotations(self) -> FrameSets:
        """All sets, including frames without a file."""
        return self.data.frames

    @property
    def fingerprint(self) -> str:
        whole = self.data.frames
        labels = {frame: whole.labels[frame] for frame in whole.frames}
        text = json.dumps([{a: list(others) for a, others in whole.sets.items()}, labels], sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def write_truth(self, path: Path) -> None:
        whole = self.data.frames
        sets = {anchor: list(others) for anchor, others in whole.sets.items()}
        labels = {frame: whole.labels[frame] for frame in whole.frames}
        actions = action_pairs(self.actions, self.videos)
        write_text(path, [json.dumps({"format": 1, "sets": sets, "labels": labels, "actions": actions}), "\n"])

    @cached_property
    def _sets(self) -> FrameSets:
        """Sets of frames that have a file."""
        return self.data.at_hand().frames

    def join_portions(self, outputs: Sequence[Scores]) -> Scores:
        return np.concatenate(outputs)

    def pack(self, outputs: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(outputs), []

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, outputs: Mapping[str, Scores]) -> None:
        table = self.to_predictions(outputs)
        write_table(path, "frames", table.names, table.scores)

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def to_predictions(self, outputs: Mapping[str, Scores]) -> ScoreTable:
        frames = [frame for video in outputs for frame in self.frames_of[video]]
        return ScoreTable(tuple(frames), np.concatenate(list(outputs.values())))

    def read_predictions(self, path: Path, truth: FrameSets) -> ScoreTable:
        return ScoreTable(*read_table(path, "frames"))

    def items(self, name: str) -> Sequence[Item]:
        anchors = [frame for frame in self.frames_of[name] if frame in self._sets.sets]
        return tuple(Item(", ".join(map(str, self._labels(frame))), frame=frame) for frame in anchors)

    def judge(self, name: str, output: Scores, threshold: float) -> tuple[Floats, Flags]:
        rows = {frame: row for row, frame in enumerate(self.frames_of[name])}
        margins, right = [], []
        for item in self.items(name):
            scores, own = output[rows[item.frame]], self._labels(item.frame)
            margins.append(float(scores[own].max() - np.delete(scores, own).max(initial=-np.inf)))
            right.append(int(scores.argmax()) in own)
        return np.array(margins, np.float64), np.array(right, np.bool_)

    def _labels(self, frame: str) -> list[int]:
        labels = self._sets.labels[frame]
        return [labels] if isinstance(labels, int) else sorted(labels)


@task("objects")
class ObjectsTask(SingleFramesTask[ObjectPredictions]):
    """Task with boxes per video, frames in the order of the sets; scored by pm-k of mean average precision."""

    suffix: ClassVar[str] = ".npz"

    @property
    def annotations(self) -> BoxSets:
        """All sets, including frames without a file."""
        return self.data.objects

    @property
    def classes(self) -> Sequence[str]:
        return self.annotations.classes

    @property
    def fingerprint(self) -> str:
        text = json.dumps(self._plain(), sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def write_truth(self, path: Path) -> None:
        actions = action_pairs(self.actions, self.videos)
        write_text(path, [json.dumps({"format": 1, **self._plain(), "actions": actions}), "\n"])

    def _plain(self) -> dict[str, object]:
        whole = self.annotations
        return {
            "classes": list(whole.classes),
            "sets": {anchor: list(others) for anchor, others in whole.sets.items()},
            "boxes": {frame: boxes_to_lists(whole.boxes[frame]) for frame in whole.frames},
        }

    @cached_property
    def _sets(self) -> BoxSets:
        """Sets of frames that have a file."""
        return self.annotations.without(self.data.missing)

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

    def read_predictions(self, path: Path, truth: BoxSets) -> FrameBoxes:
        return FrameBoxes(*read_boxes(path))
