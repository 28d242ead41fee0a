"""Faults F120 and F121: NaN or infinite weights and outputs of models, which thresholds do not detect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn

from helpers import small_recognition, small_run
from helpers.numpy_extractor import TwoParts
from helpers.refusals import refused
from jostle.cli import console
from jostle.core.types import Segments
from jostle.datasets.class_matching import ClassMatch
from jostle.errors import CheckpointError, DataError, NonFiniteOutput
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import FeatureDetectionPredictor, WholeVideoPredictor
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.runner import run_benchmark
from jostle.mending.descriptor import describe_frames
from jostle.mending.inspection import InspectedVideo
from jostle.mending.loading import load_inspector
from jostle.models.checkpoints import read_metadata, read_weights, tensors_fingerprint, write_weights
from jostle.models.finite import check_weights
from jostle.models.loading.detectors import load_detector
from jostle.models.loading.extractors import load_extractor
from jostle.models.loading.objects import load_object_detector
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import Recogniser
from jostle.models.weights.packaged import weights_file

BAD = {"NaN": np.nan, "infinity": np.inf}
LOADERS: dict[str, Callable[[Path], Any]] = {
    "tridet_puppets-clean": lambda path: load_detector("tridet_puppets", weights=path),
    "e2e_tad_puppets-clean": lambda path: load_detector("e2e_tad_puppets", weights=path),
    "puppet_net": lambda path: load_extractor("puppet_net", weights=path),
    "puppet_boxes-clean": lambda path: load_object_detector("puppet_boxes", weights=path),
    "puppet_frames-clean": lambda path: load_recogniser("puppet_frames", weights=path),
    "inspector": lambda path: load_inspector(path),
}


@pytest.mark.fault("F120")
@pytest.mark.parametrize("name", LOADERS)
def test_f120_weights_that_are_not_finite_are_refused_when_loaded(tmp_path: Path, name: str) -> None:
    source, path = weights_file(name), tmp_path / f"{name}.safetensors"
    weights = read_weights(source)
    tensor = [key for key, value in weights.items() if value.is_floating_point() and value.ndim > 1][-1]
    for value in BAD.values():
        spoiled = weights[tensor].clone()
        spoiled.view(-1)[0] = value
        write_weights(weights | {tensor: spoiled}, path, metadata=read_metadata(source))
        with pytest.raises(CheckpointError, match=f"1 of .* values of the weight '{tensor}' are NaN or") as caught:
            LOADERS[name](path)
        assert (caught.value.fault, caught.value.exit_code) == ("F120", 3)


@pytest.mark.fault("F120")
def test_f120_weights_of_a_user_network_are_checked_at_the_start() -> None:
    network = nn.Linear(2, 2)
    network.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1))  # as in attention
    assert tensors_fingerprint(network)
    network.weight.data.fill_(3e38)  # finite, though not their sum
    check_weights(network, "mine")
    network.bias.data[0] = torch.inf
    with pytest.raises(CheckpointError, match="Linear: 1 of 2 values of the weight 'bias' are NaN or infinite"):
        tensors_fingerprint(network)


FRAMES = {"classes": 3, "frame_size": 40, "crop": 32}
DETECTORS: dict[str, dict[str, Any]] = {
    "actionformer_puppets": {"weights": "clean"},
    "tridet_puppets": {"weights": "clean"},
    "temporalmaxer_puppets": {"weights": "clean"},
    "vsgn_puppets": {"weights": "clean"},
    "afsd": FRAMES | {"dim": 64, "max_length": 64, "levels": 4, "clip_stride": 32, "backbone_width": 0.06},
    "basictad": FRAMES
    | {"dim": 32, "neck_dim": 16, "max_length": 32, "levels": 4, "clip_stride": 24, "backbone_width": 0.06},
    "e2e_tad": FRAMES | {"dim": 32, "max_length": 16, "clip_stride": 12, "backbone": "tsm18", "backbone_width": 0.125},
}


@pytest.mark.fault("F121")
@pytest.mark.parametrize("name", DETECTORS)
def test_f121_detectors_refuse_outputs_that_are_not_finite(name: str) -> None:
    detector = load_detector(name, **DETECTORS[name])
    facts: dict[str, Any] = {"fps": 25.0, "duration": 8.0}
    inputs: Any = np.zeros((8, 32, 32, 3), np.uint8)
    if detector.looks_at == "features":
        inputs, facts = np.ones((40, detector.config.input_dim), np.float32), facts | {"stride": 4, "window": 16}
    detector.detect(inputs, **facts)
    for value in BAD.values():
        spoil(detector, value)
        with refused("F121", NonFiniteOutput, match=r"\d+ of \d+ values of its output '\w+' are not finite"):
            detector.detect(inputs, **facts)


def spoil(network: nn.Module, value: float) -> None:
    """Set the last bias of the network, that of a head, as one value too large for float16 would leave it."""
    heads = [p for name, p in network.named_parameters() if name.endswith("bias") and p.ndim == 1]
    for head in heads[-4:]:
        head.data[0] = value


@pytest.mark.fault("F121")
@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_f121_an_object_detector_does_not_drop_boxes_that_are_nan(value: float) -> None:
    detector = load_object_detector("puppet_boxes", weights="clean")
    frame = np.zeros((1, 112, 112, 3), np.uint8)
    detector(frame)
    detector.network.middles.bias.data[0] = value
    with pytest.raises(NonFiniteOutput, match="puppet_boxes: 784 of 7840 values of its output 'middles'"):
        detector(frame)


@pytest.mark.fault("F121")
@pytest.mark.parametrize("value", [*BAD.values(), -np.inf])
def test_f121_an_inspector_refuses_probabilities_that_are_not_finite(value: float) -> None:
    inspector = load_inspector()
    frames = np.random.default_rng(0).integers(0, 256, (9, 24, 24, 3), np.uint8)
    descriptors = describe_frames(frames)
    assert len(list(inspector.inspect(frames))) == len(InspectedVideo(inspector, descriptors).probabilities) == 9
    inspector.network.answer.bias.data.fill_(value)
    for inspect in (lambda: list(inspector.inspect(frames)), lambda: InspectedVideo(inspector, descriptors)):
        with pytest.raises(NonFiniteOutput, match="9 of 9 values are not finite") as caught:
            inspect()
        assert caught.value.rows == tuple(range(9))


# In a run, the error names video and cell, and the other videos are used.

BLACK = "thumos14-c/black_frame:3"


def black(frames: np.ndarray) -> Any:
    """Return which of (N, H, W, 3) frames are black."""
    return (frames == 0).all((1, 2, 3))


class OverflowingExtractor(TwoParts):
    """Extractor that returns infinity for black frames, as a division in half precision would."""

    def see(self, frames: np.ndarray) -> np.ndarray:
        rows = super().see(frames)
        rows[black(frames)] = np.inf
        return rows


def nan_times(frames: np.ndarray) -> Segments:
    return Segments([np.nan if black(frames).any() else 0.2], [1.2], [0], [0.5], ("action",))


def nan_scores(clips: np.ndarray) -> np.ndarray:
    scores = np.zeros((len(clips), 3), np.float32)
    scores[[black(clip).any() for clip in clips]] = np.nan
    return scores


PREDICTORS: dict[str, tuple[Any, Any, str]] = {
    "extractor": (
        FeatureDetectionPredictor(TwoParts(8, 2), small_run.Leaning()),
        FeatureDetectionPredictor(OverflowingExtractor(8, 2), small_run.Leaning()),
        "the extractor, features: ",
    ),
    "detector": (
        WholeVideoPredictor(lambda frames: Segments([0.2], [1.2], [0], [0.5], ("action",))),
        WholeVideoPredictor(nan_times),
        "the model failed",
    ),
}


@pytest.mark.fault("F121")
@pytest.mark.parametrize("kind", PREDICTORS)
def test_f121_nan_in_one_cell_excludes_its_video(videos: dict[str, Path], tmp_path: Path, kind: str) -> None:
    valid, spoiled, message = PREDICTORS[kind]
    model = BenchmarkModel(lambda: lambda job: (spoiled if job.name == "b" else valid)(job), model="theirs")
    cells = select_cells(small_run.RECIPE, [BLACK])
    done = run_benchmark(small_run.RECIPE, small_run.data_of(videos), model, tmp_path / "run", cells=cells)
    assert [failure["video"] for failure in done.failures] == ["b"]
    assert done.failures[0]["fault"] == "F121"
    assert done.failures[0]["message"].startswith(f"video b, cell {BLACK}: {message}")


@pytest.mark.fault("F121")
def test_f121_a_run_without_a_valid_video_fails(videos: dict[str, Path], tmp_path: Path) -> None:
    model = BenchmarkModel(lambda: PREDICTORS["extractor"][1], model="theirs")
    cells = select_cells(small_run.RECIPE, [BLACK])
    with pytest.raises(DataError, match=f"none of 4 videos could be used: video a, cell {BLACK}: the extractor"):
        run_benchmark(small_run.RECIPE, small_run.data_of(videos), model, tmp_path / "run", cells=cells)


@pytest.mark.fault("F121")
def test_f121_nan_in_a_mixed_batch_is_attributed_to_its_cell(videos: dict[str, Path], tmp_path: Path) -> None:
    recogniser = Recogniser(nan_scores, name="theirs")
    model = BenchmarkModel(
        lambda: RecognitionPredictor(recogniser, small_recognition.SAMPLING, ClassMatch("by number", 3), batch=64),
        model="theirs",
    )
    cells = select_cells(small_recognition.RECIPE, [small_recognition.CELLS[0], small_recognition.CELLS[5]])
    data = small_recognition.data_of(videos)
    with pytest.raises(DataError, match="none of 4 videos could be used") as caught:
        run_benchmark(small_recognition.RECIPE, data, model, tmp_path / "run", cells=cells)
    assert f": video a, cell {small_recognition.CELLS[5]}: theirs, scores: " in str(caught.value)


@pytest.mark.fault("F121")
def test_f121_json_has_null_where_there_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_json({"a": [1.5, np.nan], "b": (float("inf"), "nan")})
    assert "".join(capsys.readouterr().out.split()) == '{"a":[1.5,null],"b":[null,"nan"]}'


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_run.write_videos(tmp_path_factory.mktemp("videos"))
