"""Verbs of networks: training, export as ONNX files, and the comparison of preparations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.formatting import shorten
from jostle.core.progress import Progress
from jostle.errors import BadValue, UnknownName
from jostle.mending.loading import BUNDLED, load_inspector
from jostle.models.loading.detectors import load_detector
from jostle.models.loading.names import need_torch
from jostle.models.loading.recognisers import load_recogniser

if TYPE_CHECKING:
    from jostle.core.types.clip import Clip, Frames
    from jostle.models.input_spec import InputSpec
    from jostle.models.onnx_export import OnnxFile
    from jostle.models.preprocessing.transforms import PreparationDifference
    from jostle.training.config import RunConfig
    from jostle.training.events import Watch
    from jostle.training.loop import TrainingResult

INSPECTOR = "inspector"  # name of the part to export


def train(
    config: str | Path | RunConfig,
    out: str | Path,
    *,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> TrainingResult:
    """Train a detector, a recogniser, an inspector or what a plugin trains; a run that was stopped in `out` goes on.

    Args:
        config: a TOML file, whose `task` says what is trained, or the settings themselves.
        out: folder for checkpoint, log and weights.
        overrides: `key=value`, on top of the file.
        progress: called with (steps done, steps in all).
        watch: called with what the run is going to do, then after each step with where it stands: loss and scores.
    """
    need_torch("training")
    from jostle.training.config import RunConfig
    from jostle.training.task import read_training

    if isinstance(config, str | Path):
        config = read_training(config, overrides)
    elif list(overrides):
        raise BadValue("overrides go with a file of settings; change the settings themselves")
    if not isinstance(config, RunConfig):
        raise BadValue(f"config is the path of a TOML file or the settings of a training task, not {shorten(config)}")
    config.check_names()
    from jostle.training.loop import train as run

    return run(config, Path(out), on_step=progress, watch=watch)


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
    need_torch("export to ONNX")
    path = Path(out)
    if isinstance(part, str):
        part, name = _load_part(part, weights, changes), part
    elif weights is not None or changes:
        raise BadValue("weights and settings go with the name of a part; one that is loaded has them already")
    else:
        name = type(part).__name__
    from jostle.mending.inspection import Inspector
    from jostle.models.detection.detector import Detector
    from jostle.models.onnx_export import export_detector, export_recogniser
    from jostle.models.recognition.recogniser import Recogniser

    if isinstance(part, Inspector):
        return part.export(path, side=network)
    if isinstance(part, Recogniser):
        return export_recogniser(part, path)
    if isinstance(part, Detector):
        return export_detector(part, path, name)
    raise BadValue(f"{name}: only an inspector, a recogniser or a feature detector can be exported")


def _load_part(name: str, weights: str | Path | None, changes: dict[str, Any]) -> Any:
    from jostle.models.detection.detector import detectors
    from jostle.models.recognition.recogniser import recognisers

    if name == INSPECTOR:
        return load_inspector(weights or BUNDLED)
    if name in detectors:
        return load_detector(name, weights=weights, **changes)
    if name in recognisers or "/" in name or ":" in name:
        return load_recogniser(name, weights=weights, **changes)
    raise UnknownName("part to export", name, [INSPECTOR, *detectors, *recognisers])


def compare_preparation(
    model: str | InputSpec | Any, transform: str | Callable[[Any], Any], video: str | Path | Clip | Frames | None = None
) -> PreparationDifference:
    """Compare how a model's frames are prepared here with a transform of yours, as it was used in training.

    Args:
        model: a recogniser's name, an import path, an object with a `spec`, or an `InputSpec`.
        transform: a callable such as torchvision's `Compose`, or its import path. It is given a tensor (T, 3, H, W)
            uint8, or single pictures if it refuses that.
        video: a file, a clip or frames (T, H, W, 3) uint8; by default frames of odd sizes are made, at which ways of
            rounding differ.

    Raises:
        BadValue: if there is no spec, or F193 if the transform takes no frames.
    """
    need_torch("preparation of frames")
    from jostle.core.plugins import import_object, is_import_path
    from jostle.models.input_spec import InputSpec
    from jostle.models.preprocessing.transforms import compare_preparation as compare
    from jostle.models.recognition.recogniser import find_kind

    if isinstance(model, str):
        model = import_object(model, "model") if is_import_path(model) else find_kind(model).spec
    spec = model if isinstance(model, InputSpec) else getattr(model, "spec", None)
    if not isinstance(spec, InputSpec):
        raise BadValue(
            "the model has no InputSpec of its own: give an import path of an object with the attribute 'spec', or a "
            "name of `jostle names models` whose input does not come with its weights"
        )
    call = import_object(transform, "transform") if isinstance(transform, str) else transform
    if not callable(call):
        raise BadValue(f"the transform is a {type(call).__name__}, which cannot be called", fault="F193")
    if isinstance(video, str | Path):
        from jostle.api.video import read

        video = read(video)
    frames: Any = getattr(video, "frames", video)
    return compare(spec, call, frames)
