"""Shipped video-language model on unseen puppet films: question answering and moment retrieval."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import jostle
from helpers.small_language import write_data, write_sentences
from jostle.core.types.language import QuestionItem
from jostle.datasets.puppets.film import FPS, Film
from jostle.datasets.puppets.questions import ask_about, describe_moments
from jostle.datasets.puppets.untrimmed import Video
from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.language import puppet_language
from jostle.models.language.interface import MomentModel, Question, QuestionModel, Sentence
from jostle.models.language.loading import load_question_model
from jostle.models.language.puppet_language import (
    FRAMES,
    FrameFeatures,
    PuppetLanguageModel,
    find_windows,
    load_puppet_language,
)
from jostle.models.loading.reference import ModelRef
from jostle.models.weights.packaged import TREATMENTS, weights_file

FILMS = 6  # the first ones of the test split
MARGIN = 0.25  # above the blind baseline


@pytest.fixture(scope="module")
def films() -> list[tuple[Film, np.ndarray, np.ndarray]]:
    """Films of the test split with the sampled frames and their times."""
    films_and_frames = []
    for number in range(1, FILMS + 1):
        film = Video(0, "test", number).film()
        rows = ((np.arange(FRAMES) + 0.5) / FRAMES * film.frames).astype(np.int64)
        frames = np.concatenate([film.draw(row, row + 1) for row in rows.tolist()])
        films_and_frames.append((film, frames, rows / float(FPS)))
    return films_and_frames


@pytest.fixture(scope="module")
def model() -> PuppetLanguageModel:
    return load_puppet_language()


def _questions(film: Film, frames: np.ndarray, times: np.ndarray) -> tuple[list[QuestionItem], list[Question]]:
    items = ask_about(film, 0)
    return list(items), [Question(frames, times, item.text, item.options) for item in items]


@pytest.mark.parametrize("treatment", TREATMENTS)
def test_accuracy_is_well_above_the_blind_baseline(
    treatment: str, films: list[tuple[Film, np.ndarray, np.ndarray]], model: PuppetLanguageModel
) -> None:
    if treatment != TREATMENTS[0]:
        other = load_puppet_language(treatment)
        other.features = model.features  # cached features of the same frames
        model = other
    right, blind = [], []
    for film, frames, times in films:
        items, questions = _questions(film, frames, times)
        right += [answer.choice == item.answer for item, answer in zip(items, model.answer(questions), strict=True)]
        _, blind_questions = _questions(film, frames[:0], times[:0])
        blind += [
            answer.choice == item.answer for item, answer in zip(items, model.answer(blind_questions), strict=True)
        ]
    assert len(right) > 30
    assert np.mean(right) >= np.mean(blind) + MARGIN


def test_answers_do_not_depend_on_the_batch(
    films: list[tuple[Film, np.ndarray, np.ndarray]], model: PuppetLanguageModel
) -> None:
    _, questions = _questions(*films[0])
    together = model.answer(questions)
    fresh = load_puppet_language()
    assert [fresh.answer([question])[0] for question in reversed(questions)] == together[::-1]
    swapped = [Question(one.frames, one.times, one.text, one.options[::-1]) for one in questions]
    for answer, other in zip(together, model.answer(swapped), strict=True):
        assert other.log_probs is not None
        assert answer.log_probs == pytest.approx(other.log_probs[::-1], abs=1e-5)


def test_cached_features_equal_fresh_features(films: list[tuple[Film, np.ndarray, np.ndarray]]) -> None:
    frames = films[0][1][:40]
    cached, fresh = FrameFeatures(), FrameFeatures()
    cached(frames)
    dark = frames // 2
    mixed = np.concatenate([frames[30:35], dark[:3]])
    for one, other in zip(cached(mixed), fresh(mixed), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(
        cached(dark[:3])[0], cached(frames[:3])[0]
    )  # features of clean frames are not reused for corrupted ones


@pytest.mark.fault("F192")
def test_F192_threads_share_the_features_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that a thread needs are dropped by others, as there are more than are kept."""
    monkeypatch.setattr(puppet_language, "REMEMBERED", 4)
    monkeypatch.setattr(
        FrameFeatures, "_see", lambda self, frames: (torch.from_numpy(frames), torch.zeros(len(frames)))
    )
    features = FrameFeatures()
    every = np.random.default_rng(0).integers(0, 256, (12, 4, 4, 3), np.uint8)

    def see_often(thread: int) -> bool:
        rows = [np.arange(6) + (thread + turn) % 7 for turn in range(300)]
        return all((features(every[some])[0].numpy() == every[some]).all() for some in rows)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(see_often, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_locate_finds_described_moments(
    films: list[tuple[Film, np.ndarray, np.ndarray]], model: PuppetLanguageModel
) -> None:
    hits = []
    for film, frames, times in films:
        items = describe_moments(film)
        sentences = [Sentence(frames, times, item.text, item.duration) for item in items]
        for item, answer in zip(items, model.locate(sentences), strict=True):
            start, end, _ = answer.windows[0]
            overlaps = [
                (min(end, stop) - max(start, first)) / (max(end, stop) - min(start, first))
                for first, stop in item.windows
            ]
            hits.append(max(overlaps) >= 0.5)
    assert np.mean(hits) > 0.3
    (blind_answer,) = model.locate([Sentence(films[0][1][:0], np.zeros(0), "A puppet bows.", 60.0)])
    assert blind_answer.windows == ((0.0, 60.0, 0.0),)


def test_find_windows_ranks_the_best_window_first() -> None:
    happens = np.array([0.0, 0.9, 0.9, 0.0, 0.0, 0.8, 0.0, 0.0])
    assert find_windows(happens, 16.0)[0][:2] == (2.0, 6.0)
    assert find_windows(happens, 16.0, 1)[0][:2] == (10.0, 12.0)


def test_weights_are_small_and_loaded_by_name(tmp_path: Path) -> None:
    files = [weights_file(f"puppet_language-{treatment}") for treatment in TREATMENTS]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    source = ModelRef("language", "puppet_language", weights="robust")
    assert source.get().describe()["treatment"] == "robust"
    assert source.identity()[0] != ModelRef("language", "puppet_language").identity()[0]
    model = load_question_model("puppet_language")
    assert isinstance(model, QuestionModel)
    assert isinstance(model, MomentModel)
    with pytest.raises(BadValue, match="wants 192 frames"):
        load_question_model("puppet_language", frames=8)
    with pytest.raises(BadValue, match="leave them out"):
        load_question_model("openai:http://localhost:1/v1#m", weights="clean")
    with pytest.raises(CheckpointError, match="holds no weights of puppet_language"):
        load_puppet_language(weights_file("puppet_net"))
    with pytest.raises(UnknownName):
        load_question_model("puppet_language", weights=weights_file("nothing"))


def test_runs_are_reproducible_to_the_byte(tmp_path: Path) -> None:
    options = {"data": write_data(tmp_path / "data"), "cells": ["reverse_sampling:1"], "jobs": 1, "device": "cpu"}
    folders = [tmp_path / "first", tmp_path / "second"]
    for out in folders:
        jostle.run("next-qa-c", model="puppet_language", out=out, **options)
    files = [sorted((out / "predictions").iterdir()) for out in folders]
    first, second = ({path.name: path.read_bytes() for path in paths} for paths in files)
    assert first == second
    assert len(first) == 2
    record = json.loads((folders[0] / "run.json").read_text(encoding="utf-8"))
    assert (record["model"], record["weights_from"]) == ("puppet_language", "file")


def test_moment_retrieval_run(tmp_path: Path) -> None:
    data = write_sentences(write_data(tmp_path / "data"))
    options = {"data": data, "cells": ["thumos14-c/black_frame:1"], "jobs": 1, "device": "cpu"}
    run = jostle.run("charades-sta-c", model="puppet_language", weights="robust", out=tmp_path / "run", **options)
    assert run.scores["coverage"]["videos"] == 3
