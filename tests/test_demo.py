"""The demo on a small data set: predictions that score as its own scores say, and a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.api import verify
from jostle.benchmarks.recipe import benchmarks
from jostle.datasets.dataset import Dataset, Files
from jostle.demo import DETECTOR, write_demo
from jostle.media.encode import Writer
from jostle.puppets.film import CLASSES, FPS, SIZE, untrimmed
from jostle.running.contestants import AskedModel, contestant_for
from jostle.shipped import TREATMENTS
from jostle.types import Segments, Truth


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
    return Dataset("puppets", "test", folder, (truth,), videos, Files(0, 2, 0))


@pytest.mark.slow
def test_the_demo_scores_what_it_writes(data: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told: set[str] = set()
    recipe = benchmarks["puppets-c"]
    both = {how: contestant_for(recipe, data, AskedModel(DETECTOR, weights=how), "cpu") for how in TREATMENTS}
    done = write_demo(tmp_path / "demo", data, both, progress=lambda what, *_: told.add(what))
    assert told == {"looking at 16 states of each", "writing the report", "knocking a film about"}
    assert done.gallery.stat().st_size > 100_000
    assert "clean" in done.report.read_text(encoding="utf-8")
    for how, kept in done.results.items():
        scores = json.loads((tmp_path / "demo" / how / "scores.json").read_text())
        assert scores["benchmark"] == "puppets-c"
        assert scores["metric"] == "mAP@0.5"
        assert scores == kept
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
