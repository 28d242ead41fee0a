"""Object detection task: boxes in every frame of the sets, written as npz and scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.datasets.frame_sets import BoxSets
from jostle.evaluation.inference.object_detection import ObjectPredictions
from jostle.evaluation.tasks.action_spans import action_pairs
from jostle.evaluation.tasks.single_frames import SingleFramesTask
from jostle.evaluation.tasks.task import Array, MetricValue, task
from jostle.io.files.atomic import write_text
from jostle.io.formats.boxes import boxes_to_lists, boxes_to_table, read_boxes, table_to_boxes, write_boxes
from jostle.metrics.pm_k_detection import box_stability


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
        actions = action_pairs(self._actions, self.videos)
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
