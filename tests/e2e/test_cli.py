"""The command line: output, exit codes, error messages and atomic writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest

import jostle
from helpers.command_line import assert_refused, succeed
from helpers.started import run
from jostle import Clip
from jostle.io.video.encode import Writer


def python(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run jostle in a new Python process, with environment variables."""
    command = [sys.executable, "-m", "jostle", *map(str, words)]
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "errors": "surrogateescape"}
    return subprocess.run(command, env={**os.environ, "NUMBA_NUM_THREADS": "1", **env}, **options)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("video") / "squares.mkv"
    write(path, clip_of(30))
    return path


def clip_of(frames: int) -> Clip:
    rng = np.random.default_rng(3)
    base = rng.integers(40, 200, (1, 48, 64, 3), dtype=np.uint8)
    moving = np.repeat(base, frames, 0)
    for t in range(frames):
        moving[t, 10:20, t : t + 12] = 250
    return Clip.at_rate(moving, 25)


def write(path: Path, clip: Clip) -> None:
    with Writer(path, size=clip.size, fps=clip.fps, codec="ffv1") as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)


def test_corrupt_equals_the_api(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mkv"
    result = run(
        "corrupt", video, "-c", "gaussian_noise:3", "-c", "fog:2", "-o", out, "--lossless", "--seed", 4, "-j", 2
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{out}\n"
    assert "30 of 30 frames corrupted" in result.stderr
    expected = jostle.corrupt(jostle.read(video), ["gaussian_noise:3", "fog:2"], seed=4, video_id="squares")
    assert np.array_equal(jostle.read(out).frames, expected.frames)


def test_json_goes_to_stdout_alone(video: Path, tmp_path: Path) -> None:
    called = succeed("corrupt", video, "-c", "freeze:3", "-o", tmp_path / "a.mp4", "--json", "-q")
    assert (called.json["frames"], called.json["damaged"], called.json["audio"]) == (30, 30, False)
    assert called.err == ""


def test_truth_determines_the_corrupted_frames(video: Path, tmp_path: Path) -> None:
    truth, out = tmp_path / "truth.json", tmp_path / "b.mkv"
    action = {"label": "wave", "segment": [0.4, 0.8]}
    truth.write_text(json.dumps({"database": {"squares": {"subset": "test", "annotations": [action]}}}))
    words = ("corrupt", video, "-c", "thumos14-c/black_frame:3", "--truth", truth, "--lossless", "-o")
    succeed(*words, out)
    assert np.flatnonzero(~jostle.read(out).frames.any((1, 2, 3))).tolist() == [15, 16]
    assert_refused(2, "did you mean squares", *words, tmp_path / "c.mkv", "--video-id", "square")


def test_output_as_images(video: Path, tmp_path: Path) -> None:
    succeed("corrupt", video, "-c", "brightness:2", "-o", tmp_path / "frames")
    assert len(list((tmp_path / "frames").glob("*.png"))) == 30


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "did you mean gaussian_noise", "corrupt VIDEO -c gausian_noise:3 -o x.mp4"),
        (2, "severity must be a whole number from 0 (clean) to 5", "corrupt VIDEO -c fog:9 -o x.mp4"),
        (2, "say what to do to the video: -c SPEC", "corrupt VIDEO -o x.mp4"),
        (2, "is the input itself", "corrupt VIDEO -c fog:1 -o VIDEO"),
        (2, "error[F139]: '-' is no file", "mend VIDEO -o -"),
        (2, "a video file ends in", "corrupt VIDEO -c fog:1 -o x.xyz"),
        (3, "its folder does not exist", "corrupt VIDEO -c fog:1 -o nowhere/x.mp4"),
        (3, "nowhere", "corrupt nowhere.mp4 -c fog:1 -o x.mp4"),
        (2, "the video has 30 frames", "corrupt VIDEO -c fog:1 -o x.mp4 --placement frame:99"),
        (2, "did you mean corruptions", "names corruption"),
        (2, "did you mean imagenet-c", "names corruptions --profile imagenetc"),
        (2, "ends in .png", "sheet VIDEO -o x.mp4 -c fog"),
    ],
)
def test_invalid_arguments_are_explained(code: int, message: str, words: str, video: Path, tmp_path: Path) -> None:
    before = video.read_bytes()
    assert_refused(code, message, *words.replace("VIDEO", str(video)).split(), cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert video.read_bytes() == before


@pytest.mark.parametrize(("message", "words"), [("--out", "corrupt a.mp4 -c fog:1"), ("No such command", "corupt")])
def test_errors_of_usage_are_explained(message: str, words: str, tmp_path: Path) -> None:
    """In a process of its own, as what draws their frames draws random numbers too."""
    result = run(*words.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout, message in result.stderr) == (2, "", True)
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("F139")
@pytest.mark.parametrize("link", [False, True])
def test_f139_output_in_the_input_folder_is_refused(video: Path, tmp_path: Path, link: bool) -> None:
    folder = tmp_path / "images"
    succeed("corrupt", video, "-c", "freeze:1", "-o", folder)
    before = sorted(path.name for path in folder.iterdir())
    if link:
        (tmp_path / "link").symlink_to(folder)
        folder = tmp_path / "link"
    for words in (["mend"], ["corrupt", "-c", "fog:1"], ["sheet", "-c", "fog"], ["inspect"]):
        words = [*words, folder, "-o", tmp_path / "images" / "sub.png"]
        assert_refused(2, "lies in the input folder", *words)
        assert_refused(2, "error[F139]", *words)
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == before


@pytest.mark.fault("F141")
@pytest.mark.parametrize(
    ("words", "redirection", "code"),
    [
        ("--version", ">&-", 0),
        ("names nothing", "2>&-", 2),
        ("names corruptions --json", "| true", 141),
        ("--help", "| true", 141),
        ("names nothing", "2>&1 | true", 141),
        ("--version", "> /dev/full", 5),
    ],
)
def test_f141_closed_output_ends_quietly(words: str, redirection: str, code: int) -> None:
    shell = f"{sys.executable} -m jostle {words} {redirection}; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (code, "")
    assert "No space left" in result.stderr if code == 5 else not result.stderr


def test_existing_target_is_not_overwritten_by_default(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept.mp4"
    out.write_bytes(b"precious")
    words = ("corrupt", video, "-c", "fog:1", "-o", out)
    assert_refused(2, "pass --overwrite to replace it", *words)
    assert out.read_bytes() == b"precious"
    succeed(*words, "--overwrite")
    assert len(jostle.read(out)) == 30


def test_names_are_listed() -> None:
    assert "gaussian_noise\n" in succeed("names", "corruptions").out
    listed = succeed("names", "corruptions", "--profile", "ucf101-p", "--json").json
    assert listed == jostle.names("corruptions", profile="ucf101-p")
    assert len(listed) == 18
    time_level = succeed("names", "corruptions", "--level", "time").out.split()
    assert time_level == jostle.names("corruptions", level="time")


def test_contact_sheet(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "sheet.png"
    succeed("sheet", video, "-o", out, "-c", "fog", "-c", "thumos14-c/occlusion", "-c", "freeze:2")
    image = cv2.imread(str(out))
    assert image is not None
    assert image.shape[1] > 6 * 150


def test_doctor_finds_no_problems() -> None:
    result = run("doctor", "--json")
    payload = json.loads(result.stdout)
    assert result.returncode == 0
    assert payload["well"]
    assert payload["encoders"]["libx265"]
    assert {check["name"] for check in payload["checks"]} >= {"severity 0 equals clean"}


@pytest.mark.fault("F94")
def test_F94_severity_zero_is_the_clean_video(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "zero.mkv"
    succeed("corrupt", video, "-c", "fog:0", "-o", out, "--lossless")
    assert np.array_equal(jostle.read(out).frames, jostle.read(video).frames)


@pytest.mark.fault("F23")
def test_F23_unusual_file_names(video: Path, tmp_path: Path) -> None:
    for name in ("-dash.mkv", "with space.mkv", "100%d.mkv", "quo'te\".mkv", "new\nline.mkv", "ünïcode-ы.mkv"):
        odd = tmp_path / name
        odd.write_bytes(video.read_bytes())
        succeed("corrupt", "-c", "fog:1", "-o", f"out-{name}", "--", name, cwd=tmp_path)
        assert (tmp_path / f"out-{name}").exists()


@pytest.mark.fault("F26")
def test_F26_ascii_terminal_gets_escapes(video: Path, tmp_path: Path) -> None:
    odd = tmp_path / "ы.mkv"
    odd.write_bytes(video.read_bytes())
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    plain = python("corrupt", odd, "-c", "gaussian_noise:2", "-o", tmp_path / "plain.mkv", "--lossless", **settings)
    assert plain.returncode == 0, plain.stderr
    utf8 = run("corrupt", odd, "-c", "gaussian_noise:2", "-o", tmp_path / "usual.mkv", "--lossless")
    assert utf8.returncode == 0
    assert (tmp_path / "plain.mkv").read_bytes() == (tmp_path / "usual.mkv").read_bytes()
    missing = python("corrupt", tmp_path / "нет.mkv", "-c", "fog:1", "-o", tmp_path / "x.mp4", **settings)
    assert missing.returncode == 3
    assert "Traceback" not in missing.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_interruption_leaves_no_partial_file(number: signal.Signals, code: int, tmp_path: Path) -> None:
    long = tmp_path / "long.mkv"
    write(long, clip_of(300))
    out = tmp_path / "out" / "x.mp4"
    out.parent.mkdir()
    # A chain of encoders is slow enough to be interrupted.
    words = ["corrupt", str(long), *(["-c", "h265_crf:1"] * 3), "-o", str(out), "-q"]
    process = subprocess.Popen([sys.executable, "-m", "jostle", *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not any(out.parent.iterdir()) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code, stderr
    assert "nothing half-written is left" in stderr
    assert list(out.parent.iterdir()) == []


def test_version_and_help() -> None:
    assert python("--version").stdout == f"jostle {jostle.__version__}\n"
    assert "corrupt" in run("--help").stdout
    assert run().returncode in (0, 2)
