"""Breaking points of a model on a benchmark, in a run folder; a probe that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

from jostle.core.random import rng_for
from jostle.core.results import Result, plain
from jostle.core.schema import Count
from jostle.core.tables import Table
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, DataError, Incomparable, JostleError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import JobEngine, Predictor, WorkerFactory
from jostle.evaluation.probing.predictor import ProbePredictor, ProbeSettings, VideoProbe
from jostle.evaluation.probing.search import BreakingPoint, severities_of
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Recipe
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.state import usable_videos
from jostle.evaluation.tasks.task import Task, make_task
from jostle.io.files.atomic import write_text
from jostle.io.files.ledger import Manifest, check_same
from jostle.io.files.records import read_record
from jostle.io.files.video_ids import file_name_for
from jostle.metrics.breaking_points import (
    BreakingComparison,
    BreakingDistribution,
    breaking_comparison_table,
    breaking_distribution,
    breaking_table,
    compare_breaking_points,
)
from jostle.parallel.workers import map_unordered

MOST_REASONS = 3  # of failures, that a message names
DEFAULT_KINDS = tuple(
    f"thumos14-c/{name}" for name in ("black_frame", "occlusion", "overexposure", "packet_loss", "motion_blur")
)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ItemBreakingPoint:
    """Breaking point of an item of a data set; see `BreakingPoint`."""

    video: str
    item: Count
    label: str
    kind: str
    frames: Count | None
    position: Count | None
    severity: Count | None
    bracket: tuple[Count, Count | None]
    monotone: bool
    length: Count  # frames of the item


@dataclass(frozen=True)
class Probe(Result):
    """Breaking points of a model, as probe.json holds them.

    Attributes:
        loss_rule: when an item counts as lost, in words.
        threshold: score from which predictions count.
        kinds: the kinds of damage, and the severities of each.
        step: frames between the positions of single damaged frames.
        videos: number of videos.
        items: number of items, of which the model has `kept` in the clean videos; those are probed.
        trials: number of damaged videos that the model processed.
        breaking_points: of every item that is probed, by each kind.
        failures: videos that could not be used, and why.
    """

    json_keys = (
        *("benchmark", "model", "task", "loss_rule", "threshold", "kinds", "step", "seed"),
        *("videos", "items", "kept", "trials", "breaking_points", "failures", "summary"),
    )

    format: Literal[1]
    benchmark: str
    model: str
    task: str
    loss_rule: str
    threshold: float
    kinds: dict[str, tuple[Count, ...]]
    step: Count
    seed: int
    videos: Count
    items: Count
    kept: Count
    trials: Count
    breaking_points: tuple[ItemBreakingPoint, ...]
    failures: dict[str, str]

    def of_kind(self, kind: str) -> list[ItemBreakingPoint]:
        """Return the breaking points by one kind of damage."""
        return [one for one in self.breaking_points if one.kind == kind]

    def distribution(self, kind: str, label: str | None = None) -> BreakingDistribution:
        """Return the distribution of the breaking points by one kind, of all items or those of a class."""
        points = [one for one in self.of_kind(kind) if label in (None, one.label)]
        videos, frames = [one.video for one in points], [one.frames for one in points]
        return breaking_distribution(videos, frames, [one.monotone for one in points], seed=self.seed)

    @property
    def full_rule(self) -> str:
        """The loss rule, with the threshold where it names one."""
        return f"{self.loss_rule} of {self.threshold:.3g}" if self.loss_rule.endswith("threshold") else self.loss_rule

    @property
    def labels(self) -> list[str]:
        """Classes of the items that were probed, in the order of the alphabet."""
        return sorted({one.label for one in self.breaking_points})

    @property
    def summary(self) -> list[dict[str, Any]]:
        """The distributions of breaking points by kind, and by class within each."""
        return [
            {
                "kind": kind,
                **plain(self.distribution(kind)),
                "classes": {label: plain(self.distribution(kind, label)) for label in self.labels},
            }
            for kind in self.kinds
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return the distribution of breaking points by kind."""
        rows = {kind: one for kind in self.kinds if (one := self.distribution(kind)).items}
        return (breaking_table(f"Breaking points, {self.benchmark}", "kind", rows),)

    def notes(self) -> tuple[str, ...]:
        """Return what was probed, and when an item counts as lost."""
        notes = [
            f"{self.model}: {self.kept} of {self.items} items are right in the clean videos; {self.trials} trials",
            f"lost: {self.full_rule}",
        ]
        points = self.breaking_points
        if uneven := sum(not one.monotone for one in points):
            notes.append(f"{uneven} of {len(points)} breaking points are not monotone: more damage helps")
        return tuple(notes)


@dataclass(frozen=True)
class ComparedProbe(Result):
    """Breaking points of a model, and how another model's compare by kind of damage."""

    probe: Probe
    against: dict[str, BreakingComparison]

    def tables(self) -> tuple[Table, ...]:
        """Return the breaking points by kind, and the comparison item by item."""
        table = breaking_comparison_table("Against the other model", "lost to fewer", self.against)
        return (*self.probe.tables(), table)

    def notes(self) -> tuple[str, ...]:
        """Return the notes of the probe."""
        return self.probe.notes()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of probe.json with the comparison."""
        return self.probe.to_dict() | {"against": plain(self.against)}


@dataclass(frozen=True)
class ProbeFolder:
    """Files of a probe in a run folder; `probe/` has a manifest of the files of videos."""

    path: Path

    @property
    def inner(self) -> Path:
        """Folder of the settings, the manifest and the files of videos."""
        return self.path / "probe"

    @property
    def result(self) -> Path:
        """Path of the breaking points of all videos."""
        return self.path / "probe.json"

    @property
    def settings(self) -> Path:
        """Path of the settings that decide the result."""
        return self.inner / "settings.json"

    def of_video(self, name: str) -> Path:
        """Return the path of the breaking points and curves of one video."""
        return self.inner / self.name_of(name)

    @staticmethod
    def name_of(name: str) -> str:
        """Return the name of the file of one video, as in the manifest."""
        return f"videos/{file_name_for(name, '.json')}"


def read_probe(path: Path) -> Probe:
    """Read the breaking points in a run folder.

    Raises:
        DataError: if there are none, or the file is damaged.
    """
    return read_record(Probe, ProbeFolder(path).result, "the same `jostle probe` goes on and writes it again")


def read_video_probe(path: Path, name: str) -> VideoProbe:
    """Read the breaking points and frailty curves of one video in a run folder."""
    return read_record(VideoProbe, ProbeFolder(path).of_video(name), "the same `jostle probe` computes it again")


def parse_kinds(kinds: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
    """Return the severities of corruptions; `NAME:SEVERITY` has only that one.

    >>> parse_kinds(["kinetics-c/fog", "thumos14-c/black_frame", "kinetics-c/rain:2"])
    {'kinetics-c/fog': (1, 2, 3, 4, 5), 'thumos14-c/black_frame': (1,), 'kinetics-c/rain': (2,)}
    """
    parsed: dict[str, tuple[int, ...]] = {}
    for text in DEFAULT_KINDS if kinds is None else kinds:
        name, _, severity = text.partition(":")
        own = severities_of(name)
        if severity and (not severity.isdigit() or int(severity) not in own):
            raise BadValue(f"{text}: severity must be one of {', '.join(map(str, own))}, got {severity!r}")
        if name in parsed:
            raise BadValue(f"the kind {name} is there twice; name it once")
        parsed[name] = (int(severity),) if severity else tuple(own)
    if not parsed:
        raise BadValue("there is no kind of damage to probe with; name a corruption, as in thumos14-c/black_frame")
    return parsed


def _why_none(task: Task[Any, Any], failed: Mapping[str, str]) -> str:
    """Say why no video of a data set could be probed."""
    parts = [" ".join(message.split()) or f"video {name} failed" for name, message in failed.items()]
    if len(parts) > MOST_REASONS:
        parts[MOST_REASONS:] = [f"and {len(parts) - MOST_REASONS} more failed"]
    if idle := sum(name not in failed and not task.items(name) for name in usable_videos(task)):
        parts.append(f"{idle} have nothing annotated that a model could lose")
    return "; ".join(parts) or "none of them is both annotated and there; check the data folder"


def probe_benchmark(
    recipe: Recipe,
    data: Dataset,
    model: BenchmarkModel,
    out: Path,
    *,
    kinds: dict[str, tuple[int, ...]],
    step: int = 1,
    threshold: float | None = None,
    videos: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    engine: JobEngine = map_unordered,
    progress: Progress | None = None,
) -> Probe:
    """Find the breaking points of a model in a run folder, after a run of the clean videos there.

    Raises:
        BadValue: if the task has no items that could be lost.
        SourceChanged: if the folder holds the run of another model, or a probe with other settings.
    """
    task = make_task(recipe, data)
    if not task.words.loss_rule:
        raise BadValue(f"{recipe.name} is of {recipe.task}, which has no breaking points")
    if step < 1:
        raise BadValue(f"step must be at least 1 frame, got {step}")
    run = run_benchmark(recipe, data, model, out, cells=[CLEAN_CELL], seed=seed, jobs=jobs, engine=engine)
    outputs = task.read(RunFolder(out, task.suffix).predictions_of(CLEAN_CELL.slug))
    if threshold is None:
        threshold = task.operating_threshold(outputs)
    settings, folder = ProbeSettings(kinds, step, float(threshold)), ProbeFolder(out)
    _check_settings(folder, settings)
    failed = {failure["video"]: failure["message"] for failure in run.failures}
    names = [name for name in usable_videos(task) if name not in failed and task.items(name)]
    if videos is not None:
        drawn = set(sorted(names, key=lambda name: rng_for(seed, "probe", name).random())[:videos])
        names = [name for name in names if name in drawn]
    manifest, key = Manifest(folder.inner, "remove it, and the same `jostle probe` goes on"), _key_of(settings)
    finished = {name: _read_finished(folder, name, manifest, key) for name in names}
    done = {name: probe for name, probe in finished.items() if probe is not None}
    paths = usable_videos(task)
    left = [task.make_job(name, paths[name], (), seed) for name in names if name not in done]
    factory = WorkerFactory(partial(_load_predictor, model.load, task, settings))
    with closing(engine(factory, left, jobs, lost=lambda job, error: error)) as results:
        for count, (job, result) in enumerate(results, 1):
            if isinstance(result, JostleError):
                failed[job.name] = str(result)
            else:
                done[job.name] = result.outputs["probe"]
                write_text(folder.of_video(job.name), [json.dumps(plain(done[job.name])), "\n"])
                manifest.add(folder.name_of(job.name), key)
            if progress is not None:
                progress(count, len(left))
    if not done:
        raise DataError(f"none of {len(data.videos)} videos could be probed: {_why_none(task, failed)}")
    probe = _summarize(
        recipe, model.model, task, settings, seed, [done[name] for name in names if name in done], failed
    )
    write_text(folder.result, [json.dumps(probe.to_dict(), indent=1), "\n"])
    return probe


def _load_predictor(
    load: Callable[[], Predictor[Any]], task: Task[Any, Any], settings: ProbeSettings
) -> ProbePredictor:
    return ProbePredictor(load(), task, settings)


def _check_settings(folder: ProbeFolder, settings: ProbeSettings) -> None:
    """Record the settings of a probe, or raise if the folder has others."""
    if folder.settings.exists():
        before = read_record(ProbeSettings, folder.settings, "delete the folder probe/, and it is done again")
        what, remedy = "a probe with other settings", "use those settings"
        check_same(folder.path, what, vars(before), vars(settings), remedy, "F145")
        return
    folder.of_video("").parent.mkdir(parents=True, exist_ok=True)
    write_text(folder.settings, [json.dumps(asdict(settings), indent=1), "\n"])


def _key_of(settings: ProbeSettings) -> str:
    return hashlib.sha256(json.dumps(asdict(settings)).encode()).hexdigest()


def _read_finished(folder: ProbeFolder, name: str, manifest: Manifest, key: str) -> VideoProbe | None:
    """Return the probe of a video that is finished; a file that is damaged or was changed is computed again.

    A file without a line is complete, as it has its name: older versions had no manifest.
    """
    file = folder.name_of(name)
    if file in manifest.lines and not manifest.is_whole(file, key):
        return None
    try:
        return read_video_probe(folder.path, name)
    except DataError:
        return None


def _summarize(
    recipe: Recipe,
    model: str,
    task: Task[Any, Any],
    settings: ProbeSettings,
    seed: int,
    probes: Sequence[VideoProbe],
    failed: dict[str, str],
) -> Probe:
    items = [item for probe in probes for item in probe.items]
    return Probe(
        format=1,
        benchmark=recipe.name,
        model=model,
        task=recipe.task,
        loss_rule=task.words.loss_rule,
        threshold=settings.threshold,
        kinds=settings.kinds,
        step=settings.step,
        seed=seed,
        videos=len(probes),
        items=len(items),
        kept=sum(item.kept for item in items),
        trials=sum(probe.trials for probe in probes),
        breaking_points=tuple(_located(probe, point) for probe in probes for point in probe.breaking_points),
        failures=failed,
    )


def _located(probe: VideoProbe, point: BreakingPoint) -> ItemBreakingPoint:
    item = probe.items[point.item]
    own = {field.name: getattr(point, field.name) for field in fields(point)}
    return ItemBreakingPoint(probe.video, label=item.label, length=item.stop - item.first, **own)


def compare_probes(first: Probe, second: Probe) -> dict[str, BreakingComparison]:
    """Compare two models action by action, on the items that both have in the clean videos; by kind of damage.

    Raises:
        Incomparable: if the probes are of different benchmarks, or no kind or item is in both.
    """
    if first.benchmark != second.benchmark:
        raise Incomparable(f"one probe is of {first.benchmark}, the other of {second.benchmark}")
    kinds = [kind for kind in first.kinds if second.kinds.get(kind) == first.kinds[kind]]
    if not kinds:
        raise Incomparable(
            f"the probes have no kind of damage in common: {', '.join(first.kinds)} and {', '.join(second.kinds)}"
        )
    comparisons = {}
    for kind in kinds:
        before, after = (
            {(one.video, one.item): one.frames for one in probe.of_kind(kind)} for probe in (first, second)
        )
        both = [key for key in before if key in after]
        if not both:
            raise Incomparable("there is no item that both models have in the clean videos")
        comparisons[kind] = compare_breaking_points(
            [video for video, _ in both], [before[key] for key in both], [after[key] for key in both], seed=first.seed
        )
    return comparisons
