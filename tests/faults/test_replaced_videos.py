"""Fault F116: a video that is replaced or truncated while it is read. No result mixes two files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import small_run
from helpers.numpy_extractor import TwoParts, write_video
from helpers.small_run import NAMES, RECIPE, Leaning, data_of
from jostle.core.types import Segments
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.features.folder import extract_videos


def replace_video(path: Path) -> None:
    """Replace the video by another one."""
    write_video(path.with_name("new.mkv"), 48, seed=77)
    os.replace(path.with_name("new.mkv"), path)


def truncate_video(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


class MeddlingDetector(Leaning):
    """Detector that changes the file after its frames were read and before it returns."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__()
        self._change = change

    def detect(self, features: np.ndarray, **facts: Any) -> Segments:
        self._change()
        return super().detect(features, **facts)


class MeddlingExtractor(TwoParts):
    """Extractor that changes the file while it is read."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__(8, 2)
        self._change = change

    def see(self, frames: np.ndarray) -> np.ndarray:
        self._change()
        return super().see(frames)


def once(change: Callable[[Path], None], path: Path) -> Callable[[], None]:
    pending = [change]

    def do() -> None:
        if pending:
            pending.pop()(path)

    return do


def run_with(load: Callable[[], Any], videos: dict[str, Path], out: Path, **options: Any) -> Run:
    model = replace(small_run.benchmark_model(), load=load)
    return run_benchmark(RECIPE, data_of(videos), model, out, cells=select_cells(RECIPE), **options)


@pytest.fixture
def videos(tmp_path: Path) -> dict[str, Path]:
    return small_run.write_videos(tmp_path)


@pytest.mark.fault("F116")
@pytest.mark.parametrize("change", [replace_video, truncate_video])
@pytest.mark.parametrize("when", ["while it is read", "before the answer"])
def test_f116_a_run_skips_a_changed_video(
    videos: dict[str, Path], tmp_path: Path, change: Callable[[Path], None], when: str
) -> None:
    do = once(change, videos[NAMES[0]])
    if when == "while it is read":
        load = partial(FeatureDetectionPredictor, MeddlingExtractor(do), Leaning())
    else:
        load = partial(FeatureDetectionPredictor, TwoParts(8, 2), MeddlingDetector(do))
    done = run_with(load, videos, tmp_path / "run")
    assert [(failure["video"], failure["fault"]) for failure in done.failures] == [(NAMES[0], "F19")]
    if change is replace_video:
        retried = run_with(load, videos, tmp_path / "run", retry_failed=True)
        assert retried.failures == ()
        expected = run_with(load, videos, tmp_path / "whole")
        assert retried.scores == expected.scores
        name = "predictions/clean.json"
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.fault("F116")
@pytest.mark.parametrize("change", [replace_video, truncate_video])
def test_f116_features_of_a_changed_video_are_not_stored(
    videos: dict[str, Path], tmp_path: Path, change: Callable[[Path], None]
) -> None:
    before = Path(shutil.copy(videos[NAMES[0]], tmp_path / "before.mkv"))
    do = once(change, videos[NAMES[0]])
    done = extract_videos(videos, lambda: MeddlingExtractor(do), tmp_path / "out", name="two_parts")
    assert list(done.set_aside) == [NAMES[0]]
    assert "changed while it was being read" in done.set_aside[NAMES[0]]
    assert not (tmp_path / "out" / f"{NAMES[0]}.npy").exists()
    os.replace(before, videos[NAMES[0]])
    repeated = extract_videos(videos, lambda: TwoParts(8, 2), tmp_path / "out", name="two_parts")
    assert (repeated.made, dict(repeated.set_aside)) == ((NAMES[0],), {})
