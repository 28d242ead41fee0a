"""Triton programs without a GPU, if Triton is installed: they compile for a GPU and equal the compiled kernels.

Triton's interpreter runs the programs here. On a GPU `test_gpu.py` runs the compiled programs.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from helpers.triton_programs import compiled, interpreted

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the programs themselves"),
]

SCRIPT = """
import sys
import numpy as np, torch, jostle
from jostle.corruptions.engine.spec import Spec
from helpers.triton_programs import multiplied_and_added
from jostle.corruptions.gpu.batch import corrupt_batch
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

def rounded_once(self, x, y, z):  # as on a GPU; Triton's interpreter rounds a fused product and sum twice
    given = (torch.from_numpy(np.array(part.data)) for part in (x, y, z))
    return TensorHandle(multiplied_and_added(*given).numpy(), z.dtype.scalar)


InterpreterBuilder.create_fma = rounded_once
rng = np.random.default_rng(0)
for size in ({sizes}):
    clips = rng.integers(0, 256, (2, {frames}, *size, 3)).astype(np.uint8)
    clips[0, 0, 0, :, 1:] = clips[0, 0, 0, :, :1]
    for spec in sys.argv[1:]:
        made = corrupt_batch(torch.from_numpy(clips), [Spec.parse(spec)], 3, "ab", None, [None] * 2, 2.0)
        wanted = [jostle.corrupt(clip, spec, seed=3, video_id=name, fps=2.0) for clip, name in zip(clips, "ab")]
        assert np.array_equal(made.numpy(), np.stack(wanted)), (spec, size)
"""


# Small frames, as the interpreter takes milliseconds per step: with a number of pixels divisible by four, and not.
SIZES = "(4, 8), (3, 5)"
NOISE = ["gaussian_noise:3", "shot_noise:5", "impulse_noise:2", "speckle_noise:5"]


@pytest.mark.parametrize(
    "specs",
    [
        NOISE,
        ["brightness:3", "saturate:5", "contrast:4"],
        ["imagenet-c/fog:3", "kinetics-c/fog:3", "fog:2", "imagenet-c/frost:3", "frost:2", "pixelate:4"],
        ["imagenet-c/motion_blur:1", "gaussian_blur:1", "zoom_blur:1"],
    ],
)
def test_programs_equal_the_compiled_kernels(specs: list[str]) -> None:
    interpreted(SCRIPT.format(sizes=SIZES, frames=1), *specs)


def test_rare_noise_values_and_whole_rows() -> None:
    interpreted(SCRIPT.format(sizes="(34, 96),", frames=1), *NOISE, "shot_noise:1", "gaussian_noise:5")


def test_snow_on_frames_smaller_and_larger_than_its_trail() -> None:
    every = (f"imagenet-c/snow:{severity}" for severity in range(1, 6))
    interpreted(SCRIPT.format(sizes="(3, 5),", frames=1), *every)
    # More than one frame, as flakes have not moved yet in the first.
    interpreted(SCRIPT.format(sizes="(4, 7), (27, 30)", frames=2), "imagenet-c/snow:3", "snow:2")


def test_corruptions_that_vary_over_time() -> None:
    interpreted(SCRIPT.format(sizes="(3, 5),", frames=3), "fog:2", "motion_blur:1", "imagenet-c/motion_blur:1")


def test_discs_on_frames_smaller_and_larger_than_they_are() -> None:
    every = [f"{table}defocus_blur:{severity}" for table in ("", "imagenet-c/") for severity in range(1, 6)]
    interpreted(SCRIPT.format(sizes="(2, 5),", frames=1), *every)
    # The last is so wide that sums along a row are computed in two parts.
    sizes = "(1, 1), (13, 14), (1, 260)"
    interpreted(SCRIPT.format(sizes=sizes, frames=1), "defocus_blur:3", "imagenet-c/defocus_blur:5")


# Keys of one block and of several, with frame numbers of one and more digits.
KEYS = """
import numpy as np, torch
from jostle.corruptions.gpu.contexts import AffectedFrames, FrameContexts, everywhere
from jostle.corruptions.gpu.streams import keys_on

videos = ["", "clip 12", "x" * 90, "\\udc80ü" * 20]
some = np.array([0, 9, 10, 99, 100, 12345, 99_999_999])
placed = AffectedFrames([np.empty(10**8, np.bool_)] * 4, np.arange(7) % 4, some)
for seed, places, parts in (
    (0, placed, ()),
    (-(10**19), placed, ("a", 2.5, "long" * 10)),
    (3, everywhere(4, 11), ("texture",)),
):
    at = FrameContexts("fog#2", seed, videos, places, list)
    made = keys_on(torch.empty(0), at, *parts).numpy().view(np.uint64)
    assert np.array_equal(made, at.keys(*parts)), (seed, parts)
"""


def test_a_program_computes_the_same_hash_keys() -> None:
    interpreted(KEYS)


BYTES, FLOATS, WHOLE, SHORT, LONG = "*u8", "*fp32", "*i32", "*i16", "*i64"
# Pointer types of the first arguments of each program; the other arguments are numbers.
POINTERS: dict[str, list[tuple[list[str], dict[str, Any]]]] = {
    "stream_program.follow": [([LONG, LONG], {"ROWS": 128})],
    "stream_program.hash_frames": [
        ([LONG] * 4, {"EVERY": every, "LANES": 32, **less})
        for every in (True, False)
        for less in ({}, {"count": 1, "frames": 1})
    ],
    "noise_program.noise": [
        ([BYTES, BYTES, LONG, table], {"KIND": kind, "BITS": bits, "FOURS": fours, "GRAIN": grain, "ROWS": 32})
        for kind, table, bits in (
            ("gaussian", WHOLE, 6),
            ("shot", BYTES, 6),
            ("speckle", SHORT, 13),
            ("impulse", BYTES, 0),
        )
        for fours, grain in ((True, 8), (True, 1), (False, 1))
    ],
    "light_program.by_table": [
        ([BYTES, BYTES, table], {"KIND": kind, "SIZE": 256})
        for kind, table in (("brightness", BYTES), ("saturate", FLOATS))
    ],
    "light_program.add_up": [([BYTES, LONG], {"SIZE": 512})],
    "light_program.towards_mean": [([BYTES, BYTES, LONG], {"SIZE": 512})],
    "filter_program.along": [
        ([BYTES, FLOATS, FLOATS, WHOLE], {"DOWN": True, "SIZE": 256}),
        ([FLOATS, BYTES, FLOATS, WHOLE], {"DOWN": False, "SIZE": 256}),
    ],
    "filter_program.trail": [
        ([BYTES, BYTES, WHOLE, FLOATS], {"FLAKES": False, "SIZE": 256}),
        *(([FLOATS, BYTES, WHOLE, FLOATS], {"FLAKES": True, "SIZE": 256, **less}) for less in ({}, {"values": 1})),
    ],
    "filter_program.zoomed": [([BYTES, BYTES, LONG, FLOATS, LONG, FLOATS], {"SIZE": 256})],
    "filter_program.sum_rows": [([BYTES, WHOLE, LONG], {"SIZE": 256})],
    "filter_program.disc_means": [
        ([WHOLE, FLOATS, LONG, LONG], {"SIZE": 256, **less}) for less in ({}, {"around": 1}, {"around": 1, "height": 1})
    ],
    "filter_program.softened": [
        ([FLOATS, BYTES, FLOATS, WHOLE, LONG, LONG, LONG, FLOATS], {"TAPS": taps, "SIZE": 256, **less})
        for taps in (3, 5)
        for less in ({}, {"boxes": 1}, {"height": 1})
    ],
    "filter_program.coarse": [([BYTES, BYTES, *[LONG] * 6], {"SIZE": 256})],
    "weather_program.lay_flakes": [
        ([BYTES, BYTES, BYTES, WHOLE], {"SIZE": 256, **less}) for less in ({}, {"height": 1, "width": 1})
    ],
    "weather_program.halve": [([FLOATS, FLOATS, LONG], {"SIZE": 256, **less}) for less in ({}, {"count": 1})],
    "weather_program.lay_fog": [([BYTES, BYTES, FLOATS, FLOATS, FLOATS, BYTES], {"SIZE": 256})],
    "weather_program.lay_plane": [([BYTES, BYTES, FLOATS, WHOLE, BYTES], {"SIZE": 256})],
    "weather_program.blend": [([BYTES, BYTES, BYTES, LONG], {"BITS": 14, "SIZE": 256})],
}


@pytest.mark.parametrize("name", POINTERS)
def test_programs_compile_for_a_gpu_and_nothing_is_fused(name: str) -> None:
    module, _, called = name.partition(".")
    program = getattr(__import__(f"jostle.corruptions.gpu.{module}", fromlist=[called]), called)
    for pointers, fixed in POINTERS[name]:
        assert "fma" not in compiled(program, pointers, fixed)


def test_flakes_are_enlarged_with_fused_products_only() -> None:
    from jostle.corruptions.gpu.weather_program import scatter

    for less in ({}, {"streams": 1, "tall": 1, "wide": 1}, {"height": 1, "width": 1}):
        letters = compiled(scatter, [LONG, FLOATS, FLOATS, LONG, FLOATS, LONG, FLOATS], {"SIZE": 256, **less})
        # Two horizontal and one vertical for each of a thread's two pixels, and no separately rounded product.
        assert letters.count("fma.rn.f32") == letters.count("fma") == 6
        assert "mul.f32" not in letters
        assert "mul.rn.f32" not in letters
