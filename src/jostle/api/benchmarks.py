"""Benchmarks on models: runs, probes, several models, stability of frame classifiers, and checks of results."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.api.catalogue import DataSpec, load_dataset
from jostle.core.config import is_toml
from jostle.errors import BadValue, DataError, JostleError, UnknownName
from jostle.evaluation.runner.options import LANGUAGE_TASKS, RunOptions
from jostle.models.loading.names import need_torch

if TYPE_CHECKING:
    from jostle.api.engines import Engine
    from jostle.datasets.dataset import Dataset
    from jostle.datasets.videos import CheckedData
    from jostle.evaluation.probing.probe import Probe
    from jostle.evaluation.recipes.building import BuildCheck
    from jostle.evaluation.recipes.recipe import Cell, Recipe
    from jostle.evaluation.runner.progress import Watch
    from jostle.evaluation.runner.runner import BenchmarkModel, Run
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.evaluation.runner.verification import RunCheck
    from jostle.features.windows import ReleasedBug, Rule
    from jostle.gate.budget import Budget
    from jostle.mending.inspector import Inspector
    from jostle.metrics.breaking_points import BreakingComparison
    from jostle.models.input_spec import InputSpec
    from jostle.reporting.analysis.stability import Stabilities

Progress = Callable[[int, int], None]


def run(
    benchmark: str | Path,
    *,
    model: Any,
    data: str | Path | None = None,
    videos: Mapping[str, Any] | None = None,
    dataset: str | None = None,
    subset: str | None = None,
    fps: Fraction | float | None = None,
    out: str | Path,
    engine: str = "local",
    jobs: int | None = None,
    model_processes: int | None = None,
    weights: str | Path | None = None,
    extractor: Any = None,
    extractor_weights: str | Path | None = None,
    rule: Rule = "all",
    reproduce_bugs: Sequence[ReleasedBug] = (),
    spec: InputSpec | None = None,
    input: Mapping[str, Any] | None = None,
    clips: Literal["model", "benchmark"] = "model",
    precision: str = "float32",
    compiled: bool = False,
    mend: str | Path | Inspector | None = None,
    adapt: str | None = None,
    adapt_protocol: Literal["episodic", "online"] = "episodic",
    adapt_settings: Mapping[str, Any] | None = None,
    adapt_source: str | Path | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    device: str = "auto",
    until_decided: str | Path | Mapping[str, Any] | Budget | None = None,
    against: str | Path | None = None,
    fail_fast: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Run:
    """Run a benchmark on a model. A run that was stopped in `out` goes on to the same bytes.

    A model of one's own is a `Recogniser` or a `torch.nn.Module` with its `spec`; or a callable: from clips (B, T, H,
    W, 3) uint8 to scores (B, classes) for recognition, from features (T, C) or, without an extractor, from frames (T,
    H, W, 3) uint8 to scored Segments for detection. The latter may also take `fps` and `duration` by name. For
    questions it is a callable from frames (T, H, W, 3) uint8, question and options to text or a score for each option;
    for moments from frames, times, sentence and duration to windows (start, end, score).

    Args:
        benchmark: one of `jostle names benchmarks`, or a TOML file.
        model: one of `jostle names detectors`, `models` or `languagemodels`, `package.module:attribute`, or the thing
            itself.
        data: the folder of the data set; None for one that is made.
        videos: videos of the data set by id, in place of its files: paths, or objects with frames and timestamps, such
            as a torchcodec `VideoDecoder`. Frames of objects are written as PNG images to `<out>/frames`. Of a data set
            that jostle draws no other videos are drawn then: they count as missing.
        dataset: another data set than the recipe's, of `jostle names datasets`, as `folder` for videos of your own. The
            run then says in its name that it is not the benchmark.
        subset: another subset than the recipe's.
        fps: the rate of folders of images, where neither they nor the annotations say it.
        out: the run folder. Deleting a predictions file there makes the next run do that cell again.
        engine: `local`, processes of this machine, or `ray`, a cluster.
        jobs: number of processes that decode and corrupt videos; by default one for each core. The result does not
            depend on it.
        model_processes: number of processes that hold the model; 0 for a model in each process that decodes. By default
            one for each GPU, and none on a CPU. A model that is an object stays in this process, and others send it
            their frames; it has to be picklable only if this number is given. The result does not depend on it.
        weights: of a name; for what comes with jostle also `clean`, which is the default, or `robust`.
        extractor: makes features for a detector: a name, `package.module:attribute` or the thing itself; by default
            the one that the weights were trained on.
        extractor_weights: its checkpoint, if not the one that comes with jostle.
        rule: how the windows of features are counted; see `jostle.features.windows.WindowGrid`.
        reproduce_bugs: faults of the THUMOS14-C extractors to repeat; see there as well.
        spec: what a module or callable wants to see. A callable without one gets whole frames as they are.
        input: fields of a recogniser's `InputSpec` to change; for questions and moments `frames` and `orders`.
        clips: whether frames and sizes of a clip are the `model`'s own or those of the `benchmark`.
        precision: of the numbers that networks compute with: `float32`, `tf32`, `bfloat16` or `float16`. The others
            are faster on a GPU, and move scores; the run remembers it.
        compiled: networks go through `torch.compile`, on a GPU; it moves last digits, and the run remembers it.
        mend: what damaged frames touch is replaced by what lies around it before inference: rows of features, what
            was seen of frames, the frames of a clip. `jostle` for the inspector that comes along, weights of your own,
            or an `Inspector` says which they are; with `known` the benchmark itself, which is as well as it could be
            done. The run remembers it.
        adapt: the network of a recogniser or of an extractor adapts to the videos: `bn`, `tent`, `eata`, `sar` or
            `vitta`. The run remembers it, and the network is as before when it ends.
        adapt_protocol: `episodic`, each video from the source state, or `online`, where the state goes on through the
            videos of a cell, in an order drawn by the seed, one after the other.
        adapt_settings: settings of the method to change, such as `{"lr": 1e-4}`.
        adapt_source: for `eata` and `vitta`, clean videos to measure the source on: a folder of videos, or a run folder
            whose statistics are taken. By default the training subset of the data set.
        cells: as `select_cells` takes them; by default all that count.
        retry_failed: look again at videos that could not be used.
        device: `auto`, `cpu` or `cuda`.
        until_decided: a budget as of `jostle.check`: videos are processed in random order until every condition of it
            is decided, with the guarantee of its level although one looks several times: after each video for
            recognition, at four planned looks for scores that are no mean over videos, such as mAP. The run says that
            it stopped early, and the same run without this goes on to the whole benchmark.
        against: the reference run of such a budget, on all videos.
        fail_fast: a run with such a budget may stop as soon as any condition has failed.
        progress: called with (videos done, videos to do); of long videos of single frames, with portions of them.
        watch: called with the state of all cells after each video.

    Raises:
        SourceChanged: if `out` holds a run of another benchmark, model, rule, data, seed or mending; the message says
            which.
        BadValue: if the model does not fit the benchmark or its classes those of the data.
        DataError: if none of the videos could be used. Single ones are listed in `Run.failures`.
    """
    arguments = locals()
    options = RunOptions(**{field.name: arguments[field.name] for field in fields(RunOptions)})
    if until_decided is None and (against is not None or fail_fast):
        what = "fail_fast ends a run by a budget" if fail_fast else "a reference run is compared with by `jostle check`"
        raise BadValue(f"{what}; give until_decided (--until-decided), the budget, with it")
    if adapt_protocol == "online" and until_decided is not None:
        raise BadValue("a budget decides the order of videos, and so does online adaptation; leave one of the two out")
    stopping_budget = None if until_decided is None else _read_budget(until_decided)
    with _prepare(benchmark, options, out) as (known, place):
        from jostle.core.progress import progress_or_bar
        from jostle.evaluation.runner.estimate import run_trial
        from jostle.evaluation.runner.runner import run_benchmark
        from jostle.evaluation.runner.state import usable_videos
        from jostle.evaluation.tasks.task import make_task
        from jostle.gate.stopping import make_stopping_rule

        with (
            place.with_models(known.benchmark_model) as benchmark_model,
            progress_or_bar("processing videos", progress) as callback,
        ):
            # To ask a server twice costs money, so that a run which goes on does not try its model again.
            tried = known.recipe.task in LANGUAGE_TASKS and (Path(out) / "run.json").exists()
            if known.recipe.task != "detection" and not tried and (place.here or place.processes):
                # Whether the model fits is known before the work begins, and not at the end of it.
                task = make_task(known.recipe, known.data)
                orders = tuple(task.make_job(name, path, (), seed) for name, path in usable_videos(task).items())
                run_trial(benchmark_model.load, orders)
            stopping = None
            if stopping_budget is not None:
                stopping = make_stopping_rule(
                    known.recipe, known.data, known.cells, stopping_budget, against, seed, fail_fast=fail_fast
                )
            done = run_benchmark(
                known.recipe,
                known.data,
                benchmark_model,
                Path(out),
                cells=known.cells,
                seed=seed,
                jobs=place.jobs,
                engine=place.engine,
                retry_failed=retry_failed,
                progress=callback,
                watch=watch,
                stopping=stopping,
            )
            advice = "" if done.work is None else place.advise(done.work, benchmark_model)
            return replace(done, advice=advice)


def _read_budget(source: str | Path | Mapping[str, Any] | Budget) -> Budget:
    from jostle.gate.budget import read_budget

    budget = read_budget(source)
    assert budget is not None
    return budget


def plan(benchmark: str | Path, *, out: str | Path, **options: Any) -> dict[str, Any]:
    """Return the work that `run` would do with the same options on this machine; the run folder is not touched.

    One video is processed to estimate the total time.
    """
    requested = RunOptions(engine="local", **options)
    with _prepare(benchmark, requested, out) as (known, place):
        from jostle.evaluation.inference.remote import connect_predictor
        from jostle.evaluation.runner.estimate import estimate_cost, run_trial
        from jostle.evaluation.runner.runner import plan_benchmark

        work = plan_benchmark(
            known.recipe,
            known.data,
            known.benchmark_model,
            Path(out),
            cells=known.cells,
            seed=requested.seed,
            retry_failed=requested.retry_failed,
        )
        with place.serving(known.benchmark_model.load) as served:
            load = known.benchmark_model.load if served is None else partial(connect_predictor, served)
            first = run_trial(load, work.video_jobs, timed=True, busy_s=getattr(served, "busy_s", None))
            return estimate_cost(work, first, place.jobs, 1 if place.model_stays else len(place.processes))


def probe(
    benchmark: str | Path,
    *,
    model: Any,
    out: str | Path,
    kinds: Iterable[str] | None = None,
    step: int = 1,
    threshold: float | None = None,
    videos: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Probe:
    """Find the smallest damage that makes a model lose each action, clip or frame of a benchmark.

    For each item that the model gets right in the clean video: the frailty curve, which is the score with one damaged
    frame at each position, and the breaking point, which is the shortest run of damaged frames that loses it. A probe
    that was stopped in `out` goes on.

    Args:
        benchmark: one of `jostle names benchmarks`, or a TOML file; its data, task and metric are used, not its cells.
        model: as in `jostle.run`.
        out: a run folder, new or of the same model; `probe.json` and `probe/` are written into it.
        kinds: corruptions, as in `thumos14-c/black_frame` or `kinetics-c/fog:5`; by default those of THUMOS14-C.
        step: frames between the positions of single damaged frames; 1 tries every position.
        threshold: score from which detections count; by default there are then as many as actions on clean video.
        videos: probe so many videos, drawn by the seed; by default all. More are added to those that are done.
        progress: called with (videos done, videos to do).
        options: everything else is as in `jostle.run`.

    Raises:
        SourceChanged: if `out` holds a run of another model, or a probe with other settings.
        BadValue: if the benchmark has no items that could be lost, or a kind is unknown.
    """
    from jostle.evaluation.probing.probe import parse_kinds, probe_benchmark

    severities = parse_kinds(kinds)
    requested = RunOptions(model=model, **options)
    if requested.cells is not None:
        raise BadValue("a probe makes its own cells; name kinds of damage instead")
    if requested.adapt is not None:
        raise BadValue("a probe compares many trials of one network, which must not adapt to them; leave adapt out")
    with _prepare(benchmark, requested, out) as (known, place):
        from jostle.core.progress import progress_or_bar

        with (
            place.with_models(known.benchmark_model) as benchmark_model,
            progress_or_bar("probing videos", progress) as callback,
        ):
            return probe_benchmark(
                known.recipe,
                known.data,
                benchmark_model,
                Path(out),
                kinds=severities,
                step=step,
                threshold=threshold,
                videos=videos,
                seed=requested.seed,
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
def _prepare(benchmark: str | Path, options: RunOptions, out: str | Path) -> Iterator[tuple[_Known, Engine]]:
    """Check all names, then start the engine and look everything else up, before any work is done."""
    need_torch("running a model")
    data = DataSpec(options.data, options.dataset, options.subset, options.fps)
    recipe, chosen = _check_names(benchmark, data, options, out)
    from jostle.api.engines import place_of
    from jostle.api.video import with_videos
    from jostle.evaluation.run_folder.folder import RunFolder
    from jostle.evaluation.runner.benchmark_models import build_benchmark_model

    parts = (options.model, options.extractor, options.mend)
    picklable = all(one is None or isinstance(one, str | Path) for one in parts)
    jobs, model_processes = options.jobs, options.model_processes
    if options.adapt is not None:  # the network is where the videos are; an object, or an online one, in this process
        model_processes = 0
        jobs = 1 if not picklable or options.adapt_protocol == "online" else jobs
    with place_of(
        options.engine,
        options.device,
        jobs,
        many=True,
        model_processes=model_processes,
        picklable=picklable,
    ) as place:
        loaded = data.load(recipe, given=bool(options.videos))
        loaded = with_videos(loaded, options.videos, RunFolder(Path(out)).frames, options.fps)
        clean = None if options.adapt is None else _clean_videos(recipe, options)
        model = build_benchmark_model(
            recipe, loaded, options, place.device, here=place.here, out=Path(out), clean_videos=clean
        )
        yield _Known(recipe, loaded, replace(model, device=place.device), chosen), place


def _clean_videos(recipe: Recipe, options: RunOptions) -> CleanVideos | None:
    """Return the clean videos of a folder, or of the data set's training subset; None if there is neither."""
    from jostle.datasets.dataset import datasets
    from jostle.evaluation.runner.source_statistics import CleanVideos
    from jostle.io.files.video_ids import VIDEO_SUFFIXES

    if options.adapt_source is not None:
        folder = Path(options.adapt_source)
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in VIDEO_SUFFIXES)
        return CleanVideos(folder.name, lambda: {path.relative_to(folder).as_posix(): path for path in paths})
    subset = next((one for one in datasets[recipe.dataset].subsets if one in ("train", "training")), None)
    if subset is None:
        return None
    load = partial(load_dataset, recipe.dataset, subset, root=options.data)
    return CleanVideos(f"{recipe.dataset}, {subset}", lambda: load().videos)


def _check_names(
    benchmark: str | Path, data: DataSpec, options: RunOptions, out: str | Path
) -> tuple[Recipe, tuple[Cell, ...]]:
    """Check names before anything large, such as torch, is imported."""
    from jostle.models.loading.names import check_known, check_model, check_names

    try:
        if not is_toml(benchmark):
            check_names(str(benchmark), options.model)
        options.check()
        if data.dataset is not None:
            check_known("datasets", data.dataset)
        from jostle.evaluation.recipes.selection import load_benchmark, select_cells

        names_of_cells = None if options.cells is None else list(options.cells)
        own = load_benchmark(benchmark)
        check_model(own.name, own.task, options.model)
        options.check_task(own)
        select_cells(own, names_of_cells)
        recipe = data.put_under(own)  # finds data sets, whose films are drawn by compiled code
        return recipe, select_cells(recipe, names_of_cells)
    except (UnknownName, BadValue) as error:
        if Path(out).exists():
            from jostle.evaluation.runner.plugins import describe_plugins

            used = describe_plugins(Path(out))
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


@dataclass(frozen=True)
class Many:
    """Results of one benchmark on several models."""

    runs: dict[str, Run]  # by name of the run folder, in the order given
    failed: dict[str, str]  # those that could not be run, and why


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
    return Many(runs, failed)


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


def stability(runs: Sequence[str | Path]) -> Stabilities:
    """Accuracy and pm-k of runs of frame classifiers, side by side, and what papers print of the same benchmark."""
    from jostle.evaluation.results.record import RunRecord
    from jostle.reporting.analysis.stability import stabilities

    if not runs:
        raise BadValue("name a run")
    return stabilities([RunRecord.read(folder) for folder in runs])


def draw_stability(
    runs: Sequence[str | Path] | Stabilities, out: str | Path, *, formats: Sequence[str] = ("png", "pdf", "svg")
) -> list[Path]:
    """Draw accuracy against pm-k, a point a run, into a folder.

    Raises:
        Incomparable: if the runs are of different benchmarks or ground truths.
        MissingExtra: without matplotlib.
    """
    from jostle.reporting.analysis.stability import Stabilities
    from jostle.reporting.figures.stability import draw_stability as draw

    stabilities = runs if isinstance(runs, Stabilities) else stability(runs)
    published = () if stabilities.apart else stabilities.published
    return draw(stabilities.runs, Path(out), formats, title=stabilities.title, k=stabilities.k, published=published)


def verify(
    folder: str | Path, *, dataset: str | None = None, subset: str | None = None, progress: Progress | None = None
) -> RunCheck | BuildCheck | CheckedData:
    """Check a folder: of a run, of copies that `build` wrote, or of a data set.

    Of the first two every file is compared with its hash; of a data set every video is opened. The result lists what
    is `altered` and what is `lacking`.

    Args:
        dataset: one of `jostle names datasets`, if the folder is a copy of one.
        subset: the part of it; by default the one that results are given for.
        progress: called with (files checked, files in all).

    Raises:
        DataError: if the folder holds nothing that could be checked.
    """
    from jostle.datasets.videos import check_data
    from jostle.evaluation.recipes.building import check_built, is_built
    from jostle.evaluation.runner.verification import check_run

    place = Path(folder)
    if dataset is not None:
        return check_data(load_dataset(dataset, subset, root=place), progress)
    return check_built(place, progress) if is_built(place) else check_run(place)
