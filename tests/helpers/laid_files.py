"""Folders of data sets that a test lays out file by file, and what a loaded data set says of its videos."""

from __future__ import annotations

from pathlib import Path

from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset


def write_text(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def classes_of(data: Dataset) -> dict[str, str]:
    labels = data.labels
    return {labels.videos[v]: labels.classes[k] for v, k in zip(labels.video, labels.label, strict=True)}


def rows_of(segments: Segments) -> list[tuple[str, float, float]]:
    return [(segments.classes[k], s, e) for k, s, e in zip(segments.label, segments.start, segments.end, strict=True)]
