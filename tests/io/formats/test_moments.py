"""Sentences with windows, and predicted windows, in published layouts and plain tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.refusals import refused
from jostle.core.types.language import MomentItem, MomentPrediction, MomentSet
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.formats.moments import looks_like_moments, read_moments, read_windows
from jostle.metrics.moments import score_moments


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


QV = {
    "qid": 1, "query": "q", "duration": 150, "vid": "y_0.0_150.0", "relevant_windows": [[4, 8]],
    "relevant_clip_ids": [2, 3], "saliency_scores": [[3, 2, 4], [4, 4, 4]],
}  # fmt: skip
LAYOUTS: dict[str, tuple[str, Any, MomentItem]] = {
    "Charades-STA": (
        "charades_sta_test.txt",
        "ABCDE 1.0 6.5##person sits.\n",
        MomentItem("ABCDE/0", "ABCDE", "person sits.", ((1.0, 6.5),)),
    ),
    "Charades-STA, four columns": (
        "charades_sta_test.txt",
        "ABCDE 24.3 30.4 0##person sits.\n",
        MomentItem("ABCDE/0", "ABCDE", "person sits.", ((24.3, 30.4),)),
    ),
    "Charades-STA of the Hub": (
        "rows.jsonl",
        '{"video": "ABCDE.mp4", "caption": "person sits.", "timestamp": [1.0, 6.5]}\n',
        MomentItem("0", "ABCDE", "person sits.", ((1.0, 6.5),)),
    ),
    "QVHighlights": (
        "highlight_val_release.jsonl",
        json.dumps(QV) + "\n",
        MomentItem("1", "y_0.0_150.0", "q", ((4.0, 8.0),), 150.0, (2, 3), ((3, 2, 4), (4, 4, 4))),
    ),
    "QVHighlights without windows": (
        "highlight_test_release.jsonl",
        '{"qid": 1, "query": "q", "duration": 150, "vid": "y"}\n{"qid": 2, "query": "q", "vid": "y"}\n',
        MomentItem("1", "y", "q", (), 150.0),
    ),
    "ActivityNet-Captions": (
        "val_1.json",
        {"v_a": {"duration": 60, "timestamps": [[0, 9]], "sentences": [" s."]}},
        MomentItem("v_a/0", "v_a", "s.", ((0.0, 9.0),), 60.0),
    ),
    "own JSON lines": (
        "mine.jsonl",
        '{"id": "k", "video": "a.mp4", "sentence": "he runs", "windows": [[1, 2], [5, 6]], "duration": 9}\n',
        MomentItem("k", "a", "he runs", ((1.0, 2.0), (5.0, 6.0)), 9.0),
    ),
    "own CSV": (
        "mine.csv",
        "video,start,end,sentence\na,1,2.5,he runs\n",
        MomentItem("0", "a", "he runs", ((1.0, 2.5),)),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout: str, tmp_path: Path) -> None:
    name, content, item = LAYOUTS[layout]
    path = write(tmp_path, name, content)
    assert looks_like_moments(Source(path))
    assert read_moments(path).items[0] == item


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("c.txt", "ABCDE 6.5 1.0##person sits.\n", "F30"),
        ("c.txt", "ABCDE 1.0 6.5##person sits.\nABCDE 1.0\n", "F39"),
        ("c.txt", "ABCDE 1.0 6.5##person sits.\nABCDE 1,0 6.5##person sits.\n", "F41"),
        ("c.json", {"v": {"duration": 9, "timestamps": [[0, 1]], "sentences": []}}, "F39"),
        ("c.json", {"v": {"duration": 9, "timestamps": [[3, 3]], "sentences": ["s"]}}, "F30"),
        ("c.jsonl", json.dumps(QV | {"saliency_scores": [[1]]}) + "\n", "F39"),
        ("c.jsonl", json.dumps(QV) + "\n" + json.dumps(QV) + "\n", "F157"),
        ("c.json", {"a": 1}, "F28"),
    ],
)
def test_broken_files_are_refused(name: str, content: Any, fault: str, tmp_path: Path) -> None:
    with refused(fault, DataError):
        read_moments(write(tmp_path, name, content))


def test_windows_without_length_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "c.txt", "ABCDE 6.5 1.0##person sits.\nABCDE 1.0 2.0##person runs.\n")
    assert [item.id for item in read_moments(path, fix=True).items] == ["ABCDE/1"]


SENTENCES = MomentSet((MomentItem("1", "v", "he runs", ((4.0, 8.0),)), MomentItem("2", "v", "he sits", ((1.0, 2.0),))))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "p.jsonl",
            '{"qid": 1, "vid": "v", "query": "he runs", "pred_relevant_windows": [[4, 8, 0.5], [1, 2, 0.2]]}\n',
        ),
        ("p.jsonl", '{"id": "1", "windows": [[4, 8, 0.5], [1, 2, 0.2]]}\n'),
        ("p.json", {"1": [[4, 8, 0.5], [1, 2, 0.2]]}),
        ("p.csv", "id,start,end,score\n1,1,2,0.2\n1,4,8,0.5\n"),
        ("p.jsonl", '{"video": "v.mp4", "sentence": "he runs", "windows": [[4, 8, 0.5], [1, 2, 0.2]]}\n'),
    ],
)
def test_windows_in_every_form(name: str, content: Any, tmp_path: Path) -> None:
    windows = read_windows(write(tmp_path, name, content), SENTENCES).predictions
    assert windows["1"] == MomentPrediction(((4.0, 8.0, 0.5), (1.0, 2.0, 0.2)))


def test_windows_without_scores_keep_their_order(tmp_path: Path) -> None:
    windows = read_windows(write(tmp_path, "p.json", {"1": [[4, 8], [1, 2]], "2": []})).predictions
    assert windows["1"].windows == ((4.0, 8.0, 0.0), (1.0, 2.0, -1.0))
    assert windows["2"].windows == ()


@pytest.mark.fault("F157")
def test_two_predictions_for_one_sentence_are_refused(tmp_path: Path) -> None:
    line = '{"qid": 1, "pred_relevant_windows": []}\n'
    with refused("F157", DataError, match="sentence '1' has windows already"):
        read_windows(write(tmp_path, "p.jsonl", line * 2))


@pytest.mark.fault("F158")
def test_shares_of_the_video_are_no_seconds(tmp_path: Path) -> None:
    predictions = read_windows(write(tmp_path, "p.json", {"1": [[0.1, 0.2, 0.5]] * 5}))
    with refused("F158", DataError, match=r"these look like shares of the video; multiply by its duration"):
        score_moments(predictions, SENTENCES)
