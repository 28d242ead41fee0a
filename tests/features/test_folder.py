"""Extraction for many videos: skipped bad videos, reuse of finished ones, parallel jobs and resumption."""

from __future__ import annotations

import errno
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
from helpers.numpy_extractor import TwoParts, WindowsWhole, write_video
from helpers.small_work import losing
from jostle.core.types import Segments
from jostle.errors import BadValue, DataError, MediaError, ResourceError
from jostle.features.extraction import Cost
from jostle.features.folder import CorruptionOptions, ExtractionSummary, extract_videos

CORRUPTION = CorruptionOptions(
    ("thumos14-c/packet_loss:3",), segments={"a": Segments.from_pairs([(0.4, 2.0)])}, truth="x"
)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    lengths = {"a": 61, "b": 40, "short": 5}
    return {name: write_video(folder / f"{name}.mkv", n, seed=n) for name, n in lengths.items()}


def extract(videos: dict[str, Path], out: Path, load=TwoParts, **options) -> ExtractionSummary:
    return extract_videos(videos, load, out, name="TwoParts", **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files except the ledger, which grows."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.jsonl"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_features_of_each_video_are_written(videos: dict[str, Path], tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    done = extract(videos, tmp_path, keep_frames=True, progress=lambda *step: progress.append(step))
    assert (done.made, done.kept, done.set_aside) == (("a", "b", "short"), (), {})
    assert done.cost == Cost(decoded=106, seen=106, joined=12 + 7 + 1)
    assert progress == [(1, 3), (2, 3), (3, 3)]
    for name, path in videos.items():
        frames = jostle.read(path).frames
        rows = [
            [min(4 * i + k, len(frames) - 1) for k in range(16)] for i in range(max((len(frames) - 16) // 4 + 1, 1))
        ]
        features = np.load(tmp_path / f"{name}.npy")
        assert np.array_equal(features, TwoParts()(frames[np.array(rows)]))
        assert np.array_equal(np.load(tmp_path / "frames" / f"{name}.npy"), TwoParts().see(frames))
        entry = json.loads((tmp_path / "features.json").read_text())["videos"][name]
        assert entry["rows"] == len(features)
        assert (entry["fps"], entry["frames"]) == (25.0, len(frames))
        assert entry["duration"] == pytest.approx(len(frames) / 25)


def test_a_second_run_recomputes_only_damaged_files(videos: dict[str, Path], tmp_path: Path) -> None:
    extract(videos, tmp_path)
    before = contents(tmp_path)
    repeated = extract(videos, tmp_path)
    assert (repeated.made, repeated.kept, repeated.cost) == ((), ("a", "b", "short"), Cost())
    (tmp_path / "b.npy").write_bytes(before["b.npy"][:-3])
    repaired = extract(videos, tmp_path)
    assert (repaired.made, repaired.kept) == (("b",), ("a", "short"))
    assert contents(tmp_path) == before
    (tmp_path / "features.json").write_text("{")
    listed = extract(videos, tmp_path)
    assert (listed.made, listed.kept) == ((), ("a", "b", "short"))
    assert "it is written again" in listed.warnings[0]
    assert contents(tmp_path) == before
    # Frame features were not stored before and are requested now.
    assert extract(videos, tmp_path, keep_frames=True).made == ("a", "b", "short")


def test_a_changed_video_is_extracted_again(tmp_path: Path) -> None:
    path = write_video(tmp_path / "v.mkv", 30)
    extract({"v": path}, tmp_path / "out")
    write_video(path, 34, seed=1)
    done = extract({"v": path}, tmp_path / "out")
    assert done.made == ("v",)
    assert len(np.load(tmp_path / "out" / "v.npy")) == 5


def test_a_bad_video_is_skipped_and_the_rest_is_extracted(videos: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_text("no video")
    (tmp_path / "empty.mp4").write_bytes(b"")
    more = {
        "bad": tmp_path / "bad.mp4",
        "a": videos["a"],
        "empty": tmp_path / "empty.mp4",
        "gone": tmp_path / "gone.mp4",
    }
    done = extract(more, tmp_path / "out")
    assert done.made == ("a",)
    assert set(done.set_aside) == {"bad", "empty", "gone"}
    assert "empty file" in done.set_aside["empty"]
    listed = json.loads((tmp_path / "out" / "features.json").read_text())
    assert listed["set_aside"] == done.set_aside
    assert list(listed["videos"]) == ["a"]
    with pytest.raises(MediaError, match="empty file"):
        extract({"empty": more["empty"]}, tmp_path / "alone")
    assert list((tmp_path / "alone").iterdir()) == []
    with pytest.raises(DataError, match=r"none of 2 videos could be used \(bad, empty\); bad: "):
        extract({"bad": more["bad"], "empty": more["empty"]}, tmp_path / "none")


@pytest.mark.parametrize("kind", [TwoParts, WindowsWhole])
def test_clean_features_save_work_and_do_not_change_the_result(
    videos: dict[str, Path], tmp_path: Path, kind: type[TwoParts]
) -> None:
    two_parts = kind is TwoParts
    one_video = {"a": videos["a"]}
    clean = extract(one_video, tmp_path / "clean", kind, keep_frames=two_parts)
    full = extract(one_video, tmp_path / "whole", kind, keep_frames=two_parts, corrupting=CORRUPTION)
    incremental = extract(
        one_video, tmp_path / "part", kind, keep_frames=two_parts, corrupting=CORRUPTION, clean=tmp_path / "clean"
    )
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")
    assert contents(tmp_path / "clean")["a.npy"] != contents(tmp_path / "whole")["a.npy"]
    assert incremental.cost.joined < full.cost.joined == clean.cost.joined
    assert incremental.cost.seen < full.cost.seen or not two_parts


def test_clean_features_that_do_not_match_are_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    one_video = {"a": videos["a"]}
    options = {"corrupting": CORRUPTION, "clean": tmp_path / "clean"}
    with pytest.raises(DataError, match=r"no features\.json; pass the folder"):
        extract(one_video, tmp_path / "out", **options)
    extract(one_video, tmp_path / "clean")
    with pytest.raises(DataError, match="has no frame features; extract with --keep-frames"):
        extract(one_video, tmp_path / "out", **options)
    extract(one_video, tmp_path / "clean", keep_frames=True)
    with pytest.raises(BadValue, match="rule is 'all', not 'released'"):
        extract(one_video, tmp_path / "out", rule="released", **options)
    with pytest.raises(DataError, match="clean features of b are missing"):
        extract({"b": videos["b"]}, tmp_path / "out", **options)
    extract(one_video, tmp_path / "corrupted", corrupting=CORRUPTION, keep_frames=True)
    with pytest.raises(BadValue, match="specs is"):
        extract(one_video, tmp_path / "out", corrupting=CORRUPTION, clean=tmp_path / "corrupted")


def test_frame_features_need_an_extractor_of_single_frames(videos: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="processes whole windows"):
        extract(videos, tmp_path, WindowsWhole, keep_frames=True)


class NanExtractor(TwoParts):
    """Extractor with damaged weights that returns NaN."""

    def join(self, encodings: np.ndarray) -> np.ndarray:
        return super().join(encodings) * np.float32("nan")


def test_features_that_are_not_finite_are_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not finite; check its weights"):
        extract({"a": videos["a"]}, tmp_path, NanExtractor)


def test_a_full_disk_stops_the_extraction_and_keeps_finished_videos(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jostle.io.files import atomic

    real, calls = atomic._write, []

    def write_to_full_disk(path: Path, pieces, *, zipped: bool) -> None:
        calls.append(path)
        if ".b.npy" in path.name:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, pieces, zipped=zipped)

    monkeypatch.setattr(atomic, "_write", write_to_full_disk)
    with pytest.raises(ResourceError, match=r"no space left on the disk for .*b\.npy; free some"):
        extract(videos, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "features.json", "manifest.jsonl"]
    monkeypatch.setattr(atomic, "_write", real)
    resumed = extract(videos, tmp_path)
    assert (resumed.made, resumed.kept) == (("b", "short"), ("a",))


def test_names_that_differ_only_in_case_are_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one file on a disk that ignores case"):
        extract({"v": videos["a"], "V": videos["b"]}, tmp_path)


@pytest.mark.fault("F7")
def test_F7_a_video_that_kills_workers_is_skipped(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.features.folder.map_unordered", losing("b"))
    done = extract(videos, tmp_path)
    assert (done.made, done.set_aside) == (("a", "short"), {"b": "the worker was killed"})


@pytest.mark.slow
def test_parallel_jobs_give_the_same_bytes(videos: dict[str, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_text("no video")
    with_bad = {**videos, "bad": bad}
    options = {"corrupting": CorruptionOptions(("thumos14-c/black_frame:2",), "pair"), "keep_frames": True}
    one = extract(with_bad, tmp_path / "one", **options)
    two = extract(with_bad, tmp_path / "two", jobs=2, **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert sorted(two.made) == sorted(one.made)
    assert two.set_aside == one.set_aside
    assert two.cost == one.cost


@pytest.mark.slow
def test_user_defined_corruptions_are_known_in_every_process(tmp_path: Path) -> None:
    """A corruption from a module is known to workers; one from the script itself cannot be and is reported."""
    for name in "ab":
        write_video(tmp_path / f"{name}.mkv", 20)
    registered = (
        "import numpy as np\n"
        "from jostle.corruptions.engine.corruption import corruption\n"
        "from jostle.corruptions.engine.placement import placement\n"
        "@corruption(level='frame', scale=(1, 2, 3, 4, 5), cites='jostle')\n"
        "def {}(frame, value, moment): return frame // value\n"
        "@placement('firsts:3')\n"
        "def {}(argument): return lambda timeline: np.arange(timeline.frames) < int(argument)\n"
    )
    (tmp_path / "theirs.py").write_text(registered.format("dimmed", "firsts"))
    script = (
        "import theirs\nfrom pathlib import Path\n"
        "from helpers.numpy_extractor import TwoParts\n"
        "from jostle.features.folder import CorruptionOptions, extract_videos\n"
        f"{registered.format('dusky', 'lasts')}"
        "videos = {name: Path(f'{name}.mkv') for name in 'ab'}\n"
        "for jobs in (1, 2):\n"
        "    corrupting = CorruptionOptions(('dimmed:3',), 'firsts:4')\n"
        "    done = extract_videos(videos, TwoParts, Path(f'out{jobs}'), name='x', corrupting=corrupting, jobs=jobs)\n"
        "    print(sorted(done.made))\n"
        "dusky = CorruptionOptions(('dusky',))\n"
        "try: extract_videos(videos, TwoParts, Path('out'), name='x', corrupting=dusky, jobs=2)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second, third = done.stdout.splitlines()
    assert first == second == "['a', 'b']"
    assert third.startswith("BadValue a worker process cannot import its task")
    assert "'dusky'" in third
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


SCRIPT = """
import sys
from functools import partial
from pathlib import Path
from helpers.numpy_extractor import TwoParts
from jostle.features.folder import extract_videos
videos = {path.stem: path for path in sorted(Path(sys.argv[1]).glob("*.mkv"))}
load = partial(TwoParts, delay_s=float(sys.argv[4]))
extract_videos(videos, load, Path(sys.argv[2]), name="TwoParts", keep_frames=True, jobs=int(sys.argv[3]))
"""


def are_running(mark: Path) -> bool:
    """Return whether a process with this mark in its environment is alive."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = str(mark).encode() in (folder / "environ").read_bytes()
            if marked and b"(zombie)" not in (folder / "status").read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_extraction_resumes_to_the_same_bytes(tmp_path: Path, jobs: int) -> None:
    folder, script = tmp_path / "videos", tmp_path / "script.py"
    folder.mkdir()
    script.write_text(SCRIPT)
    for k in range(6):
        write_video(folder / f"v{k}.mkv", 150, seed=k)
    out, uninterrupted = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, str(script), str(folder), str(out), str(jobs)]
    environment = os.environ | {"JOSTLE_TEST_MARK": str(tmp_path)}
    for count in (1, 3, 4):
        process = subprocess.Popen([*command, "0.15"], env=environment)
        deadline = time.monotonic() + 60
        while len(list(out.glob("*.npy"))) < count:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 10
        while are_running(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not are_running(tmp_path)  # no worker outlives its parent
    subprocess.run([*command, "0"], check=True)
    videos = {path.stem: path for path in sorted(folder.glob("*.mkv"))}
    extract(videos, uninterrupted, keep_frames=True)
    finished = {name: data for name, data in contents(out).items() if ".part-" not in name}
    assert finished == contents(uninterrupted)


def test_videos_finished_by_a_stopped_run_are_not_repeated(tmp_path: Path) -> None:
    """The list of finished videos is written as they finish, not only at the end."""
    videos = {name: write_video(tmp_path / f"{name}.mkv", 20, seed=i) for i, name in enumerate("ab")}

    class StoppingExtractor(TwoParts):
        def see(self, frames: np.ndarray) -> np.ndarray:
            if self.batches:
                raise KeyboardInterrupt
            return super().see(frames)

    with pytest.raises(KeyboardInterrupt):
        extract(videos, tmp_path / "out", StoppingExtractor)
    assert extract(videos, tmp_path / "out").kept == ("a",)
    assert np.load(tmp_path / "out" / "b.npy").shape == (2, 3)
