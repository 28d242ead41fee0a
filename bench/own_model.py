"""Throughput of `jostle.run` on a user's own module, with defaults: `python -m bench.own_model --device cuda`.

The module holds a lock and so cannot be pickled: it stays in this process, and worker processes decode, corrupt and
send their frames to it. Rates of each network, in clips a second:

- the network alone, on preprocessed batches on the device;
- decoding and corrupting by all cores, with a stub in place of the model;
- `jostle.run` with one process, on a few videos whose bytes are compared;
- `jostle.run` with defaults: over the whole wall time, and while running, which is between a tenth and nine tenths of
  the videos.

The run with defaults comes first. It is cold, as after an installation, if no compiled kernels are cached: delete the
`__pycache__` folders and `~/.triton`.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import feeding_models
from bench.feeding import CELLS, CLASSES, FRAMES, measure_run, write_videos
from bench.timing import add_device_option, finish, make_parser, time_call
from jostle.parallel.workers import available_cpus

FUNCTION = "function"  # a cheap function of raw clips, so that decoding and corrupting dominate
OF_MODEL, OF_MODEL_WHOLE, OF_CORES, OF_ONE_PROCESS = 0.8, 0.5, 0.8, 1.7
RECIPE = """
name = "own-model"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1
sampling = {{ clips = {clips}, frames = 16 }}

[[groups]]
name = "main"
cells = [{cells}]
"""


@dataclass(frozen=True)
class ModuleRates:
    """Rates of one network, in clips a second.

    Attributes:
        alone: of the network alone.
        cores: of decoding and corrupting by all cores.
        one_process: of `jostle.run` with one process.
        running: of `jostle.run` with defaults, between a tenth and nine tenths of the videos.
        whole: of the same over the whole wall time.
        seconds: the whole wall time.
        same_bytes: whether one process and defaults give the same bytes, on a few videos.
    """

    network: str
    alone: float
    cores: float
    one_process: float
    running: float
    whole: float
    seconds: float
    same_bytes: bool


def score_colours(clips: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return scores of raw clips, at next to no cost."""
    scores: npt.NDArray[np.float64] = clips[:, 0, ::64, ::64].mean((1, 2))[:, :2]
    return scores


def build_module(name: str) -> Any:
    """Return a model that cannot be pickled, and its input spec."""
    if name == FUNCTION:
        return lambda clips: score_colours(clips), None
    recogniser = feeding_models.load_random_recogniser(name)
    recogniser.network.lock = threading.Lock()  # type: ignore[attr-defined]
    return recogniser.network, recogniser.spec


def time_run(
    network: str, recipe: Path, data: Path, out: Path, device: str, precision: str, **options: Any
) -> tuple[float, float, float]:
    """Run a benchmark on a module; return clips a second while running and as a whole, and the wall time."""
    import jostle

    module, spec = build_module(network)
    progress: list[tuple[float, int]] = []
    start = time.monotonic()
    run = jostle.run(
        recipe,
        model=module,
        spec=spec,
        data=data,
        out=out,
        device=device,
        precision=precision,
        progress=lambda done, total: progress.append((time.monotonic(), done)),
        **options,
    )
    seconds = time.monotonic() - start
    assert not run.failures, run.failures
    clips = (run.clean + run.cells).joined
    total = progress[-1][1]
    first, last = (next(event for event in progress if event[1] >= share * total) for share in (0.1, 0.9))
    running = clips * (last[1] - first[1]) / total / max(last[0] - first[0], 1e-9)
    return running, clips / seconds, seconds


def measure(options: Any, network: str, folder: Path) -> ModuleRates:
    """Measure one network on the videos of a folder."""
    recipe, data, out = folder / "recipe.toml", folder / "data", folder / network
    running, whole, seconds = time_run(network, recipe, data, out / "all", options.device, options.precision)
    few = {"data": folder / "few", "recipe": recipe, "device": options.device, "precision": options.precision}
    one_process, _, _ = time_run(network, out=out / "one", jobs=1, **few)
    time_run(network, out=out / "many", jobs=available_cpus(), **few)
    one, many = (
        {path.name: path.read_bytes() for path in (out / run / "predictions").iterdir()} for run in ("one", "many")
    )
    model = feeding_models.MODELS["small" if network == FUNCTION else network]
    if network == FUNCTION:
        alone = measure_function()
    else:
        alone = feeding_models.measure_network(model, options.device, options.precision)
    videos = {path.stem: path for path in sorted(data.glob("*/*/*.mp4"))[: 3 * available_cpus()]}
    stub = replace(model, name=f"{feeding_models.STUBS[options.device]}:{model.name}")
    cores, _ = measure_run(stub, videos, options.clips, "cpu", available_cpus(), 0, "float32")
    return ModuleRates(network, alone, cores.rate, one_process, running, whole, seconds, one == many)


def measure_function(count: int = 1000) -> float:
    """Return the clips a second of the function of raw clips."""
    clip = np.zeros((1, 16, 256, 340, 3), np.uint8)
    return count / time_call(lambda: [score_colours(clip) for _ in range(count)], "wall")


def is_missed(row: ModuleRates, device: str) -> bool:
    """Return whether a network misses its targets."""
    if device == "cpu":
        return row.running < OF_ONE_PROCESS * row.one_process or not row.same_bytes
    if row.network != "videomae_b":
        return row.running < OF_CORES * min(row.cores, row.alone) or not row.same_bytes
    return row.running < OF_MODEL * row.alone or row.whole < OF_MODEL_WHOLE * row.alone or not row.same_bytes


def main() -> int:
    """Print the rates of each network, and return the exit code."""
    parser = make_parser(__doc__)
    add_device_option(parser)
    names = ", ".join((FUNCTION, *feeding_models.TRANSFORMERS))
    parser.add_argument("--networks", default=FUNCTION, help=f"names, separated by commas: {names}")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--videos", type=int, default=32)
    parser.add_argument("--few", type=int, default=4, help="videos whose bytes are compared with a single process")
    parser.add_argument("--frames", type=int, default=FRAMES, help="frames of a video")
    parser.add_argument("--clips", type=int, default=4, help="clips of a video")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cells = ", ".join(f'"{cell}"' for cell in CELLS)
        (folder / "recipe.toml").write_text(RECIPE.format(clips=options.clips, cells=cells))
        for part, count in (("data", options.videos), ("few", options.few)):
            (folder / part).mkdir()
            videos = write_videos(folder / part, count, options.frames, available_cpus())
            for number, path in enumerate(videos.values()):
                target = folder / part / "test" / CLASSES[number % 2]
                target.mkdir(parents=True, exist_ok=True)
                path.rename(target / path.name)
        print(
            f"{options.videos} videos of {options.frames} frames, {options.clips} clips each, {len(CELLS)} cells and "
            f"clean; {available_cpus()} cores, {feeding_models.device_name(options.device)}, {options.precision}"
        )
        for network in options.networks.split(","):
            row = measure(options, network, folder)
            rows.append(row)
            print(
                f"{network:12} alone {row.alone:.1f}, cores {row.cores:.1f}, one process {row.one_process:.1f}, "
                f"running {row.running:.1f}, whole {row.whole:.1f} ({row.seconds:.1f} s)\n"
                f"{'':12} of the network {row.running / row.alone:.2f}, whole {row.whole / row.alone:.2f}; "
                f"of the cores {row.running / row.cores:.2f}; {row.running / row.one_process:.2f} times one process; "
                f"{'equal bytes' if row.same_bytes else 'BYTES DIFFER'}",
                flush=True,
            )
    numbers = {"device": options.device, "rows": [asdict(row) for row in rows]}
    return finish(options, numbers, missed=any(is_missed(row, options.device) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
