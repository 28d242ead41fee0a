"""Questions in published layouts, in their copies on the Hub and in plain tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.refusals import refused
from jostle.core.types.language import QuestionItem, QuestionSet
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.formats.answers import read_answers
from jostle.io.formats.questions import looks_like_questions, read_questions
from jostle.metrics.answer_text import read_choice


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


MVBENCH = [{"video": "a.mp4", "question": "Q?", "candidates": ["up", "down"], "answer": "down", "start": 1.5, "end": 4}]
VIDEO_MME = {
    "videoID": "x",
    "question_id": "001-1",
    "task_type": "OCR",
    "question": "Q?",
    "options": ["A. cat.", "B. dog."],
}
LAYOUTS: dict[str, tuple[str, Any, QuestionItem]] = {
    "MVBench": (
        "moving_direction.json",
        MVBENCH,
        QuestionItem("moving_direction_0", "a", "Q?", ("up", "down"), 1, "moving_direction", 1.5, 4.0),
    ),
    "Video-MME": (
        "test.jsonl",
        json.dumps(VIDEO_MME | {"answer": "B"}) + "\n",
        QuestionItem("001-1", "x", "Q?", ("cat.", "dog."), 1, "OCR"),
    ),
    "EgoSchema": (
        "questions.json",
        [{"q_uid": "u1", "google_drive_id": "g", "question": "Q?", **{f"option {i}": f"o{i}" for i in range(5)}}],
        QuestionItem("u1", "u1", "Q?", ("o0", "o1", "o2", "o3", "o4"), None),
    ),
    "EgoSchema of the Hub": (
        "subset.jsonl",
        '{"question_idx": "7", "video_idx": "u1", "question": "Q?", "option": ["A. x", "B. y"], "answer": "1"}\n',
        QuestionItem("7", "u1", "Q?", ("x", "y"), 1),
    ),
    "NExT-QA": (
        "val.csv",
        "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"
        "12,300,640,480,why run,2,0,TP,a,b,c,d,e\n",
        QuestionItem("12_0", "12", "why run", ("a", "b", "c", "d", "e"), 2, "TN"),
    ),
    "Perception Test": (
        "mc.json",
        {"video_7": {"mc_question": [
            {"id": 3, "question": "Q?", "options": ["a", "b", "c"], "answer_id": 1, "area": "physics"}]}},
        QuestionItem("video_7_3", "video_7", "Q?", ("a", "b", "c"), 1, "physics"),
    ),
    "Perception Test of the Hub": (
        "rows.json",
        [{"video_name": "video_7", "question_id": 3, "question": "Q?", "options": ["a", "b"], "answer_id": 0,
          "area": "x"}],
        QuestionItem("video_7_3", "video_7", "Q?", ("a", "b"), 0, "x"),
    ),
    "TempCompass, choices": (
        "multi-choice.json",
        {"9": {"speed": [{"question": "Q?\nA. fast\n B. slow", "answer": "B. slow"}]}},
        QuestionItem("multi-choice/9/speed/0", "9", "Q?", ("fast", "slow"), 1, "speed"),
    ),
    "TempCompass, yes or no": (
        "yes_no.json",
        {"9": {"order": [{"question": "Is it?", "answer": "no"}]}},
        QuestionItem("yes_no/9/order/0", "9", "Is it?", ("yes", "no"), 1, "order"),
    ),
    "TempCompass, captions": (
        "caption_matching.json",
        {"9": {"order": [{"question": "Which?\nOption 1: he sits\nOption 2: he runs", "answer": "Option 2: he runs"}]}},
        QuestionItem("caption_matching/9/order/0", "9", "Which?", ("he sits", "he runs"), 1, "order",
                     names=("Option 1", "Option 2")),
    ),
    "TempCompass of the Hub": (
        "rows.jsonl",
        '{"video_id": "9", "dim": "speed", "question": "Q?\\nA. fast\\nB. slow", "answer": "A. fast"}\n',
        QuestionItem("multi-choice/9/speed/0", "9", "Q?", ("fast", "slow"), 0, "speed"),
    ),
    "MLVU": (
        "5_order.json",
        [{"video": "o.mp4", "duration": 60.5, "question": "Q?", "candidates": ["1->2", "2->1"], "answer": "1->2",
          "question_type": "order"}],
        QuestionItem("order_0", "o", "Q?", ("1->2", "2->1"), 0, "order"),
    ),
    "MLVU of the Hub": (
        "mlvu.jsonl",
        '{"video_name": "o.mp4", "task_type": "order", "question": "Q?\\n(A) 1->2\\n(B) 2->1", "answer": "B"}\n',
        QuestionItem("order_0", "o", "Q?", ("1->2", "2->1"), 1, "order"),
    ),
    "own JSON lines": (
        "mine.jsonl",
        '{"id": "k", "video": "a", "question": "Q?", "options": ["x", "y"], "answer": "y", "type": "t",'
        ' "needs_order": true}\n',
        QuestionItem("k", "a", "Q?", ("x", "y"), 1, "t", needs_order=True),
    ),
    "own CSV": (
        "mine.csv",
        "video,question,option_0,option_1,option_2,answer,start,end\nb.mp4,Q?,x,y,,B,1,2.5\n",
        QuestionItem("0", "b", "Q?", ("x", "y"), 1, "", 1.0, 2.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout: str, tmp_path: Path) -> None:
    name, content, item = LAYOUTS[layout]
    path = write(tmp_path, name, content)
    assert looks_like_questions(Source(path))
    assert read_questions(path).items == (item,)


def test_egoschema_has_its_right_options_in_another_file(tmp_path: Path) -> None:
    path = write(tmp_path, "questions.json", LAYOUTS["EgoSchema"][1])
    write(tmp_path, "subset_answers.json", {"u1": 3})
    assert read_questions(path).items[0].answer == 3


def test_a_folder_of_tasks_is_one_set(tmp_path: Path) -> None:
    for task in ("a", "b"):
        write(tmp_path, f"{task}.json", MVBENCH * 2)
    write(tmp_path, "notes.json", {"about": "nothing"})
    assert [item.id for item in read_questions(tmp_path).items] == ["a_0", "a_1", "b_0", "b_1"]


@pytest.mark.fault("F154")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mvbench.json", [MVBENCH[0] | {"answer": "sideways"}]),
        ("videomme.jsonl", json.dumps(VIDEO_MME | {"answer": "C"}) + "\n"),
        ("next.csv", "video,question,answer,qid,type,a0,a1\n1,Q?,2,0,CW,a,b\n"),
        ("own.jsonl", '{"video": "a", "question": "Q?", "options": ["2", "3", "1"], "answer": "2"}\n'),
        ("own.jsonl", '{"video": "a", "question": "Q?", "options": ["x"], "answer": "x"}\n'),
    ],
)
def test_an_answer_that_is_no_option_is_refused(name: str, content: Any, tmp_path: Path) -> None:
    with refused("F154", DataError):
        read_questions(write(tmp_path, name, content))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "F27"),
        ("{", "F27"),
        ('{"a": 1}', "F28"),
        ("[1, 2]", "F39"),
        ("video,question\n1,Q?\n", "F28"),
        ('[{"video": "a", "question": " ", "options": ["x", "y"], "answer": 0}]', "F45"),
        ('[{"video": "a", "question": "Q?", "options": "x", "answer": 0}]', "F39"),
        ('[{"video": "a", "question": "Q?", "options": ["x", "y"], "answer": 0, "start": "soon"}]', "F41"),
        ('{"video": "a", "question": "Q?", "options": ["x", "y"], "answer": 0}\n{"video": \n', "F27"),
    ],
)
def test_broken_files_are_refused_with_their_path(content: str, fault: str, tmp_path: Path) -> None:
    with refused(fault, DataError) as caught:
        read_questions(write(tmp_path, "file.json", content))
    assert "file.json" in str(caught.value)


QUESTIONS = QuestionSet(tuple(QuestionItem(name, "v", "Q?", ("left", "right", "up"), 0) for name in ("1", "2")))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"id": 1, "choice": 0}\n{"id": "2", "text": "I choose B"}\n'),
        ("a.json", {"1": {"prediction": 0, "answer": 2}, "2": "B."}),
        ("a.json", {"1": 0, "2": [0.1, 0.7, 0.2]}),
        ("a.json", [{"question_id": "1", "response": "left"}, {"question_id": "2", "log_probs": [-3, -1, -2.5]}]),
        ("a.csv", "id,choice\n1,A\n2,1\n"),
        ("a.csv", "id,prediction\n1,0\n2,1\n"),
        ("a.csv", "id,p_0,p_1,p_2\n1,0.8,0.1,0.1\n2,0.2,0.5,0.3\n"),
    ],
)
def test_answers_in_every_form(name: str, content: Any, tmp_path: Path) -> None:
    answers = read_answers(write(tmp_path, name, content), QUESTIONS, read_choice).answers
    assert [answers[key].choice for key in ("1", "2")] == [0, 1]


@pytest.mark.fault("F151")
def test_an_unreadable_answer_keeps_its_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"id": "1", "text": "I cannot tell."}\n{"id": "2", "text": null}\n')
    answers = read_answers(path, QUESTIONS, read_choice).answers
    assert (answers["1"].choice, answers["1"].text, answers["2"].choice) == (None, "I cannot tell.", None)


@pytest.mark.fault("F157")
def test_two_answers_to_one_question_are_refused(tmp_path: Path) -> None:
    with refused("F157", DataError, match="line 2: question '1' is answered already; keep one answer"):
        read_answers(
            write(tmp_path, "a.jsonl", '{"id": 1, "choice": 0}\n{"id": "1", "choice": 1}\n'), QUESTIONS, read_choice
        )


@pytest.mark.fault("F154")
def test_choices_that_count_from_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the choice 3 is none of the 3 options; options count from 0"):
        read_answers(write(tmp_path, "a.jsonl", '{"id": 1, "choice": 3}\n'), QUESTIONS, read_choice)


@pytest.mark.fault("F156")
def test_probabilities_for_other_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs 3 finite probabilities, one an option; got 2"):
        read_answers(write(tmp_path, "a.json", {"1": [0.5, 0.5]}), QUESTIONS, read_choice)
