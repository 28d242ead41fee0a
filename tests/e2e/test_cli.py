"""The command line as a user meets it: output, exit codes, messages, and nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.started import run
from jostle import Clip
from jostle.io.video.encode import Writer


def python(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The same words to a Python that is started for them."""
    command = [sys.executable, "-m", "jostle", *map(str, words)]
    usual = {"capture_output": True, "text": True, "encoding": "utf-8", "errors": "surrogateescape"}
    return subprocess.run(command, env={**os.environ, "NUMBA_NUM_THREADS": "1", **env}, **usual)


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
    done = run("corrupt", video, "-c", "gaussian_noise:3", "-c", "fog:2", "-o", out, "--lossless", "--seed", 4, "-j", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}\n"
    assert "30 of 30 frames corrupted" in done.stderr
    expected = jostle.corrupt(jostle.read(video), ["gaussian_noise:3", "fog:2"], seed=4, video_id="squares")
    assert np.array_equal(jostle.read(out).frames, expected.frames)


def test_json_goes_to_stdout_alone(video: Path, tmp_path: Path) -> None:
    done = run("corrupt", video, "-c", "freeze:3", "-o", tmp_path / "a.mp4", "--json", "-q")
    told = json.loads(done.stdout)
    assert (told["frames"], told["struck"], told["audio"]) == (30, 30, False)
    assert done.stderr == ""


def test_truth_places_the_corruption(video: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    action = {"label": "wave", "segment": [0.4, 0.8]}
    truth.write_text(json.dumps({"database": {"squares": {"subset": "test", "annotations": [action]}}}))
    out = tmp_path / "b.mkv"
    done = run("corrupt", video, "-c", "thumos14-c/black_frame:3", "--truth", truth, "-o", out, "--lossless")
    assert done.returncode == 0, done.stderr
    assert np.flatnonzero(~jostle.read(out).frames.any((1, 2, 3))).tolist() == [15, 16]
    wrong = run(
        "corrupt", video, "-c", "black_frame:3", "--truth", truth, "--video-id", "square", "-o", tmp_path / "c.mkv"
    )
    assert wrong.returncode == 2
    assert "did you mean squares" in wrong.stderr


def test_images(video: Path, tmp_path: Path) -> None:
    done = run("corrupt", video, "-c", "brightness:2", "-o", tmp_path / "frames")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "frames").glob("*.png"))) == 30


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["corrupt", "{video}", "-c", "gausian_noise:3", "-o", "{out}"], 2, "did you mean gaussian_noise"),
        (
            ["corrupt", "{video}", "-c", "fog:9", "-o", "{out}"],
            2,
            "severity must be a whole number from 0 (clean) to 5",
        ),
        (["corrupt", "{video}", "-o", "{out}"], 2, "say what to do to the video: -c SPEC"),
        (["corrupt", "{video}", "-c", "fog:1", "-o", "{video}"], 2, "is the input itself"),
        (["mend", "{video}", "-o", "-"], 2, "error[F139]: '-' is no file"),
        (["corrupt", "{video}", "-c", "fog:1", "-o", "{out}.xyz"], 2, "a video file ends in"),
        (["corrupt", "{video}", "-c", "fog:1", "-o", "{nowhere}/x.mp4"], 3, "its folder does not exist"),
        (["corrupt", "{nowhere}.mp4", "-c", "fog:1", "-o", "{out}"], 3, "nowhere"),
        (["corrupt", "{video}", "-c", "fog:1", "-o", "{out}", "--placement", "frame:99"], 2, "the video has 30 frames"),
        (["corrupt", "{video}", "-c", "fog:1"], 2, "--out"),
        (["names", "corruption"], 2, "did you mean corruptions"),
        (["names", "corruptions", "--profile", "imagenetc"], 2, "did you mean imagenet-c"),
        (["sheet", "{video}", "-o", "{out}", "-c", "fog"], 2, "ends in .png"),
        (["corupt"], 2, "No such command"),
    ],
)
def test_bad_words_get_a_clear_error(words: list[str], code: int, message: str, video: Path, tmp_path: Path) -> None:
    places = {"video": str(video), "out": str(tmp_path / "x.mp4"), "nowhere": str(tmp_path / "nowhere")}
    before = video.read_bytes()
    done = run(*(word.format(**places) for word in words))
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []
    assert video.read_bytes() == before


@pytest.mark.fault("F139")
@pytest.mark.parametrize("link", [False, True])
def test_f139_nothing_is_written_into_the_input_folder(video: Path, tmp_path: Path, link: bool) -> None:
    folder = tmp_path / "images"
    assert run("corrupt", video, "-c", "freeze:1", "-o", folder).returncode == 0
    before = sorted(path.name for path in folder.iterdir())
    if link:
        (tmp_path / "link").symlink_to(folder)
        folder = tmp_path / "link"
    for words in (["mend"], ["corrupt", "-c", "fog:1"], ["sheet", "-c", "fog"], ["inspect"]):
        done = run(*words, folder, "-o", tmp_path / "images" / "sub.png")
        assert (done.returncode, done.stdout) == (2, "")
        assert "error[F139]" in done.stderr
        assert "lies in the input folder" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


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
def test_f141_an_output_that_nobody_reads_ends_quietly(words: str, redirection: str, code: int) -> None:
    shell = f"{sys.executable} -m jostle {words} {redirection}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "")
    assert "No space left" in done.stderr if code == 5 else not done.stderr


def test_an_existing_target_is_not_replaced_unasked(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept.mp4"
    out.write_bytes(b"precious")
    refused = run("corrupt", video, "-c", "fog:1", "-o", out)
    assert refused.returncode == 2
    assert "pass --overwrite to replace it" in refused.stderr
    assert out.read_bytes() == b"precious"
    assert run("corrupt", video, "-c", "fog:1", "-o", out, "--overwrite").returncode == 0
    assert len(jostle.read(out)) == 30


def test_names(video: Path) -> None:
    assert "gaussian_noise\n" in run("names", "corruptions").stdout
    listed = json.loads(run("names", "corruptions", "--profile", "ucf101-p", "--json").stdout)
    assert listed == jostle.names("corruptions", profile="ucf101-p")
    assert len(listed) == 18
    timed = run("names", "corruptions", "--level", "time").stdout.split()
    assert timed == jostle.names("corruptions", level="time")


def test_sheet(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "sheet.png"
    done = run("sheet", video, "-o", out, "-c", "fog", "-c", "thumos14-c/occlusion", "-c", "freeze:2")
    assert done.returncode == 0, done.stderr
    import cv2

    image = cv2.imread(str(out))
    assert image is not None
    assert image.shape[1] > 6 * 150


def test_doctor_finds_us_well() -> None:
    done = run("doctor", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["well"]
    assert told["encoders"]["libx265"]
    assert {check["name"] for check in told["checks"]} >= {"severity 0 equals clean"}


@pytest.mark.fault("F94")
def test_F94_severity_zero_is_the_clean_video(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "zero.mkv"
    assert run("corrupt", video, "-c", "fog:0", "-o", out, "--lossless").returncode == 0
    assert np.array_equal(jostle.read(out).frames, jostle.read(video).frames)


@pytest.mark.fault("F23")
def test_F23_ids_and_names_of_any_kind(video: Path, tmp_path: Path) -> None:
    for name in ("-dash.mkv", "with space.mkv", "100%d.mkv", "quo'te\".mkv", "new\nline.mkv", "ünïcode-ы.mkv"):
        odd = tmp_path / name
        odd.write_bytes(video.read_bytes())
        done = run("corrupt", "-c", "fog:1", "-o", f"out-{name}", "--", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"out-{name}").exists()


@pytest.mark.fault("F26")
def test_F26_a_plain_terminal_gets_escapes(video: Path, tmp_path: Path) -> None:
    odd = tmp_path / "ы.mkv"
    odd.write_bytes(video.read_bytes())
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    plain = python("corrupt", odd, "-c", "gaussian_noise:2", "-o", tmp_path / "plain.mkv", "--lossless", **settings)
    assert plain.returncode == 0, plain.stderr
    usual = run("corrupt", odd, "-c", "gaussian_noise:2", "-o", tmp_path / "usual.mkv", "--lossless")
    assert usual.returncode == 0
    assert (tmp_path / "plain.mkv").read_bytes() == (tmp_path / "usual.mkv").read_bytes()
    missing = python("corrupt", tmp_path / "нет.mkv", "-c", "fog:1", "-o", tmp_path / "x.mp4", **settings)
    assert missing.returncode == 3
    assert "Traceback" not in missing.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stop_leaves_nothing_half_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    long = tmp_path / "long.mkv"
    write(long, clip_of(300))
    out = tmp_path / "out" / "x.mp4"
    out.parent.mkdir()
    # A chain of encoders is slow enough to be met in the middle.
    words = ["corrupt", str(long), *(["-c", "h265_crf:1"] * 3), "-o", str(out), "-q"]
    process = subprocess.Popen([sys.executable, "-m", "jostle", *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not any(out.parent.iterdir()) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "nothing half-written is left" in said
    assert list(out.parent.iterdir()) == []


def test_version_and_help() -> None:
    assert python("--version").stdout == f"jostle {jostle.__version__}\n"
    assert "corrupt" in run("--help").stdout
    assert run().returncode in (0, 2)
