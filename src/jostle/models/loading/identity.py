"""Identity of models: fingerprints of their weights, from a file, a folder or the tensors themselves."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

Identity = tuple[str | None, Literal["file", "folder", "tensors", "nothing"]]


def identify_weights(path: Path | None) -> Identity:
    """Return the fingerprint of a file or folder of weights; `random` weights are their own."""
    from jostle.io.video.source import file_fingerprint

    if path is None or str(path) == "random":
        return (None if path is None else "random"), "nothing"
    return (folder_fingerprint(path), "folder") if path.is_dir() else (file_fingerprint(path), "file")


def identify_tensors(thing: Any) -> Identity:
    """Return the fingerprint of the tensors of a model object, where it has some."""
    from jostle.models.checkpoints import tensors_fingerprint

    fingerprint = tensors_fingerprint(thing)
    return fingerprint, "nothing" if fingerprint is None else "tensors"


def folder_fingerprint(folder: Path) -> str:
    """Return the fingerprint of the files of a folder, independent of the folder's name."""
    from jostle.io.video.source import file_fingerprint

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {file_fingerprint(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
