"""Runs with test-time adaptation: reproducible bytes, isolated cells and a network that is restored."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn

import jostle
from helpers import small_adaptation
from helpers.small_adaptation import CELLS, SPEC, small_network, tensors, write_class_folders
from helpers.small_recognition import CLASSES, NAMES
from helpers.small_tasks import content, predicted_videos
from helpers.stopped_work import Stop, stop_at
from jostle.cli.app import _run as run_command
from jostle.errors import BadValue, SourceChanged
from jostle.evaluation.config import InferenceConfig
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.run_folder.journal import VideoKept, read_events
from jostle.evaluation.runner import online_run, source_statistics
from jostle.mending.finders.known import KnownDamage
from jostle.models.recognition.recogniser import Recogniser

PROTOCOLS = pytest.mark.parametrize("protocol", ["episodic", "online"])
SETTINGS = {"tent": {"lr": 0.05}, "bn": {"pseudo_count": 8.0}}


@pytest.fixture(scope="module")
def runs(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run once for each method and protocol, and once without adaptation ("plain")."""
    folder = tmp_path_factory.mktemp("runs")
    names: dict[str, Path] = {"plain": folder / "plain"}
    small_adaptation.run(videos, folder / "plain", None)
    for method, protocol in (("tent", "episodic"), ("tent", "online"), ("bn", "online")):
        names[f"{method} {protocol}"] = folder / f"{method}-{protocol}"
        small_adaptation.run(videos, names[f"{method} {protocol}"], method, protocol, settings=SETTINGS[method])
    return names


def scores(folder: Path) -> dict[str, np.ndarray]:
    tables = {}
    for file in sorted((folder / "predictions").glob("*.npz")):
        with np.load(file) as archive:
            tables[file.stem] = archive["scores"]
    return tables


@PROTOCOLS
def test_a_run_records_its_adaptation(runs: dict[str, Path], protocol: str) -> None:
    adaptation = json.loads((runs[f"tent {protocol}"] / "run.json").read_text())["adapt"]
    order = adaptation.pop("order")
    assert adaptation == {
        "method": "tent",
        "protocol": protocol,
        "predicts": "before the step" if protocol == "online" else "after the step",
        "settings": {"lr": 0.05, "steps": 1, "pseudo_count": 0.0},
    }
    if protocol == "online":
        assert sorted(order) == list(NAMES)
        assert predicted_videos(runs["tent online"]) == order
    else:
        assert order is None
    scores_content = json.loads((runs[f"tent {protocol}"] / "scores.json").read_text())
    assert scores_content["adapt"] == f"tent, {protocol}"
    assert RunRecord.read(runs[f"tent {protocol}"]).about.display_name == f"small, adapted (tent, {protocol})"
    assert "adapt" not in json.loads((runs["plain"] / "run.json").read_text())


def test_methods_and_protocols_differ(runs: dict[str, Path]) -> None:
    tables = {name: scores(folder)["clean"] for name, folder in runs.items()}
    for name, table in tables.items():
        for other, others in tables.items():
            assert (name == other) == np.array_equal(table, others)


@PROTOCOLS
def test_the_network_is_restored_and_cells_are_independent(
    videos: dict[str, Path], runs: dict[str, Path], tmp_path: Path, protocol: str
) -> None:
    network = small_network(3)
    before = tensors(network)
    done = small_adaptation.run(
        videos, tmp_path / "one", "tent", protocol, network=network, settings=SETTINGS["tent"], cells=CELLS[1:]
    )
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    alone, together = scores(tmp_path / "one"), scores(runs[f"tent {protocol}"])
    assert alone.keys() < together.keys()
    assert all(np.array_equal(table, together[cell]) for cell, table in alone.items())
    passes = done.to_dict()["adaptation"]
    assert (passes["plain"], passes["backward"]) == (8, 8)
    assert passes["forward_ratio"] == (2.0 if protocol == "episodic" else 1.0)
    assert not (tmp_path / "one" / "adaptation").exists()


@pytest.mark.processes
def test_results_do_not_depend_on_jobs(videos: dict[str, Path], runs: dict[str, Path], tmp_path: Path) -> None:
    small_adaptation.run(videos, tmp_path / "two", settings=SETTINGS["tent"], jobs=2)
    assert content(tmp_path / "two") == content(runs["tent episodic"])


@pytest.mark.parametrize("condition", ["states", "no states", "damaged states", "old states"])
@pytest.mark.parametrize("method", ["bn", "tent"])
def test_a_stopped_online_run_resumes_to_the_same_bytes(
    videos: dict[str, Path], runs: dict[str, Path], tmp_path: Path, method: str, condition: str
) -> None:
    out, options = tmp_path / "run", {"settings": SETTINGS[method]}
    if condition == "old states":  # the states are one video behind the journal, as after a kill
        with pytest.raises(Stop):
            small_adaptation.run(videos, out, method, "online", progress=stop_at(1), **options)
        old = Path(shutil.copytree(out / "adaptation", tmp_path / "old"))
    with pytest.raises(Stop):
        small_adaptation.run(
            videos, out, method, "online", progress=stop_at(1 if condition == "old states" else 2), **options
        )
    assert len(list((out / "adaptation").iterdir())) == 3
    if condition == "no states":
        shutil.rmtree(out / "adaptation")
    elif condition == "damaged states":
        for file in (out / "adaptation").iterdir():
            file.write_bytes(file.read_bytes()[:-30])
    elif condition == "old states":
        shutil.rmtree(out / "adaptation")
        shutil.copytree(old, out / "adaptation")
    small_adaptation.run(videos, out, method, "online", **options)
    assert content(out) == content(runs[f"{method} online"])
    order = predicted_videos(runs[f"{method} online"])
    expected = {"states": order[2:], "old states": order[1:]}.get(condition, order)
    assert predicted_videos(out)[2:] == expected
    assert not (out / "adaptation").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from helpers import small_adaptation
from jostle.evaluation.runner import online_run

online_run.SAVE_EVERY_S = -1.0
kill = lambda done, of: done == 2 and os.kill(os.getpid(), signal.SIGKILL)
videos = {path.stem: path for path in sorted(Path(sys.argv[1]).glob("*.mkv"))}
small_adaptation.run(videos, Path(sys.argv[2]), "tent", "online", settings={"lr": 0.05}, progress=kill)
"""


@pytest.mark.processes
def test_a_killed_online_run_resumes_to_the_same_bytes(
    videos: dict[str, Path], runs: dict[str, Path], tmp_path: Path
) -> None:
    out, tests = tmp_path / "run", str(Path(small_adaptation.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    command = [sys.executable, "-c", KILLED, str(videos["a"].parent), str(out)]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert len(predicted_videos(out)) == 2
    small_adaptation.run(videos, out, "tent", "online", settings=SETTINGS["tent"])
    assert predicted_videos(out) == predicted_videos(runs["tent online"])
    assert content(out) == content(runs["tent online"])


def test_states_are_stored_during_a_run(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online_run, "SAVE_EVERY_S", -1.0)
    counts = []

    def progress(done: int, of: int) -> None:
        counts.append(len(list((tmp_path / "run" / "adaptation").iterdir())))

    small_adaptation.run(videos, tmp_path / "run", "bn", "online", progress=progress)
    assert counts == [3] * 4


@pytest.mark.fault("F188")
def test_videos_after_a_failed_one_are_repeated_once_it_works(
    videos: dict[str, Path], runs: dict[str, Path], tmp_path: Path
) -> None:
    order, options = predicted_videos(runs["tent online"]), {"settings": SETTINGS["tent"]}
    broken = tmp_path / "broken.mkv"
    broken.write_bytes(b"no video")
    with_broken = videos | {order[1]: broken}
    out = tmp_path / "run"
    done = small_adaptation.run(with_broken, out, "tent", "online", **options)
    assert [failure["video"] for failure in done.failures] == [order[1]]
    broken.write_bytes(videos[order[1]].read_bytes())
    # Stop once the failed video has results, while later results are still of a network that did not process it.
    with pytest.raises(Stop):
        small_adaptation.run(with_broken, out, "tent", "online", retry_failed=True, progress=stop_at(2), **options)
    small_adaptation.run(with_broken, out, "tent", "online", **options)
    assert scores(out).keys() == scores(runs["tent online"]).keys()
    for cell, table in scores(runs["tent online"]).items():
        assert np.array_equal(table, scores(out)[cell])


@pytest.mark.fault("F189")
@pytest.mark.parametrize("method", ["eata", "vitta"])
def test_statistics_of_clean_videos_are_measured_once_and_reused(
    videos: dict[str, Path], tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"source_videos": 3, "lr": 0.05} | ({"entropy_share": 1.0} if method == "eata" else {})
    options = {"settings": settings, "cells": CELLS[1:]}
    small_adaptation.run(videos, tmp_path / "one", method, "online", **options)
    source = json.loads((tmp_path / "one" / "run.json").read_text())["adapt"]["source"]
    file_content = (tmp_path / "one" / "source_statistics.npz").read_bytes()
    fingerprint = f"sha256:{hashlib.sha256(file_content).hexdigest()}"
    assert source == {
        "method": method,
        "network": "small sha256:1",
        "origin": "clean",
        "videos": 3,
        "fingerprint": fingerprint,
    }
    with pytest.raises(Stop):
        small_adaptation.run(videos, tmp_path / "two", method, "online", progress=stop_at(2), **options)
    monkeypatch.setattr(source_statistics, "measure_statistics", None)  # stored statistics are not measured again
    small_adaptation.run(videos, tmp_path / "two", method, "online", **options)
    assert content(tmp_path / "two") == content(tmp_path / "one")
    small_adaptation.run(videos, tmp_path / "given", method, "online", source_path=tmp_path / "one", **options)
    assert content(tmp_path / "given") == content(tmp_path / "one")
    other = "vitta" if method == "eata" else "eata"
    with pytest.raises(
        BadValue, match=f"for {other} of small sha256:1 are wanted, and these are for {method} of small"
    ):
        small_adaptation.run(videos, tmp_path / "no", other, source_path=tmp_path / "one")
    with pytest.raises(
        BadValue, match=r"of small sha256:2 are wanted, and these are for \w+ of small sha256:1"
    ) as error:
        small_adaptation.run(videos, tmp_path / "no", method, source_path=tmp_path / "one", weights="sha256:2")
    assert error.value.fault == "F189"
    (tmp_path / "one" / "source_statistics.npz").write_bytes(file_content[:-20])
    with pytest.raises(BadValue, match="and these are damaged"):
        small_adaptation.run(videos, tmp_path / "no", method, source_path=tmp_path / "one", settings=settings)
    with pytest.raises(BadValue, match="bn needs no clean videos; leave --adapt-source out"):
        small_adaptation.run(videos, tmp_path / "no", "bn", source_path=tmp_path / "two")


def test_mending_goes_before_adaptation(videos: dict[str, Path], tmp_path: Path) -> None:
    """The network adapts to videos in which known damaged frames are replaced."""
    tables = {}
    for name, mending in (("as is", None), ("mended", KnownDamage())):
        out = tmp_path / name
        small_adaptation.run(videos, out, "bn", mending=mending, cells=["thumos14-c/black_frame:1"])
        tables[name] = scores(out)
        event = next(event for event in read_events(out / "journal.jsonl") if isinstance(event, VideoKept))
        assert (event.mended is None) == (mending is None)
    assert np.array_equal(tables["as is"]["clean"], tables["mended"]["clean"])
    cell = next(name for name in tables["mended"] if name != "clean")
    assert not np.array_equal(tables["as is"][cell], tables["mended"][cell])


def test_another_adaptation_does_not_resume_in_the_folder(videos: dict[str, Path], runs: dict[str, Path]) -> None:
    with pytest.raises(SourceChanged, match="adapt was None, now"):
        small_adaptation.run(videos, runs["plain"], "tent")
    with pytest.raises(SourceChanged, match=r"adapt settings lr was 0\.05, now 0\.001"):
        small_adaptation.run(videos, runs["tent episodic"], "tent")
    with pytest.raises(SourceChanged, match="adapt protocol was 'online', now 'episodic'"):
        small_adaptation.run(videos, runs["tent online"], "tent", settings=SETTINGS["tent"])


def test_a_model_object_adapts_through_the_api(videos: dict[str, Path], tmp_path: Path) -> None:
    folder = write_class_folders(videos, tmp_path / "data")
    network = small_network(3)
    before = tensors(network)
    common = {"data": folder, "dataset": "folder", "cells": ["ucf101-p/gaussian_noise:3"], "device": "cpu"}
    options = {"model": Recogniser(network, SPEC, classes=sorted(CLASSES), name="own"), **common}
    done = jostle.run("puppets-p", out=tmp_path / "run", adapt="tent", adapt_protocol="online", **options)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert done.scores["adapt"] == "tent, online"
    assert done.adaptation is not None
    assert str(done.adaptation) == "1.00 forward and 1.00 backward passes a video and cell (plain: 1 forward)"
    with pytest.raises(BadValue, match=r"changes the layers of a torch\.nn\.Module, and this is a function"):
        jostle.run("puppets-p", out=tmp_path / "no", adapt="tent", **(options | {"model": lambda clips: clips}))
    scored = Recogniser(network, SPEC, outputs="scores", classes=sorted(CLASSES))
    with pytest.raises(BadValue, match="tent needs logits, and its outputs are scores; take bn"):
        jostle.run("puppets-p", out=tmp_path / "no", adapt="tent", **(options | {"model": scored}))
    flat = Recogniser(nn.Sequential(nn.Flatten(), nn.Linear(3072, 3)), SPEC, classes=sorted(CLASSES))
    with pytest.raises(BadValue, match="changes batch norms, and the network has none"):
        jostle.run("puppets-p", out=tmp_path / "no", adapt="bn", **(options | {"model": flat}))
    with pytest.raises(BadValue, match="which must not adapt"):
        jostle.probe("puppets-p", out=tmp_path / "no", adapt="bn", **{key: options[key] for key in ("model", "data")})
    with pytest.raises(BadValue, match="a budget decides the order of videos"):
        jostle.run("puppets-p", out=tmp_path / "no", adapt="bn", adapt_protocol="online", until_decided={}, **options)


def test_the_command_line_adapts(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_class_folders(videos, tmp_path / "data")
    words = (
        "--cells ucf101-p/gaussian_noise:3 --device cpu --adapt vitta --adapt-protocol online --adapt-setting lr=1e-3"
    )
    arguments = ["run", "puppets-p", "--dataset", "folder", "--data", str(folder), "-o", str(tmp_path / "run")]
    arguments += ["--model", "helpers.small_adaptation:OWN", "--adapt-source", str(folder / CLASSES[0]), *words.split()]

    def call(*more: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["jostle", *arguments, *more])
        return run_command(), *capsys.readouterr()

    code, out, err = call()
    assert code == 0, err
    assert "adapted (vitta, online); 2.00 forward and 1.00 backward passes" in " ".join((out + err).split())
    code, out, err = call("--json")
    assert code == 0, err
    assert json.loads(out)["adapt"] == "vitta, online"
    assert "adaptation" not in json.loads(out)  # nothing left to compute
    source = json.loads((tmp_path / "run" / "run.json").read_text())["adapt"]["source"]
    assert (source["origin"], source["videos"]) == (CLASSES[0], 2)
    code, _, err = call("--adapt-setting", "speed=3")
    assert code == 2
    assert "adaptation by vitta has no setting speed" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adapt": None, "adapt_protocol": "online"}, "need a method; give --adapt"),
        ({"adapt": None, "adapt_settings": {"lr": 1.0}}, "need a method; give --adapt"),
        ({"engine": "ray"}, "leave --engine and --model-processes out"),
        ({"model_processes": 2}, "leave --engine and --model-processes out"),
        ({"precision": "bfloat16"}, "leave --precision and --compile out"),
        ({"compiled": True}, "leave --precision and --compile out"),
        ({"adapt_protocol": "online", "jobs": 2}, "one video after the other, and jobs are 2"),
        ({"reproduce_bugs": ("early-row",)}, "reuse features of the clean video"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        InferenceConfig("b", model=lambda: None, **({"adapt": "tent"} | options)).check()
