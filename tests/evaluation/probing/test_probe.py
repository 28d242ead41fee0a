"""Breaking points of a model in a run folder: equal to brute force, resumable, never mixed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers import small_recognition, small_run
from helpers.numpy_extractor import TwoParts
from jostle.api.corruption import corrupt
from jostle.api.video import read
from jostle.errors import BadValue, DataError, Incomparable, SourceChanged
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.probing.probe import (
    Probe,
    compare_probes,
    parse_kinds,
    probe_benchmark,
    read_probe,
    read_video_probe,
)
from jostle.evaluation.tasks.task import make_task

BLACK = "thumos14-c/black_frame"


@pytest.fixture(scope="module")
def finished(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("probe") / "whole"
    small_run.probe(videos, out)
    return out


@pytest.fixture
def complete_run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "whole"))


def test_scores_equal_those_of_the_corrupted_video(videos: dict[str, Path], finished: Path) -> None:
    task, extractor, detector = (
        make_task(small_run.RECIPE, small_run.data_of(videos)),
        TwoParts(8, 2),
        small_run.Leaning(),
    )
    compared = 0
    for name, path in videos.items():
        probed, clip = read_video_probe(finished, name), read(path)
        for curve in probed.curves:
            for position, score in list(zip(curve.positions, curve.scores, strict=True))[::7]:
                frames = corrupt(clip, f"{BLACK}:1", placement=f"frame:{position}", video_id=name).frames
                starts = range(0, len(frames) - 7, 2)
                output = detector.detect(extractor(np.stack([frames[start : start + 8] for start in starts])))
                assert task.judge(name, output, 0.6)[0][curve.item] == score
                compared += 1
    assert compared > 5


def test_the_result_is_a_file_with_a_summary(finished: Path) -> None:
    content = json.loads((finished / "probe.json").read_text(encoding="utf-8"))
    probe = read_probe(finished)
    assert probe.kept <= probe.items == 4
    assert len(probe.breaking_points) == probe.kept > 0
    assert {"video", "item", "kind", "frames", "position", "severity", "bracket"} <= content["breaking_points"][
        0
    ].keys()
    assert content["summary"][0]["kind"] == BLACK
    assert content["summary"][0]["items"] == probe.kept
    assert "tIoU 0.5" in content["loss_rule"]
    assert (finished / "run.json").exists()  # written by the clean run


@pytest.mark.parametrize("lost", ["probe.json", "probe/manifest.jsonl"])
def test_an_interrupted_probe_resumes_to_the_same_bytes(videos: dict[str, Path], complete_run: Path, lost: str) -> None:
    """A probe of a version without manifests does too."""
    folder, done = complete_run / "probe" / "videos", list[int]()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = (complete_run / "probe.json").read_bytes()
    (complete_run / lost).unlink()
    sorted(folder.iterdir())[0].unlink()
    for _ in range(2):
        small_run.probe(videos, complete_run, progress=lambda one, of: done.append(of))
    assert done == [1]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert (complete_run / "probe.json").read_bytes() == result


@pytest.mark.parametrize("change", ["half", "a number", "of another video"])
def test_a_damaged_or_changed_file_is_computed_again(videos: dict[str, Path], complete_run: Path, change: str) -> None:
    first, second = sorted((complete_run / "probe" / "videos").iterdir())[:2]
    content, done = first.read_bytes(), list[int]()
    changed = {"half": content[: len(content) // 2], "a number": content.replace(b'"trials": ', b'"trials": 1')}
    first.write_bytes(changed.get(change, second.read_bytes()))
    small_run.probe(videos, complete_run, progress=lambda one, of: done.append(of))
    assert done == [1]
    assert first.read_bytes() == content


@pytest.mark.fault("F145")
def test_other_settings_or_another_model_are_refused(videos: dict[str, Path], complete_run: Path) -> None:
    with pytest.raises(SourceChanged, match=r"threshold was 0\.6, now 0\.7"):
        small_run.probe(videos, complete_run, threshold=0.7)
    with pytest.raises(SourceChanged, match="kinds"):
        small_run.probe(videos, complete_run, kinds=["freeze"])
    with pytest.raises(SourceChanged, match="weights"):
        small_run.probe(videos, complete_run, weights="w2")


def test_a_subset_of_videos_is_chosen_by_the_seed(videos: dict[str, Path], tmp_path: Path, finished: Path) -> None:
    subset = small_run.probe(videos, tmp_path / "two", videos=2)
    assert subset.videos == 2
    all_points = {(point.video, point.item): point for point in read_probe(finished).breaking_points}
    assert all(all_points[point.video, point.item] == point for point in subset.breaking_points)
    extended = small_run.probe(videos, tmp_path / "two")
    assert extended == read_probe(finished)


@pytest.mark.processes
def test_results_do_not_depend_on_jobs(videos: dict[str, Path], finished: Path, tmp_path: Path) -> None:
    small_run.probe(videos, tmp_path / "two", jobs=2)
    assert (tmp_path / "two" / "probe.json").read_bytes() == (finished / "probe.json").read_bytes()


def test_clips_and_frames_have_breaking_points(videos: dict[str, Path], tmp_path: Path) -> None:
    cases = (
        (small_recognition.RECIPE, small_recognition.recognition_predictor),
        (small_recognition.FRAME_RECIPE, small_recognition.frame_predictor),
    )
    for recipe, load in cases:
        data, out = small_recognition.data_of(videos, recipe.task), tmp_path / recipe.name
        model = BenchmarkModel(load, model="weigher")
        probe = probe_benchmark(recipe, data, model, out, kinds=parse_kinds(["kinetics-c/fog"]), step=8)
        assert probe.task == recipe.task
        for point in probe.breaking_points:
            if point.frames is not None:
                assert point.severity in (1, 2, 3, 4, 5)
                assert point.position is not None
        assert probe.items == 4


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([], "no kind of damage"),
        ([BLACK, BLACK], "twice"),
        (["kinetics-c/fog:9"], "severity"),
    ],
)
def test_wrong_kinds_are_refused(kinds: list[str], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        parse_kinds(kinds)


def test_probes_are_compared_item_by_item(finished: Path) -> None:
    probe = read_probe(finished)
    comparison = compare_probes(probe, probe)[BLACK]
    assert (comparison.items, comparison.earlier, comparison.later) == (probe.kept, 0, 0)
    assert comparison.ratio in (None, 1.0)


def test_a_folder_without_a_probe_is_refused(tmp_path: Path, finished: Path) -> None:
    with pytest.raises(DataError, match="jostle probe"):
        read_probe(tmp_path)
    content = json.loads((finished / "probe.json").read_text(encoding="utf-8"))
    other = Probe(**{key: content[key] for key in Probe.__dataclass_fields__} | {"benchmark": "other"})
    with pytest.raises(Incomparable, match="other"):
        compare_probes(read_probe(finished), other)


def test_a_report_has_a_section_on_breaking_points(finished: Path, tmp_path: Path) -> None:
    page = jostle.report([finished], tmp_path / "page.html", draws=0).read_text(encoding="utf-8")
    assert 'id="breaking"' in page
    assert "Lost to" in page
    assert "not monotone" in page


def test_a_report_on_two_probes_compares_them(finished: Path, complete_run: Path, tmp_path: Path) -> None:
    page = jostle.report([finished, complete_run], tmp_path / "page.html", draws=0).read_text(encoding="utf-8")
    assert "lost to fewer frames" in page
