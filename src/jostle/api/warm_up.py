"""Preparation of the demo in the background: compilation of kernels in several processes, and import of torch.

Workers that process films need the same kernel at the same moment, so one compiles it while the others wait. Here each
process calls other kernels on tiny input, while the first films are planned and drawn; a worker waits for a kernel that
is being compiled.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Thread

import numpy as np

from jostle.core.compilation import set_compile_callback
from jostle.core.types import Clip, Predictions, Segments, Truth
from jostle.errors import JostleError
from jostle.parallel.workers import map_unordered


def prepare_demo(jobs: int) -> None:
    """Start to import torch and, unless a run before has done so, to compile the kernels that the demo needs."""
    from jostle.core.kernels import is_cached
    from jostle.mending.descriptor_kernels import describe_block

    Thread(target=import_module, args=("jostle.models.checkpoints",), daemon=True).start()
    if jobs > 1 and not is_cached(describe_block):
        Thread(target=_compile_kernels, args=(jobs,), daemon=True).start()


def _compile_kernels(jobs: int) -> None:
    with suppress(JostleError):  # the workers that need a kernel compile it then, and report what is wrong
        for _ in map_unordered(_start, list(_STEPS), jobs):
            pass


def _start() -> Callable[[str], None]:
    set_compile_callback(None)  # workers that wait for a kernel report it
    return _run_step


def _run_step(name: str) -> None:
    _STEPS[name]()


def _corrupt() -> None:
    from jostle.api.demonstration import SHORT
    from jostle.corruptions.engine.apply import corrupted_frames
    from jostle.corruptions.engine.spec import Spec

    clip = Clip.at_rate(np.zeros((4, 112, 112, 3), np.uint8), 24)
    for spec in SHORT:
        corrupted_frames(clip, [Spec.parse(spec)], placement="everywhere")


def _draw_and_decode() -> None:
    from jostle.datasets.puppets.film import FPS, SIZE, untrimmed
    from jostle.io.video.decode import Reader
    from jostle.io.video.encode import Writer

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        with Writer(path, size=SIZE, fps=FPS) as writer:
            for tick, frame in enumerate(untrimmed(0, "warm-up", cast=range(150, 160)).draw(0, 2)):
                writer.write(frame, tick)
        with Reader(path) as reader:
            reader.block(0, len(reader))


def _inspect() -> None:
    from jostle.mending.cover_rules import covered_cells
    from jostle.mending.descriptor import describe_frames
    from jostle.mending.frame_facts import frame_facts
    from jostle.mending.rule_set import RuleSet
    from jostle.mending.step_rules import find_step
    from jostle.mending.stream_rules import ORDER_WINDOW
    from jostle.models.detection.nms import soft_nms

    rules, frames = RuleSet(), np.random.default_rng(0).integers(0, 256, (ORDER_WINDOW, 112, 112, 3), np.uint8)
    facts = [frame_facts(frame, descriptor) for frame, descriptor in zip(frames, describe_frames(frames), strict=True)]
    for index, one in enumerate(facts):
        rules.push(index, index / 24, one)
    covered_cells(facts[0], facts[1])  # noise covers nothing, and changes the scene in every frame
    find_step(facts[0], facts[1])
    soft_nms([[0, 4], [0, 5]], [0.9, 0.8], [0, 0], sigma=0.5, min_score=0.1, max_segments=9)


def _score() -> None:
    from jostle.api.scoring import diagnose, score

    times = np.array([[0.0, 2.0], [5.0, 8.0]])
    actions = Segments.from_pairs(times)
    truth = Truth.from_segments({"film": actions})
    predictions = Predictions.from_segments({"film": replace(actions, score=np.array([0.9, 0.8]))})
    score(predictions, truth, protocol="thumos14", tious=[0.5], bootstrap=10)
    diagnose(predictions, truth, style="thumos14")


# The longest first, so that all processes end at about the same time.
_STEPS = {"draw": _draw_and_decode, "corrupt": _corrupt, "inspect": _inspect, "score": _score}
