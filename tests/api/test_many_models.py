"""Several models in one benchmark run, one folder per model, and scatter plots of frame classifiers."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from helpers.command_line import assert_refused, call, succeed
from helpers.synthetic_runs import write_run
from jostle import api
from jostle.api.benchmarks import ModelEntry, read_models
from jostle.errors import BadValue, DataError, Incomparable
from jostle.metrics.proportion import clopper_pearson

MODELS = "import numpy as np\n" + "".join(
    f"def sees_{name}(clips):\n    scores = np.zeros((len(clips), 30))\n    scores[:, 29] = 0.5\n"
    f"    scores[:, 0] = clips.mean((1, 2, 3, 4)) > {limit}\n    return scores\n"
    for name, limit in (("all", 300), ("some", 100), ("few", 40))
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data of two anchors with neighbours of rising brightness; the classifiers fail on bright frames."""
    frames = [f"val/{video}/00000{number}.JPEG" for video in ("v1", "v2") for number in (3, 4, 5)]
    for i, frame in enumerate(frames):
        path = tmp_path / "data" / frame
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((20, 24, 3), 25 * i, np.uint8))
    sets = {frames[1]: [frames[0], frames[2]], frames[4]: [frames[3], frames[5]]}
    (tmp_path / "data" / "pmsets.json").write_text(json.dumps(sets))
    (tmp_path / "data" / "labels.json").write_text(json.dumps({frame: [29] for frame in frames}))
    (tmp_path / "three_classifiers.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "data"


def test_each_model_has_its_own_folder_and_row(data: Path, tmp_path: Path) -> None:
    names = [f"three_classifiers:sees_{name}" for name in ("all", "some", "few")]
    words = [word for name in names for word in ("-m", name)]
    common = ("run", "imagenet-vid-robust", *words, "--data", data, "-j", 1, "-o", tmp_path / "runs")
    out = succeed(*common).out
    # Brightness is 0 to 125: the second model fails on the last neighbour, the third on three more frames.
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["three_classifiers:sees_all", "100.00"],
        ["three_classifiers:sees_some", "100.00"],
        ["three_classifiers:sees_few", "50.00"],
    ]
    assert [line.split()[-1] for line in out.splitlines()[1:4]] == ["0.00", "50.00", "50.00"]
    assert out.splitlines()[-1].endswith("accuracy_against_pm_10.png")
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert folders == ["three_classifiers-sees_all", "three_classifiers-sees_few", "three_classifiers-sees_some"]
    assert sorted(path.suffix for path in (tmp_path / "runs").glob("accuracy*")) == [".pdf", ".png", ".svg"]

    runs = [tmp_path / "runs" / name for name in folders]
    report = succeed("report", *runs, "-o", tmp_path / "r.html", "--figures", tmp_path, "--json").json
    assert sorted(path.suffix for path in tmp_path.glob("accuracy*")) == [".pdf", ".png", ".svg"]
    assert 'id="figure-accuracy_against_pm_10"' in (tmp_path / "r.html").read_text()
    payload = report["stability"]
    assert [(row["accuracy"], row["pm_k"]) for row in payload["runs"]] == [(1.0, 1.0), (1.0, 0.5), (0.5, 0.0)]
    assert payload["runs"][0]["accuracy_interval"] == list(clopper_pearson(2, 2))
    assert (payload["k"], payload["anchors"]) == (10, 2)
    assert any("the papers on 1109" in remark for remark in payload["apart"])
    assert payload["published"][0]["accuracy"] == 0.675


def test_failing_model_does_not_stop_the_others(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="a run needs torch")
    (tmp_path / "models.txt").write_text(
        "# ours\nthree_classifiers:sees_all\nthree_classifiers:sees_none  # not there\n"
    )
    words = ("run", "imagenet-vid-robust", "--models", tmp_path / "models.txt", "--data", data, "-j", 1)
    code, out, err = call(*words, "-o", tmp_path / "runs", "--json")
    assert code == 4
    payload = json.loads(out)
    assert list(payload["runs"]) == ["three_classifiers-sees_all"]
    assert "sees_none" in payload["failed"]["three_classifiers-sees_none"]
    assert "three_classifiers-sees_none: could not be run" in err


def test_first_reason_is_reported_if_no_model_can_run(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the 2 models could be run; three_classifiers-a: "):
        api.run_many(
            "imagenet-vid-robust", ["three_classifiers:a", "three_classifiers:b"], data=data, out=tmp_path / "runs"
        )


def test_read_models_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "models.txt"
    path.write_text("timm/resnet50.a1_in1k\n\n# a remark\nr3d_18 'my weights/r3d.pth' # mine\npuppet_frames robust\n")
    entries = read_models(path)
    assert entries == [
        ModelEntry("timm/resnet50.a1_in1k"),
        ModelEntry("r3d_18", "my weights/r3d.pth"),
        ModelEntry("puppet_frames", "robust"),
    ]
    assert [entry.folder for entry in entries] == ["timm-resnet50.a1_in1k", "r3d_18-r3d", "puppet_frames-robust"]
    for text, message in (("a b c\n", "line 1: a line is a model and its weights"), ("x\n'a\n", "line 2: No closing")):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_models(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_models(tmp_path / "none.txt")


def test_models_that_would_share_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="the model a is there twice"):
        api.run_many("imagenet-vid-robust", ["a", "a"], out=tmp_path)
    with pytest.raises(BadValue, match="no models"):
        api.run_many("imagenet-vid-robust", [], out=tmp_path)
    out = ("-o", tmp_path / "r")
    assert call("run", "puppets-frames", *out).code == 2
    assert_refused(2, "no benchmark is called 'puppets-frame'", "run", "puppets-frame", "-m", "a", "-m", "b", *out)
    assert call("run", "puppets-frames", "-m", "a", "-m", "b", "--dry-run", *out).code == 2


def test_runs_of_other_tasks_and_benchmarks_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "frames", "frames", cells=())
    write_run(tmp_path / "other", "frames", cells=(), benchmark="another")
    write_run(tmp_path / "clips", "recognition")
    with pytest.raises(BadValue, match="is a run of recognition"):
        api.stability([tmp_path / "clips"])
    with pytest.raises(Incomparable, match="different benchmarks"):
        api.stability([tmp_path / "frames", tmp_path / "other"])
    with pytest.raises(BadValue, match="name a run"):
        api.stability([])
