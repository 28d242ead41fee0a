"""Breaking points of answers and moments: equal to brute force, computed without baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch")  # `jostle.probe` needs it

import jostle
from helpers.small_language import LENGTH, OPTIONS, find, write_data, write_sentences
from jostle.core.types.language import MomentPrediction
from jostle.datasets.dataset import Request, datasets
from jostle.evaluation.inference.language import ask_in_orders
from jostle.evaluation.inference.outputs import VideoAnswers
from jostle.evaluation.probing.probe import read_probe, read_video_probe
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.tasks.task import make_task
from jostle.models.language.callables import as_moment_model, as_question_model
from jostle.models.language.interface import Sentence

BLACK = "thumos14-c/black_frame"
Frames = npt.NDArray[np.uint8]


def weigh(frames: Frames, question: str, options: Sequence[str]) -> list[float]:
    """Trust the right option less for each black frame, most for those in the middle."""
    black = frames.mean(axis=(1, 2, 3)) < 8 if len(frames) else np.ones(1)
    weight = 1.0 - np.abs(np.linspace(-1, 1, len(black)))
    right = "brighter" if "become" in question else "dark"
    trust = 1.0 - float((black * weight).sum()) / (3.5 if right == "dark" else 0.9)
    return [trust if option == right else 0.1 * OPTIONS.index(option) for option in options]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentences(write_data(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def probe_folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("probe") / "questions"
    jostle.probe("next-qa-c", model=weigh, data=data, out=out, kinds=[BLACK], input={"frames": LENGTH}, jobs=1)
    return out


def test_margins_equal_those_of_the_corrupted_video(data: Path, probe_folder: Path) -> None:
    task = make_task(benchmarks["next-qa-c"], datasets["next-qa"].load(Request("validation", data)))
    model = as_question_model(weigh, LENGTH)
    compared = 0
    for name in task.videos:
        clip, video = jostle.read(data / f"{name}.mkv"), read_video_probe(probe_folder, name)
        job = task.make_job(name, data / f"{name}.mkv", (), 0)

        def judge(first: int, frames: int, name: str = name, clip: Any = clip, job: Any = job) -> tuple[Any, Any]:
            damaged = jostle.corrupt(clip, f"{BLACK}:1", placement=f"frames:{first}-{first + frames}", video_id=name)
            answers = ask_in_orders(job, model.answer, job.items, damaged.frames, clip.pts, "drawn")
            return task.judge(name, VideoAnswers(tuple(answers), {}, {}), 0.0)

        for curve in video.curves:
            assert curve.positions == tuple(range(LENGTH))
            for position, score in zip(curve.positions, curve.scores, strict=True):
                margins, right = judge(position, 1)
                assert margins[curve.item] == score
                assert right[curve.item] == (position not in curve.lost)
                compared += 1
        for point in video.breaking_points:
            assert point.frames is not None
            assert point.position is not None
            assert not judge(point.position, point.frames)[1][point.item]
            shorter = point.bracket[0]
            for first in range(0, LENGTH - shorter + 1, max(shorter // 2, 1)) if shorter else ():
                assert judge(first, shorter)[1][point.item]
    assert compared == 3 * 2 * LENGTH


def test_questions_break_at_different_lengths(probe_folder: Path) -> None:
    probe = read_probe(probe_folder)
    assert (probe.items, probe.kept) == (6, 6)
    assert "not the right option" in probe.full_rule
    frames = {one.label: one.frames for one in probe.breaking_points}
    assert frames["order"] == 1
    assert (frames["place"] or 0) > 1
    assert read_video_probe(probe_folder, "11").items[0].text == "does it become brighter"


def test_probes_skip_the_baselines(data: Path, tmp_path: Path) -> None:
    counts: list[int] = []

    def note(frames: Frames, question: str, options: Sequence[str]) -> list[float]:
        counts.append(len(frames))
        return weigh(frames, question, options)

    jostle.probe("next-qa-c", model=note, data=data, out=tmp_path, kinds=[BLACK], step=20, videos=1, jobs=1)
    assert counts.count(0) == 6  # of the clean run
    assert len(counts) > 3 * 6


def test_overlaps_equal_those_of_the_corrupted_video(data: Path, tmp_path: Path) -> None:
    jostle.probe(
        "charades-sta-c", model=find, data=data, out=tmp_path / "m", kinds=[BLACK], input={"frames": LENGTH}, jobs=1
    )
    probe = read_probe(tmp_path / "m")
    assert (probe.items, probe.kept, probe.threshold) == (3, 3, 0.5)
    assert probe.full_rule.endswith("by less than the threshold of 0.5")
    task = make_task(benchmarks["charades-sta-c"], datasets["charades-sta"].load(Request("test", data)))
    model = as_moment_model(find, LENGTH)
    for name in task.videos:
        clip, video = jostle.read(data / f"{name}.mkv"), read_video_probe(tmp_path / "m", name)
        (item,) = video.items
        assert (item.first, item.stop, item.text) == (10, 30, "it is grey.")
        (curve,) = video.curves
        assert len(curve.positions) == 20
        for position, score in zip(curve.positions, curve.scores, strict=True):
            damaged = jostle.corrupt(clip, f"{BLACK}:1", placement=f"frame:{position}", video_id=name)
            (windows,) = model.locate([Sentence(damaged.frames, clip.pts, item.text, LENGTH / 10)])
            output = VideoAnswers((MomentPrediction(windows.windows),), {}, {})
            assert task.judge(name, output, 0.5)[0][0] == score


def test_a_report_names_questions_and_types(probe_folder: Path, tmp_path: Path) -> None:
    page = jostle.report([probe_folder], tmp_path / "page.html", draws=0).read_text(encoding="utf-8")
    assert "An item is lost when the answer to the question is not the right option." in page
    assert "does it become brighter in" in page
    assert "By type" in page
