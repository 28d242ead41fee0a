"""`jostle.run` on every kind of model: registered names, import paths, modules and callables."""

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
from helpers.benchmark_files import SAMPLING, write_benchmark
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


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here")
    write_benchmark(folder, "recognition", "gaussian_noise:3", "freeze:3", sampling=SAMPLING)
    write_benchmark(folder, "detection", "thumos14-c/black_frame:3")
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


def run(workspace: Path, out: Path, model: Any, **options: Any) -> Any:
    return jostle.run(
        workspace / "tiny-p.toml", model=model, data=workspace / "clips", out=out, device="cpu", **options
    )


def run_metadata(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "run.json").read_text())
    return content


def scores(out: Path, cell: str = "clean") -> np.ndarray:
    with np.load(out / "predictions" / f"{cell}.npz") as archive:
        return np.array(archive["scores"])


def test_module_with_input_spec(workspace: Path, tmp_path: Path) -> None:
    result = run(workspace, tmp_path / "run", Small(), spec=SPEC)
    assert result.failures == ()
    metadata = run_metadata(tmp_path / "run")
    assert (metadata["model"], metadata["weights_from"]) == ("Small", "tensors")
    assert metadata["weights"].startswith("sha256:")
    assert metadata["shown"]["input"]["frames"] == 4
    assert scores(tmp_path / "run").sum(1) == pytest.approx(1)
    run(workspace, tmp_path / "run", Small(), spec=SPEC)  # the same weights: the same run
    with pytest.raises(SourceChanged, match="weights was"):
        run(workspace, tmp_path / "run", other_weights(), spec=SPEC)
    with pytest.raises(BadValue, match="needs an InputSpec"):
        run(workspace, tmp_path / "other", Small())


def other_weights() -> Small:
    model = Small()
    model.last.bias.data += 1
    return model


class Locked(Small):
    """Module that cannot be pickled and records which processes called it."""

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
    workspace: Path, tmp_path: Path, mend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Worker processes decode and corrupt once a run takes longer; the predictions are the same bytes."""
    model = Locked()
    run(workspace, tmp_path / "one", model, spec=SPEC, jobs=1, mend=mend)
    monkeypatch.setattr(engines, "LOCAL_S", 60.0)
    monkeypatch.setattr(engines, "available_cpus", lambda: 2)
    alone = run(workspace, tmp_path / "alone", model, spec=SPEC, mend=mend).work
    assert (alone.workers, alone.apart) == (1, False)
    monkeypatch.setattr(engines, "LOCAL_S", 0.0)
    with ThreadPoolExecutor(1) as thread:  # `run` may be called from any thread
        thread.submit(run, workspace, tmp_path / "two", model, spec=SPEC, mend=mend).result()
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert model.processes == {os.getpid()}
    (work,) = [event for event in read_events(tmp_path / "two" / "journal.jsonl") if isinstance(event, WorkDone)]
    assert (work.workers, work.apart) == (2, True)


@pytest.mark.slow
def test_copies_of_a_model_object_give_the_same_predictions(workspace: Path, tmp_path: Path) -> None:
    run(workspace, tmp_path / "one", own_models.Small(), spec=SPEC, jobs=1)
    run(workspace, tmp_path / "copies", own_models.Small(), spec=SPEC, jobs=2, model_processes=0)
    assert content(tmp_path / "one") == content(tmp_path / "copies")


@pytest.mark.slow
def test_a_cluster_gives_the_same(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run(workspace, tmp_path / "one", "helpers.own_models:named", jobs=1)
    state = random.getstate()
    run(workspace, tmp_path / "ray", "helpers.own_models:named", engine="ray", jobs=2)
    random.setstate(state)  # Ray draws from it
    assert (tmp_path / "one" / "scores.json").read_bytes() == (tmp_path / "ray" / "scores.json").read_bytes()
    assert (scores(tmp_path / "one", "freeze-3") == scores(tmp_path / "ray", "freeze-3")).all()


@pytest.mark.processes
@pytest.mark.fault("F78")
def test_failing_model_object_serving_workers(workspace: Path, tmp_path: Path) -> None:
    """The exception may be of a class that only this process knows."""

    class OwnError(Exception):
        pass

    calls: list[int] = []

    def failing(clips: np.ndarray) -> np.ndarray:
        calls.append(len(clips))
        if len(calls) > 2:  # the trial call has two clips
            raise OwnError("no such luck")
        return own_models.colours(clips)

    with pytest.raises(DataError, match=r"none of 3 videos .*the model failed \(.*OwnError: no such luck"):
        run(workspace, tmp_path / "run", failing, jobs=2)


def test_corruption_of_the_script_itself_keeps_the_run_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "plugins_are_importable", lambda: False)
    with engines.place_of("local", "cpu", None, many=True, picklable=False) as engine_place:
        assert (engine_place.jobs, engine_place.model_stays) == (1, False)
    monkeypatch.undo()
    monkeypatch.setitem(plugins._parts, ("corruptions", "mine"), "__main__")
    assert not plugins.plugins_are_importable()


def test_unpicklable_model_runs_in_one_process(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="cannot be sent to another process"):
        run(workspace, tmp_path / "three", lambda clips: own_models.colours(clips), jobs=2, model_processes=0)
    assert run(workspace, tmp_path / "three", lambda clips: own_models.colours(clips)).failures == ()


def test_callable_receives_clips_of_the_benchmark(workspace: Path, tmp_path: Path) -> None:
    shapes = set()

    def model(clips: np.ndarray) -> np.ndarray:
        shapes.add(clips.shape)
        return own_models.colours(clips)

    run(workspace, tmp_path / "run", model)
    assert shapes == {(1, 6, 48, 64, 3)}
    metadata = run_metadata(tmp_path / "run")
    assert (metadata["weights"], metadata["weights_from"], metadata["shown"]["input"]) == (None, "nothing", None)
    assert metadata["model"].endswith("model")


def test_model_by_import_path(workspace: Path, tmp_path: Path) -> None:
    run(workspace, tmp_path / "run", "helpers.own_models:named", jobs=1)
    metadata = run_metadata(tmp_path / "run")
    assert (metadata["model"], metadata["weights_from"], metadata["shown"]["classes"]) == (
        "named",
        "tensors",
        "by name",
    )
    # Columns follow the classes of the data set, jump and walk.
    run(workspace, tmp_path / "own", Recogniser(Small(3), SPEC, classes=("jump", "sit", "walk")))
    assert not np.array_equal(scores(tmp_path / "own"), scores(tmp_path / "run"))
    run(workspace, tmp_path / "plain", "helpers.own_models:colours", jobs=1)  # which has no name of its own
    assert run_metadata(tmp_path / "plain")["model"] == "helpers.own_models:colours"
    for path, message in (
        ("helpers.own_models:nobody", "cannot be imported"),
        ("no_such_module:x", "cannot be imported"),
        ("helpers.own_models:Small", "is a class"),
    ):
        with pytest.raises(BadValue, match=message):
            run(workspace, tmp_path / "bad", path)


def test_model_input_can_be_changed(workspace: Path, tmp_path: Path) -> None:
    model = Recogniser(Small(), SPEC)
    run(workspace, tmp_path / "six", model, input={"frames": 6})
    assert run_metadata(tmp_path / "six")["shown"]["input"] | {"mean": 0, "std": 0} == input_spec(frames=6)
    run(workspace, tmp_path / "published", model, clips="benchmark")
    assert run_metadata(tmp_path / "published")["shown"]["input"] | {"mean": 0, "std": 0} == input_spec(
        frames=6, resize=24, size=20
    )
    assert model.spec == SPEC
    for wrong, message in (({"flames": 6}, "no setting flames: did you mean frames"), ({"frames": "six"}, "frames")):
        with pytest.raises(BadValue, match=message):
            run(workspace, tmp_path / "bad", model, input=wrong)
    with pytest.raises(BadValue, match="has no InputSpec"):
        run(workspace, tmp_path / "bad", own_models.colours, input={"frames": 6})


def input_spec(**changes: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(SPEC) | {"mean": 0, "std": 0} | changes


@pytest.mark.parametrize(
    ("model", "options", "message"),
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
        ("puppet_c3", {}, "puppet_c3d"),
    ],
)
def test_unfit_recognisers_are_refused_before_writing(
    workspace: Path, tmp_path: Path, model: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        run(workspace, tmp_path / "run", model, **options)
    assert not (tmp_path / "run").exists()


def test_views_and_settings_of_a_registered_recogniser(workspace: Path, tmp_path: Path) -> None:
    recogniser = jostle.load_recogniser("tam_resnet18", weights="random", frames=4, size=32)
    weights = dict(recogniser.network.state_dict())
    weights |= {"fc.weight": weights["fc.weight"][:2].clone(), "fc.bias": weights["fc.bias"][:2].clone()}
    write_weights(weights, tmp_path / "w.safetensors")
    settings = {"views": "published", "time_stride": True, "frames": 4, "resize": 36, "size": 32, "clips": 3}
    options = {"weights": tmp_path / "w.safetensors", "jobs": 1, "cells": ["clean"]}
    run(workspace, tmp_path / "run", "tam_resnet18", input=settings, **options)
    model_input = run_metadata(tmp_path / "run")["shown"]
    assert model_input["network"] == {"time_stride": True}
    assert (model_input["input"]["crops"], model_input["input"]["clips"], model_input["input"]["joined"]) == (
        "three",
        3,
        "logits",
    )
    for wrong, message in (({"views": "other"}, "no views 'other'"), ({"veiws": "published"}, "no setting veiws")):
        with pytest.raises(BadValue, match=message):
            run(workspace, tmp_path / "bad", "tam_resnet18", input=wrong, **options)


def test_registered_recogniser(workspace: Path, tmp_path: Path) -> None:
    recogniser = jostle.load_recogniser("puppet_c3d", weights="random", frames=4)
    weights = dict(recogniser.network.state_dict())
    weights["classifier.weight"], weights["classifier.bias"] = (
        weights["classifier.weight"][:2].clone(),
        weights["classifier.bias"][:2].clone(),
    )
    write_weights(weights, tmp_path / "w.safetensors", metadata={"classes": '["walk", "jump"]'})
    run(workspace, tmp_path / "run", "puppet_c3d", weights=tmp_path / "w.safetensors", input={"frames": 4}, jobs=1)
    metadata = run_metadata(tmp_path / "run")
    assert (metadata["model"], metadata["weights_from"], metadata["shown"]["classes"]) == (
        "puppet_c3d",
        "file",
        "by name",
    )
    loaded = jostle.load_recogniser("puppet_c3d", weights=tmp_path / "w.safetensors")
    assert loaded.classes == ("walk", "jump")
    weights_metadata = {"recogniser": "puppet_c3d", "input": '{"frames": 8, "mean": [0.1, 0.2, 0.3]}', "classes": "[]"}
    write_weights(weights, tmp_path / "noted.safetensors", metadata=weights_metadata)
    spec = jostle.load_recogniser("puppet_c3d", weights=tmp_path / "noted.safetensors", crops="ten").spec
    assert spec is not None
    assert (spec.frames, spec.mean, spec.crops) == (8, (0.1, 0.2, 0.3), "ten")
    with pytest.raises(BadValue, match="its own 16 are bow, catch, jump"):  # of the clean weights, the default
        run(workspace, tmp_path / "none", "puppet_c3d")
    with pytest.raises((BadValue, MissingExtra), match="weights"):
        run(workspace, tmp_path / "none", "r3d_18")


def test_reduced_precision_is_recorded_and_changes_scores_little(workspace: Path, tmp_path: Path) -> None:
    options = {"spec": SPEC, "cells": ["clean"], "jobs": 1}
    run(workspace, tmp_path / "whole", Small(), **options)
    run(workspace, tmp_path / "half", Small(), precision="bfloat16", **options)
    assert (run_metadata(tmp_path / "whole")["precision"], run_metadata(tmp_path / "half")["precision"]) == (
        "float32",
        "bfloat16",
    )
    full, half = (np.load(tmp_path / name / "predictions" / "clean.npz")["scores"] for name in ("whole", "half"))
    assert 0 < np.abs(full - half).max() < 0.02
    with pytest.raises(SourceChanged, match="precision was 'bfloat16', now 'float32'"):
        run(workspace, tmp_path / "half", Small(), **options)
    with pytest.raises(BadValue, match="tf32 is a precision of GPUs"):
        run(workspace, tmp_path / "tf32", Small(), precision="tf32", **options)
    with pytest.raises(UnknownName, match="bfloat16"):
        run(workspace, tmp_path / "typo", Small(), precision="bfloat61", **options)


def test_compilation_is_recorded_and_needs_a_gpu(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"spec": SPEC, "cells": ["clean"], "jobs": 1}
    with pytest.raises(BadValue, match="compiled for GPUs, and these run on the CPU"):
        run(workspace, tmp_path / "cpu", Small(), compiled=True, **options)
    compiled_functions = []

    def compiled(function, *, dynamic):
        assert not dynamic
        compiled_functions.append(function.__name__)
        return function

    # Simulates a GPU with a compiler: the compiled function is called instead of the network's own.
    monkeypatch.setattr("jostle.models.devices.check_compiling", lambda device: None)
    monkeypatch.setattr("torch.compile", compiled)
    run(workspace, tmp_path / "fast", Small(), compiled=True, **options)
    assert compiled_functions == ["forward"]
    assert run_metadata(tmp_path / "fast")["compiled"] is True
    with pytest.raises(SourceChanged, match="compiled was True, now False"):
        run(workspace, tmp_path / "fast", Small(), **options)


def test_plan_estimates_the_cost(workspace: Path, tmp_path: Path) -> None:
    options = {"model": Small(), "spec": SPEC, "data": workspace / "clips", "out": tmp_path / "run"}
    plan = api.plan(workspace / "tiny-p.toml", **options)
    assert (plan.videos, plan.looks, plan.frames) == (3, 9, 90)
    assert plan.estimate.jobs == available_cpus()
    assert plan.estimate.all_s == pytest.approx(3 * plan.estimate.clean_s)
    assert not (tmp_path / "run").exists()


def test_own_detectors(workspace: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": workspace / "long", "device": "cpu"}
    recipe = workspace / "tiny-c.toml"
    result = jostle.run(recipe, model=own_models.from_frames, out=tmp_path / "frames", **options)
    assert result.scores["clean"] == 1.0
    assert run_metadata(tmp_path / "frames")["extractor"] is None
    network = extractors["puppet_net"].build()
    write_weights(network.state_dict(), tmp_path / "net.safetensors")
    options |= {"extractor": "puppet_net", "extractor_weights": tmp_path / "net.safetensors"}
    result = jostle.run(recipe, model="helpers.own_models:from_features", out=tmp_path / "features", jobs=1, **options)
    assert result.scores["clean"] == 1.0
    metadata = run_metadata(tmp_path / "features")
    assert (metadata["extractor"], metadata["weights"], metadata["weights_from"]) == ("puppet_net", None, "nothing")
    assert metadata["extractor_weights"].startswith("sha256:")


TINY_FRAMES: dict[str, dict[str, Any]] = {
    "afsd": {"dim": 64, "levels": 4, "max_length": 64, "clip_stride": 32, "backbone_width": 0.06},
    "e2e_tad": {"dim": 32, "backbone": "tsm18", "max_length": 16, "clip_stride": 12, "backbone_width": 0.125},
}


@pytest.mark.parametrize("name", TINY_FRAMES)
def test_registered_detector_on_frames(name: str, workspace: Path, tmp_path: Path) -> None:
    settings = {"classes": 1, "frame_size": 40, "crop": 32, "min_probability": 0.0} | TINY_FRAMES[name]
    detector = jostle.load_detector(name, **settings)
    weights_metadata = {"detector": name, "settings": json.dumps(settings), "classes": '["jump"]'}
    write_weights(detector.state_dict(), tmp_path / "w.safetensors", metadata=weights_metadata)
    options: dict[str, Any] = {"data": workspace / "long", "jobs": 1, "weights": tmp_path / "w.safetensors"}
    jostle.run(workspace / "tiny-c.toml", model=name, out=tmp_path / "run", **options)
    assert (tmp_path / "run" / BLACK).is_file()
    assert run_metadata(tmp_path / "run")["extractor"] is None
    clip = jostle.read(workspace / "long" / "one.mkv")
    again = jostle.load_detector(name, weights=tmp_path / "w.safetensors")
    expected = again.detect(clip.frames, fps=25.0, duration=1.6)
    stored = jostle.load_predictions(tmp_path / "run" / "predictions" / "clean.json")
    np.testing.assert_allclose(np.sort(stored.score), np.sort(expected.score), rtol=1e-5)
    with pytest.raises(BadValue, match=f"{name} processes frames itself; leave the extractor out"):
        jostle.run(workspace / "tiny-c.toml", model=name, out=tmp_path / "no", extractor="puppet_net", **options)


FAULTS: Any = ("skipped-window", "early-row")
BLACK = "predictions/thumos14-c-black_frame-3.json"


@pytest.mark.parametrize(("rule", "faults", "rows"), [("all", (), 7), ("released", FAULTS, 6)])
def test_run_uses_the_features_that_extract_writes(
    workspace: Path, tmp_path: Path, rule: Any, faults: Any, rows: int
) -> None:
    inputs = []

    def model(features: np.ndarray, duration: float) -> jostle.Segments:
        inputs.append(np.array(features))
        return own_models.from_features(features, duration=duration)

    windows = {"rule": rule, "reproduce_bugs": faults}
    options = {"data": workspace / "long", "extractor": "puppet_net", "device": "cpu", **windows}
    recipe = workspace / "tiny-c.toml"
    planned = api.plan(recipe, model=own_models.from_features, out=tmp_path / "run", **options)
    assert planned.estimate.windows == rows
    result = jostle.run(recipe, model=model, out=tmp_path / "run", **options)
    assert (result.clean.joined, len(inputs)) == (rows, 2)
    metadata = run_metadata(tmp_path / "run")
    assert (metadata["rule"], metadata["reproduce_bugs"]) == (rule, sorted(faults))
    clean, black = inputs
    truth = {"truth": workspace / "long" / "truth.json", "device": "cpu"}
    jostle.extract(workspace / "long", "puppet_net", tmp_path / "clean", rule=rule, **truth)
    spec = "thumos14-c/black_frame:3"
    jostle.extract(workspace / "long", "puppet_net", tmp_path / "black", spec=spec, **windows, **truth)
    assert clean.tobytes() == np.load(tmp_path / "clean" / "one.npy").tobytes()
    assert black.tobytes() == np.load(tmp_path / "black" / "one.npy").tobytes()
    assert not np.array_equal(clean, black)

    jostle.run(recipe, model=model, out=tmp_path / "run", **options | {"reproduce_bugs": [*faults, *faults]})
    for other in ({"rule": "released-json"}, {"reproduce_bugs": ["early-row"]}):
        for again in (jostle.run, api.plan):
            with pytest.raises(SourceChanged, match=f"{next(iter(other))} was .*, now"):
                again(recipe, model=model, out=tmp_path / "run", **options | other)
    assert len(inputs) == 2


@pytest.mark.slow
def test_rule_and_faults_go_to_every_worker(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "data").mkdir()
    entry = json.loads((workspace / "long" / "truth.json").read_text())["database"]["one"]
    (tmp_path / "data" / "truth.json").write_text(json.dumps({"database": dict.fromkeys("ab", entry)}))
    for seed, name in enumerate("ab"):
        write_video(tmp_path / "data" / f"{name}.mkv", 40, seed=seed)
    options = {
        "data": tmp_path / "data",
        "extractor": "puppet_net",
        "device": "cpu",
        "model": "helpers.own_models:from_features",
    }
    windows = {"rule": "released", "reproduce_bugs": FAULTS}
    recipe = workspace / "tiny-c.toml"
    jostle.run(recipe, out=tmp_path / "all", jobs=1, **options)
    state = random.getstate()
    for out, workers in (("one", {"jobs": 1}), ("two", {"jobs": 2}), ("ray", {"jobs": 2, "engine": "ray"})):
        jostle.run(recipe, out=tmp_path / out, **workers, **windows, **options)
    random.setstate(state)  # Ray draws from it
    files_of = {
        out: [(tmp_path / out / file).read_bytes() for file in ("run.json", "predictions/clean.json", BLACK)]
        for out in ("all", "one", "two", "ray")
    }
    assert files_of["one"] == files_of["two"] == files_of["ray"]
    assert all(first != second for first, second in zip(files_of["all"], files_of["one"], strict=True))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("puppet_c3d", {}, "puppet_c3d is a recogniser"),
        (own_models.from_frames, {"spec": SPEC}, "spec is for recognisers"),
        (own_models.from_frames, {"rule": "released"}, "from_frames processes frames unless an extractor is named"),
        (own_models.from_frames, {"extractor_weights": "w.pt"}, "processes frames unless an extractor is named"),
        (jostle.load_detector("temporalmaxer"), {}, "detects actions in features; name an extractor"),
        (3, {}, "is a callable on frames or features"),
        (own_models.from_features, {"extractor": "puppet_net", "rule": "realeased"}, "did you mean released"),
        (own_models.from_features, {"extractor": "puppet_net", "reproduce_bugs": ["early"]}, "mean early-row"),
    ],
)
def test_unfit_detectors_are_refused(
    workspace: Path, tmp_path: Path, model: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        jostle.run(workspace / "tiny-c.toml", model=model, data=workspace / "long", out=tmp_path / "run", **options)
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
        )  # a zebra, or an airplane in bright frames
        return scores

    result = jostle.run("imagenet-vid-robust", model=zebras, data=tmp_path / "data", out=tmp_path / "run")
    assert shapes == {(1, 1, 20, 24, 3)}
    pm_k = result.scores["clean_more"]["pm_k"]
    assert (pm_k["anchors"], pm_k["accuracy"], result.scores["clean"]) == (2, 0.5, 0.5)
    assert scores(tmp_path / "run").shape == (6, 30)
    assert run_metadata(tmp_path / "run")["shown"]["classes"] == "by number"
    clips = Recogniser(Small(30), SPEC)
    with pytest.raises(BadValue, match="are options of feature extraction, and imagenet-vid-robust is of frames"):
        jostle.run("imagenet-vid-robust", model=zebras, data=tmp_path / "data", out=tmp_path / "bad", rule="released")
    with pytest.raises(BadValue, match="takes clips of 4 frames, and imagenet-vid-robust uses single frames"):
        jostle.run("imagenet-vid-robust", model=clips, data=tmp_path / "data", out=tmp_path / "bad")
