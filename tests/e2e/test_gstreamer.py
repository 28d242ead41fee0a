"""The GStreamer example, run by a Python that has its bindings; skipped without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gstreamer" / "watch_pipeline.py"
PROBE = """
import sys, gi
gi.require_version("Gst", "1.0"); gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo
Gst.init(None)
assert Gst.ElementFactory.find("videotestsrc")
assert "%d.%d" % sys.version_info[:2] == sys.argv[1]
"""
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"  # compiled packages load on no other


@pytest.fixture(scope="module")
def gst_python() -> str:
    for name in ("/usr/bin/python3", shutil.which("python3") or ""):
        if name and subprocess.run([name, "-c", PROBE, VERSION], capture_output=True, timeout=60).returncode == 0:
            return name
    pytest.skip(f"no Python {VERSION} with GStreamer's bindings and plugins")


@pytest.mark.slow
def test_damaged_buffers_are_dropped_and_reported(gst_python: str) -> None:
    """Rows of 322 pixels are padded, as they are no multiple of four."""
    caps = "video/x-raw,format=RGB,width=322,height=240"
    pipeline = f"videotestsrc num-buffers=%d pattern=%s ! {caps} ! identity name=watch ! fakesink"
    paths = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    # A stream that begins black is called so after five seconds of 30 frames; before, the network may be uncertain.
    for pattern, frames, black in (("smpte", 20, 0), ("black", 170, 20)):
        command = [gst_python, str(EXAMPLE), pipeline % (frames, pattern)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        kinds = [json.loads(line)["kind"] for line in result.stdout.splitlines()]
        assert result.stderr.splitlines()[-1] == f"{len(kinds)} frames damaged"
        assert kinds == ["unknown"] * (len(kinds) - black) + ["black"] * black
        assert black or not kinds
