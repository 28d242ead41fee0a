"""The bytes of every corruption, pinned: a video made today can be made again after the next change."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

import jostle
from jostle import Clip
from jostle.corrupting.corruption import corruptions
from jostle.corrupting.profile import profiles
from jostle.corrupting.spec import Spec

FILE = Path(__file__).with_name("corruption-hashes.json")
NAMES = list(corruptions) + [f"{table.name}/{name}" for table in profiles.values() for name in table.entries]


def place(level: str) -> str:
    """What the bytes depend on besides the code: the architecture, OpenCV, and for codecs FFmpeg's build."""
    library = "av" if level == "codec" else "opencv-python-headless"
    return f"{platform.machine()} {library} {version(library)}"


@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_pinned(name: str, clip: Clip, request: pytest.FixtureRequest) -> None:
    highest = len(Spec.parse(name).entry.values)
    here = place(Spec.parse(name).corruption.level)
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for severity in ((highest + 1) // 2, highest):
        spec = f"{name}:{severity}"
        found = hashlib.sha256(jostle.corrupt(clip, spec, seed=1, video_id="golden").frames.tobytes()).hexdigest()
        if request.config.getoption("--update-golden"):
            known.setdefault(here, {})[spec] = found
        elif here not in known:
            pytest.skip(f"no golden hashes for {here}")
        else:
            assert found == known[here].get(spec), f"{spec} gives other bytes than before"
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
