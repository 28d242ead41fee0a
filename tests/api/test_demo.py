"""The demo on a small data set: predictions that score as its own scores say, and a page."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.api import demo_video, verify
from jostle.api.demonstration import DETECTOR, HOW, write_demo
from jostle.core.types import Segments, Truth
from jostle.datasets.dataset import Dataset, FileCounts, Request
from jostle.datasets.puppets.film import CLASSES, FPS, SIZE, untrimmed
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.benchmark_models import build_benchmark_model
from jostle.evaluation.runner.options import RunOptions
from jostle.io.video.encode import Writer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The first twenty seconds of two films."""
    folder = tmp_path_factory.mktemp("films")
    videos, actions = {}, {}
    for name in ("one", "two"):
        film = untrimmed(0, name, cast=range(150, 160))
        videos[name] = folder / f"{name}.mp4"
        with Writer(videos[name], size=SIZE, fps=FPS, quality=20) as writer:
            for tick, frame in enumerate(film.draw(0, 480)):
                writer.write(frame, tick)
        kept = [action for action in film.actions if action.end < 20]
        numbers = [CLASSES.index(action.label) for action in kept]
        actions[name] = Segments([a.start for a in kept], [a.end for a in kept], numbers, classes=CLASSES)
        assert len(kept)
    truth = Truth.from_segments(actions)
    label = np.array([CLASSES.index(truth.classes[number]) for number in truth.label], np.int32)
    truth = replace(truth, classes=CLASSES, label=label, label_ids=None)  # classes that do not occur here count too
    return Dataset("puppets", "test", folder, (truth,), videos, FileCounts(0, 2, 0))


@pytest.mark.slow
def test_the_demo_scores_what_it_writes(data: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told: set[str] = set()
    recipe = benchmarks["puppets-c"]
    every = {
        how: build_benchmark_model(recipe, data, RunOptions(DETECTOR, weights=weights, mend=mend), "cpu")
        for how, (weights, mend) in HOW.items()
    }
    done = write_demo(tmp_path / "demo", data, every, progress=lambda what, *_: told.add(what))
    assert told == {"looking at 16 states of each", "writing the report", "knocking a film about"}
    assert done.gallery.stat().st_size > 100_000
    assert "clean" in done.report.read_text(encoding="utf-8")
    assert list(done.results) == ["clean", "robust", "mended"]
    for how, kept in done.results.items():
        scores = json.loads((tmp_path / "demo" / how / "scores.json").read_text())
        assert scores["benchmark"] == "puppets-c"
        assert scores["metric"] == "mAP@0.5"
        assert scores == kept
        assert scores.get("mend") == HOW[how][1]
        assert [cell["cell"] for cell in scores["cells"]] == [
            f"thumos14-c/{name}:{level}"
            for name in ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
            for level in (1, 2, 3)
        ]
        assert all((cell["videos"], cell["of"]) == (2, 2) for cell in scores["cells"])
        found = jostle.load_predictions(tmp_path / "demo" / how / "predictions" / "thumos14-c-black_frame-3.json")
        again = jostle.score(found, data.truth, protocol="thumos14", tious=[0.5])
        assert not verify(tmp_path / "demo" / how).lacking
        assert again.average_map == pytest.approx(scores["cells"][2]["value"], abs=1e-12)


def test_a_short_demo_says_what_it_left_out(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from jostle.api.demonstration import SHORT
    from jostle.datasets.puppets.untrimmed import puppets

    some = puppets(Request("test", tmp_path / "cache", first=1), counts={"test": 3})
    assert (len(some.videos), len(some.missing)) == (1, 2)
    assert [cell.name for cell in select_cells(benchmarks["puppets-c"], SHORT)] == ["clean", *SHORT]
    assert {name.rpartition(":")[2] for name in SHORT} == {"3"}


def test_made_videos_only_can_be_left_unmade(tmp_path: Path) -> None:
    with pytest.raises(jostle.JostleError, match="first must be at least 1, got 0"):
        jostle.load_dataset("puppets", "test", root=tmp_path, first=0)
    with pytest.raises(jostle.JostleError, match="thumos14 is not made by jostle, so none of its videos"):
        jostle.load_dataset("thumos14", root=tmp_path, first=1)


def test_a_video_of_ones_own(tmp_path: Path) -> None:
    video = tmp_path / "mine.mp4"
    rng = np.random.default_rng(0)
    scene = rng.integers(0, 256, (60, 200, 3), np.uint8)
    with Writer(video, size=(60, 90), fps=8) as writer:
        for tick in range(30):
            writer.write(scene[:, 3 * tick : 3 * tick + 90], tick)
    told: list[tuple[str, int, int]] = []
    done = demo_video(video, tmp_path / "demo", progress=lambda *what: told.append(what))
    assert told[0] == ("knocking the video about", 0, len(jostle.names("corruptions")))
    page = done.gallery.read_text(encoding="utf-8")
    assert "3 s from the middle of mine.mp4" in page
    assert done.sheet.is_file()
    if importlib.util.find_spec("torch"):
        assert set(done.shifts) == set(jostle.names("corruptions"))
        assert min(done.shifts.values()) > 0
        assert f"moves what puppet_net sees by {done.shifts['fog']:.2f}" in page


def test_a_video_that_is_too_short_is_shown_all_the_same(tmp_path: Path) -> None:
    video = tmp_path / "short.mp4"
    with Writer(video, size=(40, 40), fps=8) as writer:
        for tick in range(3):
            writer.write(np.full((40, 40, 3), 60 * tick, np.uint8), tick)
    done = demo_video(video, tmp_path / "demo")
    assert done.shifts == {}
    assert "moves what" not in done.gallery.read_text(encoding="utf-8")
