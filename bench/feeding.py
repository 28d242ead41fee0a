"""How well `run` feeds a model: `python -m bench.feeding --device cuda --jobs 1,2,4,8,16`.

Three rates of each model, in clips a second, or for a detector in frames that its extractor looks at:

- what the network does alone, on batches that are prepared and on the device already;
- what the workers decode and corrupt when the model is replaced by nothing;
- what `run` does, with the models in processes of their own.

So two shares: of the model's own rate, and of what the cores can do. The smaller of the two rates is all that there is
to be had. Videos are drawn and encoded for the purpose. Workers are warm and begin together; the rate is from the first
one's beginning to the last one's end. A few videos are looked at by one process too, and the bytes are compared.

With several numbers of jobs it is said too how the machine scales by itself: what hashing the same kilobyte over and
over, which leaves memory alone, gets of a core when all cores do it.
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

from bench import fed_models
from bench.fed_models import MODELS, Fed
from bench.timing import finish, make_parser
from jostle.api.engines import ENGINES, place_of
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.datasets.puppets import actions
from jostle.evaluation.inference.jobs import Predictor, VideoJob
from jostle.evaluation.recipes.recipe import Group, Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.runner.runner import BenchmarkModel, run_benchmark
from jostle.io.video.encode import Writer
from jostle.parallel.workers import available_cpus, map_unordered

SIZE, FRAMES, FPS = (256, 340), 300, 30
KINDS = ("gaussian_noise", "motion_blur", "fog", "ucf101-p/jumble", "jpeg_compression")
CELLS = tuple(f"{kind}:{severity}" for kind in KINDS for severity in (1, 3, 5))
CLASSES = ("one", "two")
AIM = 0.9


def recipe_for(task: str, clips: int) -> Recipe:
    """Fifteen cells: noise, motion blur, fog, order and JPEG, at three severities."""
    own: dict[str, Any] = {"metric": "mean_ap", "protocol": "thumos14", "tious": (0.5,)}
    if task == "recognition":
        own = {"metric": "top_k_accuracy", "k": 1, "sampling": Sampling(clips=clips)}
    return Recipe(
        name="fed",
        version=1,
        dataset="folder",
        subset="test",
        task=task,  # type: ignore[arg-type]
        groups=(Group("main", cells=CELLS),),
        **own,
    )


def write_video(path: Path, frames: int) -> Path:
    """A texture that drifts, which neither coder nor decoder gets for nothing."""
    rng = np.random.default_rng(len(path.stem) + sum(map(ord, path.stem)))
    ground = rng.integers(0, 256, (SIZE[0] // 8, SIZE[1] // 4, 3)).repeat(8, 0).repeat(4, 1).astype(np.uint8)
    with Writer(path, size=SIZE, fps=FPS) as writer:
        for tick in range(frames):
            writer.write(np.roll(ground, (tick, 2 * tick), (0, 1)), tick)
    return path


def write_videos(folder: Path, count: int, frames: int, jobs: int) -> dict[str, Path]:
    """As many as are asked for, made side by side."""
    wanted = [folder / f"v{number:03d}.mp4" for number in range(count)]
    made = dict(map_unordered(partial(_writing, frames), wanted, jobs))
    return {path.stem: path for path in sorted(made)}


def _writing(frames: int) -> Callable[[Path], Path]:
    return lambda path: write_video(path, frames)


def data_of(task: str, videos: dict[str, Path]) -> Dataset:
    """The videos, annotated with anything."""
    names = tuple(videos)
    if task == "recognition":
        count = np.arange(len(names))
        truth: Any = VideoLabels(names, CLASSES, count, count % 2)
    else:
        every = range(len(actions.CLASSES))
        found = Segments([1.0 + n / 10 for n in every], [4.0 + n / 10 for n in every], every, None, actions.CLASSES)
        truth = Truth.from_segments(dict.fromkeys(names, found))
    return Dataset("folder", "test", Path("data"), (truth,), videos)


@dataclass(frozen=True)
class Starting:
    """Starts a worker: it looks at a video first, waits for the others, and notes when it is at work."""

    load: Callable[[], Predictor[Any]]
    warm: VideoJob
    notes: Path
    workers: int

    def __call__(self) -> Predictor[Any]:
        look = self.load()
        look(self.warm)
        (self.notes / f"ready-{os.getpid()}").touch()
        while len(list(self.notes.glob("ready-*"))) < self.workers:
            time.sleep(0.01)

        def noting(order: VideoJob) -> Any:
            begin = time.monotonic()
            looked = look(order)
            with open(self.notes / f"times-{os.getpid()}", "a") as file:
                file.write(f"{begin} {time.monotonic()}\n")
            return looked

        return noting


@dataclass(frozen=True)
class Rate:
    """How fast something went.

    Attributes:
        items: clips, or frames that an extractor looked at.
        seconds: from the first worker's beginning to the last one's end.
        whole_s: with the start of processes and all that is written.
        load_s: until the processes with the model had it loaded.
        start_s: after that, until all workers had started and looked at a first video.
    """

    items: int
    seconds: float
    whole_s: float
    load_s: float
    start_s: float

    @property
    def a_second(self) -> float:
        return self.items / self.seconds


def run_rate(
    fed: Fed,
    videos: dict[str, Path],
    clips: int,
    device: str,
    jobs: int,
    processes: int | None,
    precision: str,
    engine: str = "local",
) -> tuple[Rate, dict[str, bytes]]:
    """What `run` does, and what it finds in each cell, as bytes."""
    task, recipe = fed.task, recipe_for(fed.task, clips)
    load = partial(fed_models.looking, fed.name, device, precision, clips)
    names = list(videos)
    warm = VideoJob("warm", videos[names[0]], recipe.cells, 1)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        begin = time.monotonic()
        with (
            place_of(engine, device, jobs, many=True, model_processes=processes) as place,
            place.with_models(BenchmarkModel(load, fed.name)) as contestant,
        ):
            loaded = time.monotonic()
            workers = min(jobs, len(videos))
            timed = replace(contestant, load=Starting(contestant.load, warm, notes, workers))
            out = Path(folder) / "run"
            usual = {"cells": recipe.cells, "jobs": jobs, "engine": place.engine}
            done = run_benchmark(recipe, data_of(task, videos), timed, out, **usual)
        whole = time.monotonic() - begin
        lines = [line.split() for file in notes.glob("times-*") for line in file.read_text().splitlines()]
        first = min(float(first) for first, _ in lines)
        seconds = max(float(end) for _, end in lines) - first
        cost = done.clean + done.cells
        items = cost.joined if task == "recognition" else cost.seen
        found = {path.name: path.read_bytes() for path in sorted((out / "predictions").iterdir())}
    assert not done.failures, done.failures
    return Rate(items, seconds, whole, loaded - begin, first - loaded), found


def machine_scaling(jobs: int, rounds: int = 2) -> float:
    """What of its speed alone a core has when so many work, at something that touches no memory."""
    alone = min(taken for _ in range(rounds) for _, taken in map_unordered(_hashing, [0], 1))
    together = min(max(taken for _, taken in map_unordered(_hashing, list(range(jobs)), jobs)) for _ in range(rounds))
    return alone / together


def _hashing() -> Callable[[int], float]:
    kilobyte = bytes(1024)

    def hashed(_: int) -> float:
        begin = time.perf_counter()
        for _ in range(1_500_000):
            hashlib.blake2b(kilobyte)
        return time.perf_counter() - begin

    return hashed


@dataclass(frozen=True)
class Row:
    """What was measured with so many jobs, in items a second; `bound` is the smaller of the two others."""

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


def measured(options: argparse.Namespace, videos: dict[str, Path], name: str) -> tuple[list[Row], dict[str, Any]]:
    """A model with every number of jobs."""
    fed, rows = MODELS[name], []
    alone = fed_models.own_rate(fed, options.device, options.precision)
    few = dict(list(videos.items())[: options.check])
    usual = {"clips": options.clips, "precision": options.precision}
    said: dict[str, Any] = {"alone": alone, "batch": fed_models.batch(fed, options.device)}
    if few:
        before, known = run_rate(fed, few, device=options.device, jobs=1, processes=0, **usual)
        own = {"processes": 1 if options.engine == "local" else None, "engine": options.engine}
        _, same = run_rate(fed, few, device=options.device, jobs=min(4, options.most), **own, **usual)
        said |= {"one_process": before.a_second, "same_bytes": known == same}
        print(f"{name}: alone {alone:.1f}, one process {before.a_second:.1f} a second; ", end="", flush=True)
        print("the same bytes when fed" if known == same else "OTHER BYTES WHEN FED", flush=True)
    nothing = replace(fed, name=f"{fed_models.NOTHING[options.device]}:{name}")
    for jobs in options.jobs:
        some = dict(list(videos.items())[: jobs * options.rounds])
        plain = {"clips": options.clips, "precision": "float32"}
        can, _ = run_rate(nothing, some, device="cpu", jobs=jobs, processes=0, **plain)
        own = {"processes": options.processes, "engine": options.engine}
        did, _ = run_rate(fed, some, device=options.device, jobs=jobs, **own, **usual)
        run, whole = did.a_second, did.items / did.whole_s
        able = can.items / can.seconds if fed.task == "recognition" else did.items / can.seconds
        times = (did.load_s, did.start_s)
        row = Row(name, jobs, alone, able, run, whole, *times, run / alone, run / able, run / min(alone, able))
        rows.append(row)
        print(
            f"{name:16} {jobs:4} jobs: model {alone:8.1f} cores {able:8.1f} run {run:8.1f} (with start {whole:.1f}: "
            f"model {did.load_s:.1f} s, workers {did.start_s:.1f} s)  "
            f"{row.of_model:.2f} of the model, {row.of_cores:.2f} of the cores, {row.of_bound:.2f} of the smaller",
            flush=True,
        )
    first, last = rows[0], rows[-1]
    if last.jobs > first.jobs:
        said["scaling"] = {
            "cores": last.cores / first.cores * first.jobs / last.jobs,
            "run": last.run / first.run * first.jobs / last.jobs,
        }
        print(f"{name}: from {first.jobs} to {last.jobs} jobs: {said['scaling']}", flush=True)
    return rows, said


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when the aim is missed with the most jobs."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--jobs", default=str(available_cpus()), help="one number, or several with commas between")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument(
        "--rounds", type=int, default=3, help="videos that each worker looks at, as far as there are so many"
    )
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--clips", type=int, default=4)
    parser.add_argument("--check", type=int, default=2, help="videos whose bytes are compared with one process's")
    parser.add_argument("--processes", type=int, default=None, help="that hold the model; on a CPU at least 1")
    parser.add_argument("--engine", default="local", choices=ENGINES, help="that shares out the work of `run`")
    options = parser.parse_args(arguments)
    options.jobs = [int(one) for one in str(options.jobs).split(",")]
    options.most = max(options.jobs)
    if options.processes is None and options.device == "cpu" and options.engine == "local":
        options.processes = 1
    told: dict[str, Any] = {"device": options.device, "precision": options.precision, "cores": available_cpus()}
    print(f"{options.videos} videos of {options.frames} frames, {SIZE[1]}x{SIZE[0]}, {options.clips} clips, ", end="")
    print(f"{len(CELLS)} cells and clean; {available_cpus()} cores of {platform.machine()}, ", end="")
    print(fed_models.device_name(options.device))
    if len(options.jobs) > 1:
        told["machine_scaling"] = machine_scaling(options.most)
        print(f"hashing on {options.most} cores, each does {told['machine_scaling']:.2f} of what it does alone")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        videos = write_videos(Path(folder), options.videos, options.frames, available_cpus())
        for name in options.models.split(","):
            rows, said = measured(options, videos, name)
            told[name] = said | {"rows": [asdict(row) for row in rows]}
            missed = missed or rows[-1].of_bound < AIM or said.get("same_bytes") is False
            finish(options, told)  # after each model, so that what was measured is kept
    return finish(options, told, missed=bool(missed))


if __name__ == "__main__":
    from bench import feeding  # so that other processes find the same module

    sys.exit(feeding.main())
