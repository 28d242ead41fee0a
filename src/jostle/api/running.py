"""Benchmarks: run one on a model, see what would be done, check what was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.api.data import AskedData
from jostle.errors import BadValue, UnknownName
from jostle.loading.asked import AskedModel
from jostle.loading.installed import need_torch
from jostle.settings import is_toml

if TYPE_CHECKING:
    from jostle.api.engines import Place
    from jostle.benchmarks.recipe import Cell, Recipe
    from jostle.datasets.dataset import Dataset
    from jostle.extraction.windows import ReleasedFault, Rule
    from jostle.models.input_spec import InputSpec
    from jostle.models.inspector import Inspector
    from jostle.running.runner import Contestant, Run
    from jostle.running.watching import Watch

Progress = Callable[[int, int], None]


def run(
    benchmark: str | Path,
    *,
    model: Any,
    data: str | Path | None = None,
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
    released_faults: Sequence[ReleasedFault] = (),
    spec: InputSpec | None = None,
    input: Mapping[str, Any] | None = None,
    clips: Literal["model", "benchmark"] = "model",
    precision: str = "float32",
    compiled: bool = False,
    mend: str | Path | Inspector | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Run:
    """Run a benchmark on a model. A run that was stopped in `out` goes on to the same bytes.

    A model of one's own is a `Recogniser` or a `torch.nn.Module` with its `spec`; or a callable: from clips (B, T, H,
    W, 3) uint8 to scores (B, classes) for recognition, from features (T, C) or, without an extractor, from frames (T,
    H, W, 3) uint8 to scored Segments for detection. The latter may also take `fps` and `duration` by name.

    Args:
        benchmark: one of `jostle names benchmarks`, or a TOML file.
        model: one of `jostle names detectors` or `jostle names models`, `package.module:attribute`, or the thing
            itself.
        data: the folder of the data set; None for one that is made.
        dataset: another data set than the recipe's, of `jostle names datasets`, as `folder` for videos of your own. The
            run then says in its name that it is not the benchmark.
        subset: another subset than the recipe's.
        fps: the rate of folders of images, where neither they nor the annotations say it.
        out: the run folder. Deleting a predictions file there makes the next run do that cell again.
        engine: `local`, processes of this machine, or `ray`, a cluster.
        jobs: videos at once; by default one a core, and for a model that is no name one. The result does not depend
            on it. For several, the model has to be picklable.
        model_processes: processes that hold the model, for those that decode and corrupt to ask; 0 for a model in each
            of those. By default one a GPU, and none on a CPU. The result does not depend on it.
        weights: of a name; for what comes with jostle also `clean`, which is the default, or `robust`.
        extractor: makes features for a detector: a name, `package.module:attribute` or the thing itself; by default
            the one that the weights were trained on.
        extractor_weights: its checkpoint, if not the one that comes with jostle.
        rule: how the windows of features are counted; see `jostle.extraction.windows.WindowGrid`.
        released_faults: faults of the THUMOS14-C extractors to repeat; see there as well.
        spec: what a module or callable wants to see. A callable without one gets whole frames as they are.
        input: fields of a recogniser's `InputSpec` to change.
        clips: whether frames and sizes of a clip are the `model`'s own or those of the `benchmark`.
        precision: of the numbers that networks compute with: `float32`, `tf32`, `bfloat16` or `float16`. The others
            are faster on a GPU, and move scores; the run remembers it.
        compiled: networks go through `torch.compile`, on a GPU; it moves last digits, and the run remembers it.
        mend: what struck frames touch is replaced by what lies around it before the model looks: rows of features, what
            was seen of frames, the frames of a clip. `jostle` for the inspector that comes along, weights of your own,
            or an `Inspector` says which they are; with `known` the benchmark itself, which is as well as it could be
            done. The run remembers it.
        cells: as `select_cells` takes them; by default all that count.
        retry_failed: look again at videos that could not be used.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (videos done, videos to do); of long videos of single frames, with portions of them.
        watch: called with the state of all cells after each video.

    Raises:
        SourceChanged: if `out` holds a run of another benchmark, model, rule, data, seed or mending; the message says
            which.
        BadValue: if the model does not fit the benchmark or its classes those of the data.
        DataError: if none of the videos could be used. Single ones are listed in `Run.failures`.
    """
    need_torch("running a model")
    shown = (spec, input, clips)
    asked = AskedModel(
        model, weights, extractor, extractor_weights, rule, released_faults, *shown, precision, compiled, mend
    )
    asked_data = AskedData(data, dataset, subset, fps)
    recipe, chosen = _named(benchmark, asked_data, asked, cells, out)
    from jostle.api.engines import place_of
    from jostle.progress import shown_progress
    from jostle.running.estimate import first_look
    from jostle.running.runner import run_benchmark
    from jostle.running.state import usable_videos
    from jostle.tasks.task import task_of

    many = _are_names(model, extractor, mend)
    if mend is not None and engine == "local":
        model_processes = 0  # what finds struck frames and what looks share one process
    with place_of(engine, device, jobs, many=many, model_processes=model_processes) as place:
        known = _looked_up(recipe, asked_data, chosen, place, asked)
        with (
            place.with_models(known.contestant) as contestant,
            shown_progress("looking at videos", progress) as told,
        ):
            if known.recipe.task != "detection" and (place.here or place.processes):
                # Whether the model fits is known before the work begins, and not at the end of it.
                task = task_of(known.recipe, known.data)
                orders = tuple(task.order(name, path, (), seed) for name, path in usable_videos(task).items())
                first_look(contestant.load, orders)
            return run_benchmark(
                known.recipe,
                known.data,
                contestant,
                Path(out),
                cells=known.cells,
                seed=seed,
                jobs=place.jobs,
                engine=place.engine,
                retry_failed=retry_failed,
                progress=told,
                watch=watch,
            )


def plan(
    benchmark: str | Path,
    *,
    model: Any,
    data: str | Path | None = None,
    dataset: str | None = None,
    subset: str | None = None,
    fps: Fraction | float | None = None,
    out: str | Path,
    jobs: int | None = None,
    model_processes: int | None = None,
    weights: str | Path | None = None,
    extractor: Any = None,
    extractor_weights: str | Path | None = None,
    rule: Rule = "all",
    released_faults: Sequence[ReleasedFault] = (),
    spec: InputSpec | None = None,
    input: Mapping[str, Any] | None = None,
    clips: Literal["model", "benchmark"] = "model",
    precision: str = "float32",
    compiled: bool = False,
    mend: str | Path | Inspector | None = None,
    cells: Iterable[str] | None = None,
    seed: int = 0,
    retry_failed: bool = False,
    device: str = "auto",
) -> dict[str, Any]:
    """What `run` would do with the same arguments, in numbers; the run folder is left as it is.

    One video is looked at, to tell how long everything may take.
    """
    need_torch("running a model")
    shown = (spec, input, clips)
    asked = AskedModel(
        model, weights, extractor, extractor_weights, rule, released_faults, *shown, precision, compiled, mend
    )
    asked_data = AskedData(data, dataset, subset, fps)
    recipe, chosen = _named(benchmark, asked_data, asked, cells, out)
    from jostle.api.engines import place_of
    from jostle.looking.remote import look_from_afar
    from jostle.running.estimate import estimated, first_look
    from jostle.running.runner import plan_benchmark

    many = _are_names(model, extractor, mend)
    if mend is not None:
        model_processes = 0  # what finds struck frames and what looks share one process
    with place_of("local", device, jobs, many=many, model_processes=model_processes) as place:
        known = _looked_up(recipe, asked_data, chosen, place, asked)
        made = plan_benchmark(
            known.recipe,
            known.data,
            known.contestant,
            Path(out),
            cells=known.cells,
            seed=seed,
            retry_failed=retry_failed,
        )
        with place.serving(known.contestant.load) as served:
            load = known.contestant.load if served is None else partial(look_from_afar, served)
            first = first_look(load, made.orders, timed=True, busy_s=getattr(served, "busy_s", None))
            return estimated(made, first, place.jobs, len(place.processes))


def _are_names(*given: Any) -> bool:
    """Whether nothing is a thing of the caller's own, which might not travel to other processes."""
    return all(one is None or isinstance(one, str | Path) for one in given)


@dataclass(frozen=True)
class _Known:
    """Everything that names stand for."""

    recipe: Recipe
    data: Dataset
    contestant: Contestant
    cells: tuple[Cell, ...]


def _named(
    benchmark: str | Path, data: AskedData, asked: AskedModel, cells: Iterable[str] | None, out: str | Path
) -> tuple[Recipe, tuple[Cell, ...]]:
    """What names stand for; a wrong one is told of before anything large is imported, torch above all."""
    from jostle.loading.names import check_known, check_model, check_names

    try:
        if not is_toml(benchmark):
            check_names(str(benchmark), asked.model)
        asked.check()
        if data.dataset is not None:
            check_known("datasets", data.dataset)
        from jostle.benchmarks.reading import load_benchmark
        from jostle.benchmarks.selection import select_cells

        wanted = None if cells is None else list(cells)
        own = load_benchmark(benchmark)
        check_model(own.name, own.task, asked.model)
        select_cells(own, wanted)
        recipe = data.put_under(own)  # looks at data sets, whose films are drawn by compiled code
        return recipe, select_cells(recipe, wanted)
    except (UnknownName, BadValue) as error:
        if Path(out).exists():
            from jostle.running.parts import parts_of_run

            used = parts_of_run(Path(out))
            if used:
                error.add_note(used)
        raise


def _looked_up(recipe: Recipe, data: AskedData, cells: tuple[Cell, ...], place: Place, asked: AskedModel) -> _Known:
    """Look everything else up, before any work is done."""
    from jostle.running.contestants import contestant_for

    loaded = data.load(recipe)
    contestant = contestant_for(recipe, loaded, asked, place.device, here=place.here)
    return _Known(recipe, loaded, replace(contestant, device=place.device), cells)
