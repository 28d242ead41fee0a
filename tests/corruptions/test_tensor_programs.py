"""Triton's programs give the bytes of the kernels, by its interpreter, which needs no GPU; where Triton is installed.

On a GPU `test_tensors.py` runs them themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")

# Small frames, as the interpreter takes milliseconds for a step: one whose pixels come in eights, one whose do not.
SCRIPT = """
import sys
import numpy as np, torch, jostle
from jostle.corrupting.spec import Spec
from jostle.corruptions.tensors.batch import corrupted_batch

rng = np.random.default_rng(0)
for size in ((4, 8), (3, 5)):
    clips = rng.integers(0, 256, (2, 1, *size, 3)).astype(np.uint8)
    clips[0, 0, 0, :, 1:] = clips[0, 0, 0, :, :1]
    for spec in sys.argv[1:]:
        made = corrupted_batch(torch.from_numpy(clips), [Spec.parse(spec)], 3, "ab", None, [None] * 2, 30.0)
        wanted = [jostle.corrupt(clip, spec, seed=3, video_id=name) for clip, name in zip(clips, "ab")]
        assert np.array_equal(made.numpy(), np.stack(wanted)), (spec, size)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="no Triton")
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the programs themselves")
@pytest.mark.parametrize(
    "specs",
    [
        ["gaussian_noise:3", "shot_noise:5", "impulse_noise:2", "speckle_noise:5"],
        ["brightness:3", "saturate:5", "contrast:4"],
        ["imagenet-c/fog:3", "imagenet-c/frost:3", "frost:2", "pixelate:4"],
        ["imagenet-c/motion_blur:1", "gaussian_blur:1", "zoom_blur:1"],
    ],
)
def test_programs_give_the_bytes_of_the_kernels(specs: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, *specs], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True
    )
    assert told.returncode == 0, told.stderr.decode()[-2000:]
