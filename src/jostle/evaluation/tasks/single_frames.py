"""Tasks over sets of similar frames: frame classification and object detection, scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.datasets.class_matching import Scores
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.inference.single_frames import ObjectPredictions
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Item, MetricValue, Task, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.io.formats.boxes import boxes_to_lists, boxes_to_table, read_boxes, table_to_boxes, write_boxes
from jostle.metrics.pm_k import pm_k
from jostle.metrics.pm_k_detection import box_stability

PORTION = 256  # frames per results file, so that a slow network on a long video can be stopped at any time


class SingleFramesTask(Task[Output]):
    """Base of tasks whose model processes the frames of sets one by one."""

    @property
    @abstractmethod
    def _whole(self) -> FrameSets | BoxSets:
        """All sets, including frames without a file."""

    @property
    def videos(self) -> Sequence[str]:
        return self._whole.videos

    def uses_video(self, name: str) -> bool:
        return name in self.frames_of

    @cached_property
    def frames_of(self) -> dict[str, tuple[str, ...]]:
        """Frames with a file, by video."""
        by_video: dict[str, list[str]] = defaultdict(list)
        for frame in self._whole.without(self.data.missing).frames:
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
    def _whole(self) -> FrameSets:
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
        frames = [frame for video in outputs for frame in self.frames_of[video]]
        write_table(path, "frames", frames, np.concatenate(list(outputs.values())))

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        scores = dict(zip(*read_table(path, "frames"), strict=True))
        sets = self._sets.without([frame for frame in self._sets.frames if frame not in scores])
        k, labels_of = self.recipe.k, self.recipe.labels_of
        assert k is not None
        assert labels_of is not None
        result = pm_k(scores, sets.sets, sets.labels, k, labels_of=labels_of)
        interval = result.pm_k_interval and list(result.pm_k_interval)
        chance = 1 / len(next(iter(scores.values())))
        return MetricValue(result.pm_k, {"interval": interval, "pm_k": result.to_dict(), "chance": chance})

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
    def _whole(self) -> BoxSets:
        return self.data.objects

    @property
    def classes(self) -> Sequence[str]:
        return self._whole.classes

    @property
    def fingerprint(self) -> str:
        text = json.dumps(self._plain(), sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def write_truth(self, path: Path) -> None:
        actions = action_pairs(self.actions, self.videos)
        write_text(path, [json.dumps({"format": 1, **self._plain(), "actions": actions}), "\n"])

    def _plain(self) -> dict[str, object]:
        whole = self._whole
        return {
            "classes": list(whole.classes),
            "sets": {anchor: list(others) for anchor, others in whole.sets.items()},
            "boxes": {frame: boxes_to_lists(whole.boxes[frame]) for frame in whole.frames},
        }

    @cached_property
    def _sets(self) -> BoxSets:
        """Sets of frames that have a file."""
        return self._whole.without(self.data.missing)

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
        by_frame = {
            frame: boxes
            for video, one in outputs.items()
            for frame, boxes in zip(self.frames_of[video], one.boxes, strict=True)
        }
        write_boxes(path, by_frame, next(iter(outputs.values())).known)

    def read(self, path: Path) -> dict[str, ObjectPredictions]:
        by_frame, known = read_boxes(path)
        return {
            video: ObjectPredictions(tuple(by_frame[frame] for frame in frames), known)
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        boxes, known = read_boxes(path)
        sets = self._sets.without([frame for frame in self._sets.frames if frame not in boxes]).only(known)
        k = self.recipe.k
        assert k is not None
        both = box_stability(boxes, sets.boxes, sets.sets, k, classes=len(known), of_classes=len(sets.classes))
        interval = both.detection.pm_k_interval and list(both.detection.pm_k_interval)
        return MetricValue(both.detection.pm_k, {"interval": interval, "objects": both.to_dict()})
