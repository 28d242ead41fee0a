"""Throughput of `run` relative to model and CPU limits: `python -m bench.feeding --device cuda --jobs 1,2,4,8,16`.

Three rates of each model, in clips a second, or in frames a second for a detector with an extractor:

- the network alone, on preprocessed batches on the device;
- decoding and corrupting by the workers, with a stub in place of the model;
- `run`, with the models in processes of their own.

The throughput of `run` is given relative to the first two rates; the smaller of them is its upper bound. Videos are
generated and encoded for the benchmark. Workers are warm and start together; the rate is from the start of the first
to the end of the last. A few videos are processed by a single process as well, and the bytes are compared.

With several numbers of jobs, the scaling of the machine itself is measured too: the speed of hashing the same kilobyte
repeatedly, which needs no memory bandwidth, on all cores relative to one.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import argparse
import hashlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import feeding_models
from bench.clips import write_texture_video
from bench.feeding_models import MODELS, FeedingModel
from bench.timing import add_device_option, finish, make_parser, time_call
from jostle.api.engines import ENGINES, place_of
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.datasets.puppets import actions
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import Predictor, VideoJob
from jostle.evaluation.recipes.recipe import Group, Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.runner.runner import run_benchmark
from jostle.parallel.workers import available_cpus, map_unordered

SIZE, FRAMES, FPS = (256, 340), 300, 30
KINDS = ("gaussian_noise", "motion_blur", "fog", "ucf101-p/jumble", "jpeg_compression")
CELLS = tuple(f"{kind}:{severity}" for kind in KINDS for severity in (1, 3, 5))
CLASSES = ("one", "two")
TARGET = 0.9


def make_recipe(task: str, clips: int) -> Recipe:
    """Return a recipe of 15 cells: noise, motion blur, fog, order and JPEG at three severities."""
    settings: dict[str, Any] = {"metric": "mean_ap", "protocol": "thumos14", "tious": (0.5,)}
    if task == "recognition":
        settings = {"metric": "top_k_accuracy", "k": 1, "sampling": Sampling(clips=clips)}
    return Recipe(
        name="feeding",
        version=1,
        dataset="folder",
        subset="test",
        task=task,  # type: ignore[arg-type]
        groups=(Group("main", cells=CELLS),),
        **settings,
    )


def write_videos(folder: Path, count: int, frames: int, jobs: int) -> dict[str, Path]:
    """Write random videos in several processes, and return their paths by name."""
    paths = [folder / f"v{number:03d}.mp4" for number in range(count)]
    for _ in map_unordered(partial(_make_write, frames), paths, jobs):
        pass
    return {path.stem: path for path in paths}


def _make_write(frames: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        seed = len(path.stem) + sum(map(ord, path.stem))
        write_texture_video(path, size=SIZE, fps=FPS, frames=frames, block=(8, 4), seed=seed)

    return write


def make_dataset(task: str, videos: dict[str, Path]) -> Dataset:
    """Return a data set of videos with arbitrary annotations."""
    names = tuple(videos)
    if task == "recognition":
        count = np.arange(len(names))
        truth: Any = VideoLabels(names, CLASSES, count, count % 2)
    else:
        every = range(len(actions.CLASSES))
        segments = Segments([1.0 + n / 10 for n in every], [4.0 + n / 10 for n in every], every, None, actions.CLASSES)
        truth = Truth.from_segments(dict.fromkeys(names, segments))
    return Dataset("folder", "test", Path("data"), (truth,), videos)


@dataclass(frozen=True)
class TimedFactory:
    """Predictor factory of a worker, which warms up, waits for the other workers, and records times of videos.

    Attributes:
        warm_up: a video to process first.
        folder: where workers record that they are ready, and times.
    """

    load: Callable[[], Predictor[Any]]
    warm_up: VideoJob
    folder: Path
    workers: int

    def __call__(self) -> Predictor[Any]:
        predictor = self.load()
        predictor(self.warm_up)
        (self.folder / f"ready-{os.getpid()}").touch()
        while len(list(self.folder.glob("ready-*"))) < self.workers:
            time.sleep(0.01)

        def predict(job: VideoJob) -> Any:
            start = time.monotonic()
            result = predictor(job)
            with open(self.folder / f"times-{os.getpid()}", "a") as file:
                file.write(f"{start} {time.monotonic()}\n")
            return result

        return predict


@dataclass(frozen=True)
class Throughput:
    """Throughput of a run and durations of its phases.

    Attributes:
        items: clips, or frames that an extractor processed.
        seconds: from the start of the first worker to the end of the last.
        whole_s: of the whole run, including the start of processes and writing of results.
        load_s: until the processes with the model have loaded it.
        start_s: after that, until all workers have started and processed their first video.
    """

    items: int
    seconds: float
    whole_s: float
    load_s: float
    start_s: float

    @property
    def rate(self) -> float:
        """Number of items a second."""
        return self.items / self.seconds


def measure_run(
    model: FeedingModel,
    videos: dict[str, Path],
    clips: int,
    device: str,
    jobs: int,
    processes: int | None,
    precision: str,
    engine: str = "local",
) -> tuple[Throughput, dict[str, bytes]]:
    """Return the throughput of `run`, and the bytes of its prediction files."""
    recipe = make_recipe(model.task, clips)
    load = partial(feeding_models.load_predictor, model.name, device, precision, clips)
    warm_up = VideoJob("warm", next(iter(videos.values())), recipe.cells, 1)
    with tempfile.TemporaryDirectory() as name:
        records, out = Path(name) / "records", Path(name) / "run"
        records.mkdir()
        start = time.monotonic()
        with (
            place_of(engine, device, jobs, many=True, model_processes=processes) as place,
            place.with_models(BenchmarkModel(load, model=model.name)) as benchmark_model,
        ):
            loaded = time.monotonic()
            factory = TimedFactory(benchmark_model.load, warm_up, records, min(jobs, len(videos)))
            run = run_benchmark(
                recipe,
                make_dataset(model.task, videos),
                replace(benchmark_model, load=factory),
                out,
                cells=recipe.cells,
                jobs=jobs,
                engine=place.engine,
            )
        whole_s = time.monotonic() - start
        lines = [line.split() for file in records.glob("times-*") for line in file.read_text().splitlines()]
        first = min(float(begin) for begin, _ in lines)
        seconds = max(float(end) for _, end in lines) - first
        cost = run.clean + run.cells
        items = cost.joined if model.task == "recognition" else cost.seen
        predictions = {path.name: path.read_bytes() for path in sorted((out / "predictions").iterdir())}
    assert not run.failures, run.failures
    return Throughput(items, seconds, whole_s, loaded - start, first - loaded), predictions


def measure_machine_scaling(jobs: int, rounds: int = 2) -> float:
    """Return the speed of a core when `jobs` of them hash, relative to a core alone."""
    alone = min(seconds for _ in range(rounds) for _, seconds in map_unordered(_make_hash, [0], 1))
    together = min(
        max(seconds for _, seconds in map_unordered(_make_hash, list(range(jobs)), jobs)) for _ in range(rounds)
    )
    return alone / together


def _make_hash() -> Callable[[int], float]:
    kilobyte = bytes(1024)

    def hash_repeatedly() -> None:
        for _ in range(1_500_000):
            hashlib.blake2b(kilobyte)

    return lambda _: time_call(hash_repeatedly, "wall")


@dataclass(frozen=True)
class FeedingRates:
    """Rates of a model with a number of jobs, in items a second, and the shares of the upper bounds.

    Attributes:
        alone: of the network alone.
        cores: of decoding and corrupting alone.
        run: of `run`, from the start of the first worker; `run_whole` with the start of processes.
        of_bound: share of the smaller of the first two.
    """

    model: str
    jobs: int
    alone: float
    cores: float
    run: float
    run_whole: float
    load_s: float
    start_s: float
    of_model: float
    of_cores: float
    of_bound: float


def measure_model(
    options: argparse.Namespace, videos: dict[str, Path], name: str
) -> tuple[list[FeedingRates], dict[str, Any]]:
    """Return the rates of a model with every number of jobs, and other measurements by JSON key."""
    model, rows = MODELS[name], []
    alone = feeding_models.measure_network(model, options.device, options.precision)
    few = dict(list(videos.items())[: options.check])
    shared = {"clips": options.clips, "precision": options.precision}
    summary: dict[str, Any] = {"alone": alone, "batch": feeding_models.batch_size(model, options.device)}
    if few:
        one, expected = measure_run(model, few, device=options.device, jobs=1, processes=0, **shared)
        engine = {"processes": 1 if options.engine == "local" else None, "engine": options.engine}
        _, parallel = measure_run(model, few, device=options.device, jobs=min(4, options.most), **engine, **shared)
        summary |= {"one_process": one.rate, "same_bytes": expected == parallel}
        print(f"{name}: alone {alone:.1f}, one process {one.rate:.1f} a second; ", end="", flush=True)
        print("equal bytes in parallel" if expected == parallel else "BYTES DIFFER IN PARALLEL", flush=True)
    stub = replace(model, name=f"{feeding_models.STUBS[options.device]}:{name}")
    engine = {"processes": options.processes, "engine": options.engine}
    for jobs in options.jobs:
        part = dict(list(videos.items())[: jobs * options.rounds])
        limit, _ = measure_run(stub, part, options.clips, "cpu", jobs, 0, "float32")
        actual, _ = measure_run(model, part, device=options.device, jobs=jobs, **engine, **shared)
        run, whole = actual.rate, actual.items / actual.whole_s
        cores = limit.rate if model.task == "recognition" else actual.items / limit.seconds
        times = (actual.load_s, actual.start_s)
        shares = (run / alone, run / cores, run / min(alone, cores))
        row = FeedingRates(name, jobs, alone, cores, run, whole, *times, *shares)
        rows.append(row)
        print(
            f"{name:16} {jobs:4} jobs: model {alone:8.1f} cores {cores:8.1f} run {run:8.1f} (with start {whole:.1f}: "
            f"model {actual.load_s:.1f} s, workers {actual.start_s:.1f} s)  "
            f"{row.of_model:.2f} of the model, {row.of_cores:.2f} of the cores, {row.of_bound:.2f} of the smaller",
            flush=True,
        )
    first, last = rows[0], rows[-1]
    if last.jobs > first.jobs:
        summary["scaling"] = {
            "cores": last.cores / first.cores * first.jobs / last.jobs,
            "run": last.run / first.run * first.jobs / last.jobs,
        }
        print(f"{name}: scaling from {first.jobs} to {last.jobs} jobs: {summary['scaling']}", flush=True)
    return rows, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rates of each model, and return the exit code; the target is that of the most jobs."""
    parser = make_parser(__doc__)
    add_device_option(parser)
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--jobs", default=str(available_cpus()), help="numbers of jobs, separated by commas")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3, help="videos for each worker, if there are so many")
    parser.add_argument("--frames", type=int, default=FRAMES, help="frames of a video")
    parser.add_argument("--clips", type=int, default=4, help="clips of a video")
    parser.add_argument("--check", type=int, default=2, help="videos whose bytes are compared with a single process")
    parser.add_argument(
        "--processes", type=int, default=None, help="processes that hold the model; default on a CPU: 1"
    )
    parser.add_argument("--engine", default="local", choices=ENGINES, help="engine of `run`")
    options = parser.parse_args(arguments)
    options.jobs = [int(jobs) for jobs in str(options.jobs).split(",")]
    options.most = max(options.jobs)
    if options.processes is None and options.device == "cpu" and options.engine == "local":
        options.processes = 1
    numbers: dict[str, Any] = {"device": options.device, "precision": options.precision, "cores": available_cpus()}
    print(f"{options.videos} videos of {options.frames} frames, {SIZE[1]}x{SIZE[0]}, {options.clips} clips, ", end="")
    print(f"{len(CELLS)} cells and clean; {available_cpus()} cores of {platform.machine()}, ", end="")
    print(feeding_models.device_name(options.device))
    if len(options.jobs) > 1:
        numbers["machine_scaling"] = scaling = measure_machine_scaling(options.most)
        print(f"hashing on {options.most} cores: each has {scaling:.2f} of the speed of a core alone")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        videos = write_videos(Path(folder), options.videos, options.frames, available_cpus())
        for name in options.models.split(","):
            rows, summary = measure_model(options, videos, name)
            numbers[name] = summary | {"rows": [asdict(row) for row in rows]}
            missed = missed or rows[-1].of_bound < TARGET or summary.get("same_bytes") is False
            finish(options, numbers)  # after each model, so that an interrupted benchmark leaves its numbers
    return finish(options, numbers, missed=missed)


if __name__ == "__main__":
    from bench import feeding  # so that other processes can import the same module

    sys.exit(feeding.main())
