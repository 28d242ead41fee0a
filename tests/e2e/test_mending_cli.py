"""`extract --mend`, `detect --mend` and `run --mend` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from helpers.benchmark_files import write_benchmark
from helpers.command_line import assert_refused, call, succeed
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.encode import Writer
from jostle.models.checkpoints import read_metadata
from jostle.models.weights.packaged import trained_weights

NET = ("--extractor", "puppet_net", "--device", "cpu")
DETECTOR = ("temporalmaxer_puppets", "--weights", "clean")
DAMAGED = slice(60, 66)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two annotated films, and a copy of one with black frames."""
    folder = tmp_path_factory.mktemp("mending")
    (folder / "data").mkdir()
    classes = json.loads(read_metadata(trained_weights("temporalmaxer_puppets", "clean"))["classes"])
    database = {}
    for i, name in enumerate(("one", "two")):
        frames = untrimmed(11 + i, "mended", cast=tuple(CASTS["validation"])).draw(200, 320)
        write(frames, folder / "data" / f"{name}.mkv")
        actions = [{"label": label, "segment": [0.5, 4.5], "label_id": k} for k, label in enumerate(classes)]
        database[name] = {"subset": "test", "duration": 5.0, "fps": 24.0, "annotations": actions}
        if i == 0:
            black = np.array(frames)
            black[DAMAGED] = 0
            write(black, folder / "black.mkv")
            write(np.array(black[60:66]), folder / "dark.mkv")
    (folder / "data" / "truth.json").write_text(json.dumps({"database": database}))
    write_benchmark(folder, "detection", "thumos14-c/black_frame:3")
    return folder


def write(frames: np.ndarray, path: Path) -> None:
    with Writer(path, size=(112, 112), fps=24, codec="ffv1") as writer:
        for frame in frames:
            writer.write(frame)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_extracted_features_are_mended_with_a_warning(workspace: Path) -> None:
    words = ("extract", workspace / "black.mkv", *NET)
    succeed(*words, "-o", "plain")
    warnings = succeed(*words, "-o", "mended", "--mend", "jostle", "--json").json["warnings"]
    count = int(warnings[0].split(":")[1].split()[0])
    assert warnings == [f"black: {count} of 120 frames are damaged"]
    metadata = json.loads(Path("mended/features.json").read_text())
    assert (metadata["mend"], metadata["mend_weights"]) == ("jostle", jostle.load_inspector().fingerprint)
    plain, mended = (np.load(f"{name}/black.npy") for name in ("plain", "mended"))
    assert plain.shape == mended.shape == (27, jostle.load_extractor("puppet_net").dim)
    assert not np.array_equal(plain, mended)
    assert_refused(6, "mend was 'jostle', now None", *words, "-o", "mended")
    words = ("extract", workspace / "data" / "one.mkv", *NET)
    succeed(*words, "-o", "clean", "--keep-frames")
    original = np.load("clean/one.npy")
    assert np.abs(mended - original).mean() < np.abs(plain - original).mean() / 2

    corruption = ("-c", "black_frame:3", "--placement", "frames:60-66", "--mend", "jostle")
    succeed(*words, "-o", "a", *corruption)
    succeed(*words, "-o", "b", *corruption, "--clean", "clean")
    assert np.load("a/one.npy").tobytes() == mended.tobytes() == np.load("b/one.npy").tobytes()
    message = "clean features do not match: mend is 'jostle'"
    assert_refused(2, message, *words, "-o", "c", *corruption, "--clean", "mended")


def test_video_without_intact_frames_is_left_with_a_warning(workspace: Path, tmp_path: Path) -> None:
    inspector = jostle.load_inspector()
    inspector._thresholds["both"] = 0.0  # every frame is classified as damaged
    plain = jostle.extract(workspace / "dark.mkv", "puppet_net", tmp_path / "plain", device="cpu")
    mended = jostle.extract(workspace / "dark.mkv", "puppet_net", tmp_path / "mended", device="cpu", mend=inspector)
    assert (plain.folder / "dark.npy").read_bytes() == (mended.folder / "dark.npy").read_bytes()
    assert mended.warnings == ("dark: 6 of 6 frames are damaged: too many to interpolate, so nothing was mended",)


def test_detections_in_mended_video(workspace: Path) -> None:
    words = ("detect", workspace / "black.mkv", "--detector", *DETECTOR, "--device", "cpu")
    plain, mended = succeed(*words, "--json").json, succeed(*words, "--json", "--mend", "jostle")
    facts = mended.json["external_data"]["mended"]
    assert facts["by"] == "jostle"
    assert f"black: {facts['damaged_of_frames']['black'][0]} of 120 frames are damaged" in mended.err
    assert plain["external_data"] == {}
    assert mended.json["results"] != plain["results"]
    succeed("extract", workspace / "black.mkv", *NET, "-o", "features")
    of_features = ("detect", "features", "--detector", *DETECTOR, "--mend", "jostle")
    assert_refused(2, "damaged frames are found in video", *of_features)
    assert_refused(2, "`known` works only with `run`", *words, "--mend", "known")
    assert_refused(3, "none.safetensors: no such file", *words, "--mend", "none.safetensors")


def test_run_is_mended_and_compared(workspace: Path) -> None:
    words = ("run", workspace / "tiny-c.toml", "--model", *DETECTOR, "--data", workspace / "data", "-j", 1)
    words += ("--device", "cpu")
    assert "mended" not in succeed(*words, "-o", "plain").err
    err = succeed(*words, "-o", "mended", "--mend", "jostle").err
    assert "mended: what damaged frames touch was replaced; frames found by jostle" in err
    assert succeed(*words, "-o", "known", "--mend", "known", "--json").json["mend"] == "known"
    metadata = json.loads(Path("mended/run.json").read_text())
    assert (metadata["mend"], metadata["mend_weights"]) == ("jostle", jostle.load_inspector().fingerprint)
    assert json.loads(Path("known/run.json").read_text())["mend_weights"] is None
    assert_refused(6, "mend was 'jostle', now None", *words, "-o", "mended")
    assert call(*words, "-o", "mended", "--mend", "known").code == 6
    succeed(*words, "-o", "mended", "--mend", "jostle")  # resumes, with nothing left to do
    assert "temporalmaxer_puppets, mended" in succeed("diff", "plain", "mended", "--bootstrap", 0).out
    diff = jostle.diff("plain", "known", draws=0)
    assert diff.second.name == "temporalmaxer_puppets, mended (known)"


def test_single_frames_cannot_be_mended() -> None:
    words = ("run", "puppets-frames", "--model", "puppet_frames", "-o", "out", "--mend", "known", "-j", 1)
    assert_refused(2, "uses single frames, and mending needs the frames around them", *words, "--device", "cpu")
