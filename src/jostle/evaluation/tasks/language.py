"""Base of the tasks in words: items by video, stored as JSON, with the baselines of the clean cell beside."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.outputs import BASELINES, Answer, VideoAnswers
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.tasks.task import Annotations, Task
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig

# Corruptions that destroy the order of events over the whole video; `jumble` only shuffles within short pieces.
DISORDERED = frozenset(("box_jumble", "reverse_sampling"))
Plain = dict[str, Any]


class LanguageTask(Task[Annotations, VideoAnswers[Answer]], Generic[Annotations, Answer]):
    """Base of tasks whose model gets frames and words, several items a video."""

    models: ClassVar[str | None] = None
    indent = 0
    refuses: ClassVar[Mapping[str, str]] = {
        "adapt": "puts words to a model, and adaptation is for recognisers and feature extractors",
    }

    @property
    def by_video(self) -> Mapping[str, Sequence[Any]]:
        """Questions or sentences of each video."""
        annotations: Any = self.annotations
        by_video: Mapping[str, Sequence[Any]] = annotations.by_video
        return by_video

    @classmethod
    def check_input(cls, config: InferenceConfig) -> None:
        config.language_input()

    def tries_model(self, *, begun: bool) -> bool:
        return not begun  # to ask a server twice costs money

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        return replace(super().make_job(name, path, cells, seed, portion), items=tuple(self.by_video[name]))

    def plain_truth(self) -> Mapping[str, Any]:
        annotations: Any = self.annotations
        return {self.name: [asdict(item) for item in annotations.items]}

    @property
    def fingerprint(self) -> str:
        annotations: Any = self.annotations
        return str(annotations.fingerprint)

    @abstractmethod
    def answer_to_plain(self, answer: Answer) -> Plain:
        """Convert the answer to one item to plain values."""

    @abstractmethod
    def answer_from_plain(self, row: Plain) -> Answer:
        """Convert the row of an item back; anything else raises KeyError, TypeError or ValueError."""

    @abstractmethod
    def join_answers(self, answers: Mapping[str, Answer]) -> Any:
        """Join answers by the ids of items to what the metric takes."""

    @abstractmethod
    def answers_in(self, predictions: Any) -> Mapping[str, Answer]:
        """Return the answers by the ids of items of what `join_answers` made."""

    def to_plain(self, output: VideoAnswers[Answer]) -> list[Plain]:
        """Convert the answers for a video to rows, one an item; baselines are beside, by their names."""
        rows = [self.answer_to_plain(answer) for answer in output.answers]
        for kind, answers in output.baselines.items():
            for row, answer in zip(rows, answers, strict=True):
                row[kind] = self.answer_to_plain(answer)
        if output.failed:
            rows[0]["failed"] = dict(output.failed)
        return rows

    def from_plain(self, rows: Sequence[Plain]) -> VideoAnswers[Answer]:
        baselines = {
            kind: tuple(self.answer_from_plain(row[kind]) for row in rows)
            for kind in BASELINES
            if all(kind in row for row in rows)
        }
        answers = tuple(map(self.answer_from_plain, rows))
        return VideoAnswers(answers, baselines, dict(rows[0].get("failed", {})))

    def to_predictions(self, outputs: Mapping[str, VideoAnswers[Answer]]) -> Any:
        return self.by_item({name: output.answers for name, output in outputs.items()})

    def by_item(self, answers: Mapping[str, Sequence[Answer]]) -> Any:
        """Join the answers of videos to what the metric takes."""
        pairs = ((self.by_video[name], own) for name, own in answers.items())
        return self.join_answers({item.id: one for items, own in pairs for item, one in zip(items, own, strict=True)})

    def read_predictions(self, path: Path) -> Any:
        annotations: Any = self.annotations
        with self.refusing_rows(path):
            rows = read_json(path)
            answers = {name: self.answer_from_plain(rows[name]) for name in annotations.by_id if name in rows}
            return self.join_answers(answers).checked(annotations)

    def videos_of(self, predictions: Any) -> Sequence[str]:
        answered = self.answers_in(predictions)
        return tuple(video for video, items in self.by_video.items() if items[0].id in answered)

    def write(self, path: Path, outputs: Mapping[str, VideoAnswers[Answer]]) -> None:
        rows: dict[str, Plain] = {}
        for name, output in outputs.items():
            rows |= {item.id: row for item, row in zip(self.by_video[name], self.to_plain(output), strict=True)}
        write_text(path, [json.dumps(rows, indent=0), "\n"])

    def read(self, path: Path) -> dict[str, VideoAnswers[Answer]]:
        with self.refusing_rows(path):
            rows = read_json(path)
            return {
                name: self.from_plain([rows[item.id] for item in items])
                for name, items in self.by_video.items()
                if items[0].id in rows
            }

    def cell_of(self, path: Path) -> Cell:
        """Return the cell of a predictions file of a benchmark."""
        return next(cell for cell in self.recipe.cells if cell.slug == path.name.removesuffix(self.suffix))

    def clean_path(self, path: Path) -> Path:
        """Return the predictions file of the clean cell beside another one."""
        return path.with_name(f"{CLEAN}{self.suffix}")


def failures_of(outputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the first reason why a baseline could not be had, by its name."""
    reasons: dict[str, str] = {}
    for name in BASELINES:
        for output in outputs.values():
            if name in output.failed:
                reasons.setdefault(name, output.failed[name])
    return reasons
