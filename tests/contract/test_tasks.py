"""Contract of every task: its truth and its predictions survive storage, and its views and items are of its videos."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.synthetic_runs import FACTS, annotations_of, recipe_of, write_run
from jostle.core.schema import Mismatch
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, DataError, UnknownName
from jostle.evaluation.inference.jobs import same_bits
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.tasks.task import tasks
from jostle.evaluation.tasks.validation import FIELDS, check_content, check_fields
from jostle.metrics.metric import metrics

CELL = "thumos14-c/black_frame:3"
every_task = pytest.mark.parametrize("name", sorted(FACTS))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunRecord]:
    root = tmp_path_factory.mktemp("tasks")
    return {name: RunRecord.read(write_run(root / name, name, videos=6, cells=(CELL,))) for name in FACTS}


def test_every_task_is_here() -> None:
    assert sorted(FACTS) == list(tasks) == jostle.names("tasks")


def test_tasks_are_declared_without_anything_heavy() -> None:
    code = "import sys; from jostle.evaluation.tasks.task import tasks; list(tasks); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numba", "cv2"} & set(ast.literal_eval(done.stdout))


@every_task
def test_a_task_says_what_readers_need(name: str) -> None:
    kind = tasks[name]
    assert kind.name == name == kind.reads.task
    assert kind.words.title
    assert kind.words.tag == kind.words.tag.lower()
    assert kind.words.predictions
    assert any(one.task == name for one in metrics.values())
    assert set(kind.takes) <= set(FIELDS)


@every_task
def test_truth_survives_storage(name: str, tmp_path: Path) -> None:
    recipe = recipe_of(name, (CELL,))
    data = Dataset("folder", "test", tmp_path, (annotations_of(name, 6, ("jump", "run")),), {})
    task = tasks[name].of_data(recipe, data)
    task.write_truth(tmp_path / "truth.json")
    content = Content.of(recipe.content())
    stored = tasks[name].of_file(content, tmp_path / "truth.json", task.classes, ())
    assert stored.fingerprint == task.fingerprint
    assert tuple(stored.videos) == tuple(task.videos)
    assert same_bits(dict(stored.truth.spans or {}), dict(task.truth.spans or {}))
    for one in (task, tasks[name].of_data(recipe, data), stored):  # read or not, it goes to worker processes
        assert pickle.loads(pickle.dumps(one)).fingerprint == task.fingerprint
    stored.write_truth(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "truth.json").read_bytes()


@every_task
@pytest.mark.parametrize("text", ["{}", "[]", "", '{"format": 1, "videos": 3}'])
def test_a_damaged_truth_is_an_error_that_names_the_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(text)
    content = Content.of(recipe_of(name, (CELL,)).content())
    with pytest.raises(DataError, match=r"truth\.json") as caught:
        _ = tasks[name].of_file(content, tmp_path / "truth.json", (), ()).annotations
    assert caught.value.fault == "F110"


@every_task
def test_predictions_survive_storage(name: str, records: dict[str, RunRecord], tmp_path: Path) -> None:
    record = records[name]
    task, path = record.task, record.predictions_file(CELL)
    outputs = task.read(path)
    for video, output in outputs.items():
        packed = task.pack({CELL: output})
        assert same_bits(task.unpack(*packed)[CELL], output), video
    task.write(tmp_path / path.name, outputs)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert set(task.videos_of(task.read_predictions(path))) == set(outputs)


@every_task
@pytest.mark.parametrize("damage", [b"", b"no such format", None], ids=["empty", "text", "half"])
def test_damaged_predictions_are_an_error_that_names_the_file(
    name: str, damage: bytes | None, records: dict[str, RunRecord], tmp_path: Path
) -> None:
    file = records[name].predictions_file(CLEAN)
    content = file.read_bytes()
    (tmp_path / file.name).write_bytes(content[: len(content) // 2] if damage is None else damage)
    with pytest.raises(DataError, match=file.name.replace(".", r"\.")):
        records[name].task.read(tmp_path / file.name)


@every_task
def test_analysis_measures_what_the_run_did(name: str, records: dict[str, RunRecord]) -> None:
    record = records[name]
    videos = record.task.videos_of(record.predictions(CLEAN))
    for cell, value in record.values.items():
        assert record.task.measured(record.predictions(cell), videos).value == value


@every_task
def test_few_videos_can_be_measured_alone(name: str, records: dict[str, RunRecord]) -> None:
    record = records[name]
    videos = list(record.task.videos_of(record.predictions(CLEAN)))[:2]
    measured = record.task.measured(record.predictions(CLEAN), videos)
    assert set(measured.videos) <= set(videos)
    assert 0 <= measured.value <= 1


@every_task
def test_views_are_plain_and_of_the_video(name: str, records: dict[str, RunRecord]) -> None:
    record = records[name]
    video = record.task.videos_of(record.predictions(CLEAN))[0]
    for cell in (CLEAN, CELL):
        view = record.view(video, cell)
        assert view is not None
        assert view.video == video
        if name != "objects":  # whose boxes are arrays
            json.dumps(asdict(view), allow_nan=False)
    brief = record.view(video, CELL, brief=True)
    assert brief is None or brief.kind == view.kind
    with pytest.raises(UnknownName, match="no video is called 'nobody'"):
        record.view("nobody", CELL)
    with pytest.raises(UnknownName, match=r"no cell of .* is called 'fog:9'"):
        record.view(video, "fog:9")


@every_task
def test_items_are_judged_one_by_one(name: str, records: dict[str, RunRecord]) -> None:
    task = records[name].task
    outputs = task.read(records[name].predictions_file(CLEAN))
    threshold = task.operating_threshold(outputs)
    for video, output in outputs.items():
        items = task.items(video)
        if not task.words.loss_rule:
            assert items == ()
            continue
        scores, right = task.judge(video, output, threshold)
        assert len(items) == len(scores) == len(right)
        assert np.isfinite(scores[right]).all()


@every_task
def test_fields_of_other_tasks_are_refused(name: str) -> None:
    recipe = recipe_of(name, (CELL,))
    check_fields(recipe)
    values = {"protocol": "thumos14", "k": 3, "labels_of": "own"}
    for field, value in values.items():
        need = tasks[name].takes.get(field)
        changed = dict(vars(recipe)) | {field: None if need == "required" else value}
        changed = {key: changed[key] for key in recipe.__dataclass_fields__}
        if need is None or need == "required":
            with pytest.raises(BadValue, match=f"made-{name}: {field} is"):
                check_fields(type(recipe)(**changed | ({"tious": ()} if field == "protocol" else {})))


def test_a_record_of_an_unknown_task_is_refused() -> None:
    content = Content.of(recipe_of("recognition", (CELL,)).content() | {"task": "guessing"})
    with pytest.raises(Mismatch, match="'guessing', not one of detection, frames"):
        check_content(content)
