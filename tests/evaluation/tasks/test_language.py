"""Runs of question answering and moment retrieval: scores, baselines, changes and resumption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")  # `jostle.run` needs it

import jostle
from helpers.small_language import find, language_predictor, predictions, write_data, write_sentences
from jostle.errors import BadValue, DataError

CELLS = ["reverse_sampling:1", "thumos14-c/black_frame:3"]
REVERSED, BLACK = "ucf101-p-reverse_sampling-1", "thumos14-c-black_frame-3"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def run_questions(data: Path, out: Path, model: Any = language_predictor, **options: Any) -> Any:
    arguments = {"cells": CELLS, "jobs": 1} | options
    return jostle.run("next-qa-c", model=model, data=data, out=out, **arguments)


def test_a_function_is_scored_in_every_cell(data: Path, tmp_path: Path) -> None:
    scores = run_questions(data, tmp_path / "run").scores
    assert (scores["metric"], scores["clean"]) == ("accuracy", 1.0)
    assert scores["clean_more"]["chance"] == pytest.approx(0.2)
    assert scores["coverage"] == {"videos": 3, "of": 3}
    backwards = next(cell for cell in scores["cells"] if "reverse" in cell["cell"])
    assert backwards["by_type"]["order"]["accuracy"] == 0.0
    assert backwards["change"]["resist_rate"] == 0.0  # the reversed video begins bright as well
    assert backwards["temporal_sensitivity"]["value"] == 1.0
    assert "temporal_sensitivity" not in next(cell for cell in scores["cells"] if "black" in cell["cell"])


def test_blind_baselines_are_in_the_scores(data: Path, tmp_path: Path) -> None:
    baselines = run_questions(data, tmp_path / "run", cells=["clean"]).scores["clean_more"]["baselines"]
    assert (baselines["blind"]["accuracy"], baselines["blind"]["unreadable"]) == (0.0, 6)
    assert baselines["one_frame"]["by_type"]["order"]["accuracy"] == 0.0  # one frame has no order
    assert baselines["one_frame"]["by_type"]["place"]["accuracy"] == 1.0


def test_a_model_that_needs_frames_has_a_failed_blind_baseline(data: Path, tmp_path: Path) -> None:
    def needs_frames(frames: Any, question: str, options: Any) -> Any:
        return language_predictor(frames[[0, -1]], question, options)

    baselines = run_questions(data, tmp_path / "run", needs_frames, cells=["clean"]).scores["clean_more"]["baselines"]
    assert "IndexError" in baselines["blind"]["failed"]
    assert baselines["one_frame"]["accuracy"] is not None


def test_options_are_shuffled_by_the_seed(data: Path, tmp_path: Path) -> None:
    orders: dict[str, set[tuple[str, ...]]] = {}

    def record(frames: Any, question: str, options: Any) -> Any:
        orders.setdefault(question, set()).add(tuple(options))
        return language_predictor(frames, question, options)

    scores = run_questions(data, tmp_path / "run", record).scores
    assert scores["clean"] == 1.0
    assert all(len(seen_orders) > 1 for seen_orders in orders.values())  # one order per video
    orders.clear()
    run_questions(data, tmp_path / "published", record, input={"orders": "published"})
    assert {order for seen_orders in orders.values() for order in seen_orders} == {
        ("brighter", "darker", "dark", "bright", "neither")
    }


def test_all_cyclic_orders_are_merged(data: Path, tmp_path: Path) -> None:
    def first_option(frames: Any, question: str, options: Any) -> Any:
        return [3.0, 0.0, 0.0, 0.0, 0.0]  # the position, never the content

    run = tmp_path / "run"
    run_questions(data, run, first_option, cells=["clean"], input={"orders": "cyclic"})
    answer = next(iter(predictions(run, "clean").values()))
    assert answer["probabilities"] == pytest.approx([0.2] * 5)


@pytest.mark.fault("F160")
def test_only_changed_frames_lead_to_new_questions(data: Path, tmp_path: Path) -> None:
    inputs: list[bytes] = []

    def record(frames: Any, question: str, options: Any) -> Any:
        inputs.append(frames.tobytes())
        return language_predictor(frames, question, options)

    run_questions(data, tmp_path / "run", record, cells=["thumos14-c/black_frame:3"], input={"frames": 4})
    # Four frames of forty miss the black ones in the centre: no question is repeated.
    few = len(inputs)
    inputs.clear()
    run_questions(data, tmp_path / "more", record, cells=["thumos14-c/black_frame:3"], input={"frames": 40})
    assert few == 3 * (6 + 2)  # clean and two baselines, of six questions and of the two in the trial
    assert len(inputs) > few
    assert any(b"\0" * 100 in pixels for pixels in inputs)  # black frames did reach the model


def test_a_run_resumes_where_it_stopped(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_questions(data, run, cells=CELLS[:1])
    scores = run_questions(data, run).scores
    assert [cell["cell"] for cell in scores["cells"]] == [
        "ucf101-p/reverse_sampling:1",
        "thumos14-c/black_frame:3",
    ]
    before = predictions(run, REVERSED)
    (run / "predictions" / f"{REVERSED}.json").unlink()
    assert run_questions(data, run).scores == scores
    assert predictions(run, REVERSED) == before


@pytest.mark.processes
def test_answers_do_not_depend_on_processes(data: Path, tmp_path: Path) -> None:
    run_questions(data, tmp_path / "one")
    run_questions(data, tmp_path / "two", jobs=2)
    for cell in ("clean", REVERSED, BLACK):
        assert predictions(tmp_path / "one", cell) == predictions(tmp_path / "two", cell)


def test_predictions_can_be_evaluated(data: Path, tmp_path: Path) -> None:
    scores = run_questions(data, tmp_path / "run").scores
    file = tmp_path / "run" / "predictions" / f"{REVERSED}.json"
    assert jostle.evaluate(file, data / "val.csv").to_dict()["accuracy"] == scores["cells"][0]["value"]


@pytest.mark.fault("F159")
@pytest.mark.parametrize("output", [[0.5, 0.5], [[1.0] * 5], 7])
def test_answers_that_match_no_option_are_refused(output: Any, data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        run_questions(data, tmp_path / "run", lambda frames, question, options: output, cells=["clean"])
    assert caught.value.fault == "F159"


def test_invalid_models_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="answers no questions; give a function"):
        run_questions(data, tmp_path / "run", object())
    with pytest.raises(BadValue, match="no model of questions has this name"):
        run_questions(data, tmp_path / "run", "slow_r50")
    with pytest.raises(BadValue, match="the model's input has no setting size"):
        run_questions(data, tmp_path / "run", input={"size": 3})


def test_moments_are_retrieved_and_corrupted_in_their_centre(data: Path, tmp_path: Path) -> None:
    write_sentences(data)
    inputs: list[Any] = []

    def record(frames: Any, times: Any, sentence: str, duration: float) -> Any:
        inputs.append((frames.mean(axis=(1, 2, 3)), times))
        return find(frames, times, sentence, duration)

    record.frames = 40  # type: ignore[attr-defined]
    scores = jostle.run(
        "charades-sta-c", model=record, data=data, out=tmp_path / "run", cells=["black_frame:3"], jobs=1
    ).scores
    assert scores["metric"] == "R@1, IoU 0.5"
    assert scores["clean"] == 1.0
    assert scores["clean_more"]["mean_iou"] > 0.9
    baselines = scores["clean_more"]["baselines"]
    assert (baselines["blind"]["value"], baselines["whole_video"]["mean_iou"]) == (0.0, pytest.approx(2 / 3))
    black = [times[levels == 0] for levels, times in inputs if len(levels) == 40 and (levels == 0).any()]
    assert len(black) == 3
    assert all(np.allclose(times, [1.9, 2.0, 2.1]) for times in black)  # a tenth of 1 to 3 s
    truth = json.loads((tmp_path / "run" / "truth.json").read_text())
    assert truth["actions"]["11"] == [[1.0, 3.0]]
