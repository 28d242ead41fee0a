"""Base of the tasks in words: items by video, stored as JSON, with the baselines of the clean cell beside."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.inference.outputs import BASELINES
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.tasks.task import Annotations, Task
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig

# Corruptions that destroy the order of events over the whole video; `jumble` only shuffles within short pieces.
DISORDERED = frozenset(("box_jumble", "reverse_sampling"))
Plain = dict[str, Any]


class LanguageTask(Task[Annotations, Output]):
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

    @abstractmethod
    def to_plain(self, output: Output) -> list[Plain]:
        """Convert the output for a video to plain values, one an item; baselines are beside, by their names."""

    def write(self, path: Path, outputs: Mapping[str, Output]) -> None:
        rows: dict[str, Plain] = {}
        for name, output in outputs.items():
            rows |= {item.id: row for item, row in zip(self.by_video[name], self.to_plain(output), strict=True)}
        write_text(path, [json.dumps(rows, indent=0), "\n"])

    def read(self, path: Path) -> dict[str, Output]:
        with self.refusing_rows(path):
            rows = read_json(path)
            return {
                name: self.from_plain([rows[item.id] for item in items])
                for name, items in self.by_video.items()
                if items[0].id in rows
            }

    def videos_with(self, ids: Collection[str]) -> tuple[str, ...]:
        """Return the videos that items are about, in the order of the annotations."""
        return tuple(video for video, items in self.by_video.items() if items[0].id in ids)

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
