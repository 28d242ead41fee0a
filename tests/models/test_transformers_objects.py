"""Object detectors of transformers, tiny and with random weights, compared with the library's postprocessing."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jostle.errors import BadValue, CheckpointError
from jostle.models.loading.objects import load_object_detector
from jostle.models.objects.transformers import ObjectPreprocessing, resized

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
SMALL: dict[str, Any] = {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "embedding_size": 8}
LAYERS: dict[str, Any] = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_queries": 12,
}  # fmt: skip
RT_DETR_LAYERS: dict[str, Any] = {
    **LAYERS, "encoder_hidden_dim": 32, "encoder_in_channels": [8, 8, 8], "decoder_in_channels": [32, 32, 32],
    "feat_strides": [8, 16, 32], "num_feature_levels": 3, "hidden_expansion": 0.5,
}  # fmt: skip
# By `model_type`: the name in jostle, the class prefix in transformers, and whether the last class is "no object".
KINDS = {
    "detr": ("detr", "Detr", True),
    "conditional_detr": ("detr", "ConditionalDetr", False),
    "deformable_detr": ("detr", "DeformableDetr", False),
    "rt_detr": ("rt_detr", "RTDetr", False),
    "rt_detr_v2": ("rt_detr", "RTDetrV2", False),
}
SIZES = {"detr": {"shortest_edge": 64, "longest_edge": 96}, "rt_detr": {"height": 64, "width": 96}}


def save_network(kind: str, folder: Path) -> torch.nn.Module:
    """Save a tiny network with random weights and three classes, and return it."""
    library = importlib.import_module("transformers")
    is_rt_detr = kind.startswith("rt")
    backbone = library.RTDetrResNetConfig if is_rt_detr else library.ResNetConfig
    stages = ["stage2", "stage3", "stage4"] if is_rt_detr or kind == "deformable_detr" else ["stage4"]
    config = getattr(library, f"{KINDS[kind][1]}Config")(
        backbone_config=backbone(**SMALL, layer_type="basic", out_features=stages),
        id2label={0: "cat", 1: "N/A", 2: "dog"},
        **(RT_DETR_LAYERS if is_rt_detr else LAYERS),
        **({} if is_rt_detr else {"use_timm_backbone": False, "use_pretrained_backbone": False}),
    )
    torch.manual_seed(1)
    network = getattr(library, f"{KINDS[kind][1]}ForObjectDetection")(config).eval()
    network.save_pretrained(folder)
    assert isinstance(network, torch.nn.Module)
    return network


@needs_transformers
@pytest.mark.parametrize("kind", KINDS)
def test_boxes_equal_the_raw_network_outputs(kind: str, tmp_path: Path) -> None:
    network = save_network(kind, tmp_path)
    name, _, has_no_object_class = KINDS[kind]
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": SIZES[name]}))
    detector = load_object_detector(name, weights=str(tmp_path))
    assert detector.classes == ("cat", "", "dog")
    frames = np.random.default_rng(0).integers(0, 256, (2, 48, 64, 3), np.uint8)
    results = detector(frames)
    prepare = ObjectPreprocessing.of("", {"size": SIZES[name], "do_normalize": name == "detr"})
    for frame, boxes in zip(frames, results, strict=True):
        with torch.inference_mode():
            outputs = network(pixel_values=prepare(torch.tensor(frame).permute(2, 0, 1)[None] / 255))
        scores = outputs.logits.softmax(-1)[0, :, :-1] if has_no_object_class else outputs.logits.sigmoid()[0]
        x, y, width, height = outputs.pred_boxes[0].numpy().T
        corners = [64 * (x - width / 2), 48 * (y - height / 2), 64 * (x + width / 2), 48 * (y + height / 2)]
        assert boxes.box == pytest.approx(np.array(corners).T, abs=1e-3)
        assert boxes.label.tolist() == scores.argmax(1).tolist()
        assert boxes.sure == pytest.approx(scores.max(1).values.numpy(), abs=1e-6)
        assert len(boxes) == 12
    (single,) = detector(frames[1:])
    assert np.array_equal(single.box, results[1].box)
    other = "rt_detr" if name == "detr" else "detr"
    with pytest.raises(CheckpointError, match=f"holds a '{kind}', not a .*; load it as '{name}'"):
        load_object_detector(other, weights=tmp_path)


def processor(name: str) -> Any:
    """Return the image processor of the library without its constructor, which needs torchvision."""
    module = pytest.importorskip(f"transformers.models.{name}.image_processing_{name}")
    kind = getattr(module, {"detr": "DetrImageProcessor", "rt_detr": "RTDetrImageProcessor"}[name])
    return kind.__new__(kind)


@needs_transformers
@pytest.mark.parametrize("kind", ["detr", "rt_detr"])
def test_boxes_equal_the_postprocessing_of_the_library(kind: str, tmp_path: Path) -> None:
    network = save_network(kind, tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": SIZES[kind], "do_normalize": False}))
    frame = np.random.default_rng(0).integers(0, 256, (1, 64, 96, 3), np.uint8)  # needs no resizing
    (boxes,) = load_object_detector(kind, weights=tmp_path)(frame)
    with torch.inference_mode():
        outputs = network(pixel_values=torch.tensor(frame).permute(0, 3, 1, 2) / 255)
    (expected,) = processor(kind).post_process_object_detection(outputs, threshold=0.0, target_sizes=[(64, 96)])
    if kind == "detr":
        assert boxes.box == pytest.approx(expected["boxes"].numpy(), abs=1e-3)
        assert boxes.label.tolist() == expected["labels"].tolist()
        assert boxes.sure == pytest.approx(expected["scores"].numpy(), abs=1e-6)
        return
    # The library repeats a box for every class with a high score; jostle keeps the best class.
    for box, score in zip(expected["boxes"].numpy(), expected["scores"].tolist(), strict=True):
        same = np.abs(boxes.box - box).max(1) < 1e-3
        assert same.any()
        assert boxes.sure[same].max() >= score - 1e-6
    assert boxes.sure.max() == pytest.approx(expected["scores"].max().item(), abs=1e-6)


@needs_transformers
@pytest.mark.parametrize("size", [(480, 640), (640, 480), (240, 1000), (1333, 333), (800, 900), (37, 37)])
def test_resized_sides_equal_the_library(size: tuple[int, int]) -> None:
    module = importlib.import_module("transformers.image_transforms")
    if not hasattr(module, "get_size_with_aspect_ratio"):
        module = pytest.importorskip("transformers.models.detr.image_processing_detr")
    assert resized(*size, 800, 1333) == module.get_size_with_aspect_ratio(size, 800, 1333)


def test_preprocessing_follows_the_folder_settings() -> None:
    grey = torch.full((1, 3, 30, 40), 0.5)
    prepared = ObjectPreprocessing.of("", {"size": 60, "max_size": 70})(grey)
    assert prepared.shape == (1, 3, 52, 70)
    assert prepared[0, :, 0, 0].numpy() == pytest.approx([(0.5 - 0.485) / 0.229, (0.5 - 0.456) / 0.224, 0.094 / 0.225])
    squashed = ObjectPreprocessing.of("", {"size": {"height": 20, "width": 20}, "do_normalize": False, "resample": 3})
    assert squashed.mode == "bicubic"
    assert squashed(grey).shape == (1, 3, 20, 20)
    assert squashed(grey).numpy() == pytest.approx(0.5)
    assert ObjectPreprocessing.of("", {"do_resize": False})(grey).shape == grey.shape
    with pytest.raises(CheckpointError, match=r"here: size is \{'longest': 3\}"):
        ObjectPreprocessing.of("here", {"size": {"longest": 3}})


@needs_transformers
def test_checkpoint_without_a_head_is_refused_and_class_names_are_optional(tmp_path: Path) -> None:
    network = save_network("detr", tmp_path / "whole")
    network.model.save_pretrained(tmp_path / "trunk")  # type: ignore[union-attr, operator]
    with pytest.raises(CheckpointError, match="no head that finds boxes"):
        load_object_detector("detr", weights=tmp_path / "trunk")
    settings = json.loads((tmp_path / "whole" / "config.json").read_text())
    settings["id2label"] = {str(i): f"LABEL_{i}" for i in range(3)}
    (tmp_path / "whole" / "config.json").write_text(json.dumps(settings))
    assert load_object_detector("detr", weights=tmp_path / "whole").classes == ()


def test_invalid_folders_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="weights are a folder"):
        load_object_detector("detr", weights={"a": torch.zeros(1)})
    with pytest.raises(CheckpointError, match=r"config\.json: cannot be read"):
        load_object_detector("rt_detr", weights=tmp_path)
