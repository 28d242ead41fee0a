"""Fault F117: folders of copies and of features that somebody was at."""

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


def built(root: Path, out: Path) -> None:
    api.build(root / "tiny-c.toml", data=root / "data", out=out, cells=["freeze:3"], jobs=1)


def extracted(root: Path, out: Path) -> None:
    videos = {path.stem: path for path in sorted((root / "data").glob("*.mkv"))}
    extract_videos(videos, partial(TwoParts, 8, 2), out, name="two_parts")


@pytest.mark.fault("F117")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 50])
@pytest.mark.parametrize(
    ("make", "name", "verbs"),
    [(built, "jostle.json", (lambda root, out: api.verify(out), built)), (extracted, "features.json", (extracted,))],
)
def test_f117_they_are_refused_or_made_again(
    tmp_path: Path,
    make: Callable[[Path, Path], None],
    name: str,
    verbs: tuple[Callable[[Path, Path], Any], ...],
    every: int,
) -> None:
    root = write_folder(tmp_path / "here")
    make(root, tmp_path / "whole")
    found = []
    for number, tampering in enumerate([*tamperings_with(tmp_path / "whole", name)][::every]):
        for verb in verbs:
            out = tmp_path / f"tampered-{number}"
            shutil.copytree(tmp_path / "whole", out)
            tampering.do(out / name)
            try:
                verb(root, out)
            except JostleError as error:
                if error.exit_code not in (3, 6):
                    found.append(f"{tampering}: {error.exit_code}, {error}")
            except Exception as error:
                found.append(f"{tampering}: {type(error).__name__}: {error}")
            shutil.rmtree(out)
    assert found == []
