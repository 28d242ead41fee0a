"""Result of a benchmark run: its scores, and what this session took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jostle.core.formatting import percent, time_of
from jostle.core.results import Result, plain
from jostle.core.tables import Column, Table, Value, data_frame
from jostle.core.timing import LIMITS
from jostle.evaluation.inference.jobs import VideoAdaptation
from jostle.evaluation.run_folder.journal import WorkDone, event_to_dict
from jostle.evaluation.run_folder.metadata import StoppedEarly, format_model
from jostle.evaluation.run_folder.scores import BASELINES, Coverage
from jostle.features.extraction import Cost


@dataclass(frozen=True)
class Run(Result):
    """Result of a benchmark run.

    Attributes:
        folder: the run folder.
        scores: the content of scores.json.
        failures: videos that could not be used, with the errors.
        clean: cost of the clean videos in this session.
        cells: additional cost of all other cells in this session.
        work: time of this session by kind of work, and what limited it; None if no video was processed.
        advice: what would have made it faster; empty where nothing is known to.
        stopped_early: why it ended before all videos were processed; None for a run of all videos.
        adaptation: passes through the network in this session; None without adaptation, or if no video was processed.
    """

    folder: Path
    scores: dict[str, Any]
    failures: tuple[dict[str, str], ...]
    clean: Cost
    cells: Cost
    work: WorkDone | None = None
    advice: str = ""
    stopped_early: StoppedEarly | None = None
    adaptation: VideoAdaptation | None = None

    @property
    def bottleneck(self) -> str | None:
        """One line on what limited this session and what would help; None if no video was processed."""
        if self.work is None:
            return None
        by = f"{self.work.workers} workers" if self.work.workers > 1 else "one worker"
        line = f"{time_of(self.work.seconds)} with {by}, limited by {LIMITS[self.work.limit]}"
        return f"{line}: {self.advice}" if self.advice else line

    def to_dict(self) -> dict[str, Any]:
        """Return the content of scores.json, and the times of this session as `work`."""
        work = None if self.work is None else event_to_dict(self.work) | {"advice": self.advice}
        if work is not None:
            del work["event"]
        early = {} if self.stopped_early is None else {"stopped_early": asdict(self.stopped_early)}
        passes = {} if self.adaptation is None else {"adaptation": plain(self.adaptation)}
        return self.scores | early | passes | {"work": work}

    def tables(self) -> tuple[Table, ...]:
        """Return the cells and the means, and of object detectors pm-k by kind."""
        scores = self.scores
        rows: list[tuple[Value, ...]] = [("clean", scores["clean"], "")]
        rows += [(one["cell"], one["value"], one.get("relative")) for one in (*scores["cells"], *scores["beside"])]
        if scores["cells"]:
            rows.append(("mean corrupted", scores["mean_corrupted"], scores["relative_robustness"]))
        columns = (Column("cell"), Column(scores["metric"], "percent"), Column("of clean", "percent"))
        main = Table("", columns, tuple(rows))
        objects = scores["clean_more"].get("objects")
        return (main,) if objects is None else (main, _objects_table(objects, scores["metric"]))

    def notes(self) -> tuple[str, ...]:
        """Return what is needed to read the scores, and what the session took."""
        return (*_notes_on(self.scores), *self._treatment(), *self._coverage(), *self._work())

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per cell, the clean one first, values as fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        rows = [{"cell": "clean", "value": self.scores["clean"]}, *self.scores["cells"]]
        return data_frame({key: [cell[key] for cell in rows] for key in ("cell", "value")})

    def _treatment(self) -> list[str]:
        notes = []
        if mend := self.scores.get("mend"):
            source = "as the benchmark itself knows them" if mend == "known" else f"found by {mend}"
            notes.append(f"mended: what damaged frames touch was replaced; frames {source}")
        if adapt := self.scores.get("adapt"):
            notes.append(f"adapted ({adapt})" + ("" if self.adaptation is None else f"; {self.adaptation}"))
        return notes

    def _coverage(self) -> list[str]:
        scores, notes = self.scores, []
        recipe, moved, _ = scores["benchmark"].partition(" on ")
        if moved:
            notes.append(f"this is {scores['benchmark']}, not the benchmark {recipe}")
        counted, coverage = scores["counted"], Coverage(**scores["coverage"])
        if counted["cells"] < counted["of"]:
            notes.append(f"the means are over {counted['cells']} of the benchmark's {counted['of']} cells")
        if not coverage.whole:
            notes.append(f"scored on {coverage}")
        return notes

    def _work(self) -> list[str]:
        if "baselines" in self.scores["clean_more"]:  # a model of words, which gets frames instead of clips or windows
            work = f"{self.clean.seen} clean frames read, {self.cells.seen} more for the cells"
        else:
            work = f"{self.clean.joined} clean clips or windows, {self.cells.joined} more for the cells"
        model = format_model(self.scores["model"], self.scores.get("mend"), self.scores.get("adapt"))
        coverage, failed = self.scores["coverage"], len(self.failures)
        covered = f"{coverage['videos']} of {coverage['of']} videos"
        notes = [f"{self.scores['benchmark']}, {model}; {covered}; {self.folder}: {work}"]
        notes += [f"{failed} videos could not be used"] if failed else []
        return [*notes, *([self.bottleneck] if self.bottleneck else [])]


def _notes_on(scores: Mapping[str, Any]) -> list[str]:
    """Say what guesses and a model with less than the video score, and what makes the scores doubtful."""
    clean, notes = scores["clean_more"], []
    if chance := clean.get("chance"):
        notes.append(f"chance level is {percent(chance)} %")
    baselines = clean.get("baselines", {})
    levels = {BASELINES[key]: one.get("accuracy", one.get("value")) for key, one in baselines.items()}
    if known := [f"{name} {percent(value)}" for name, value in levels.items() if value is not None]:
        notes.append(f"on clean video it scores {', '.join(known)}")
    notes += [f"no score {BASELINES[key]}: {one['failed']}" for key, one in baselines.items() if "failed" in one]
    if clean.get("unreadable"):
        notes.append(f"{clean['unreadable']} of {clean['count']} clean answers are unreadable, which counts as wrong")
    constant = [one["constant"] for one in (clean, *scores["cells"]) if one.get("constant")]
    if constant:
        notes.append(
            f"all classes have one score in up to {max(constant)} videos of {len(constant)} cells, so that the first "
            "class is the answer there: does the model compute anything?"
        )
    if "pm_k" in clean:
        notes += [f"{key} {percent(clean['pm_k'][key])}" for key in ("accuracy", "drop")]
    return notes


def _objects_table(objects: Mapping[str, Any], metric: str) -> Table:
    """Return detection and localisation on the anchors and on the worst frame near each."""
    columns = (
        Column("", key="what"),
        Column("mAP on anchors", "percent"),
        Column(metric, "percent"),
        Column("drop", "percent"),
    )
    rows = [
        (what, *(objects[what][key] for key in ("mean_ap", "pm_k", "drop"))) for what in ("detection", "localisation")
    ]
    known = f"on {objects['classes']} of {objects['of_classes']} classes, which the detector knows"
    return Table("", columns, tuple(rows), (known,) if objects["classes"] < objects["of_classes"] else ())
