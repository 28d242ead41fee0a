"""Benchmarks on models: runs, probes, and several models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.catalogue import DataSpec, load_dataset
from jostle.api.config import BenchmarkRunConfig
from jostle.api.results import draw_stability, stability
from jostle.core.options import takes
from jostle.errors import BadValue, DataError, JostleError, MissingExtra, UnknownName
from jostle.evaluation.config import InferenceConfig
from jostle.evaluation.probing.options import ProbeConfig
from jostle.models.loading.names import need_torch

if TYPE_CHECKING:
    from jostle.api.engines import Engine
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.inference.benchmark_model import BenchmarkModel
    from jostle.evaluation.probing.probe import Probe
    from jostle.evaluation.recipes.recipe import Cell, Recipe
    from jostle.evaluation.results.run import Run
    from jostle.evaluation.runner.estimate import WorkEstimate
    from jostle.evaluation.runner.session import StoppingRule
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.gate.budget import Budget
    from jostle.metrics.breaking_points import BreakingComparison
    from jostle.reporting.analysis.many_runs import Many


@takes(BenchmarkRunConfig)
def run(config: BenchmarkRunConfig) -> Run:
    """Run a benchmark on a model. A run that was stopped in `out` goes on to the same bytes.

    A model of one's own is a `Recogniser` or a `torch.nn.Module` with its `spec`; or a callable: from clips (B, T, H,
    W, 3) uint8 to scores (B, classes) for recognition, from features (T, C) or, without an extractor, from frames (T,
    H, W, 3) uint8 to scored Segments for detection. The latter may also take `fps` and `duration` by name. For
    questions it is a callable from frames (T, H, W, 3) uint8, question and options to text or a score for each option;
    for moments from frames, times, sentence and duration to windows (start, end, score).

    Raises:
        SourceChanged: if `out` holds a run of another benchmark, model, rule, data, seed or mending; the message says
            which.
        BadValue: if the model does not fit the benchmark or its classes those of the data.
        DataError: if none of the videos could be used. Single ones are listed in `Run.failures`.
    """
    config.check_stop()
    budget = None if config.until_decided is None else _read_budget(config.until_decided)
    with _prepare(config) as (known, place):
        from jostle.core.progress import progress_or_bar
        from jostle.evaluation.runner.runner import run_benchmark

        with (
            place.with_models(known.benchmark_model) as benchmark_model,
            progress_or_bar("processing videos", config.progress) as callback,
        ):
            if place.here or place.processes:
                _try_model(known, benchmark_model, config)
            done = run_benchmark(
                known.recipe,
                known.data,
                benchmark_model,
                Path(config.out),
                cells=known.cells,
                seed=config.seed,
                jobs=place.jobs,
                engine=place.engine,
                retry_failed=config.retry_failed,
                progress=callback,
                watch=config.watch,
                stopping=None if budget is None else _stopping_rule(known, budget, config),
            )
            advice = "" if done.work is None else place.advise(done.work, benchmark_model)
            return replace(done, advice=advice)


def _try_model(known: _Known, model: BenchmarkModel, config: BenchmarkRunConfig) -> None:
    """Try a model on one video: whether it fits is known before the work begins, and not at the end of it."""
    from jostle.evaluation.runner.estimate import run_trial
    from jostle.evaluation.runner.state import usable_videos
    from jostle.evaluation.tasks.task import make_task

    task = make_task(known.recipe, known.data)
    if task.tries_model(begun=(Path(config.out) / "run.json").exists()):
        orders = tuple(task.make_job(name, path, (), config.seed) for name, path in usable_videos(task).items())
        run_trial(model.load, orders)


def _stopping_rule(known: _Known, budget: Budget, config: BenchmarkRunConfig) -> StoppingRule:
    from jostle.gate.stopping import make_stopping_rule

    return make_stopping_rule(
        known.recipe, known.data, known.cells, budget, config.against, config.seed, fail_fast=config.fail_fast
    )


def _read_budget(source: str | Path | Mapping[str, Any] | Budget) -> Budget:
    from jostle.gate.budget import read_budget

    budget = read_budget(source)
    assert budget is not None
    return budget


@takes(BenchmarkRunConfig)
def plan(config: BenchmarkRunConfig) -> WorkEstimate:
    """Return the work that `run` would do with the same options on this machine; the run folder is not touched.

    One video is processed to estimate the total time.
    """
    if config.until_decided is not None or config.against is not None:
        raise BadValue("--dry-run cannot tell when a budget is decided; leave one of the two out")
    with _prepare(replace(config, engine="local")) as (known, place):
        from jostle.evaluation.inference.remote import connect_predictor
        from jostle.evaluation.runner.estimate import estimate_cost, run_trial
        from jostle.evaluation.runner.runner import plan_benchmark

        work = plan_benchmark(
            known.recipe,
            known.data,
            known.benchmark_model,
            Path(config.out),
            cells=known.cells,
            seed=config.seed,
            retry_failed=config.retry_failed,
        )
        with place.serving(known.benchmark_model.load) as served:
            load = known.benchmark_model.load if served is None else partial(connect_predictor, served)
            first = run_trial(load, work.video_jobs, timed=True, busy_s=getattr(served, "busy_s", None))
            return estimate_cost(work, first, place.jobs, 1 if place.model_stays else len(place.processes))


@takes(ProbeConfig)
def probe(config: ProbeConfig) -> Probe:
    """Find the smallest damage that makes a model lose each action, clip or frame of a benchmark.

    For each item that the model gets right in the clean video: the frailty curve, which is the score with one damaged
    frame at each position, and the breaking point, which is the shortest run of damaged frames that loses it. A probe
    that was stopped in `out` goes on. Data, task and metric of the benchmark are used, not its cells; the run folder is
    new or of the same model, and `probe.json` and `probe/` are written into it.

    Raises:
        SourceChanged: if `out` holds a run of another model, or a probe with other settings.
        BadValue: if the benchmark has no items that could be lost, or a kind is unknown.
    """
    from jostle.evaluation.probing.probe import parse_kinds, probe_benchmark

    severities = parse_kinds(config.kinds)
    if config.adapt is not None:
        raise BadValue("a probe compares many trials of one network, which must not adapt to them; leave adapt out")
    with _prepare(config) as (known, place):
        from jostle.core.progress import progress_or_bar

        with (
            place.with_models(known.benchmark_model) as benchmark_model,
            progress_or_bar("probing videos", config.progress) as callback,
        ):
            return probe_benchmark(
                known.recipe,
                known.data,
                benchmark_model,
                Path(config.out),
                kinds=severities,
                step=config.step,
                threshold=config.threshold,
                videos=config.videos,
                seed=config.seed,
                jobs=place.jobs,
                engine=place.engine,
                progress=callback,
            )


def compare_probes(first: str | Path, second: str | Path) -> dict[str, BreakingComparison]:
    """Compare the breaking points of two models item by item, by kind of damage.

    Args:
        first: a run folder with a probe.
        second: another, of the same benchmark.

    Raises:
        Incomparable: if they are of different benchmarks, or have no kind or item in common.
    """
    from jostle.evaluation.probing.probe import compare_probes as compare
    from jostle.evaluation.probing.probe import read_probe

    return compare(read_probe(Path(first)), read_probe(Path(second)))


@dataclass(frozen=True)
class _Known:
    """Everything that names stand for."""

    recipe: Recipe
    data: Dataset
    benchmark_model: BenchmarkModel
    cells: tuple[Cell, ...]


@contextmanager
def _prepare(config: BenchmarkRunConfig | ProbeConfig) -> Iterator[tuple[_Known, Engine]]:
    """Check all names, then start the engine and look everything else up, before any work is done."""
    need_torch("running a model")
    data = DataSpec(config.data, config.dataset, config.subset, config.fps)
    recipe, chosen = _check_names(config, data)
    from jostle.api.engines import place_of
    from jostle.api.video import with_videos
    from jostle.evaluation.run_folder.folder import RunFolder
    from jostle.evaluation.runner.treatments import build_benchmark_model

    parts = (config.model, config.extractor, config.mend)
    picklable = all(one is None or isinstance(one, str | Path) for one in parts)
    jobs, model_processes = config.jobs, config.model_processes
    if config.adapt is not None:  # the network is where the videos are; an object, or an online one, in this process
        model_processes = 0
        jobs = 1 if not picklable or config.adapt_protocol == "online" else jobs
    with place_of(
        config.engine,
        config.device,
        jobs,
        many=True,
        model_processes=model_processes,
        picklable=picklable,
    ) as place:
        given = config.videos if isinstance(config, BenchmarkRunConfig) else None
        out = Path(config.out)
        loaded = with_videos(data.load(recipe, given=bool(given)), given, RunFolder(out).frames, config.fps)
        clean = None if config.adapt is None else _clean_videos(recipe, config)
        model = build_benchmark_model(
            recipe, loaded, config, place.device, here=place.here, out=out, clean_videos=clean
        )
        yield _Known(recipe, loaded, replace(model, device=place.device), chosen), place


def _clean_videos(recipe: Recipe, config: InferenceConfig) -> CleanVideos | None:
    """Return the clean videos of a folder, or of the data set's training subset; None if there is neither."""
    from jostle.datasets.dataset import datasets
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.io.video.video_source import video_suffixes

    if config.adapt_source is not None:
        folder = Path(config.adapt_source)
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in video_suffixes())
        return CleanVideos(folder.name, lambda: {path.relative_to(folder).as_posix(): path for path in paths})
    subset = next((one for one in datasets[recipe.dataset].subsets if one in ("train", "training")), None)
    if subset is None:
        return None
    load = partial(load_dataset, recipe.dataset, subset, root=config.data)
    return CleanVideos(f"{recipe.dataset}, {subset}", lambda: load().videos)


def check_model_name(benchmark: str | Path, model: object) -> Recipe:
    """Return a benchmark; raises if there is none of this name, or a named model is for another task."""
    from jostle.evaluation.recipes.selection import load_benchmark
    from jostle.evaluation.tasks.task import tasks

    recipe = load_benchmark(benchmark)
    tasks[recipe.task].check_model(recipe.name, model)
    return recipe


def _check_names(config: BenchmarkRunConfig | ProbeConfig, data: DataSpec) -> tuple[Recipe, tuple[Cell, ...]]:
    """Check names before anything large, such as torch, is imported."""
    try:
        own = check_model_name(config.benchmark, config.model)
        config.check()
        if data.dataset is not None:
            from jostle.datasets.dataset import datasets

            datasets.check(data.dataset)
        from jostle.evaluation.recipes.selection import select_cells
        from jostle.evaluation.tasks.task import tasks

        cells = None if not isinstance(config, BenchmarkRunConfig) or config.cells is None else list(config.cells)
        tasks[own.task].check_options(own, config)
        select_cells(own, cells)
        recipe = data.put_under(own)  # finds data sets, whose films are drawn by compiled code
        return recipe, select_cells(recipe, cells)
    except (UnknownName, BadValue) as error:
        if Path(config.out).exists():
            from jostle.evaluation.runner.plugins import describe_plugins

            used = describe_plugins(Path(config.out))
            if used:
                error.add_note(used)
        raise


Watching = Callable[[str], AbstractContextManager[dict[str, Any]]]


@dataclass(frozen=True)
class ModelEntry:
    """A model to be run, by name, and its weights."""

    model: str
    weights: str | None = None

    @property
    def folder(self) -> str:
        """Name of its run folder.

        >>> ModelEntry("timm/resnet50.a1_in1k").folder, ModelEntry("puppet_frames", "robust").folder
        ('timm-resnet50.a1_in1k', 'puppet_frames-robust')
        """
        word = self.weights if self.weights and re.fullmatch(r"\w+", self.weights) else Path(self.weights or "").stem
        name = f"{self.model}-{word}" if word and word != "public" else self.model
        return re.sub(r"[^\w.+-]+", "-", name).strip("-.")


def run_many(
    benchmark: str | Path,
    models: Iterable[str | ModelEntry],
    *,
    out: str | Path,
    weights: str | None = None,
    watching: Watching | None = None,
    **options: Any,
) -> Many:
    """Run a benchmark on one model after the other; what was stopped goes on, one that fails does not stop the rest.

    Args:
        models: names, or entries that `read_models` made of a file.
        out: a folder of run folders, each called by its model.
        weights: of all that do not name their own.
        watching: called with what is run, gives arguments of `run` that show how far it is.
        options: everything else is as in `jostle.run`.

    Raises:
        BadValue: if two would have the same folder.
        DataError: if not one of them could be run.
    """
    entries = [one if isinstance(one, ModelEntry) else ModelEntry(one) for one in models]
    entries = [one if one.weights is not None else ModelEntry(one.model, weights) for one in entries]
    folders = [entry.folder for entry in entries]
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice is not None or not entries:
        raise BadValue(f"the model {twice} is there twice; name it once" if twice else "there are no models to run")
    runs: dict[str, Run] = {}
    failed: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        title = f"{entry.folder} ({number} of {len(entries)})"
        try:
            with nullcontext({}) if watching is None else watching(title) as callbacks:
                folder = Path(out) / entry.folder
                runs[entry.folder] = run(
                    benchmark, model=entry.model, weights=entry.weights, out=folder, **callbacks, **options
                )
        except JostleError as error:
            failed[entry.folder] = str(error)
    if not runs:
        name, why = next(iter(failed.items()))
        raise DataError(f"none of the {len(entries)} models could be run; {name}: {why}")
    from jostle.reporting.analysis.many_runs import Many

    if not all("pm_k" in one.scores["clean_more"] for one in runs.values()):
        return Many(runs, failed)
    side_by_side, figures = stability([one.folder for one in runs.values()]), []
    with suppress(MissingExtra):  # the table needs no drawing
        figures = draw_stability(side_by_side, out)
    return Many(runs, failed, side_by_side, tuple(figures))


def read_models(path: str | Path) -> list[ModelEntry]:
    """Models of a text file: one a line, its name and, if it has its own, its weights; `#` begins a remark.

    Raises:
        DataError: if it cannot be read, or a line says more than that.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text: {error}") from None
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}; put quotes around a path in pairs") from None
        if len(words) > 2:
            raise DataError(f"{path}, line {number}: a line is a model and its weights, not {len(words)} words")
        if words:
            entries.append(ModelEntry(*words))
    return entries
