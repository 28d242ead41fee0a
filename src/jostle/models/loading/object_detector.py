"""Loading of object detectors by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.models.loading.names import need_torch
from jostle.models.loading.user_model import Identity, folder_fingerprint
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.models.objects.object_detector import ObjectDetector


def load_object_detector(name: str, *, weights: str | Path | None = None, device: str = "cpu") -> ObjectDetector:
    """Load an object detector by name: (N, H, W, 3) uint8 frames in, scored `Boxes` out.

    Args:
        name: one of `jostle names objectdetectors`.
        weights: a checkpoint, or a folder of transformers; for those that come with jostle `clean`. None gives an
            error that says where to get them.
        device: `cpu` or `cuda`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("object detectors")
    from jostle.models.checkpoints import read_weights
    from jostle.models.objects.object_detector import load_object_detector as load

    path = None if weights is None else weights_path("objectdetectors", name, weights)
    if path is None or path.is_dir():
        return load(name, weights=None if path is None else str(path), device=device)
    return load(name, weights=read_weights(path), device=device)


@dataclass(frozen=True)
class NamedObjectDetector:
    """Registered object detector, with weights from a file or a folder."""

    name: str
    weights: str | Path | None

    def get(self) -> Any:
        return load_object_detector(self.name, weights=self.weights)

    def identity(self) -> Identity:
        from jostle.io.files.fingerprint import file_fingerprint

        if self.weights is None:
            return None, "nothing"
        path = weights_path("objectdetectors", self.name, self.weights)
        return (folder_fingerprint(path), "folder") if path.is_dir() else (file_fingerprint(path), "file")
