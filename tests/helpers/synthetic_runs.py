"""Runs without models: a guesser that knows the truth and errs more the more a video is corrupted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.core.random import rng_for
from jostle.core.types import Segments, Truth
from jostle.core.types.boxes import Boxes
from jostle.core.types.frame_sets import BoxSets, FrameSets
from jostle.core.types.language import (
    MomentItem,
    MomentPrediction,
    MomentSet,
    QuestionAnswer,
    QuestionItem,
    QuestionSet,
)
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.outputs import ObjectPredictions, VideoAnswers
from jostle.evaluation.recipes.recipe import CLEAN, Group, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.session import StoppingRule
from jostle.features.extraction import Cost
from jostle.metrics.robustness import split_cell

HOSTILE = ('</script><script>alert("x")</script>', "=HYPERLINK(1)", "a|b_c & 50% {x}", "<img src=x onerror=alert(1)>")
HOSTILE_LABEL = "</script><img src=x onerror=alert(1)>\"'&"
CELLS = ("thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "thumos14-c/motion_blur:1", "thumos14-c/motion_blur:3")
FACTS: dict[str, dict[str, Any]] = {
    "detection": {"metric": "mean_ap", "protocol": "thumos14"},
    "recognition": {"metric": "top_k_accuracy", "k": 1},
    "frames": {"metric": "pm_k", "k": 3, "labels_of": "own"},
    "objects": {"metric": "pm_k_map", "k": 3},
    "questions": {"metric": "answer_accuracy"},
    "moments": {"metric": "moment_recall"},
}


def recipe_of(task: str, cells: tuple[str, ...] = CELLS, name: str = "", metric: str = "") -> Recipe:
    groups = (Group("main", cells=cells),) if cells else ()
    facts = FACTS[task] | ({"metric": metric} if metric else {})
    return Recipe(
        name=name or f"made-{task}", version=1, dataset="folder", subset="test", task=task, groups=groups, **facts
    )  # type: ignore[arg-type]


def names_of(count: int) -> tuple[str, ...]:
    return tuple(f"video_{i:04d}" for i in range(count))


def truth_of(videos: int, classes: tuple[str, ...]) -> Truth:
    made = {}
    for v, name in enumerate(names_of(videos)):
        labels = [(v + i) % len(classes) for i in range(3)]
        made[name] = Segments([2.0, 10.0, 18.0], [6.0, 16.0, 20.0], labels, classes=classes)
    return Truth.from_segments(made)


def questions_of(videos: int, classes: tuple[str, ...]) -> QuestionSet:
    """Three questions a video, one of which needs order."""
    items = []
    for v, name in enumerate(names_of(videos)):
        for i, kind in enumerate(("what", "what", "order")):
            right = (v + i) % len(classes)
            items.append(
                QuestionItem(f"{name}/{i}", name, f"Question {i}?", classes, right, kind, needs_order=kind == "order")
            )
    return QuestionSet(tuple(items))


def moments_of(videos: int) -> MomentSet:
    """Two sentences a video, about a short and a longer window."""
    items = []
    for name in names_of(videos):
        for i, window in enumerate(((2.0, 8.0), (10.0, 22.0))):
            items.append(MomentItem(f"{name}/{i}", name, f"Sentence {i}.", (window,), 24.0))
    return MomentSet(tuple(items))


def annotations_of(
    task: str, videos: int, classes: tuple[str, ...], anchors: int = 1
) -> Truth | VideoLabels | FrameSets | BoxSets | QuestionSet | MomentSet:
    names = names_of(videos)
    if task == "questions":
        return questions_of(videos, classes)
    if task == "moments":
        return moments_of(videos)
    if task == "detection":
        return truth_of(videos, classes)
    label = np.arange(videos) % len(classes)
    if task == "recognition":
        return VideoLabels(names, classes, np.arange(videos), label)
    middles = range(5, 5 + 10 * anchors, 10)
    sets = {
        f"{name}/{middle:04d}": [f"{name}/{middle + i:04d}" for i in (-3, -2, -1, 1, 2, 3)]
        for name in names
        for middle in middles
    }
    frames = [middle + i for middle in middles for i in range(-3, 4)]
    if task == "objects":
        boxes = {
            f"{name}/{i:04d}": Boxes([[8, 8, 40, 30], [50, 10, 80, 60 + i]], [int(k), (int(k) + 1) % len(classes)])
            for name, k in zip(names, label, strict=True)
            for i in frames
        }
        return BoxSets(classes, sets, boxes)
    labels = {f"{name}/{i:04d}": [int(k)] for name, k in zip(names, label, strict=True) for i in frames}
    return FrameSets(sets, labels)


@dataclass(frozen=True)
class Guesser:
    """Knows the truth; how often it errs grows with severity and with `weakness`."""

    annotations: Any
    weakness: float
    fails: tuple[str, ...] = ()
    knows: float = 0.9
    shown: tuple[int, ...] | None = None

    def __call__(self, order: VideoJob) -> VideoResult[Any]:
        if order.name in self.fails:
            raise DataError(f"{order.name}: <i>no</i> video")
        found = {cell.name: self._found(order, cell.name) for cell in order.cells}
        return VideoResult(found, Cost(), Cost(), frame_indices=self.shown)

    def _found(self, order: VideoJob, cell: str) -> Any:
        harm = 0.1 if cell == CLEAN else self.weakness * (split_cell(cell)[1] or 1) / 4
        rng = rng_for(0, "guess", order.name)  # the same draws in every cell: a harder knock hits the same videos
        if isinstance(self.annotations, Truth):
            own = self.annotations.actions[order.name]
            shift = rng.normal(0, 1, len(own)) * (own.end - own.start) * harm * 1.5
            label = np.where(rng.random(len(own)) < harm / 2, (own.label + 1) % len(own.classes), own.label)
            score = 0.9 - 0.5 * rng.random(len(own)) - harm / 4
            extra = rng.random() * 5
            return Segments(
                np.append(np.maximum(own.start + shift, 0), 20 + extra),
                np.append(np.maximum(own.end + shift, 0.5), 23 + extra),
                np.append(label, 0),
                np.append(score, 0.2),
                own.classes,
            )
        if isinstance(self.annotations, VideoLabels):
            place = self.annotations.videos.index(order.name)
            scores = rng.random(len(self.annotations.classes)).astype(np.float32)
            scores[self.annotations.label[place]] += np.float32(self.knows and self.knows - harm)
            return scores
        if isinstance(self.annotations, QuestionSet):
            answers = tuple(self._answer(item, harm) for item in order.items)
            blind = tuple(QuestionAnswer(0) for _ in order.items)
            return VideoAnswers(answers, {"blind": blind, "one_frame": blind} if cell == CLEAN else {}, {})
        if isinstance(self.annotations, MomentSet):
            windows = tuple(self._windows(item, harm) for item in order.items)
            return (
                VideoAnswers(windows, {"one_frame": windows}, {"blind": "no frames"})
                if cell == CLEAN
                else (VideoAnswers(windows, {}, {}))
            )
        if isinstance(self.annotations, BoxSets):
            return ObjectPredictions(
                tuple(self._boxes(frame, harm) for frame in order.frames), self.annotations.classes
            )
        classes = 1 + max(k for labels in self.annotations.labels.values() for k in labels)
        rows = rng.random((len(order.frames), classes)).astype(np.float32)
        for row, frame in zip(rows, order.frames, strict=True):
            row[self.annotations.labels[frame][0]] += np.float32(1 - harm)
        return rows

    def _boxes(self, frame: str, harm: float) -> Boxes:
        rng = rng_for(0, "boxes", frame)
        true = self.annotations.boxes[frame]
        corners = np.asarray(true.box, dtype=float) + rng.integers(-24, 25, (len(true), 4)) * harm
        return Boxes(corners, true.label, 0.9 - 0.5 * rng.random(len(true)))

    def _answer(self, item: QuestionItem, harm: float) -> QuestionAnswer:
        rng = rng_for(0, "answer", item.id)
        assert item.answer is not None
        if rng.random() < harm / 5:
            return QuestionAnswer(None, None, "<b>unclear</b>")
        scores = rng.random(len(item.options))
        scores[item.answer] += self.knows - harm
        shares = np.exp(2 * scores) / np.exp(2 * scores).sum()
        return QuestionAnswer(int(shares.argmax()), tuple(shares.tolist()))

    def _windows(self, item: MomentItem, harm: float) -> MomentPrediction:
        rng = rng_for(0, "windows", item.id)
        ((start, end),) = item.windows
        shift = float(rng.normal()) * (end - start) * harm
        first = max(start + shift, 0.0)
        return MomentPrediction(((first, max(end + shift, first + 0.5), 0.9), (0.0, 3.0, 0.2)))


def finished_run(
    out: Path,
    task: str = "detection",
    *,
    videos: int = 12,
    classes: tuple[str, ...] = ("jump", "run", "sit down"),
    weakness: float = 1.0,
    model: str = "guesser",
    cells: tuple[str, ...] = CELLS,
    source: Path | None = None,
    seed: int = 0,
    fails: tuple[str, ...] = (),
    knows: float = 0.9,
    benchmark: str = "",
    on: str = "",
    shown: tuple[int, ...] | None = None,
    anchors: int = 1,
    metric: str = "",
    stopping: StoppingRule | None = None,
) -> Run:
    """A run; the videos hold nothing, or are all `source`; `on` puts the recipe on other data."""
    recipe, annotations = recipe_of(task, cells, benchmark, metric), annotations_of(task, videos, classes, anchors)
    if on:
        recipe = recipe.on("folder", "test", on)
    folder = out.parent / "videos"
    folder.mkdir(exist_ok=True)
    files = {name: source or folder / f"{name}.mp4" for name in names_of(videos)}
    if source is None:
        for file in files.values():
            file.write_bytes(b"no video")
    data = Dataset("folder", "test", folder, (annotations,), files)
    model_entry = BenchmarkModel(partial(Guesser, annotations, weakness, fails, knows, shown), model=model)
    chosen = select_cells(recipe, None)
    return run_benchmark(recipe, data, model_entry, out, cells=chosen, seed=seed, jobs=1, stopping=stopping)


def write_run(out: Path, task: str = "detection", **facts: Any) -> Path:
    """The folder of a run; `finished_run` says what the facts are."""
    return finished_run(out, task, **facts).folder


def record_of(task: str = "detection", *, scope: Any = "module", name: str = "run", **facts: Any) -> Any:
    """A fixture of the record of a run in a folder of that name; `finished_run` says what the facts are."""

    @pytest.fixture(scope=scope)
    def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
        return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / name, task, **facts))

    return record
