"""Recognisers: input preparation by `InputSpec`, batching, weights and validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from jostle import names
from jostle.errors import BadValue, CheckpointError, DataError, UnknownName
from jostle.models.extractors.extractor import ExtractorKind
from jostle.models.input_spec import InputSpec
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.image_classifier import OneFrame
from jostle.models.recognition.recogniser import (
    CROPS_AT_ONCE,
    Recogniser,
    as_recogniser,
    changed,
    recognisers,
    with_weights,
)

SPEC = InputSpec(frames=4, stride=4, resize=20, size=16, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))


def small_network(classes: int = 5) -> nn.Module:
    return nn.Sequential(
        nn.Conv3d(3, 6, 3, bias=False), nn.BatchNorm3d(6), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
        nn.Linear(6, classes),
    )  # fmt: skip


@pytest.fixture(scope="module")
def clips() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (5, 4, 24, 32, 3), np.uint8)


def test_module_gets_prepared_clips_and_returns_softmax_scores(clips: np.ndarray) -> None:
    network = small_network().train()
    scores = Recogniser(network, SPEC)(clips)
    with torch.inference_mode():
        by_hand = [network.eval()(SPEC.prepare(clip)).softmax(1)[0].numpy() for clip in clips]
    assert scores.dtype == np.float32
    assert np.allclose(scores, np.stack(by_hand), atol=1e-6)


def test_scores_are_averaged_over_crops(clips: np.ndarray) -> None:
    def brightness(crops: Tensor) -> Tensor:
        assert len(crops) == 10
        return crops.mean((2, 3, 4))

    spec = InputSpec(frames=4, stride=4, resize=20, size=16, crops="ten")
    crops = spec.prepare(clips[0]).mean((2, 3, 4))
    assert crops.std(0).min() > 0
    assert np.allclose(Recogniser(brightness, spec)(clips[:1])[0], crops.mean(0).numpy(), atol=1e-6)
    logits = Recogniser(brightness, spec, outputs="logits")(clips[:1])[0]
    assert np.allclose(logits, crops.softmax(1).mean(0).numpy(), atol=1e-6)


def test_logits_are_averaged_if_the_spec_joins_logits(clips: np.ndarray) -> None:
    def brightness(crops: Tensor) -> Tensor:
        return crops.mean((2, 3, 4))

    spec = InputSpec(frames=4, stride=4, resize=20, size=16, crops="three", joined="logits")
    crops = spec.prepare(clips[0]).mean((2, 3, 4))
    assert len(crops) == 3
    assert np.allclose(Recogniser(brightness, spec, outputs="logits")(clips[:1])[0], crops.mean(0).numpy(), atol=1e-6)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=10)
def test_scores_do_not_depend_on_the_batch(clips: np.ndarray, rows: list[int], at_once: int) -> None:
    model = Recogniser(with_weights("small", small_network, SPEC, "random", head="5.bias", classes=5).network, SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CROPS_AT_ONCE, "cpu", at_once)
        assert np.array_equal(model(clips[rows]), model(clips)[rows])


def test_batched_parts_score_as_single_ones(clips: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CROPS_AT_ONCE, "cpu", 3)
    model = Recogniser(with_weights("small", small_network, SPEC, "random", head="5.bias", classes=5).network, SPEC)
    parts = [clips[:1], clips[:2], clips[1:2], clips[:2]]
    for together, part in zip(model.together(parts), parts, strict=True):
        assert together.tobytes() == model(part).tobytes()


def test_callable_without_a_spec_gets_raw_frames(clips: np.ndarray) -> None:
    def first_pixel(frames: np.ndarray) -> np.ndarray:
        assert frames.dtype == np.uint8
        return frames[:, 0, 0, 0]

    model = Recogniser(first_pixel)
    assert model.name == "first_pixel"
    assert np.array_equal(model(clips), clips[:, 0, 0, 0].astype(np.float32))


@pytest.mark.parametrize("layout", ["CTHW", "TCHW", "THWC"])
def test_layout_of_axes(clips: np.ndarray, layout: str) -> None:
    plain = SPEC.prepare(clips[0])[0]
    permuted = changed("m", SPEC, {"layout": layout}).prepare(clips[0])[0]
    order = ["CTHW".index(axis) for axis in layout]
    assert torch.equal(permuted, plain.permute(order))


def test_colours_interpolation_and_antialias_settings() -> None:
    frames = np.random.default_rng(1).integers(0, 2, (2, 64, 64, 3), np.uint8) * 255
    base = InputSpec(frames=2, stride=2, resize=24, size=24)
    plain = base.prepare(frames)
    assert torch.equal(changed("m", base, {"colours": "bgr"}).prepare(frames), plain.flip(1))
    cubic = changed("m", base, {"interpolation": "bicubic", "antialias": False}).prepare(frames)
    assert cubic.min() >= 0
    assert cubic.max() <= 1
    rough = changed("m", base, {"antialias": False}).prepare(frames)
    assert rough.std() > 1.5 * plain.std()  # aliasing keeps the fine texture


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": 0}, "frames must be at least 1"),
        ({"step": 0}, "step must be at least 1"),
        ({"layout": "HWC"}, "layout is one of CTHW, TCHW, THWC, CHW, not 'HWC'"),
        ({"interpolation": "area"}, "interpolation is one of"),
        ({"std": (0.2, 0.0, 0.2)}, "std must be above 0"),
        ({"sise": 3}, "m: its input has no setting sise; there are frames, stride"),
    ],
)
def test_invalid_specs_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        changed("m", SPEC, change)


def test_extractor_with_a_frame_step_is_refused() -> None:
    with pytest.raises(BadValue, match="steps: windows of an extractor are frames in a row"):
        ExtractorKind("steps", small_network, changed("m", SPEC, {"step": 2}), 5, 1, "nowhere")


def test_invalid_models_and_outputs_are_refused(clips: np.ndarray) -> None:
    with pytest.raises(BadValue, match="needs an InputSpec"):
        Recogniser(small_network())
    with pytest.raises(BadValue, match="a model is a"):
        Recogniser(3)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="outputs are logits or scores"):
        Recogniser(small_network(), SPEC, outputs="odds")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match=r"clips must be \(B, T, H, W, 3\) uint8"):
        Recogniser(small_network(), SPEC)(clips / 255)
    with pytest.raises(BadValue, match=r"scores must be \(5, classes\)"):
        Recogniser(lambda frames: frames.mean())(clips)
    with pytest.raises(BadValue, match="3 scores for 2 classes"):
        Recogniser(lambda frames: frames[:, 0, 0, 0], classes=("a", "b"))(clips)
    with pytest.raises(DataError, match="not finite"):
        Recogniser(lambda frames: np.full((len(frames), 2), np.nan))(clips)


def test_error_names_the_unsupported_clip_length(clips: np.ndarray) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 16 * 16, 2))
    model = Recogniser(network, SPEC, name="flat")
    assert model(clips).shape == (5, 2)
    with pytest.raises(BadValue, match="flat: cannot take a clip of 3 frames; give it 4"):
        model(clips[:, :3])


def test_number_of_classes_is_read_from_the_weights(clips: np.ndarray) -> None:
    trained = small_network(7)
    model = with_weights("small", small_network, SPEC, trained.state_dict(), head="5.bias")
    assert np.array_equal(model(clips), Recogniser(trained, SPEC)(clips))
    with pytest.raises(CheckpointError, match=r"they have no 5\.bias"):
        with_weights("small", small_network, SPEC, {"a": torch.zeros(1)}, head="5.bias")
    with pytest.raises(CheckpointError, match="belong to another network"):
        with_weights("small", small_network, SPEC, {"5.bias": torch.zeros(3)}, head="5.bias")
    with pytest.raises(BadValue, match="read the file first"):
        with_weights("small", small_network, SPEC, "weights.pth", head="5.bias")


def test_names_are_listed_and_weights_are_required() -> None:
    assert {"r3d_18", "mvit_v2_s", "videomae", "vjepa2", "onnx"} <= set(names("models"))
    for name in recognisers:
        with pytest.raises(BadValue, match="give its weights"):
            load_recogniser(name)
    with pytest.raises(UnknownName, match="no model is called 'r3d_19'"):
        load_recogniser("r3d_19")


def image_network(classes: int = 3) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, classes))


@pytest.mark.parametrize("crops", ["centre", "ten"])
def test_an_image_classifier_takes_single_frames(crops: str) -> None:
    network = image_network()
    spec = InputSpec(frames=1, resize=None, size=8, crops=crops, layout="CHW")
    clips = np.random.default_rng(0).integers(0, 256, (3, 1, 12, 14, 3), np.uint8)
    wrapped = Recogniser(OneFrame(network), replace(spec, layout="TCHW"))
    assert np.array_equal(Recogniser(network, spec)(clips), wrapped(clips))
    with pytest.raises(BadValue, match="clips of 1 frame, not of 2"):
        Recogniser(network, spec)(np.repeat(clips, 2, 1))
    with pytest.raises(BadValue, match="frames must be 1, not 8"):
        replace(spec, frames=8)


@pytest.mark.parametrize("frames", [1, 4])
def test_image_classifier_with_clip_input_suggests_single_frames(frames: int) -> None:
    model = Recogniser(image_network(), InputSpec(frames=frames, resize=None, size=8))
    with pytest.raises(BadValue, match="single images give frames=1, layout='CHW'"):
        model(np.zeros((1, frames, 12, 12, 3), np.uint8))


def test_stride_is_optional() -> None:
    spec = InputSpec(frames=8, step=2, resize=40, size=32, spread="even")
    assert spec.stride == 16
    assert spec == InputSpec(8, 16, 40, 32, step=2, spread="even")
    with pytest.raises(BadValue, match="stride must be at least 1, got 0"):
        InputSpec(frames=8, stride=0, resize=40, size=32)
    with pytest.raises(BadValue, match="resize and size must be given"):
        InputSpec(frames=8)


def test_module_without_a_spec_takes_input_fields() -> None:
    model = as_recogniser(image_network(), "mine:net", None, {"frames": 1, "size": 8, "layout": "CHW"})
    assert model.spec == InputSpec(frames=1, resize=8, size=8, layout="CHW")
    with pytest.raises(BadValue, match="say what it wants to see: size as input, or --input"):
        as_recogniser(image_network(), "mine:net", None, {"frames": 1})
    with pytest.raises(BadValue, match=r"needs an InputSpec.*--input frames=8 --input size=224"):
        as_recogniser(image_network(), "mine:net", None, {})
