"""Questions of one's own about videos of one's own: a folder, a function, a run."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import jostle

pytest.importorskip("torch")  # runs of models need it

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ask-your-own-questions.md"
ROWS = [
    {"video": "a.mp4", "question": "Which animal?", "options": ["cat", "dog"], "answer": "dog", "type": "animal"},
    {"video": "a.mp4", "question": "How many?", "options": ["one", "two", "three"], "answer": "A", "type": "count"},
    {"video": "b.mp4", "question": "Which animal?", "options": ["cat", "dog"], "answer": 0, "type": "animal"},
]


def write_video(path: Path, seed: int) -> None:
    path.parent.mkdir(exist_ok=True)
    frames = np.random.default_rng(seed).integers(0, 256, (12, 32, 48, 3), np.uint8)
    with av.open(str(path), "w") as out:
        stream: Any = out.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for frame in frames:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(stream.encode())


def write_rows(folder: Path, form: str) -> None:
    if form == "json":
        (folder / "questions.json").write_text(json.dumps(ROWS))
    elif form == "jsonl":
        (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    else:
        with (folder / "questions.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, ["video", "question", "option_0", "option_1", "option_2", "answer", "type"])
            table.writeheader()
            for row in ROWS:
                options: Any = row["options"]
                columns = {f"option_{i}": option for i, option in enumerate(options)}
                table.writerow({key: value for key, value in row.items() if key != "options"} | columns)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "videos"
    write_video(folder / "a.mp4", 0)
    write_video(folder / "b.mp4", 1)
    return folder


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_a_folder_with_a_file_of_questions_is_a_data_set_of_questions(videos: Path, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for video in videos.glob("*.mp4"):
        (folder / video.name).write_bytes(video.read_bytes())
    write_rows(folder, form)
    (folder / "answers.jsonl").write_text('{"id": "0", "text": "B"}\n')  # what a model said is no annotation
    data = jostle.load_dataset("folder", root=folder)
    assert (data.task, sorted(data.videos), data.missing) == ("questions", ["a", "b"], ())


def test_the_recipe_of_the_how_to_runs_on_questions_of_ones_own(videos: Path, tmp_path: Path) -> None:
    write_rows(videos, "jsonl")
    (tmp_path / "videos").symlink_to(videos)
    blocks = DOCS.read_text(encoding="utf-8").split("```")
    recipe = next(block.removeprefix("toml\n") for block in blocks if block.startswith("toml\n"))
    program = next(block.removeprefix("python\n") for block in blocks if block.startswith("python\n"))
    (tmp_path / "mine.toml").write_text(recipe)
    (tmp_path / "mine.py").write_text(program)
    command = next(line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("$ jostle run "))
    words = command.removeprefix("$ jostle ").split()
    done = subprocess.run(
        [sys.executable, "-m", "jostle", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert {row["cell"]: (row["count"], row["unreadable"]) for row in scores["cells"]} == {
        "gaussian_noise:3": (3, 0), "freeze:3": (3, 0),
    }  # fmt: skip
    assert len(recipe.strip().splitlines()) == 10


def test_sentences_of_ones_own_are_a_data_set_of_moments(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", 0)
    (tmp_path / "moments.json").write_text(
        json.dumps([{"video": "a", "sentence": "He sits.", "windows": [[0.2, 0.9]]}])
    )
    assert jostle.load_dataset("folder", root=tmp_path).task == "moments"


def test_a_broken_question_says_which_and_why(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", 0)
    (tmp_path / "questions.json").write_text(json.dumps([{**ROWS[0], "answer": "bird"}]))
    with pytest.raises(jostle.JostleError, match=r"questions\.json.*'bird'.*none of its 2 options"):
        jostle.load_dataset("folder", root=tmp_path)
