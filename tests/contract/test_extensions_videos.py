"""Video sources of one file outside the package, by `jostle.extend` alone, in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers import mean_extractor
from helpers.tiny_clips import write_clips

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extensions" / "npz_videos.py"
MODEL = """
import numpy as np
import npz_videos
from jostle.extend import InputSpec, Recogniser


def colours(clips):
    return np.sin(clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
"""
# A source of its own kind of addresses, whose frames are made when they are asked for.
COUNTED = """
from fractions import Fraction

import numpy as np

from jostle.extend import video_source


class Counted:
    size, fps = (32, 48), Fraction(10)

    def __init__(self, count):
        self.pts = np.arange(count) / 10

    def __len__(self):
        return len(self.pts)

    def block(self, lo, hi):
        shades = (np.arange(lo, hi) * 20 + 1).astype(np.uint8)
        return np.broadcast_to(shades[:, None, None, None], (hi - lo, 32, 48, 3))

    def state(self):
        return len(self.pts), 7


@video_source("counted", schemes=("counted",))
def counted(location, options):
    return Counted(int(location.partition("://")[2]))
"""


def start(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS` where the modules of one's own are."""
    return subprocess.run([sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300)


def jostle_of(*words: object, folder: Path) -> str:
    done = start("-m", "jostle", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lossless clips, the same as NumPy archives, and the example beside them."""
    folder = write_clips(tmp_path_factory.mktemp("videos"))
    for path in sorted((folder / "clips").rglob("*.mkv")):
        target = folder / "arrays" / path.relative_to(folder / "clips").with_suffix(".npz")
        target.parent.mkdir(parents=True, exist_ok=True)
        clip = jostle.read(path)
        np.savez(target, frames=clip.frames, fps=float(clip.fps))
    shutil.copy(EXAMPLE, folder)
    (folder / "own_model.py").write_text(MODEL)
    shutil.copy(mean_extractor.__file__, folder / "own_extractor.py")
    (folder / "counted.py").write_text(COUNTED)
    shutil.copy(EXAMPLE.with_name("walk_or_jump.py"), folder)
    return folder


NPZ, MKV = "arrays/test/jump/a.npz", "clips/test/jump/a.mkv"


def test_corrupt_gives_the_same_as_of_a_file(world: Path) -> None:
    common = ("-c", "gaussian_noise:3", "-c", "freeze:3", "--lossless")
    jostle_of("corrupt", NPZ, *common, "--import", "npz_videos", "-o", "own.mkv", folder=world)
    jostle_of("corrupt", MKV, *common, "-o", "file.mkv", folder=world)
    own, file = jostle.read(world / "own.mkv"), jostle.read(world / "file.mkv")
    assert (own.frames == file.frames).all()
    assert own.pts.tolist() == file.pts.tolist()


def test_inspect_gives_the_same_as_of_a_file(world: Path) -> None:
    own = json.loads(jostle_of("inspect", NPZ, "--import", "npz_videos", "--json", folder=world))
    file = json.loads(jostle_of("inspect", MKV, "--json", folder=world))
    assert own["probabilities"] == file["probabilities"]


def test_extract_gives_the_same_as_of_files(world: Path) -> None:
    pytest.importorskip("torch")
    words = ("--extractor", "own_extractor:means", "--jobs", 2)
    jostle_of("extract", "arrays", *words, "--import", "npz_videos", "-o", "own", folder=world)
    jostle_of("extract", "clips", *words, "-o", "of-files", folder=world)
    for name in "ab":
        assert (np.load(world / "own" / f"{name}.npy") == np.load(world / "of-files" / f"{name}.npy")).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_gives_the_same_as_of_files(world: Path, jobs: int) -> None:
    pytest.importorskip("torch")
    words = ("tiny-p.toml", "--model", "own_model:net", "-j", jobs)
    jostle_of("run", *words, "--data", "arrays", "--import", "npz_videos", "-o", f"run-{jobs}", folder=world)
    jostle_of("run", *words, "--data", "clips", "-o", f"files-{jobs}", folder=world)
    own, file = (json.loads((world / f"{name}-{jobs}" / "scores.json").read_text()) for name in ("run", "files"))
    assert own["cells"] == file["cells"]


def test_a_data_set_of_ones_own_holds_them(world: Path) -> None:
    pytest.importorskip("torch")
    words = (
        "tiny-p.toml",
        "--dataset",
        "walk-or-jump",
        "--model",
        "own_model:net",
        "-j",
        2,
        "--import",
        "walk_or_jump",
    )
    jostle_of("run", *words, "--data", "arrays", "-o", "data-run", folder=world)
    jostle_of("run", "tiny-p.toml", "--model", "own_model:net", "--data", "clips", "-o", "data-files", folder=world)
    own, file = (json.loads((world / name / "scores.json").read_text()) for name in ("data-run", "data-files"))
    assert own["cells"] == file["cells"]
    done = start(
        "-m", "jostle", "check", "arrays", "--dataset", "walk-or-jump", "--import", "walk_or_jump", folder=world
    )
    assert done.returncode == 0, done.stderr


def test_python_reads_finds_and_lists_them(world: Path) -> None:
    program = f"""
import jostle, npz_videos
from jostle.extend import Reader, find_videos
import numpy as np

assert [*find_videos("arrays")] == ["a", "b"]
assert jostle.names("videosources") == ["npz"]
clip = jostle.read({NPZ!r}, 3, 7)
assert (clip.frames == jostle.read({MKV!r}, 3, 7).frames).all()
assert (jostle.inspect({NPZ!r}) == jostle.inspect({MKV!r})).all()
with Reader({NPZ!r}) as reader:
    assert (reader.frame(11) == jostle.read({MKV!r}).frames[11]).all() and reader.coded_path is None
print("fine")
"""
    done = start("-c", program, folder=world)
    assert done.stdout == "fine\n", done.stderr


def test_a_rate_is_given_to_what_states_none(world: Path) -> None:
    np.savez(world / "plain.npz", frames=np.zeros((4, 32, 32, 3), np.uint8))
    program = "import jostle, npz_videos; print(jostle.read('plain.npz', fps=50).pts.tolist())"
    assert start("-c", program, folder=world).stdout == "[0.0, 0.02, 0.04, 0.06]\n"


def test_addresses_of_a_scheme_of_ones_own(world: Path) -> None:
    jostle_of("corrupt", "counted://9", "-c", "freeze:1", "--import", "counted", "-o", "nine.mkv", folder=world)
    assert len(jostle.read(world / "nine.mkv")) == 9


def test_without_the_module_the_file_is_no_video(world: Path) -> None:
    done = start("-m", "jostle", "corrupt", NPZ, "-c", "fog:3", "-o", "x.mkv", folder=world)
    assert done.returncode == 3
    assert "a.npz: not a video but a zip archive" in done.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"pixels": np.zeros(3)}, "video source npz failed (KeyError: 'frames is not a file in the archive')"),
        ({"frames": np.zeros((2, 4, 4, 3))}, "video source npz: frames must be uint8 in 0..255, got float64"),
        ({"frames": np.zeros((0, 4, 4, 3), np.uint8)}, "video source npz: has 0 frames; a video has 1 to 2000000"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(world: Path, content: dict[str, object], why: str) -> None:
    np.savez(world / "wrong.npz", **content)  # type: ignore[arg-type]
    done = start(
        "-m", "jostle", "corrupt", "wrong.npz", "-c", "fog:3", "--import", "npz_videos", "-o", "x.mkv", folder=world
    )
    assert done.returncode == 3
    assert f"wrong.npz: {why}" in " ".join(done.stderr.split())


def test_a_broken_video_of_a_run_is_skipped_with_the_reason(world: Path) -> None:
    pytest.importorskip("torch")
    folder = world / "broken"
    shutil.copytree(world / "arrays", folder)
    (folder / "test" / "jump" / "a.npz").write_bytes(b"PK\3\4 nothing")
    words = ("tiny-p.toml", "--model", "own_model:net", "--data", "broken", "--import", "npz_videos", "-j", 2)
    done = start("-m", "jostle", "run", *words, "-o", "broken-run", folder=world)
    assert done.returncode == 4, done.stderr
    assert "video source npz failed (BadZipFile" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"suffixes": (".mp4",)}, "files that end in .mp4 are read by jostle itself"),
        ({"suffixes": ("npz",)}, "got 'npz'"),
        ({}, "it has neither suffixes nor schemes"),
    ],
)
def test_what_a_source_opens_is_checked_when_it_is_registered(settings: dict[str, tuple[str, ...]], why: str) -> None:
    from jostle.extend import BadValue, video_source

    with pytest.raises(BadValue, match=why):
        video_source("mine", **settings)
