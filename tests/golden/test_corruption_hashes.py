"""Pinned bytes of every corruption: a corrupted video stays reproducible after every change."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import pytest

import jostle
from jostle import Clip
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec, profiles

FILE = Path(__file__).with_name("corruption-hashes.json")
NAMES = list(corruptions) + [f"{table.name}/{name}" for table in profiles.values() for name in table.entries]


def library_version(level: str) -> str:
    """Return the library that the bytes depend on besides the code: OpenCV, or FFmpeg's build for codecs."""
    name = "av" if level == "codec" else "opencv-python-headless"
    return f"{name} {version(name)}"


@pytest.mark.parametrize("name", NAMES)
def test_corrupted_bytes_are_pinned(name: str, clip: Clip, request: pytest.FixtureRequest) -> None:
    highest = len(Spec.parse(name).entry.values)
    version_key = library_version(Spec.parse(name).corruption.level)
    pinned = json.loads(FILE.read_text()) if FILE.exists() else {}
    for severity in ((highest + 1) // 2, highest):
        spec = f"{name}:{severity}"
        digest = hashlib.sha256(jostle.corrupt(clip, spec, seed=1, video_id="golden").frames.tobytes()).hexdigest()
        if request.config.getoption("--update-golden"):
            pinned.setdefault(version_key, {})[spec] = digest
        else:
            assert version_key in pinned, (
                f"nothing is pinned for {version_key}: run with --update-golden and explain what moved"
            )
            assert digest == pinned[version_key].get(spec), f"{spec} gives other bytes than before"
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(pinned, indent=1, sort_keys=True) + "\n")
