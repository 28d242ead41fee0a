"""Runs a benchmark into a folder that survives being killed.

Videos are the items. What is found in one, in all cells it lacks, goes into a file of its own and a line of the
journal; when all are done, each cell's predictions are put together in the order of the annotations. So neither the
order of work, nor the number of workers, nor an interruption shows in the result.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from jostle.core.notebook import data_frame, html_table, percents
from jostle.core.versions import builds
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError, JostleError, ResourceError, SourceChanged
from jostle.evaluation.inference.jobs import Attempting, Engine, Look, Looked, Order
from jostle.evaluation.recipes.recipe import CLEAN, Cell, Recipe
from jostle.evaluation.run_folder.events import (
    CellWritten,
    Event,
    StruckFrames,
    VideoFailed,
    VideoKept,
    VideoList,
    plain_event,
)
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import Journal, read_events
from jostle.evaluation.run_folder.metadata import FORMAT, About, Content, Origin, model_said
from jostle.evaluation.runner.plugin_parts import used_parts
from jostle.evaluation.runner.progress import Watch, Watching
from jostle.evaluation.runner.scores import summed_up
from jostle.evaluation.runner.state import (
    RESULTS,
    Plan,
    State,
    kept_results,
    planned,
    results_file,
    spans,
    usable_videos,
    whole_results,
)
from jostle.evaluation.runner.timing import Effort
from jostle.evaluation.runner.video_results import write_results
from jostle.evaluation.tasks.task import Task, task_of
from jostle.features.result import Cost
from jostle.features.windows import ReleasedFault, Rule
from jostle.io.files.atomic import write_text
from jostle.io.files.fingerprint import file_fingerprint, source_state
from jostle.io.files.lock import Ownership
from jostle.io.files.video_ids import file_name_for, refuse_collisions
from jostle.parallel.workers import worked

Progress = Callable[[int, int], None]
Note = Callable[[Event], None]
CELLS_AT_ONCE = 8  # put together in one pass over the files of videos; more are faster and take more memory


@dataclass(frozen=True)
class Run:
    """What a run has come to.

    Attributes:
        folder: where everything lies.
        scores: the content of scores.json.
        failures: videos that could not be used, and why.
        clean: what the clean videos cost this time.
        cells: what all other cells cost on top this time.
    """

    folder: Path
    scores: dict[str, Any]
    failures: tuple[dict[str, str], ...]
    clean: Cost
    cells: Cost

    def to_frame(self) -> Any:
        """A pandas data frame: a row a cell, the clean one first, fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        told = [{"cell": "clean", "value": self.scores["clean"]}, *self.scores["cells"]]
        return data_frame({key: [cell[key] for cell in told] for key in ("cell", "value")})

    def _repr_html_(self) -> str:
        told = self.scores
        rows = [
            ["clean", percents(told["clean"])],
            ["corrupted, mean", percents(told["mean_corrupted"])],
            ["relative robustness", percents(told["relative_robustness"])],
        ]
        coverage = told["coverage"]
        model = model_said(told["model"], told.get("mend"))
        notes = [f"{model}; {coverage['videos']} of {coverage['of']} videos; {self.folder}"]
        if self.failures:
            notes.append(f"{len(self.failures)} videos could not be used")
        head = html_table(f"{told['benchmark']}, {told['metric']}", ["", "%"], rows, notes=notes)
        cells = [[cell["cell"], percents(cell["value"])] for cell in told["cells"]]
        return head + html_table("Cells", ["cell", "%"], cells, folded=True) if cells else head


@dataclass(frozen=True)
class Contestant:
    """The model that is run, and what it is known by.

    Attributes:
        load: gives what looks at videos, in every process once.
        model: its name.
        weights: fingerprint of its weights; None where nothing is known of them.
        weights_from: what that is the fingerprint of.
        extractor: the name of what makes features for a detector.
        extractor_weights: fingerprint of those weights.
        rule: how the windows of features are counted; None where there are none.
        released_faults: of the THUMOS14-C extractors, which are repeated.
        shown: how frames become the input of a recogniser, as plain values.
        device: that it runs on.
        precision: of the numbers that it computes with.
        compiled: whether its networks go through torch.compile.
        asked: the names and places that it and its extractor were asked for by.
        apart: whether what is loaded is in processes of its own, and workers ask it.
        mend: what says which frames were struck, so that what they touch is replaced; None where it is let be.
        mend_weights: fingerprint of that.
    """

    load: Callable[[], Look[Any]]
    model: str
    weights: str | None = None
    weights_from: str = "nothing"
    extractor: str | None = None
    extractor_weights: str | None = None
    rule: Rule | None = None
    released_faults: tuple[ReleasedFault, ...] = ()
    shown: dict[str, Any] | None = None
    device: str = "cpu"
    precision: str = "float32"
    compiled: bool = False
    asked: tuple[str, ...] = ()
    apart: bool = False
    mend: str | None = None
    mend_weights: str | None = None


def run_benchmark(
    recipe: Recipe,
    data: Dataset,
    contestant: Contestant,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    jobs: int = 1,
    engine: Engine = worked,
    retry_failed: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Run:
    """Run a benchmark in a folder, or what is left of it there.

    Args:
        cells: those to do; what the folder has of others stays, and is scored with them.
        jobs: videos at once.
        engine: shares the videos out among workers.
        retry_failed: look again at videos that could not be used.
        progress: told of videos, or of portions of them where results are kept by those.
        watch: told of cells as they fill in.

    Raises:
        SourceChanged: if the folder holds a run of something else.
        ResourceError: if the disk is full; what is finished stays.
        DataError: if none of the videos could be used.
    """
    task = task_of(recipe, data)
    folder, origin = RunFolder(out, task.suffix), _origin(task, contestant, seed)
    refuse_collisions([file_name_for(name, RESULTS) for name in data.videos], str(out))
    with Ownership(out), _begun(folder, origin, task) as journal:
        for path in folder.leftovers():
            with contextlib.suppress(OSError):
                path.unlink()
        state, watching = State.of(journal.events), Watching(task, watch)
        on_kept = None if watch is None else watching.take
        plan = planned(folder, state, task, cells, seed=seed, retry_failed=retry_failed, on_kept=on_kept)
        spent = [Cost(), Cost()]
        watching.unit = "videos" if all(order.portion is None for order in plan.orders) else "portions of videos"

        def note(event: Event) -> None:
            journal.note(event)
            state.add(event)

        attempting = Attempting(contestant.load)
        effort = Effort(max(min(jobs, len(plan.orders)), 1), contestant.apart)
        with closing(engine(attempting, plan.orders, jobs, lost=lambda order, error: error)) as results:
            for done, (order, result) in enumerate(results, 1):
                if isinstance(result, JostleError):
                    _set_aside(order, result, note)
                    watching.failed += 1
                else:
                    with effort.writing():
                        _keep(folder, state, task, order, result, note)
                    effort.add(result.spent)
                    spent = [spent[0] + result.clean, spent[1] + result.cells]
                    watching.take(order.name, result.found)
                if progress is not None:
                    progress(done, len(plan.orders))
                watching.tell(done, len(plan.orders), effort.limit)
        if (work := effort.told()) is not None:
            note(work)
        failures = _write_failures(folder, state, task)
        names = [name for name in usable_videos(task) if name not in state.failed]
        if not names:
            why = failures[0]["message"] if failures else "no annotated video is there"
            raise DataError(
                f"none of {len(data.videos)} videos could be used: {why}; when that is mended, run with --retry-failed"
            )
        _write_predictions(folder, state, plan, task, names, note)
        measured = {cell.name: task.measured(folder.predictions_of(cell.slug), names) for cell in plan.cells}
        coverage = task.coverage(names)
        scores = summed_up(recipe, contestant.model, plan.cells, measured, coverage, contestant.mend)
        write_text(folder.scores, [json.dumps(scores, indent=1), "\n"])
        _write_diagnosis(folder, plan, task, names)
    return Run(out, scores, failures, *spent)


def plan_benchmark(
    recipe: Recipe,
    data: Dataset,
    contestant: Contestant,
    out: Path,
    *,
    cells: Sequence[Cell],
    seed: int = 0,
    retry_failed: bool = False,
) -> Plan:
    """What `run_benchmark` would do; nothing is written."""
    task = task_of(recipe, data)
    folder = RunFolder(out, task.suffix)
    folder.check(_origin(task, contestant, seed), builds())
    state = State.of(read_events(folder.journal))
    return planned(folder, state, task, cells, seed=seed, retry_failed=retry_failed)


def _origin(task: Task[Any], contestant: Contestant, seed: int) -> Origin:
    recipe, data = task.recipe, task.data
    return Origin(
        recipe.name,
        recipe.fingerprint,
        Content.of(recipe.content()),
        contestant.model,
        contestant.weights,
        contestant.weights_from,
        contestant.extractor,
        contestant.extractor_weights,
        contestant.rule,
        contestant.released_faults,
        contestant.shown,
        contestant.device,
        seed,
        data.name,
        data.subset,
        task.fingerprint,
        tuple(data.missing),
        recipe=recipe.base or recipe.name,
        parts=used_parts(recipe, data.name, contestant.asked),
        precision=contestant.precision,
        compiled=contestant.compiled,
        mend=contestant.mend,
        mend_weights=contestant.mend_weights,
    )


def _begun(folder: RunFolder, origin: Origin, task: Task[Any]) -> Journal:
    """The journal of a folder that is one of this origin's, from now on if it was not."""
    try:
        if not folder.check(origin, builds()):
            if any(not path.name.startswith(".") for path in folder.path.iterdir()):
                raise DataError(f"{folder.path}: holds something that is no run; name a new or an empty folder")
            own = {field.name: getattr(origin, field.name) for field in fields(origin)}
            about = About(**own, videos=len(task.videos), classes=tuple(task.classes), versions=builds(), format=FORMAT)
            write_text(folder.about, [json.dumps(about.to_dict(), indent=1), "\n"])
        if not folder.truth.exists():
            task.write_truth(folder.truth)
        for inner in (folder.predictions, folder.videos):
            inner.mkdir(exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(f"no room on the disk for {folder.path}; free some, then run again") from None
        raise DataError(f"{folder.path}: cannot be used ({error.strerror}); name another folder") from None
    return Journal(folder.journal)


def _set_aside(order: Order, error: JostleError, note: Note) -> None:
    note(VideoFailed(order.name, type(error).__name__, str(error), error.fault, order.portion))


def _keep(folder: RunFolder, state: State, task: Task[Any], order: Order, result: Looked[Any], note: Note) -> None:
    """Put the results of a video where a killed process does not take them along: first the file, then the line."""
    wanted = {cell.name: result.found[cell.name] for cell in order.cells}
    together = kept_results(folder, state, task, order.name, order.portion) | wanted
    file = results_file(folder, order.name, order.portion)
    checksum = write_results(file, *task.packed(together))
    costs = {"clean": asdict(result.clean), "cells": asdict(result.cells)}
    mended = None
    if result.mended is not None:
        before = state.videos.get((order.name, order.portion))
        kept = {} if before is None or before.mended is None else before.mended
        new = {cell: StruckFrames.of(one.struck, left=one.left) for cell, one in result.mended.items()}
        mended = {cell: one for cell, one in (kept | new).items() if cell in together}
    note(
        VideoKept(
            order.name,
            str(order.path.absolute()),
            checksum,
            kept=source_state(file),
            cells=tuple(spans(i for i, cell in enumerate(task.recipe.cells) if cell.name in together)),
            **({} if result.source is None else asdict(result.source)),
            fps=None if order.fps is None else str(order.fps),
            portion=order.portion,
            shown=None if result.shown is None else " ".join(map(str, result.shown)),
            cost=costs,
            mended=mended,
        )
    )


def _write_failures(folder: RunFolder, state: State, task: Task[Any]) -> tuple[dict[str, str], ...]:
    told = [plain_event(state.failed[name]) for name in usable_videos(task) if name in state.failed]
    failures = tuple({key: one[key] for key in ("video", "error", "message", "fault")} for one in told)
    write_text(folder.failures, [json.dumps(failure) + "\n" for failure in failures])
    return failures


def _write_predictions(
    folder: RunFolder, state: State, plan: Plan, task: Task[Any], names: list[str], note: Note
) -> None:
    """Put together the cells that lack a file or a video."""
    lacking = [cell for cell in plan.cells if plan.there.get(cell.name) != frozenset(names)]
    for some in _portions(lacking, CELLS_AT_ONCE):
        before = {
            cell.name: task.read(folder.predictions_of(cell.slug)) if cell.name in plan.there else {} for cell in some
        }
        found: dict[str, dict[str, Any]] = {cell.name: {} for cell in some}
        for name in names:
            kept: dict[str, Any] | None = None
            for cell in some:
                if name in before[cell.name]:
                    found[cell.name][name] = before[cell.name][name]
                    continue
                if kept is None:
                    kept = whole_results(folder, state, task, name)
                if cell.name not in kept:
                    raise SourceChanged(_altered(folder, state, task, name, cell))
                found[cell.name][name] = kept[cell.name]
        for cell in some:
            # The journal knows the file before it has its name, so that whatever has the name is known.
            path = folder.predictions_of(cell.slug)
            new = path.with_name(f".{path.stem}.new{path.suffix}")
            task.write(new, found[cell.name])
            key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
            if key not in state.lists:
                note(VideoList(key, tuple(names)))
            note(CellWritten(cell.name, file_fingerprint(new), key))
            os.replace(new, path)


def _altered(folder: RunFolder, state: State, task: Task[Any], name: str, cell: Cell) -> str:
    """Of what was kept when the work began, which file is not there as it was."""
    bad = next(one for one in task.portions(name) if cell.name not in kept_results(folder, state, task, name, one))
    return f"{results_file(folder, name, bad)}: not what this run wrote; delete it, and its video is looked at again"


def _write_diagnosis(folder: RunFolder, plan: Plan, task: Task[Any], names: list[str]) -> None:
    """The diagnosis of the clean videos, and under `cells` those of all others."""
    found = {cell.name: task.diagnosed(folder.predictions_of(cell.slug), names) for cell in plan.cells}
    clean = found.pop(CLEAN)
    if clean is not None:
        write_text(folder.diagnosis, [json.dumps(clean | {"cells": found}), "\n"])


def _portions(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for lo in range(0, len(cells), size):
        yield cells[lo : lo + size]
