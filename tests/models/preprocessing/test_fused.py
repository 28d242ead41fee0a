"""Fused preprocessing on a GPU against the single operations."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from helpers.triton_programs import compiled, interpreted
from jostle.models.input_spec import InputSpec
from jostle.models.preprocessing.fused import _taps

CPU = torch.device("cpu")
SPEC = InputSpec(2, 2, 9, 8, mean=(0.48, 0.45, 0.4), std=(0.22, 0.23, 0.27))
SPECS = (
    SPEC,
    replace(SPEC, crops="three", layout="TCHW", colours="bgr"),
    replace(SPEC, crops="ten", layout="THWC", resize=(10, 13), odd_margin="larger"),
    replace(SPEC, interpolation="bicubic", resize=11),
    replace(SPEC, antialias=False, resize=30),
    replace(SPEC, resize=None, beyond="black"),
)
# Frames that are not square, any layout of axes, and single frames.
SCRIPT = """
import numpy as np, torch
from jostle.models.input_spec import InputSpec
from tests.models.preprocessing.test_fused import SPECS, check_against_steps

for spec in SPECS:
    for size in ((17, 24), (31, 12)):
        clips = np.random.default_rng(0).integers(0, 256, (3, 2, *size, 3)).astype(np.uint8)
        assert spec._fits_one_pass(torch.from_numpy(clips[0]))
        check_against_steps(spec, clips)
assert not SPECS[-1]._fits_one_pass(torch.zeros(2, 7, 20, 3, dtype=torch.uint8))
"""


def check_against_steps(spec: InputSpec, clips: np.ndarray, device: str = "cpu") -> None:
    """Compare the fused preprocessing of clips with the single steps."""
    device_clips = torch.from_numpy(clips).to(device)
    actual, frames = spec.prepare_clips(list(device_clips)), spec.prepare_frames(device_clips.flatten(0, 1))
    expected = torch.stack([spec._crops(spec._normal(clip)) for clip in torch.from_numpy(clips)])
    assert actual.shape == expected.shape
    assert actual.is_contiguous()
    assert actual.sub(expected.to(device)).abs().max() < 2e-6 * 255
    centre = replace(spec, crops="centre", layout="TCHW")
    alone = torch.stack([centre._crops(centre._normal(clip)) for clip in torch.from_numpy(clips)])[:, 0].flatten(0, 1)
    assert frames.shape == alone.shape
    assert frames.is_contiguous(memory_format=torch.channels_last)
    assert frames.sub(alone.to(device)).abs().max() < 2e-6 * 255


@pytest.mark.parametrize(("length", "to"), [(24, 9), (9, 24), (340, 298), (7, 7), (50, 3)])
@pytest.mark.parametrize(("how", "antialias"), [("bilinear", True), ("bilinear", False), ("bicubic", True)])
def test_resize_weights_equal_interpolate(length: int, to: int, how: str, antialias: bool) -> None:
    first, weights = _taps(length, to, how, antialias, CPU)  # type: ignore[arg-type]
    assert first.min() >= 0
    assert first.max() + len(weights) <= length
    line = torch.rand(length, generator=torch.manual_seed(0))
    expected = F.interpolate(line[None, None, None], (1, to), mode=how, antialias=antialias)[0, 0, 0]
    actual = (line[first + torch.arange(len(weights))[:, None]] * weights).sum(0)
    assert torch.allclose(actual, expected, atol=1e-6)


@pytest.mark.skipif(find_spec("triton") is None, reason="no Triton")
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the program itself")
def test_fused_program_equals_single_steps() -> None:
    interpreted(SCRIPT)


@pytest.mark.skipif(find_spec("triton") is None, reason="no Triton")
def test_fused_program_compiles_for_a_gpu() -> None:
    from jostle.models.preprocessing.fused_program import prepare

    pointers = ["*u8", "*fp32", "*i32", "*fp32", "*i32", "*fp32", "*i32", "*fp32"]
    for cubic, taps, more in ((False, 3, {}), (True, 7, {"length": 1, "column_step": 1})):
        fixed = {"DOWN": taps, "ACROSS": taps, "CUBIC": cubic, "BGR": cubic, "PIXELS": 256, **more}
        assert compiled(prepare, pointers, fixed)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("size", [(17, 24), (31, 12), (256, 340)])
@pytest.mark.parametrize("spec", [*SPECS, replace(SPEC, resize=224, size=224)], ids=str)
def test_fused_program_on_a_gpu(spec: InputSpec, size: tuple[int, int]) -> None:
    clips = np.random.default_rng(0).integers(0, 256, (3, 2, *size, 3)).astype(np.uint8)
    check_against_steps(spec, clips, "cuda")
