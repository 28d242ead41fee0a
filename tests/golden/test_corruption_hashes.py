"""The bytes of every corruption, pinned: a video made today can be made again after the next change."""

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


def library(level: str) -> str:
    """What the bytes depend on besides the code: OpenCV, for codecs FFmpeg's build, and never the processor."""
    name = "av" if level == "codec" else "opencv-python-headless"
    return f"{name} {version(name)}"


@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_pinned(name: str, clip: Clip, request: pytest.FixtureRequest) -> None:
    highest = len(Spec.parse(name).entry.values)
    here = library(Spec.parse(name).corruption.level)
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for severity in ((highest + 1) // 2, highest):
        spec = f"{name}:{severity}"
        found = hashlib.sha256(jostle.corrupt(clip, spec, seed=1, video_id="golden").frames.tobytes()).hexdigest()
        if request.config.getoption("--update-golden"):
            known.setdefault(here, {})[spec] = found
        else:
            assert here in known, f"nothing is pinned for {here}: run with --update-golden and explain what moved"
            assert found == known[here].get(spec), f"{spec} gives other bytes than before"
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
