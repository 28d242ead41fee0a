"""What a run says while its output is a file, what it draws, and the cards it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.tiny_clips import write_clips

pytest.importorskip("torch")

TITLE = 'Mine: "films" & [x](y) #1 <b> | *bold*'
SLOW = """
import time

import numpy as np

import jostle
from jostle.extend import InputSpec, Recogniser


def slow(clips):
    time.sleep(1.5)
    return np.sin(clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(slow, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
jostle.run("tiny-p.toml", model=net, data="clips", out="out", jobs=1)
"""
GIVEN = """
import jostle
from jostle.extend import Segments


def detector(frames, duration):
    return Segments([0.2], [duration - 0.4], [0], [0.5], ("wave",))


names = ("puppet_test_0003", "puppet_test_0007")
videos = {name: "clips/test/walk/b.mkv" for name in names}
try:
    jostle.run("puppets-c", model=detector, videos=videos, out="out", cells=["clean"], jobs=1)
except jostle.JostleError as error:
    print(error)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_clips(tmp_path, TITLE)


def run(workspace: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=workspace,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_run_whose_output_is_a_file_says_how_far_it_is(workspace: Path) -> None:
    done = run(workspace, "-c", SLOW, JOSTLE_PROGRESS_EVERY="0.5")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("processing videos:")]
    assert len(lines) >= 2
    assert any("of 2" in line for line in lines)


def test_only_given_videos_are_used_of_a_drawn_data_set(workspace: Path) -> None:
    done = run(workspace, "-c", GIVEN, JOSTLE_CACHE="cache")
    assert [*(workspace / "cache").rglob("*.mp4")] == [], done.stderr
    assert "puppet_test_0001" not in done.stdout
    predictions = json.loads((workspace / "out" / "predictions" / "clean.json").read_text())
    assert sorted(predictions["results"]) == ["puppet_test_0003", "puppet_test_0007"]


@pytest.mark.fault("F204")
def test_a_title_in_a_card_is_escaped(workspace: Path) -> None:
    yaml = pytest.importorskip("yaml")
    words = ("-m", "jostle", "build", "tiny-p.toml", "--data", "clips", "-o", "built", "--layout", "hub")
    done = run(workspace, *words)
    assert done.returncode == 0, done.stderr
    card = (workspace / "built" / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    assert yaml.safe_load(head)["pretty_name"] == TITLE
    assert body.splitlines()[1] == '# Mine: "films" &amp; \\[x\\](y) \\#1 &lt;b> \\| \\*bold\\*'


FAILING = """
import numpy as np

import jostle
from jostle.extend import InputSpec, Recogniser

calls = []


def failing(clips):
    calls.append(1)
    if len(calls) > 2:  # after the clean videos
        raise RuntimeError
    return np.array([[0.1, 0.9]], np.float32).repeat(len(clips), 0)


net = Recogniser(failing, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
try:
    jostle.probe("tiny-p.toml", model=net, data="clips", out="out", kinds=["black_frame"], jobs=1)
except jostle.JostleError as error:
    print(error)
"""


@pytest.mark.fault("F203")
def test_a_probe_of_no_video_says_why(workspace: Path) -> None:
    done = run(workspace, "-c", FAILING)
    assert "none of 2 videos could be probed: " in done.stdout, done.stdout + done.stderr
    reason = done.stdout.partition("could be probed: ")[2].strip()
    assert reason.count("RuntimeError") == 2
