"""Features of the study: training videos with what was seen of each frame, and test videos under every cell."""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource
from jostle.features.engine import VideoFeatures
from jostle.models.extractors.extractor import Extractor
from studies.cells import CELLS, CORRUPTIONS

_extractor: Extractor | None = None


def make_features(
    subset: str,
    network: Path,
    out: Path,
    *,
    jobs: int,
    fixed: Collection[str] = CORRUPTIONS,
    cells: Collection[str] = tuple(CELLS),
) -> None:
    """Write `<out>/<state>/<video>.npy` for each state of each video of a subset.

    States of training videos: `clean` with `clean/frames`, `black_frame/frames` with every frame struck, and for each
    `fixed` corruption one drop in every pair, `pair-<corruption>`. Of test videos: `clean` and these cells.
    """
    data = jostle.load_dataset("puppets", subset=subset, jobs=jobs)
    truth = data.truth
    tasks = []
    for v, name in enumerate(truth.videos):
        rows = truth.video == v
        wanted = fixed if subset == "training" else cells
        tasks.append((subset, name, data.videos[name], truth.start[rows], truth.end[rows], out, wanted))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(network,)) as pool:
        list(pool.map(_video, tasks))


def _start(network: Path) -> None:
    global _extractor
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.extractors.extractor import load_extractor

    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _extractor = load_extractor("puppet_net", weights=read_weights(network), device=device)


def _video(task: tuple[str, str, Path, Any, Any, Path, Collection[str]]) -> None:
    subset, name, path, start, end, out, wanted = task
    assert _extractor is not None
    segments = Segments.from_pairs(np.stack([start, end], axis=1))
    made = VideoFeatures(ClipSource(jostle.read(path)), _extractor, video_id=name, segments=segments)
    clean = made.clean()
    _save(out / "clean" / f"{name}.npy", clean.features)
    if subset == "training":
        _save(out / "clean" / "frames" / f"{name}.npy", clean.seen)
        black = made.under([Spec.parse("thumos14-c/black_frame:1")], "everywhere")
        _save(out / "black_frame" / "frames" / f"{name}.npy", black.seen)
        for corruption in wanted:
            dropped = made.under([Spec.parse(f"thumos14-c/{corruption}:1")], "pair")
            _save(out / f"pair-{corruption}" / f"{name}.npy", dropped.features)
    if subset == "test":
        for number, (cell, (spec, placement)) in enumerate(CELLS.items()):
            if cell not in wanted:
                continue
            _save(out / f"cell-{number}" / f"{name}.npy", made.under([Spec.parse(spec)], placement).features)


def _save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values)
