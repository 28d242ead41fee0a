"""Reused results equal recomputed ones, whatever the processor's kernels do with the rows at the end of a batch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from jostle.extend import InputSpec

# What a child runs: MKL then takes the kernels of other processors, and gives rows at the end of a batch other bits.
ROWS = """
import numpy as np
import torch
import jostle

rng = np.random.default_rng(0)
extractor = jostle.load_extractor("puppet_net")
frames = rng.integers(0, 256, (37, 72, 96, 3), np.uint8)
together = extractor.see(frames)
apart = np.concatenate([extractor.see(frames[i : i + 1]) for i in (0, 30, 31, 36)])
assert np.array_equal(together[[0, 30, 31, 36]], apart), "see"
windows = np.stack([together[i : i + extractor.spec.frames] for i in range(20)])
joined = extractor.join(windows)
assert np.array_equal(joined[[1, 18, 19]], np.concatenate([extractor.join(windows[i : i + 1]) for i in (1, 18, 19)]))

torch.manual_seed(1)
small = {"dim": 64, "classes": 2, "max_length": 128, "levels": 3, "frame_size": 40, "crop": 32, "clip_stride": 64}
detector = jostle.load_detector("afsd", backbone_width=0.06, min_probability=0.0, fps=10.0, **small)
base = rng.integers(0, 256, (64, 72, 3))
film = np.stack([np.roll(base, 2 * t, 1) for t in range(117)]) + rng.integers(0, 20, (117, 1, 1, 3))
encodings = [*detector.encode_frames(film.clip(0, 255).astype(np.uint8))]
others = [*detector.encode_frames(rng.integers(0, 256, (2, 64, 72, 3), np.uint8))]
clean = detector.encode_clip(encodings)
for places in ((116,), (40, 47)):
    rows = [others[places.index(i)] if i in places else row for i, row in enumerate(encodings)]
    reused, whole = detector.encode_clip(rows, clean), detector.encode_clip(rows)
    for number, (some, others_there) in enumerate(zip(reused, whole)):
        assert all(map(torch.equal, some, others_there)), ("afsd", places, number)
"""


def run_child(code: str, kernels: str, threads: int, **more: str) -> None:
    environment = {**os.environ, "MKL_ENABLE_INSTRUCTIONS": kernels, "OMP_NUM_THREADS": str(threads), **more}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kernels", ["AVX2", "SSE4_2"])
def test_what_is_reused_has_the_same_bits_under_kernels_of_other_processors(kernels: str) -> None:
    run_child(ROWS, kernels, 1)


@pytest.mark.processes
@pytest.mark.parametrize("kernels", ["AVX2", "SSE4_2"])
def test_the_same_with_two_threads(kernels: str) -> None:
    run_child(ROWS, kernels, 2)


DEEPER = (
    "tests/evaluation/inference/test_clip_detection.py",
    "tests/features/test_engine.py",
    "tests/mending/test_inspected_video.py",
)


@pytest.mark.slow
@pytest.mark.parametrize(("kernels", "threads"), list(product(("AVX2", "SSE4_2"), (1, 2))))
def test_deeper_tests_hold_under_kernels_of_other_processors(
    kernels: str, threads: int, pytestconfig: pytest.Config
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *DEEPER]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**kept, "MKL_ENABLE_INSTRUCTIONS": kernels, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        command, env=environment, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


RECIPE = """
name = "tiny-reuse"
version = 1
dataset = "folder"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"
tious = [0.5]

[[groups]]
name = "main"
cells = ["thumos14-c/black_frame:3", "thumos14-c/overexposure:3"]
"""


class Means:
    """An extractor of mean colours. With `leak` a frame's encoding depends on how many are given together."""

    spec = InputSpec(frames=8, stride=4, resize=40, size=32)
    dim = frame_dim = 3

    def __init__(self, leak: float = 0.0) -> None:
        self.leak, self.given = leak, 0

    def see(self, frames: np.ndarray) -> np.ndarray:
        self.given += len(frames)
        return frames.mean((1, 2), dtype=np.float32) + np.float32(self.leak * len(frames))

    def join(self, encodings: np.ndarray) -> np.ndarray:
        return encodings.mean(1)

    def __call__(self, clips: np.ndarray) -> np.ndarray:
        return self.join(np.stack([self.see(clip) for clip in clips]))


def brightest(features: np.ndarray, fps: float, stride: int) -> jostle.Segments:
    """Find one segment around each feature, with its brightness as the score."""
    starts = np.arange(len(features)) * stride / fps
    return jostle.Segments(starts, starts + 0.3, np.zeros(len(features), int), features.mean(1) / 256, ("jump",))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reuse")
    (folder / "tiny.toml").write_text(RECIPE)
    rng = np.random.default_rng(0)
    database = {}
    for name, count in (("long", 90), ("short", 40), ("middle", 60)):
        with av.open(folder / f"{name}.mkv", "w") as file:
            stream = file.add_stream("ffv1", rate=25)
            stream.width, stream.height, stream.pix_fmt = 48, 40, "bgr0"
            for frame in rng.integers(0, 256, (count, 40, 48, 3), np.uint8):
                file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, "rgb24")))
            file.mux(stream.encode())
        actions = [{"label": "jump", "segment": [0.2, 1.2]}]
        database[name] = {"subset": "test", "duration": count / 25, "fps": 25.0, "annotations": actions}
    (folder / "truth.json").write_text(json.dumps({"database": database}))
    return folder


def run(workspace: Path, out: Path, extractor: Means, **options: Any) -> Any:
    settings = {"jobs": 1, "device": "cpu"} | options
    return jostle.run(
        workspace / "tiny.toml", model=brightest, extractor=extractor, data=workspace, out=out, **settings
    )


def stored(out: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted((out / "predictions").iterdir())]


def test_reuse_is_on_where_a_cell_has_the_same_bits_both_ways(workspace: Path, tmp_path: Path) -> None:
    extractor = Means()
    run(workspace, tmp_path, extractor)
    assert json.loads((tmp_path / "run.json").read_text())["reuse"] == "on"
    every = 90 + 40 + 60
    assert every + 40 < extractor.given < 2 * every  # each frame once, the shortest video's twice, and corrupted ones


def test_reuse_is_turned_off_where_one_bit_differs(workspace: Path, tmp_path: Path) -> None:
    leaking = Means(leak=1e-3)
    with pytest.warns(UserWarning, match="reuse is off"):
        run(workspace, tmp_path / "off", leaking)
    assert json.loads((tmp_path / "off" / "run.json").read_text())["reuse"] == "off"
    before = stored(tmp_path / "off")
    for file in (tmp_path / "off" / "predictions").iterdir():
        file.unlink()
    run(workspace, tmp_path / "off", leaking)  # remembered: no second check, no second warning
    assert stored(tmp_path / "off") == before


@pytest.mark.processes
def test_several_workers_turn_reuse_off_for_all(workspace: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        with pytest.warns(UserWarning, match="reuse is off"):
            run(workspace, tmp_path / str(jobs), Means(leak=1e-3), jobs=jobs)
    assert stored(tmp_path / "1") == stored(tmp_path / "2")


def test_the_shortest_video_that_can_be_used_is_checked(workspace: Path, tmp_path: Path) -> None:
    broken = tmp_path / "data"
    shutil.copytree(workspace, broken)
    (broken / "short.mkv").write_bytes((workspace / "short.mkv").read_bytes()[:300])
    extractor = Means(leak=1e-3)
    with pytest.warns(UserWarning, match="reuse is off"):
        result = run(broken, tmp_path / "run", extractor)
    assert [failure["video"] for failure in result.failures] == ["short"]
    assert len(stored(tmp_path / "run")) == 3
