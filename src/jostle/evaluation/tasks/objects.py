"""Runs of object detectors: boxes in every frame of the sets, written as npz and scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.datasets.frame_sets import BoxSets
from jostle.evaluation.inference.object_detection import FoundObjects
from jostle.evaluation.tasks.action_spans import places_of
from jostle.evaluation.tasks.single_frames import SingleFramesTask
from jostle.evaluation.tasks.task import Array, Measured, task
from jostle.io.files.atomic import write_text
from jostle.io.formats.boxes import boxes_of, plain_boxes, read_boxes, table_of, write_boxes
from jostle.metrics.pm_k_detection import box_stability


@task("objects")
class ObjectsTask(SingleFramesTask[FoundObjects]):
    """Boxes by video, the frames in the order that the sets have them; scored by pm-k of mean average precision."""

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
        actions = places_of(self._actions, self.videos)
        write_text(path, [json.dumps({"format": 1, **self._plain(), "actions": actions}), "\n"])

    def _plain(self) -> dict[str, object]:
        whole = self._whole
        return {
            "classes": list(whole.classes),
            "sets": {anchor: list(others) for anchor, others in whole.sets.items()},
            "boxes": {frame: plain_boxes(whole.boxes[frame]) for frame in whole.frames},
        }

    @cached_property
    def _sets(self) -> BoxSets:
        """The sets without what has no file."""
        return self._whole.without(self.data.missing)

    def joined(self, found: Sequence[FoundObjects]) -> FoundObjects:
        return FoundObjects(tuple(boxes for one in found for boxes in one.boxes), found[0].known)

    def packed(self, found: Mapping[str, FoundObjects]) -> tuple[dict[str, Array], list[str]]:
        arrays: dict[str, Array] = {}
        known: tuple[str, ...] = ()
        for cell, one in found.items():
            counts, table = table_of(one.boxes)
            head = np.zeros((1, table.shape[1]))
            head[0, 0] = len(counts)
            # One array a cell: how many frames, then of each its number of boxes, then the boxes.
            lines = np.zeros((len(counts), table.shape[1]))
            lines[:, 0] = counts
            arrays[cell], known = np.concatenate([head, lines, table]), one.known
        return arrays, list(known)

    def unpacked(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, FoundObjects]:
        made = {}
        for cell, array in arrays.items():
            frames = int(array[0, 0])
            counts = array[1 : 1 + frames, 0].astype(np.int64)
            made[cell] = FoundObjects(tuple(boxes_of(counts, array[1 + frames :])), tuple(classes))
        return made

    def write(self, path: Path, found: Mapping[str, FoundObjects]) -> None:
        by_frame = {
            frame: boxes
            for video, one in found.items()
            for frame, boxes in zip(self.frames_of[video], one.boxes, strict=True)
        }
        write_boxes(path, by_frame, next(iter(found.values())).known)

    def read(self, path: Path) -> dict[str, FoundObjects]:
        by_frame, known = read_boxes(path)
        return {
            video: FoundObjects(tuple(by_frame[frame] for frame in frames), known)
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def measured(self, path: Path, names: Sequence[str]) -> Measured:
        found, known = read_boxes(path)
        sets = self._sets.without([frame for frame in self._sets.frames if frame not in found]).only(known)
        k = self.recipe.k
        assert k is not None
        both = box_stability(found, sets.boxes, sets.sets, k, classes=len(known), of_classes=len(sets.classes))
        interval = both.detection.pm_k_interval and list(both.detection.pm_k_interval)
        return Measured(both.detection.pm_k, {"interval": interval, "objects": both.to_dict()})
