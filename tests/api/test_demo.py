"""The demo on a small data set: its predictions reproduce its scores, and it writes a page."""

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
from jostle.evaluation.config import InferenceConfig
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.treatments import build_benchmark_model
from jostle.io.video.encode import Writer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Data set of the first twenty seconds of two films."""
    folder = tmp_path_factory.mktemp("films")
    videos, actions = {}, {}
    for name in ("one", "two"):
        film = untrimmed(0, name, cast=range(150, 160))
        videos[name] = folder / f"{name}.mp4"
        with Writer(videos[name], size=SIZE, fps=FPS, quality=20) as writer:
            for tick, frame in enumerate(film.draw(0, 480)):
                writer.write(frame, tick)
        actions_in_range = [action for action in film.actions if action.end < 20]
        numbers = [CLASSES.index(action.label) for action in actions_in_range]
        actions[name] = Segments(
            [a.start for a in actions_in_range], [a.end for a in actions_in_range], numbers, classes=CLASSES
        )
        assert len(actions_in_range)
    truth = Truth.from_segments(actions)
    label = np.array([CLASSES.index(truth.classes[number]) for number in truth.label], np.int32)
    truth = replace(truth, classes=CLASSES, label=label, label_ids=None)  # classes without actions count too
    return Dataset("puppets", "test", folder, (truth,), videos, FileCounts(0, 2, 0))


@pytest.mark.slow
def test_demo_scores_agree_with_its_predictions(data: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    steps: set[str] = set()
    recipe = benchmarks["puppets-c"]
    models = {
        variant: build_benchmark_model(
            recipe, data, InferenceConfig(recipe.name, model=DETECTOR, weights=weights, mend=mend), "cpu"
        )
        for variant, (weights, mend) in HOW.items()
    }
    demo = write_demo(tmp_path / "demo", data, models, progress=lambda what, *_: steps.add(what))
    assert steps == {"running 16 cells of each", "writing the report", "corrupting a film"}
    assert demo.gallery.stat().st_size > 100_000
    assert "clean" in demo.report.read_text(encoding="utf-8")
    assert list(demo.results) == ["clean", "robust", "mended"]
    for variant, result in demo.results.items():
        scores = json.loads((tmp_path / "demo" / variant / "scores.json").read_text())
        assert scores["benchmark"] == "puppets-c"
        assert scores["metric"] == "mAP@0.5"
        assert scores == result
        assert scores.get("mend") == HOW[variant][1]
        assert [cell["cell"] for cell in scores["cells"]] == [
            f"thumos14-c/{name}:{level}"
            for name in ("black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion")
            for level in (1, 2, 3)
        ]
        assert all((cell["videos"], cell["of"]) == (2, 2) for cell in scores["cells"])
        predictions = jostle.load_predictions(
            tmp_path / "demo" / variant / "predictions" / "thumos14-c-black_frame-3.json"
        )
        score = jostle.score(predictions, data.truth, protocol="thumos14", tious=[0.5])
        assert not verify(tmp_path / "demo" / variant).lacking
        assert score.average_map == pytest.approx(scores["cells"][2]["value"], abs=1e-12)


def test_short_demo_lists_what_it_left_out(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from jostle.api.demonstration import SHORT
    from jostle.datasets.puppets.untrimmed import puppets

    dataset = puppets(Request("test", tmp_path / "cache", first=1), counts={"test": 3})
    assert (len(dataset.videos), len(dataset.missing)) == (1, 2)
    assert [cell.name for cell in select_cells(benchmarks["puppets-c"], SHORT)] == ["clean", *SHORT]
    assert {name.rpartition(":")[2] for name in SHORT} == {"3"}


def test_first_is_for_generated_data_sets_only(tmp_path: Path) -> None:
    with pytest.raises(jostle.JostleError, match="first must be at least 0, got -1"):
        jostle.load_dataset("puppets", "test", root=tmp_path, first=-1)
    with pytest.raises(jostle.JostleError, match="thumos14 is not made by jostle, so none of its videos"):
        jostle.load_dataset("thumos14", root=tmp_path, first=1)


def test_demo_of_own_video(tmp_path: Path) -> None:
    video = tmp_path / "mine.mp4"
    rng = np.random.default_rng(0)
    scene = rng.integers(0, 256, (60, 200, 3), np.uint8)
    with Writer(video, size=(60, 90), fps=8) as writer:
        for tick in range(30):
            writer.write(scene[:, 3 * tick : 3 * tick + 90], tick)
    updates: list[tuple[str, int, int]] = []
    demo = demo_video(video, tmp_path / "demo", progress=lambda *what: updates.append(what))
    assert updates[0] == ("corrupting the video", 0, len(jostle.names("corruptions")))
    page = demo.gallery.read_text(encoding="utf-8")
    assert "3 s from the middle of mine.mp4" in page
    assert demo.sheet.is_file()
    if importlib.util.find_spec("torch"):
        assert set(demo.shifts) == set(jostle.names("corruptions"))
        assert min(demo.shifts.values()) > 0
        assert f"moves features of puppet_net by {demo.shifts['fog']:.2f}" in page


def test_demo_of_a_very_short_video(tmp_path: Path) -> None:
    video = tmp_path / "short.mp4"
    with Writer(video, size=(40, 40), fps=8) as writer:
        for tick in range(3):
            writer.write(np.full((40, 40, 3), 60 * tick, np.uint8), tick)
    demo = demo_video(video, tmp_path / "demo")
    assert demo.shifts == {}
    assert "moves features" not in demo.gallery.read_text(encoding="utf-8")
