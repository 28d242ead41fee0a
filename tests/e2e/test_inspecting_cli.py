"""`jostle inspect` and `jostle mend` on the command line: damaged frames of a puppet film are found and mended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from helpers.command_line import assert_refused, call, succeed
from jostle.api import draw_inspection, inspection
from jostle.core.types.clip import Frames
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.encode import Writer


@pytest.fixture(scope="module")
def film() -> Frames:
    return untrimmed(11, "inspected", cast=tuple(CASTS["validation"])).draw(200, 320)


@pytest.fixture(scope="module")
def video(film: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("video") / "struck.mp4"
    damaged_film = jostle.corrupt(film, "thumos14-c/overexposure:1", placement="frames:60-65")
    with Writer(path, size=(112, 112), fps=24) as writer:
        for frame in damaged_film:
            writer.write(frame)
    return path


@pytest.mark.parametrize("causal", [False, True])
def test_only_damaged_frames_are_found(film: Frames, causal: bool) -> None:
    inspector = jostle.load_inspector()
    assert not inspection(film, inspector=inspector, causal=causal).stretches
    damaged_film = jostle.corrupt(film, "thumos14-c/overexposure:1", placement="frames:60-65")
    result = inspection(damaged_film, inspector=inspector, causal=causal)
    assert not result.damaged[:60].any()
    assert not result.damaged[65:].any()
    assert result.damaged[60:65].any()
    assert result.probabilities[60:65].mean() > 5 * np.delete(result.probabilities, range(60, 65)).mean()
    updates: list[tuple[int, int]] = []
    probabilities = jostle.inspect(
        damaged_film, inspector=inspector, causal=causal, progress=lambda *step: updates.append(step)
    )
    assert updates == [(number, 120) for number in range(1, 121)]
    assert probabilities.shape == (120,)
    assert probabilities.dtype == np.float64


def test_inspect_prints_and_draws(video: Path, tmp_path: Path) -> None:
    words = ("inspect", video, "--device", "cpu")
    _, out, err = succeed(*words, "-o", tmp_path / "strip.png", "--threshold", 0.5)
    assert "60-64" in out
    assert "2.50-2.71" in out
    assert "5 of 120 frames damaged" in err
    assert (tmp_path / "strip.png").read_bytes().startswith(b"\x89PNG")
    payload = succeed(*words, "--json", "--causal", "--threshold", 0.5).json
    assert all(60 <= stretch["first"] < stretch["stop"] <= 65 for stretch in payload["stretches"])
    assert payload["damaged"] == sum(p >= 0.5 for p in payload["probabilities"]) > 0
    assert len(payload["probabilities"]) == payload["frames"] == 120
    assert payload["causal"] is True
    assert payload["fingerprint"] == jostle.load_inspector().fingerprint
    assert "all of 120 frames damaged" in succeed(*words, "--threshold", 0).err
    assert_refused(2, "written as .png, .pdf, .svg", *words, "-o", tmp_path / "strip.txt")
    assert_refused(3, "no such file", *words, "--inspector", tmp_path / "none.safetensors")
    assert call("inspect", tmp_path / "none.mp4").code == 3


def test_drawing_is_reproducible(film: Frames, tmp_path: Path) -> None:
    result = inspection(film[:40], pictures=4)
    assert len(result.small) == 4
    one, two = (draw_inspection(result, tmp_path / f"{name}.svg", title="x").read_bytes() for name in "ab")
    assert one == two


def test_mend_keeps_timestamps_and_intact_frames(film: Frames, video: Path, tmp_path: Path) -> None:
    out = tmp_path / "mended.mkv"
    words = ("mend", video, "-o", out, "--device", "cpu")
    payload = succeed(*words, "--lossless", "--json", "--threshold", 0.5).json
    assert (payload["frames"], payload["mended"], payload["how"]) == (120, 5, "blend")
    before, after = jostle.read(video), jostle.read(out)
    assert np.allclose(after.pts, before.pts, atol=1e-3)
    intact = np.ones(120, np.bool_)
    intact[60:65] = False
    assert (after.frames[intact] == before.frames[intact]).all()
    errors = [np.abs(frames[60:65].astype(int) - film[60:65]).mean() for frames in (before.frames, after.frames)]
    assert errors[1] < 0.2 * errors[0]
    assert_refused(2, "pass --overwrite to replace it", *words)
    assert call("mend", video, "-o", video).code == 2
