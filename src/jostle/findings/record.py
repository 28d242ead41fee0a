"""A finished run, read from its folder: needs neither the data set nor the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.benchmarks.recipe import CLEAN, safe
from jostle.datasets.files import read_predictions, read_truth
from jostle.datasets.frame_sets import FrameSets
from jostle.errors import DataError, UnknownName
from jostle.evaluation.action_places import actions_at
from jostle.evaluation.score_tables import read_table
from jostle.runs.folder import RunFolder
from jostle.runs.journal import read_events
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments
from jostle.types.truth import Truth
from jostle.types.video_labels import VideoLabels

Task = Literal["detection", "recognition", "frames"]


@dataclass(frozen=True)
class RunRecord:
    """What lies in a run folder. Parts are read when they are asked for, and kept.

    Attributes:
        folder: of the run.
        about: the content of run.json.
        scores: the content of scores.json.
    """

    folder: Path
    about: dict[str, Any]
    scores: dict[str, Any]

    @classmethod
    def read(cls, path: str | Path) -> RunRecord:
        """The run in a folder.

        Raises:
            DataError: if there is none, it is damaged, or it has no scores yet.
        """
        folder = RunFolder(Path(path))
        about = folder.read_about()
        return cls(Path(path), about, _json(folder.scores, "the same `jostle run` goes on and writes it"))

    @property
    def task(self) -> Task:
        """What kind of benchmark it is a run of."""
        task: Task = self.about["content"]["task"]
        return task

    @property
    def name(self) -> str:
        """The model, and with several runs of one what tells them apart: the folder."""
        return f"{self.about['model']} ({self.folder.name})"

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Cells that have predictions, in the benchmark's order, the clean one first."""
        return tuple(
            cell["cell"] for cell in self.about["content"]["cells"] if self._predictions_file(cell["cell"]).exists()
        )

    @cached_property
    def values(self) -> dict[str, float]:
        """The value of each scored cell, a fraction."""
        listed = [*self.scores["cells"], *self.scores["beside"]]
        return {CLEAN: self.scores["clean"]} | {cell["cell"]: cell["value"] for cell in listed}

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """Cells that the means are over."""
        return tuple(cell["cell"] for cell in self.scores["cells"])

    @cached_property
    def truth(self) -> Truth:
        """The annotated segments of the videos that were looked at; for runs of detection."""
        whole = read_truth(self._file("truth.json")).with_classes(self.about["classes"])
        return whole.of_videos(self.predictions(CLEAN).videos) if CLEAN in self.cells else whole

    @cached_property
    def labels(self) -> VideoLabels:
        """The classes of videos; for runs of recognition."""
        found = _json(self._file("truth.json"), "run again into a new folder")
        classes = tuple(found["classes"])
        index = {name: k for k, name in enumerate(classes)}
        pairs = [(v, index[name]) for v, names in enumerate(found["videos"].values()) for name in names]
        video, label = np.array(pairs, np.int32).reshape(-1, 2).T
        return VideoLabels(tuple(found["videos"]), classes, video, label)

    @cached_property
    def frames(self) -> FrameSets:
        """Sets of frames; for runs of pm-k."""
        found = _json(self._file("truth.json"), "run again into a new folder")
        return FrameSets(found["sets"], found["labels"])

    @cached_property
    def actions(self) -> dict[str, Segments] | None:
        """Where actions lie in videos of which that is known; for runs of recognition and pm-k. None in older runs."""
        places = _json(self._file("truth.json"), "run again into a new folder").get("actions")
        return None if places is None else actions_at(places)

    @cached_property
    def diagnosis(self) -> dict[str, Any] | None:
        """Why a detector fails, clean, and under `cells` in every other cell; None for other tasks."""
        path = RunFolder(self.folder).diagnosis
        return _json(path, "run again, which writes it") if path.exists() else None

    @cached_property
    def failures(self) -> tuple[dict[str, Any], ...]:
        """Videos that could not be used."""
        path = RunFolder(self.folder).failures
        return (
            tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
        )

    @cached_property
    def sources(self) -> dict[str, Path]:
        """Where each video lay when it was looked at; it may be gone."""
        events = read_events(RunFolder(self.folder).journal)
        return {event["video"]: Path(event["path"]) for event in events if event["event"] == "video"}

    def predictions(self, cell: str) -> Predictions:
        """What a detector found in a cell."""
        return read_predictions(self._predictions_file(cell))

    def table(self, cell: str) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Videos, or frames, and their rows of class scores in a cell."""
        return read_table(self._predictions_file(cell), "frames" if self.task == "frames" else "videos")

    def _predictions_file(self, cell: str) -> Path:
        known = [one["cell"] for one in self.about["content"]["cells"]]
        if cell not in known:
            raise UnknownName(f"cell of {self.folder}", cell, known)
        suffix = ".json" if self.task == "detection" else ".npz"
        return RunFolder(self.folder, suffix).predictions_of(safe(cell))

    def _file(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise DataError(f"{path}: not there; run again into this folder, which writes it")
        return path


def _json(path: Path, what_helps: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: not there; {what_helps}") from None
    except (OSError, ValueError):
        raise DataError(f"{path}: damaged; delete it, and {what_helps}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: damaged; delete it, and {what_helps}")
    return found
