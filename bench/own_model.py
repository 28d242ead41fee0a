"""How fast `jostle.run` is on a module of one's own, with defaults: `python -m bench.own_model --device cuda`.

The module holds a lock and so cannot be pickled: it stays in this process, and worker processes decode, corrupt and
send it their frames. Measured of each network, in clips a second:

- what it does alone, on batches that are prepared and on the device already;
- what the cores decode and corrupt when the model costs nothing;
- what `jostle.run` does with one process, on a few videos, to compare the bytes;
- what it does by default: over the whole wall time, and while running, which is between a tenth and nine tenths of the
  videos.

The run with defaults comes first. It is cold, as after an installation, if no kernels were compiled before: delete the
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

from bench import fed_models
from bench.feeding import CELLS, CLASSES, FRAMES, run_rate, write_videos
from bench.timing import finish, make_parser
from jostle.parallel.workers import available_cpus

FUNCTION = "function"  # of raw clips, where decoding and corrupting dominate
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
class Row:
    """Measurements of one network, in clips a second.

    Attributes:
        alone: of the network alone.
        cores: decoded and corrupted by all cores.
        one_process: of `jostle.run` with one process.
        running: of `jostle.run` with defaults, between a tenth and nine tenths of the videos.
        whole: of the same over the whole wall time.
        seconds: of the whole.
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


def colours(clips: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Score raw clips at next to no cost."""
    scores: npt.NDArray[np.float64] = clips[:, 0, ::64, ::64].mean((1, 2))[:, :2]
    return scores


def own_module(name: str) -> Any:
    """Return a model that cannot be pickled, and its input spec."""
    if name == FUNCTION:
        return lambda clips: colours(clips), None
    recogniser = fed_models.recogniser(name)
    recogniser.network.lock = threading.Lock()  # type: ignore[attr-defined]
    return recogniser.network, recogniser.spec


def timed_run(
    network: str, recipe: Path, data: Path, out: Path, device: str, precision: str, **options: Any
) -> tuple[float, float, float]:
    """Run a module; return clips a second while running and as a whole, and the seconds."""
    import jostle

    module, spec = own_module(network)
    ticks: list[tuple[float, int]] = []
    begin = time.monotonic()
    run = jostle.run(
        recipe,
        model=module,
        spec=spec,
        data=data,
        out=out,
        device=device,
        precision=precision,
        progress=lambda done, total: ticks.append((time.monotonic(), done)),
        **options,
    )
    seconds = time.monotonic() - begin
    assert not run.failures, run.failures
    clips = (run.clean + run.cells).joined
    total = ticks[-1][1]
    first, last = (next(tick for tick in ticks if tick[1] >= share * total) for share in (0.1, 0.9))
    running = clips * (last[1] - first[1]) / total / max(last[0] - first[0], 1e-9)
    return running, clips / seconds, seconds


def measure(options: Any, network: str, folder: Path) -> Row:
    """Measure one network on the videos of a folder."""
    recipe, data, out = folder / "recipe.toml", folder / "data", folder / network
    running, whole, seconds = timed_run(network, recipe, data, out / "all", options.device, options.precision)
    few = {"data": folder / "few", "recipe": recipe, "device": options.device, "precision": options.precision}
    one_process, _, _ = timed_run(network, out=out / "one", jobs=1, **few)
    timed_run(network, out=out / "fed", jobs=available_cpus(), **few)
    one, many = (
        {path.name: path.read_bytes() for path in (out / run / "predictions").iterdir()} for run in ("one", "fed")
    )
    fed = fed_models.MODELS["small" if network == FUNCTION else network]
    alone = _function_rate() if network == FUNCTION else fed_models.own_rate(fed, options.device, options.precision)
    videos = {path.stem: path for path in sorted(data.glob("*/*/*.mp4"))[: 3 * available_cpus()]}
    nothing = replace(fed, name=f"{fed_models.NOTHING[options.device]}:{fed.name}")
    cores, _ = run_rate(nothing, videos, options.clips, "cpu", available_cpus(), 0, "float32")
    return Row(network, alone, cores.a_second, one_process, running, whole, seconds, one == many)


def _function_rate(count: int = 1000) -> float:
    clip = np.zeros((1, 16, 256, 340, 3), np.uint8)
    begin = time.perf_counter()
    for _ in range(count):
        colours(clip)
    return count / (time.perf_counter() - begin)


def is_missed(row: Row, device: str) -> bool:
    """Whether a network misses its aims."""
    if device == "cpu":
        return row.running < OF_ONE_PROCESS * row.one_process or not row.same_bytes
    if row.network != "videomae_b":
        return row.running < OF_CORES * min(row.cores, row.alone) or not row.same_bytes
    return row.running < OF_MODEL * row.alone or row.whole < OF_MODEL_WHOLE * row.alone or not row.same_bytes


def main() -> int:
    """Measure and print; exit with 1 under --strict when an aim is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    known = ", ".join((FUNCTION, *fed_models.TRANSFORMERS))
    parser.add_argument("--networks", default=FUNCTION, help=f"with commas between: {known}")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--videos", type=int, default=32)
    parser.add_argument("--few", type=int, default=4, help="videos whose bytes are compared with one process's")
    parser.add_argument("--frames", type=int, default=FRAMES, help="of a video")
    parser.add_argument("--clips", type=int, default=4)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cells = ", ".join(f'"{cell}"' for cell in CELLS)
        (folder / "recipe.toml").write_text(RECIPE.format(clips=options.clips, cells=cells))
        for part, count in (("data", options.videos), ("few", options.few)):
            (folder / part).mkdir()
            for number, path in enumerate(
                write_videos(folder / part, count, options.frames, available_cpus()).values()
            ):
                inside = folder / part / "test" / CLASSES[number % 2]
                inside.mkdir(parents=True, exist_ok=True)
                path.rename(inside / path.name)
        print(
            f"{options.videos} videos of {options.frames} frames, {options.clips} clips each, {len(CELLS)} cells and "
            f"clean; {available_cpus()} cores, {fed_models.device_name(options.device)}, {options.precision}"
        )
        for network in options.networks.split(","):
            row = measure(options, network, folder)
            rows.append(row)
            print(
                f"{network:12} alone {row.alone:.1f}, cores {row.cores:.1f}, one process {row.one_process:.1f}, "
                f"running {row.running:.1f}, whole {row.whole:.1f} ({row.seconds:.1f} s)\n"
                f"{'':12} of the network {row.running / row.alone:.2f}, whole {row.whole / row.alone:.2f}; "
                f"of the cores {row.running / row.cores:.2f}; {row.running / row.one_process:.2f} times one process; "
                f"{'the same bytes' if row.same_bytes else 'OTHER BYTES'}",
                flush=True,
            )
    numbers = {"device": options.device, "rows": [asdict(row) for row in rows]}
    return finish(options, numbers, missed=any(is_missed(row, options.device) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
