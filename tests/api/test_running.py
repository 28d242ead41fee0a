"""`jostle.run` on models of every kind: names, modules, callables, from here or from a module."""

from __future__ import annotations

import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from torch import Tensor

import jostle
from helpers import own_models
from helpers.numpy_extractor import write_video
from helpers.own_models import SPEC, Small
from jostle import api
from jostle.api import engines
from jostle.core import plugins
from jostle.errors import BadValue, DataError, MissingExtra, SourceChanged, UnknownName
from jostle.evaluation.run_folder.journal import WorkDone, read_events
from jostle.models.checkpoints import write_weights
from jostle.models.extractors.extractor import extractors
from jostle.models.recognition.recogniser import Recogniser
from jostle.parallel.workers import available_cpus

RECOGNITION = """
name = "tiny-p"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1
sampling = { clips = 2, short_side = 24, size = 20, frames = 6 }

[[groups]]
name = "main"
cells = ["gaussian_noise:3", "freeze:3"]
"""
DETECTION = """
name = "tiny-c"
version = 1
dataset = "folder"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"
tious = [0.5]

[[groups]]
name = "main"
cells = ["thumos14-c/black_frame:3"]
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here")
    (folder / "tiny-p.toml").write_text(RECOGNITION)
    (folder / "tiny-c.toml").write_text(DETECTION)
    for seed, name in enumerate(("jump/a", "jump/b", "walk/c")):
        path = folder / "clips" / "test" / f"{name}.mkv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_video(path, 30, seed=seed)
    (folder / "long").mkdir()
    write_video(folder / "long" / "one.mkv", 40)
    actions = [{"label": "jump", "segment": [0.2, 1.2]}]
    entry = {"subset": "test", "duration": 1.6, "fps": 25.0, "annotations": actions}
    (folder / "long" / "truth.json").write_text(json.dumps({"database": {"one": entry}}))
    return folder


def run(here: Path, out: Path, model: Any, **asked: Any) -> Any:
    return jostle.run(here / "tiny-p.toml", model=model, data=here / "clips", out=out, device="cpu", **asked)


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "run.json").read_text())
    return found


def scores(out: Path, cell: str = "clean") -> np.ndarray:
    with np.load(out / "predictions" / f"{cell}.npz") as held:
        return np.array(held["scores"])


def test_a_module_with_its_spec(here: Path, tmp_path: Path) -> None:
    done = run(here, tmp_path / "run", Small(), spec=SPEC)
    assert done.failures == ()
    about = told(tmp_path / "run")
    assert (about["model"], about["weights_from"]) == ("Small", "tensors")
    assert about["weights"].startswith("sha256:")
    assert about["shown"]["input"]["frames"] == 4
    assert scores(tmp_path / "run").sum(1) == pytest.approx(1)
    run(here, tmp_path / "run", Small(), spec=SPEC)  # the same weights: the same run
    with pytest.raises(SourceChanged, match="weights was"):
        run(here, tmp_path / "run", other_weights(), spec=SPEC)
    with pytest.raises(BadValue, match="needs an InputSpec"):
        run(here, tmp_path / "other", Small())


def other_weights() -> Small:
    made = Small()
    made.last.bias.data += 1
    return made


class Locked(Small):
    """A module that cannot be pickled, and tells which processes called it."""

    def __init__(self) -> None:
        super().__init__()
        self.lock, self.processes = threading.Lock(), set[int]()

    def forward(self, clips: Tensor) -> Tensor:
        self.processes.add(os.getpid())
        with self.lock:
            return super().forward(clips)


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "predictions").iterdir()}


@pytest.mark.parametrize("mend", [None, pytest.param("jostle", marks=pytest.mark.processes)])
def test_object_stays_in_this_process(
    here: Path, tmp_path: Path, mend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default other processes decode and corrupt, once the work has taken a while; the bytes are the same."""
    model = Locked()
    run(here, tmp_path / "one", model, spec=SPEC, jobs=1, mend=mend)
    monkeypatch.setattr(engines, "LOCAL_S", 60.0)
    monkeypatch.setattr(engines, "available_cpus", lambda: 2)
    alone = run(here, tmp_path / "alone", model, spec=SPEC, mend=mend).work
    assert (alone.workers, alone.apart) == (1, False)
    monkeypatch.setattr(engines, "LOCAL_S", 0.0)
    with ThreadPoolExecutor(1) as thread:  # `run` may be called from any
        thread.submit(run, here, tmp_path / "two", model, spec=SPEC, mend=mend).result()
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert model.processes == {os.getpid()}
    (work,) = [event for event in read_events(tmp_path / "two" / "journal.jsonl") if isinstance(event, WorkDone)]
    assert (work.workers, work.apart) == (2, True)


@pytest.mark.slow
def test_copies_of_an_object_give_the_same(here: Path, tmp_path: Path) -> None:
    run(here, tmp_path / "one", own_models.Small(), spec=SPEC, jobs=1)
    run(here, tmp_path / "copies", own_models.Small(), spec=SPEC, jobs=2, model_processes=0)
    assert content(tmp_path / "one") == content(tmp_path / "copies")


@pytest.mark.processes
@pytest.mark.fault("F78")
def test_object_that_fails_while_others_send_it_frames(here: Path, tmp_path: Path) -> None:
    """Its exception may be of a class that only this process knows."""

    class OwnError(Exception):
        pass

    calls: list[int] = []

    def failing(clips: np.ndarray) -> np.ndarray:
        calls.append(len(clips))
        if len(calls) > 2:  # the trial has two clips
            raise OwnError("no such luck")
        return own_models.colours(clips)

    with pytest.raises(DataError, match=r"none of 3 videos .*the model failed \(.*OwnError: no such luck"):
        run(here, tmp_path / "run", failing, jobs=2)


def test_corruption_of_the_script_itself_keeps_the_run_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "plugins_are_importable", lambda: False)
    with engines.place_of("local", "cpu", None, many=True, picklable=False) as place:
        assert (place.jobs, place.model_stays) == (1, False)
    monkeypatch.undo()
    monkeypatch.setitem(plugins._parts, ("corruptions", "mine"), "__main__")
    assert not plugins.plugins_are_importable()


@pytest.mark.slow
def test_a_cluster_gives_the_same(here: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run(here, tmp_path / "one", "helpers.own_models:named", jobs=1)
    state = random.getstate()
    run(here, tmp_path / "ray", "helpers.own_models:named", engine="ray", jobs=2)
    random.setstate(state)  # Ray draws from it
    assert (tmp_path / "one" / "scores.json").read_bytes() == (tmp_path / "ray" / "scores.json").read_bytes()
    assert (scores(tmp_path / "one", "freeze-3") == scores(tmp_path / "ray", "freeze-3")).all()


def test_what_cannot_travel_works_in_one_process(here: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="cannot be sent to another process"):
        run(here, tmp_path / "three", lambda clips: own_models.colours(clips), jobs=2, model_processes=0)
    assert run(here, tmp_path / "three", lambda clips: own_models.colours(clips)).failures == ()


def test_a_callable_sees_what_the_benchmark_says(here: Path, tmp_path: Path) -> None:
    shapes = set()

    def model(clips: np.ndarray) -> np.ndarray:
        shapes.add(clips.shape)
        return own_models.colours(clips)

    run(here, tmp_path / "run", model)
    assert shapes == {(1, 6, 48, 64, 3)}
    about = told(tmp_path / "run")
    assert (about["weights"], about["weights_from"], about["shown"]["input"]) == (None, "nothing", None)
    assert about["model"].endswith("model")


def test_a_model_of_some_module(here: Path, tmp_path: Path) -> None:
    run(here, tmp_path / "run", "helpers.own_models:named", jobs=1)
    about = told(tmp_path / "run")
    assert (about["model"], about["weights_from"], about["shown"]["classes"]) == (
        "named",
        "tensors",
        "by name",
    )
    # Columns are those of the data set's classes, jump and walk.
    run(here, tmp_path / "own", Recogniser(Small(3), SPEC, classes=("jump", "sit", "walk")))
    assert not np.array_equal(scores(tmp_path / "own"), scores(tmp_path / "run"))
    for place, said in (
        ("helpers.own_models:nobody", "cannot be imported"),
        ("no_such_module:x", "cannot be imported"),
        ("helpers.own_models:Small", "is a class"),
    ):
        with pytest.raises(BadValue, match=said):
            run(here, tmp_path / "bad", place)


def test_what_a_model_is_shown_can_be_changed(here: Path, tmp_path: Path) -> None:
    model = Recogniser(Small(), SPEC)
    run(here, tmp_path / "six", model, input={"frames": 6})
    assert told(tmp_path / "six")["shown"]["input"] | {"mean": 0, "std": 0} == told_spec(frames=6)
    run(here, tmp_path / "published", model, clips="benchmark")
    assert told(tmp_path / "published")["shown"]["input"] | {"mean": 0, "std": 0} == told_spec(
        frames=6, resize=24, size=20
    )
    assert model.spec == SPEC
    for wrong, said in (({"flames": 6}, "no setting flames: did you mean frames"), ({"frames": "six"}, "frames")):
        with pytest.raises(BadValue, match=said):
            run(here, tmp_path / "bad", model, input=wrong)
    with pytest.raises(BadValue, match="has no InputSpec"):
        run(here, tmp_path / "bad", own_models.colours, input={"frames": 6})


def told_spec(**changes: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(SPEC) | {"mean": 0, "std": 0} | changes


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        (Recogniser(Small(3), SPEC), {}, "returns 3 scores, and there are 2 classes"),
        (Recogniser(Small(2), SPEC, classes=("run", "jump")), {}, "does not know 1 of the data set's 2 classes: walk"),
        (own_models.colours, {"weights": "w.pth"}, "weights are for named models"),
        (own_models.colours, {"extractor": "puppet_net"}, "an extractor is for detectors"),
        (own_models.colours, {"rule": "released"}, "are options of feature extraction, and tiny-p is of recognition"),
        (own_models.colours, {"reproduce_bugs": ["early-row"]}, "are options of feature extraction"),
        (Recogniser(Small(), SPEC), {"spec": SPEC}, "has an InputSpec already"),
        ("puppet_c3d", {"spec": SPEC}, "has an InputSpec of its own"),
        ("temporalmaxer", {}, "temporalmaxer is a detector"),
        (3, {}, "a model is a torch.nn.Module or a callable"),
    ],
)
def test_what_does_not_fit_says_so_and_writes_nothing(
    here: Path, tmp_path: Path, model: Any, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadValue, match=said):
        run(here, tmp_path / "run", model, **asked)
    assert not (tmp_path / "run").exists()


def test_a_name_that_nobody_has(here: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="puppet_c3d"):
        run(here, tmp_path / "run", "puppet_c3")


def test_views_and_settings_of_a_registered_recogniser(here: Path, tmp_path: Path) -> None:
    made = jostle.load_recogniser("tam_resnet18", weights="random", frames=4, size=32)
    weights = dict(made.network.state_dict())
    weights |= {"fc.weight": weights["fc.weight"][:2].clone(), "fc.bias": weights["fc.bias"][:2].clone()}
    write_weights(weights, tmp_path / "w.safetensors")
    asked = {"views": "published", "time_stride": True, "frames": 4, "resize": 36, "size": 32, "clips": 3}
    given = {"weights": tmp_path / "w.safetensors", "jobs": 1, "cells": ["clean"]}
    run(here, tmp_path / "run", "tam_resnet18", input=asked, **given)
    shown = told(tmp_path / "run")["shown"]
    assert shown["network"] == {"time_stride": True}
    assert (shown["input"]["crops"], shown["input"]["clips"], shown["input"]["joined"]) == ("three", 3, "logits")
    for wrong, said in (({"views": "other"}, "no views 'other'"), ({"veiws": "published"}, "no setting veiws")):
        with pytest.raises(BadValue, match=said):
            run(here, tmp_path / "bad", "tam_resnet18", input=wrong, **given)


def test_a_registered_recogniser(here: Path, tmp_path: Path) -> None:
    made = jostle.load_recogniser("puppet_c3d", weights="random", frames=4)
    weights = dict(made.network.state_dict())
    weights["classifier.weight"], weights["classifier.bias"] = (
        weights["classifier.weight"][:2].clone(),
        weights["classifier.bias"][:2].clone(),
    )
    write_weights(weights, tmp_path / "w.safetensors", metadata={"classes": '["walk", "jump"]'})
    run(here, tmp_path / "run", "puppet_c3d", weights=tmp_path / "w.safetensors", input={"frames": 4}, jobs=1)
    about = told(tmp_path / "run")
    assert (about["model"], about["weights_from"], about["shown"]["classes"]) == ("puppet_c3d", "file", "by name")
    loaded = jostle.load_recogniser("puppet_c3d", weights=tmp_path / "w.safetensors")
    assert loaded.classes == ("walk", "jump")
    noted = {"recogniser": "puppet_c3d", "input": '{"frames": 8, "mean": [0.1, 0.2, 0.3]}', "classes": "[]"}
    write_weights(weights, tmp_path / "noted.safetensors", metadata=noted)
    spec = jostle.load_recogniser("puppet_c3d", weights=tmp_path / "noted.safetensors", crops="ten").spec
    assert spec is not None
    assert (spec.frames, spec.mean, spec.crops) == (8, (0.1, 0.2, 0.3), "ten")
    with pytest.raises(BadValue, match="its own 16 are bow, catch, jump"):  # of the clean weights, the usual ones
        run(here, tmp_path / "none", "puppet_c3d")
    with pytest.raises((BadValue, MissingExtra), match="weights"):
        run(here, tmp_path / "none", "r3d_18")


def test_fewer_digits_are_remembered_and_move_scores_a_little(here: Path, tmp_path: Path) -> None:
    asked = {"spec": SPEC, "cells": ["clean"], "jobs": 1}
    run(here, tmp_path / "whole", Small(), **asked)
    run(here, tmp_path / "half", Small(), precision="bfloat16", **asked)
    assert (told(tmp_path / "whole")["precision"], told(tmp_path / "half")["precision"]) == ("float32", "bfloat16")
    whole, half = (np.load(tmp_path / name / "predictions" / "clean.npz")["scores"] for name in ("whole", "half"))
    assert 0 < np.abs(whole - half).max() < 0.02
    with pytest.raises(SourceChanged, match="precision was 'bfloat16', now 'float32'"):
        run(here, tmp_path / "half", Small(), **asked)
    with pytest.raises(BadValue, match="tf32 is a precision of GPUs"):
        run(here, tmp_path / "tf32", Small(), precision="tf32", **asked)
    with pytest.raises(UnknownName, match="bfloat16"):
        run(here, tmp_path / "typo", Small(), precision="bfloat61", **asked)


def test_compiled_networks_are_remembered_and_for_gpus(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"spec": SPEC, "cells": ["clean"], "jobs": 1}
    with pytest.raises(BadValue, match="compiled for GPUs, and these run on the CPU"):
        run(here, tmp_path / "cpu", Small(), compiled=True, **asked)
    made = []

    def compiled(function, *, dynamic):
        assert not dynamic
        made.append(function.__name__)
        return function

    # As if there were a GPU and its compiler: what is compiled is called in place of the network's own.
    monkeypatch.setattr("jostle.models.devices.check_compiling", lambda device: None)
    monkeypatch.setattr("torch.compile", compiled)
    run(here, tmp_path / "fast", Small(), compiled=True, **asked)
    assert made == ["forward"]
    assert told(tmp_path / "fast")["compiled"] is True
    with pytest.raises(SourceChanged, match="compiled was True, now False"):
        run(here, tmp_path / "fast", Small(), **asked)


def test_a_plan_says_what_it_may_cost(here: Path, tmp_path: Path) -> None:
    asked = {"model": Small(), "spec": SPEC, "data": here / "clips", "out": tmp_path / "run"}
    found = api.plan(here / "tiny-p.toml", **asked)
    assert (found["videos"], found["looks"], found["frames"]) == (3, 9, 90)
    assert found["estimate"]["jobs"] == available_cpus()
    assert found["estimate"]["all_s"] == pytest.approx(3 * found["estimate"]["clean_s"])
    assert not (tmp_path / "run").exists()


def test_detectors_of_ones_own(here: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"data": here / "long", "device": "cpu"}
    recipe = here / "tiny-c.toml"
    done = jostle.run(recipe, model=own_models.from_frames, out=tmp_path / "frames", **asked)
    assert done.scores["clean"] == 1.0
    assert told(tmp_path / "frames")["extractor"] is None
    network = extractors["puppet_net"].build()
    write_weights(network.state_dict(), tmp_path / "net.safetensors")
    asked |= {"extractor": "puppet_net", "extractor_weights": tmp_path / "net.safetensors"}
    done = jostle.run(recipe, model="helpers.own_models:from_features", out=tmp_path / "features", jobs=1, **asked)
    assert done.scores["clean"] == 1.0
    about = told(tmp_path / "features")
    assert (about["extractor"], about["weights"], about["weights_from"]) == ("puppet_net", None, "nothing")
    assert about["extractor_weights"].startswith("sha256:")


TINY_FRAMES: dict[str, dict[str, Any]] = {
    "afsd": {"dim": 64, "levels": 4, "max_length": 64, "clip_stride": 32, "backbone_width": 0.06},
    "e2e_tad": {"dim": 32, "backbone": "tsm18", "max_length": 16, "clip_stride": 12, "backbone_width": 0.125},
}


@pytest.mark.parametrize("name", TINY_FRAMES)
def test_a_registered_detector_of_frames(name: str, here: Path, tmp_path: Path) -> None:
    settings = {"classes": 1, "frame_size": 40, "crop": 32, "min_probability": 0.0} | TINY_FRAMES[name]
    made = jostle.load_detector(name, **settings)
    noted = {"detector": name, "settings": json.dumps(settings), "classes": '["jump"]'}
    write_weights(made.state_dict(), tmp_path / "w.safetensors", metadata=noted)
    asked: dict[str, Any] = {"data": here / "long", "jobs": 1, "weights": tmp_path / "w.safetensors"}
    jostle.run(here / "tiny-c.toml", model=name, out=tmp_path / "run", **asked)
    assert (tmp_path / "run" / BLACK).is_file()
    assert told(tmp_path / "run")["extractor"] is None
    clip = jostle.read(here / "long" / "one.mkv")
    again = jostle.load_detector(name, weights=tmp_path / "w.safetensors")
    wanted = again.detect(clip.frames, fps=25.0, duration=1.6)
    kept = jostle.load_predictions(tmp_path / "run" / "predictions" / "clean.json")
    np.testing.assert_allclose(np.sort(kept.score), np.sort(wanted.score), rtol=1e-5)
    with pytest.raises(BadValue, match=f"{name} processes frames itself; leave the extractor out"):
        jostle.run(here / "tiny-c.toml", model=name, out=tmp_path / "no", extractor="puppet_net", **asked)


FAULTS: Any = ("skipped-window", "early-row")
BLACK = "predictions/thumos14-c-black_frame-3.json"


@pytest.mark.parametrize(("rule", "faults", "rows"), [("all", (), 7), ("released", FAULTS, 6)])
def test_a_run_sees_the_features_that_extract_writes(
    here: Path, tmp_path: Path, rule: Any, faults: Any, rows: int
) -> None:
    seen = []

    def model(features: np.ndarray, duration: float) -> jostle.Segments:
        seen.append(np.array(features))
        return own_models.from_features(features, duration=duration)

    windows = {"rule": rule, "reproduce_bugs": faults}
    asked = {"data": here / "long", "extractor": "puppet_net", "device": "cpu", **windows}
    recipe = here / "tiny-c.toml"
    planned = api.plan(recipe, model=own_models.from_features, out=tmp_path / "run", **asked)
    assert planned["estimate"]["windows"] == rows
    done = jostle.run(recipe, model=model, out=tmp_path / "run", **asked)
    assert (done.clean.joined, len(seen)) == (rows, 2)
    about = told(tmp_path / "run")
    assert (about["rule"], about["reproduce_bugs"]) == (rule, sorted(faults))
    clean, black = seen
    truth = {"truth": here / "long" / "truth.json", "device": "cpu"}
    jostle.extract(here / "long", "puppet_net", tmp_path / "clean", rule=rule, **truth)
    spec = "thumos14-c/black_frame:3"
    jostle.extract(here / "long", "puppet_net", tmp_path / "black", spec=spec, **windows, **truth)
    assert clean.tobytes() == np.load(tmp_path / "clean" / "one.npy").tobytes()
    assert black.tobytes() == np.load(tmp_path / "black" / "one.npy").tobytes()
    assert not np.array_equal(clean, black)

    jostle.run(recipe, model=model, out=tmp_path / "run", **asked | {"reproduce_bugs": [*faults, *faults]})
    for other in ({"rule": "released-json"}, {"reproduce_bugs": ["early-row"]}):
        for again in (jostle.run, api.plan):
            with pytest.raises(SourceChanged, match=f"{next(iter(other))} was .*, now"):
                again(recipe, model=model, out=tmp_path / "run", **asked | other)
    assert len(seen) == 2


@pytest.mark.slow
def test_rule_and_faults_go_to_every_worker(here: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "data").mkdir()
    entry = json.loads((here / "long" / "truth.json").read_text())["database"]["one"]
    (tmp_path / "data" / "truth.json").write_text(json.dumps({"database": dict.fromkeys("ab", entry)}))
    for seed, name in enumerate("ab"):
        write_video(tmp_path / "data" / f"{name}.mkv", 40, seed=seed)
    asked = {
        "data": tmp_path / "data",
        "extractor": "puppet_net",
        "device": "cpu",
        "model": "helpers.own_models:from_features",
    }
    windows = {"rule": "released", "reproduce_bugs": FAULTS}
    recipe = here / "tiny-c.toml"
    jostle.run(recipe, out=tmp_path / "all", jobs=1, **asked)
    state = random.getstate()
    for out, how in (("one", {"jobs": 1}), ("two", {"jobs": 2}), ("ray", {"jobs": 2, "engine": "ray"})):
        jostle.run(recipe, out=tmp_path / out, **how, **windows, **asked)
    random.setstate(state)  # Ray draws from it
    kept = {
        out: [(tmp_path / out / file).read_bytes() for file in ("run.json", "predictions/clean.json", BLACK)]
        for out in ("all", "one", "two", "ray")
    }
    assert kept["one"] == kept["two"] == kept["ray"]
    assert all(here != there for here, there in zip(kept["all"], kept["one"], strict=True))


@pytest.mark.parametrize(
    ("model", "asked", "said"),
    [
        ("puppet_c3d", {}, "puppet_c3d is a recogniser"),
        (own_models.from_frames, {"spec": SPEC}, "spec is for recognisers"),
        (own_models.from_frames, {"rule": "released"}, "from_frames processes frames unless an extractor is named"),
        (own_models.from_frames, {"extractor_weights": "w.pt"}, "processes frames unless an extractor is named"),
        (jostle.load_detector("temporalmaxer"), {}, "detects actions in features; name an extractor"),
        (3, {}, "is a callable on frames or features"),
    ],
)
def test_detectors_that_do_not_fit(here: Path, tmp_path: Path, model: Any, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(BadValue, match=said):
        jostle.run(here / "tiny-c.toml", model=model, data=here / "long", out=tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"rule": "realeased"}, "did you mean released"), ({"reproduce_bugs": ["early"]}, "did you mean early-row")],
)
def test_windows_that_nobody_makes(here: Path, tmp_path: Path, asked: dict[str, Any], said: str) -> None:
    usual: dict[str, Any] = {"data": here / "long", "extractor": "puppet_net", "out": tmp_path / "run"}
    with pytest.raises(UnknownName, match=said):
        jostle.run(here / "tiny-c.toml", model=own_models.from_features, **usual, **asked)
    assert not (tmp_path / "run").exists()


def test_frames_of_imagenet_vid(tmp_path: Path) -> None:
    """Images in folders, and a classifier of ImageNet's thousand classes."""
    frames = [f"val/{video}/00000{number}.JPEG" for video in ("v1", "v2") for number in (3, 4, 5)]
    for i, frame in enumerate(frames):
        path = tmp_path / "data" / frame
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((20, 24, 3), 40 * i, np.uint8))
    sets = {frames[1]: [frames[0], frames[2]], frames[4]: [frames[3], frames[5]]}
    (tmp_path / "data" / "pmsets.json").write_text(json.dumps(sets))
    (tmp_path / "data" / "labels.json").write_text(json.dumps({frame: [29] for frame in frames}))
    shapes = set()

    def zebras(clips: np.ndarray) -> np.ndarray:
        shapes.add(clips.shape)
        scores = np.zeros((len(clips), 1000))
        scores[:, 340], scores[:, 404] = (
            0.5,
            clips.mean((1, 2, 3, 4)) / 255,
        )  # a zebra, or an airplane where it is bright
        return scores

    done = jostle.run("imagenet-vid-robust", model=zebras, data=tmp_path / "data", out=tmp_path / "run")
    assert shapes == {(1, 1, 20, 24, 3)}
    found = done.scores["clean_more"]["pm_k"]
    assert (found["anchors"], found["accuracy"], done.scores["clean"]) == (2, 0.5, 0.5)
    assert scores(tmp_path / "run").shape == (6, 30)
    assert told(tmp_path / "run")["shown"]["classes"] == "by number"
    clips = Recogniser(Small(30), SPEC)
    with pytest.raises(BadValue, match="are options of feature extraction, and imagenet-vid-robust is of frames"):
        jostle.run("imagenet-vid-robust", model=zebras, data=tmp_path / "data", out=tmp_path / "bad", rule="released")
    with pytest.raises(BadValue, match="takes clips of 4 frames, and imagenet-vid-robust uses single frames"):
        jostle.run("imagenet-vid-robust", model=clips, data=tmp_path / "data", out=tmp_path / "bad")


def test_a_model_is_called_as_it_calls_itself(here: Path, tmp_path: Path) -> None:
    """Also where it was given by its place; one without a name is called by that."""
    run(here, tmp_path / "named", "helpers.own_models:named", jobs=1)
    assert json.loads((tmp_path / "named" / "run.json").read_text())["model"] == "named"
    run(here, tmp_path / "plain", "helpers.own_models:colours", jobs=1)
    assert json.loads((tmp_path / "plain" / "run.json").read_text())["model"] == "helpers.own_models:colours"
