"""Reused results equal recomputed ones, whatever the processor's kernels do with the rows at the end of a batch."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import pytest

pytest.importorskip("torch")

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
    "tests/features",
    "tests/mending/test_inspected_video.py",
)


@pytest.mark.processes
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
