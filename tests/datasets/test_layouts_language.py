"""Data sets of questions and sentences in their folders, with the available videos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.small_language import write_data, write_sentences
from jostle.datasets.dataset import Request, datasets
from jostle.errors import DataError

FILES = {  # data set: subset, file, content
    "mvbench": ("test", "json/action_order.json",
                [{"video": "11.mkv", "question": "Q?", "candidates": ["a", "b"], "answer": "a"}]),
    "video-mme": ("test", "videomme_test.jsonl",
                  [{"videoID": "11", "question_id": 1, "question": "Q?", "options": ["A. x", "B. y"], "answer": "A"}]),
    "egoschema": ("subset", "questions.json", [{"q_uid": "11", "question": "Q?", "option 0": "a", "option 1": "b"}]),
    "perception-test": ("validation", "all_valid.json",
                        {"11": {"mc_question": [{"id": 0, "question": "Q?", "options": ["a", "b"], "answer_id": 1}]}}),
    "tempcompass": ("multi-choice", "questions/multi-choice.json",
                    {"11": {"speed": [{"question": "Q?\nA. fast\nB. slow", "answer": "B. slow"}]}}),
    "mlvu": ("dev", "5_order.json",
             [{"video": "11.mkv", "question": "Q?", "candidates": ["a", "b"], "answer": "a", "question_type": "x"}]),
    "qvhighlights": ("validation", "highlight_val_release.jsonl",
                     [{"qid": 1, "query": "q", "duration": 4, "vid": "11", "relevant_windows": [[1, 2]]}]),
    "activitynet-captions": ("validation", "val_1.json",
                             {"v_11": {"duration": 4, "timestamps": [[0, 2]], "sentences": ["s."]}}),
}  # fmt: skip


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_data(tmp_path_factory.mktemp("videos"), ("11", "12"))
    (folder / "val.csv").unlink()
    return folder


@pytest.mark.parametrize("name", FILES)
def test_every_layout_is_found(name: str, tmp_path: Path, videos: Path) -> None:
    subset, file, content = FILES[name]
    (tmp_path / "videos").symlink_to(videos)
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    lines = isinstance(content, list) and file.endswith(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in content) if lines else json.dumps(content))
    if name == "egoschema":
        (tmp_path / "subset_answers.json").write_text('{"11": 1}')
    kind = datasets[name]
    data = kind.load(Request(subset, tmp_path))
    assert (data.task, subset in kind.subsets) == (kind.task, True)
    assert [path.name for path in data.videos.values()] == ["11.mkv"]
    assert "1 of 1 videos" in str(data)


def test_next_qa_and_charades_sta(tmp_path: Path) -> None:
    folder = write_sentences(write_data(tmp_path))
    data = datasets["next-qa"].load(Request("validation", folder))
    assert repr(data) == "Dataset(next-qa validation: 3 videos, 6 questions)"
    (folder / "12.mkv").unlink()
    assert datasets["charades-sta"].load(Request("test", folder)).missing == ("12",)


def test_a_folder_without_annotations_names_the_expected_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no annotations of NExT-QA: searched for val.csv"):
        datasets["next-qa"].load(Request("validation", tmp_path))


def test_egoschema_without_answers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps(FILES["egoschema"][2]))
    with pytest.raises(DataError) as caught:
        datasets["egoschema"].load(Request("subset", tmp_path))
    assert caught.value.fault == "F29"
