"""Models of libraries that are not installed: the error names the extra that brings them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import jostle
from jostle.errors import MissingExtra
from jostle.models.language.loading import load_question_model
from jostle.models.loading.extractors import load_extractor
from jostle.models.loading.objects import load_object_detector
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.weights.resolve import fetch_from_hub

SCALE: dict[str, Any] = {"mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}


@pytest.mark.parametrize(
    ("module", "message", "load"),
    [
        ("timm", r"timm/resnet18 needs packages .*jostle\[timm\]",
         lambda _: load_recogniser("timm/resnet18", weights="random")),
        ("torchvision.models.video", r"r3d_18 needs packages .*jostle\[torchvision\]",
         lambda _: load_recogniser("r3d_18", weights="random")),
        ("torchvision.models.detection", r"fcos_resnet50_fpn needs packages .*jostle\[torchvision\]",
         lambda _: load_object_detector("fcos_resnet50_fpn", weights={})),
        ("transformers", r"videomae_v2_g needs packages .*jostle\[hf\]",
         lambda _: load_extractor("videomae_v2_g", weights={})),
        ("transformers", r"jostle\[hf\]", lambda folder: load_recogniser("videomae", weights=folder("videomae"))),
        ("transformers", r"jostle\[hf\]", lambda folder: load_object_detector("rt_detr", weights=folder("rt_detr"))),
        ("transformers", r"jostle\[hf\]", lambda folder: load_question_model(str(folder("qwen2_vl")))),
        ("onnxruntime", r"jostle\[onnx\]", lambda _: load_recogniser("onnx", weights="net.onnx", **SCALE)),
        ("onnxscript", r"jostle\[export\]", lambda folder: jostle.export("inspector", folder("x") / "a.onnx")),
        ("huggingface_hub", r"jostle\[hf\]", lambda _: fetch_from_hub("hf:org/net")),
    ],
)  # fmt: skip
def test_missing_libraries_are_named(
    module: str, message: str, load: Callable[[Any], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder_of(kind: str) -> Path:
        (tmp_path / "config.json").write_text(f'{{"model_type": "{kind}"}}')
        return tmp_path

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=message):
        load(folder_of)
