"""The verb that writes networks as ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue, UnknownName

if TYPE_CHECKING:
    from jostle.models.onnx_export import OnnxFile

INSPECTOR = "inspector"


def export(
    part: str | Any,
    out: str | Path,
    *,
    weights: str | Path | None = None,
    network: str = "causal",
    **changes: Any,
) -> OnnxFile:
    """Write a network as an ONNX file, compared with torch where ONNX Runtime is installed.

    Args:
        part: `inspector`, or the name of a recogniser or of a feature detector; or one that is loaded.
        out: the .onnx file to write; it appears when it is complete, or not at all.
        weights: of the part; for `inspector` by default the bundled ones.
        network: of an inspector: `causal` for live use, or `both`, which looks at both sides.
        changes: settings of a model, as when it is loaded.

    Raises:
        BadValue: if torch cannot export this network.
        MissingExtra: if onnx and onnxscript are not installed.
    """
    from jostle.models.loading.names import need_torch

    need_torch("export to ONNX")
    path = Path(out)
    if isinstance(part, str):
        part, name = _load(part, weights, changes), part
    elif weights is not None or changes:
        raise BadValue("weights and settings go with the name of a part; one that is loaded has them already")
    else:
        name = type(part).__name__
    from jostle.mending.exported_inspector import export_inspector
    from jostle.mending.inspector import Inspector
    from jostle.models.detection.detector import Detector
    from jostle.models.exported_models import export_detector, export_recogniser
    from jostle.models.recognition.recogniser import Recogniser

    if isinstance(part, Inspector):
        return export_inspector(part, path, side=network)
    if isinstance(part, Recogniser):
        return export_recogniser(part, path)
    if isinstance(part, Detector):
        return export_detector(part, path, name)
    raise BadValue(f"{name}: only an inspector, a recogniser or a feature detector can be exported")


def _load(name: str, weights: str | Path | None, changes: dict[str, Any]) -> Any:
    from jostle.mending.loading import BUNDLED, load_inspector
    from jostle.models.detection.detector import detectors
    from jostle.models.loading.models import load_detector, load_recogniser
    from jostle.models.recognition.recogniser import recognisers

    if name == INSPECTOR:
        return load_inspector(weights or BUNDLED)
    if name in detectors:
        return load_detector(name, weights=weights, **changes)
    if name in recognisers or "/" in name or ":" in name:
        return load_recogniser(name, weights=weights, **changes)
    raise UnknownName("part to export", name, [INSPECTOR, *detectors, *recognisers])
