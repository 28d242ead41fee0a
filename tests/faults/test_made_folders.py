"""Fault F117: tampered folders of corrupted copies and of features."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers.numpy_extractor import TwoParts
from helpers.tampering import tamperings_with
from helpers.tiny_run import write_folder
from jostle import api
from jostle.errors import JostleError
from jostle.features.folder import extract_videos


def build_copies(root: Path, out: Path) -> None:
    api.build(root / "tiny-c.toml", data=root / "data", out=out, cells=["freeze:3"], jobs=1)


def extract_features(root: Path, out: Path) -> None:
    videos = {path.stem: path for path in sorted((root / "data").glob("*.mkv"))}
    extract_videos(videos, partial(TwoParts, 8, 2), out, name="two_parts")


@pytest.mark.fault("F117")
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 50])
@pytest.mark.parametrize(
    ("make", "name", "verbs"),
    [
        (build_copies, "jostle.json", (lambda root, out: api.verify(out), build_copies)),
        (extract_features, "features.json", (extract_features,)),
        (build_copies, "manifest.jsonl", (build_copies,)),
        (extract_features, "manifest.jsonl", (extract_features,)),
    ],
)
def test_f117_tampered_folders_are_refused_or_rebuilt(
    tmp_path: Path,
    make: Callable[[Path, Path], None],
    name: str,
    verbs: tuple[Callable[[Path, Path], Any], ...],
    step: int,
) -> None:
    root = write_folder(tmp_path / "here")
    make(root, tmp_path / "whole")
    messages = []
    for number, tampering in enumerate([*tamperings_with(tmp_path / "whole", name)][::step]):
        for verb in verbs:
            out = tmp_path / f"tampered-{number}"
            shutil.copytree(tmp_path / "whole", out)
            tampering.do(out / name)
            try:
                verb(root, out)
            except JostleError as error:
                if error.exit_code not in (3, 6):
                    messages.append(f"{tampering}: {error.exit_code}, {error}")
            except Exception as error:
                messages.append(f"{tampering}: {type(error).__name__}: {error}")
            shutil.rmtree(out)
    assert messages == []
