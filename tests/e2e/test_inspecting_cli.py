"""`inspect` as a user meets it: struck frames of a puppet film are found, clean ones are left alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from jostle.api import draw_inspection, inspection
from jostle.cli.app import _run
from jostle.core.types.clip import Frames
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.encode import Writer

Call = Callable[..., int]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line with these words."""

    def called(*words: str | Path) -> int:
        monkeypatch.setattr(sys, "argv", ["jostle", *map(str, words), "--device", "cpu"])
        return _run()

    return called


@pytest.fixture(scope="module")
def film() -> Frames:
    return untrimmed(11, "inspected", cast=tuple(CASTS["validation"])).draw(200, 320)


@pytest.fixture(scope="module")
def video(film: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("video") / "struck.mp4"
    struck = jostle.corrupt(film, "thumos14-c/overexposure:1", placement="frames:60-65")
    with Writer(path, size=(112, 112), fps=24) as writer:
        for frame in struck:
            writer.write(frame)
    return path


@pytest.mark.parametrize("causal", [False, True])
def test_struck_frames_are_found_and_clean_ones_left_alone(film: Frames, causal: bool) -> None:
    inspector = jostle.load_inspector()
    assert not inspection(film, inspector=inspector, causal=causal).stretches
    struck = jostle.corrupt(film, "thumos14-c/overexposure:1", placement="frames:60-65")
    found = inspection(struck, inspector=inspector, causal=causal)
    assert not found.struck[:60].any()
    assert not found.struck[65:].any()
    assert found.struck[60:65].any()
    assert found.probabilities[60:65].mean() > 5 * np.delete(found.probabilities, range(60, 65)).mean()
    done: list[tuple[int, int]] = []
    told = jostle.inspect(struck, inspector=inspector, causal=causal, progress=lambda *at: done.append(at))
    assert done == [(number, 120) for number in range(1, 121)]
    assert told.shape == (120,)
    assert told.dtype == np.float64


def test_the_command_line_tells_and_draws(
    video: Path, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "strip.png"
    assert call("inspect", video, "-o", out, "--threshold", "0.5") == 0
    said = capsys.readouterr()
    assert "60-64" in said.out
    assert "2.50-2.71" in said.out
    assert "5 of 120 frames damaged" in said.err
    assert out.read_bytes().startswith(b"\x89PNG")
    assert call("inspect", video, "--json", "--causal", "--threshold", "0.5") == 0
    told = json.loads(capsys.readouterr().out)
    assert all(60 <= one["first"] < one["stop"] <= 65 for one in told["stretches"])
    assert told["struck"] == sum(p >= 0.5 for p in told["probabilities"]) > 0
    assert len(told["probabilities"]) == told["frames"] == 120
    assert told["causal"] is True
    assert told["fingerprint"] == jostle.load_inspector().fingerprint
    assert call("inspect", video, "--threshold", "0") == 0
    assert "all of 120 frames damaged" in capsys.readouterr().err


def test_wrong_asking_is_answered(video: Path, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("inspect", video, "-o", tmp_path / "strip.txt") == 2
    assert "written as .png, .pdf, .svg" in capsys.readouterr().err
    assert call("inspect", video, "--inspector", tmp_path / "none.safetensors") != 0
    assert "no such file" in capsys.readouterr().err
    assert call("inspect", tmp_path / "none.mp4") == 3


def test_a_drawing_is_the_same_every_time(film: Frames, tmp_path: Path) -> None:
    found = inspection(film[:40], pictures=4)
    assert len(found.small) == 4
    one, two = (draw_inspection(found, tmp_path / f"{name}.svg", title="x").read_bytes() for name in "ab")
    assert one == two


def test_mending_a_file_keeps_its_times_and_whole_frames(
    film: Frames, video: Path, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mended.mkv"
    assert call("mend", video, "-o", out, "--lossless", "--json", "--threshold", "0.5") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["frames"], told["mended"], told["how"]) == (120, 5, "blend")
    before, after = jostle.read(video), jostle.read(out)
    assert np.allclose(after.pts, before.pts, atol=1e-3)
    kept = np.ones(120, np.bool_)
    kept[60:65] = False
    assert (after.frames[kept] == before.frames[kept]).all()
    away = [np.abs(some[60:65].astype(int) - film[60:65]).mean() for some in (before.frames, after.frames)]
    assert away[1] < 0.2 * away[0]
    assert call("mend", video, "-o", out) == 2
    assert "pass --overwrite to replace it" in capsys.readouterr().err
    assert call("mend", video, "-o", video) == 2
