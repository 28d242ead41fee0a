"""Faults F56-F79: archives, configurations, downloads, and failures of processes, disks, memory and clocks."""

from __future__ import annotations

import ast
import errno
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers import small_run, tiny_run
from helpers.faults import marked_tests
from helpers.small_disks import fill, small_disk
from helpers.small_run import RECIPE, data_of, write_videos
from jostle.core.types import Segments
from jostle.errors import DataError, JostleError, ResourceError, SourceChanged
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import FeatureDetectionPredictor, WholeVideoPredictor
from jostle.evaluation.recipes.selection import load_benchmark, select_cells
from jostle.evaluation.run_folder.journal import VideoKept, event_to_dict, journal_of, read_events
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.state import State
from jostle.evaluation.runner.verification import check_run
from jostle.io.files import atomic
from jostle.io.files.lock import NOTE, FolderLock
from jostle.parallel.workers import map_unordered

ROOT = Path(__file__).resolve().parents[2]


def content(folder: Path) -> dict[str, bytes]:
    return tiny_run.content(folder)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_videos(tmp_path_factory.mktemp("videos"))


@pytest.fixture(scope="module")
def expected_content(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("run") / "whole"
    small_run.run(videos, out)
    return content(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write data and a benchmark for `jostle run` as a program."""
    return tiny_run.write_folder(tmp_path_factory.mktemp("tiny") / "here")


def test_every_fault_has_a_test() -> None:
    marked = {fault for fault, _ in marked_tests(ROOT / "tests")}
    listed = set(re.findall(r"^\| (F\d+) \|", (ROOT / "docs" / "faults.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert marked == {f"F{number}" for number in range(1, 120)} | listed


# Archives. Nothing is ever unpacked: users unpack their data themselves.


@pytest.mark.fault("F56")
@pytest.mark.parametrize("name", ["../outside.mp4", "/absolute.mp4", "C:\\drive.mp4", "a/../../up.mp4"])
def test_f56_entries_that_lead_outside_are_never_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    archive = tmp_path / "in" / "videos.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(name, b"x")
    before = {*tmp_path.rglob("*")}
    with pytest.raises(JostleError):
        jostle.load_dataset("folder", root=archive)
    with pytest.raises(JostleError):
        jostle.load_predictions(archive)
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.fault("F57")
def test_f57_a_zip_bomb_is_not_opened(tmp_path: Path) -> None:
    """The size of compressed tensors and arrays is checked before any memory is allocated."""
    from jostle.errors import CheckpointError
    from jostle.models.checkpoints import read_weights

    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data.pkl", b"\0" * 50_000_000)
    with pytest.raises(CheckpointError):
        read_weights(bomb)
    with pytest.raises(JostleError):
        jostle.load_dataset("folder", root=bomb)
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.pth"]


@pytest.mark.fault("F58")
def test_f58_nothing_is_unpacked_anywhere() -> None:
    """Duplicate entries are harmless as long as no entry becomes a path."""
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        if file.name == "published_layouts.py":  # writes archives, but never reads one
            assert set(re.findall(r"tarfile\.(\w+)", text)) == {"BLOCKSIZE", "TarInfo", "PAX_FORMAT"}
            text = text.replace("tarfile", "")
        if file.name == "tar_member.py":  # reads one in place, and gives no entry a path
            assert set(re.findall(r"tarfile\.(\w+)", text)) == {"open", "TarError"}
            text = text.replace("tarfile", "")
        for word in ("extractall", "unpack_archive", "tarfile", "py7zr", "rarfile"):
            assert word not in text, f"{file.name} unpacks archives: give it limits and tests of F56-F58"


# Configurations and downloads.


@pytest.mark.fault("F59")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "a"\nname = "b"\n', "line 2"),
        ('name = "a"\nversoin = 1\n', "version"),
        ('name = 7\nversion = 1\ndataset = "folder"\nsubset = "test"\ntask = "detection"\n', "name"),
        ("name = !!python/object:os.system\n", "line 1"),
        ("a" * 100 + " = [" + "[" * 5000 + "]" * 5001 + "\n", r"mine\.toml"),
    ],
)
def test_f59_errors_in_a_recipe_are_located(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(JostleError, match=message) as caught:
        load_benchmark(path)
    assert caught.value.exit_code in (2, 3)


@pytest.mark.fault("F59")
def test_f59_no_yaml_is_read() -> None:
    assert not [file for file in (ROOT / "src").rglob("*.py") if "import yaml" in file.read_text()]


def imports_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


# The second connects only to the server whose address is given as the name of a model.
REACHING = (
    "jostle/models/weights/download.py",
    "jostle/models/language/server_client.py",
    "jostle/io/video/remote_file.py",
)


@pytest.mark.fault("F60")
def test_f60_only_the_download_modules_import_network_libraries() -> None:
    """Downloads that are requested by name have tests of their own."""
    reaching = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "fsspec", "huggingface_hub", "ftplib"}
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        if file.relative_to(ROOT / "src").as_posix() in REACHING or not any(name in text for name in reaching):
            continue  # parsing all files would take seconds
        assert not imports_of(file) & reaching, f"{file.name} reaches for the network: give it the tests of F60"


@pytest.mark.fault("F61")
def test_f61_missing_weights_and_data_are_reported(tmp_path: Path) -> None:
    """Everything works offline: an error for missing weights says at once where to get them."""
    with pytest.raises(JostleError, match=r"i3d_rgb: .*give its weights: .*"):
        jostle.load_extractor("i3d_rgb")
    with pytest.raises(JostleError, match=r"nowhere"):
        jostle.load_dataset("thumos14", root=tmp_path / "nowhere")


# Processes.


@pytest.mark.fault("F63")
def test_f63_a_video_that_kills_workers_is_skipped(videos: dict[str, Path], tmp_path: Path) -> None:
    mixed = {**videos, "b": tiny_run.write_video(tmp_path / "b.mkv", 60, seed=1)}
    benchmark_model = BenchmarkModel(partial(WholeVideoPredictor, tiny_run.deadly), model="theirs")
    done = run_benchmark(RECIPE, data_of(mixed), benchmark_model, tmp_path / "run", cells=select_cells(RECIPE), jobs=2)
    assert [(failure["video"], failure["fault"]) for failure in done.failures] == [("b", "F63")]
    assert done.scores["cells"][0]["videos"] == 3


@pytest.mark.fault("F7", "F8")
@pytest.mark.parametrize(
    ("native", "argument", "status", "hint"),
    [
        ("raise", 11, "by signal 11 at ", "; native code crashed, perhaps a decoder; check that this video plays"),
        ("sleep", 600, "by signal 14 at ", "; its decoder hung; check that this video plays"),
    ],
)
def test_F07_F08_a_decoder_that_crashes_or_hangs_in_a_worker_costs_one_video(
    videos: dict[str, Path], tmp_path: Path, native: str, argument: int, status: str, hint: str
) -> None:
    mixed = {**videos, "b": tiny_run.write_video(tmp_path / "b.mkv", 60, seed=1)}
    benchmark_model = BenchmarkModel(
        partial(small_run.load_predictor_with_broken_decoder, native, argument), model="theirs"
    )
    done = run_benchmark(RECIPE, data_of(mixed), benchmark_model, tmp_path / "run", cells=select_cells(RECIPE), jobs=2)
    assert [(failure["video"], failure["fault"]) for failure in done.failures] == [("b", "F63")]
    message = done.failures[0]["message"]
    assert f"a worker process died {status}" in message
    assert message.endswith(hint)
    assert done.scores["cells"][0]["videos"] == 3


@pytest.mark.fault("F64")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ((signal.SIGINT,), 130),
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGTERM,), 143),
        ((signal.SIGHUP,), 129),
    ],
    ids=["SIGINT", "SIGINT twice", "SIGTERM", "SIGHUP"],
)
def test_f64_a_run_stopped_by_a_signal_can_be_resumed(folder: Path, numbers: tuple[int, ...], code: int) -> None:
    out = folder / f"stopped-{code}-{len(numbers)}"
    complete_run = folder / "whole"
    if not complete_run.exists():
        assert tiny_run.run_command(folder, tiny_run.command(complete_run, "-q", jobs=1)).returncode == 0
    process = subprocess.Popen(
        tiny_run.command(out),
        cwd=folder,
        env=tiny_run.environment(TINY_DELAY_S="0.2"),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may have been started with nohup
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (out / "journal.jsonl").exists() or not (out / "journal.jsonl").read_bytes():
        assert process.poll() is None
        time.sleep(0.005)
    for number in numbers:
        os.killpg(process.pid, number)  # to the whole process group, as a terminal does
        time.sleep(0.05)
    _, output = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert "run the same command again" in output
    assert "Traceback" not in output
    assert tiny_run.is_gone(process.pid)
    events = read_events(out / "journal.jsonl")
    assert events
    assert tiny_run.run_command(folder, tiny_run.command(out, "-q", jobs=1)).returncode == 0
    assert content(out) == content(complete_run)
    assert read_events(out / "journal.jsonl")[: len(events)] == events


# The disk.


@pytest.mark.fault("F65")
def test_f65_files_are_synced_before_they_get_their_names(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file gets its final name before its bytes are synced, and folders are synced afterwards."""
    synced: set[int] = set()
    real_sync, real_replace = os.fsync, os.replace
    renamed: list[Path] = []

    def sync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        real_sync(handle)

    def replace(source: Any, target: Any) -> None:
        assert Path(source).stat().st_ino in synced, f"{target} may be empty after a power cut"
        assert Path(source).parent == Path(target).parent
        renamed.append(Path(target))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    small_run.run(videos, tmp_path / "run")
    assert {path.name for path in renamed} >= {"run.json", "scores.json", "failures.jsonl", "clean.json", "a.npz"}
    assert (tmp_path / "run" / "journal.jsonl").stat().st_ino in synced
    for inner in ("", "videos"):
        assert (tmp_path / "run" / inner).stat().st_ino in synced


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 400) as mounted:
        yield mounted


@pytest.mark.fault("F66")
@pytest.mark.parametrize("left_kb", [0, 8, 24, 32, 40])
def test_f66_a_full_disk_loses_nothing(
    disk: Path, videos: dict[str, Path], expected_content: dict[str, bytes], left_kb: int
) -> None:
    ballast = fill(disk, left_kb * 1024)
    out = disk / "run"
    with pytest.raises(JostleError, match=r"no space|No space") as caught:
        small_run.run(videos, out)
    assert caught.value.exit_code == 5 or not left_kb
    assert not list(out.rglob(".*.part-*"))
    events = read_events(out / "journal.jsonl")
    ballast.unlink()
    done = small_run.run(videos, out)
    assert read_events(out / "journal.jsonl")[: len(events)] == events
    finished = sum(isinstance(event, VideoKept) for event in events)
    assert done.clean.decoded == 48 * (len(videos) - finished)
    assert content(out) == expected_content


@pytest.mark.fault("F66")
def test_f66_a_full_disk_while_corrupting(disk: Path, videos: dict[str, Path]) -> None:
    ballast = fill(disk, 4096)
    with pytest.raises(JostleError, match=r"room|space") as caught:
        jostle.corrupt_file(videos["a"], "freeze:3", disk / "out.mkv")
    assert caught.value.exit_code == 5
    assert [path.name for path in disk.iterdir()] == ["ballast"]
    ballast.unlink()
    jostle.corrupt_file(videos["a"], "freeze:3", disk / "out.mkv")


@pytest.mark.fault("F67")
def test_f67_a_run_does_not_start_in_an_unwritable_folder(disk: Path, videos: dict[str, Path], tmp_path: Path) -> None:
    calls: list[str] = []

    def engine(*_: object) -> Iterator[Any]:
        calls.append("work")
        yield from ()

    (tmp_path / "file").write_text("mine")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for out in (tmp_path / "file", tmp_path / "file" / "below", disk / "run"):
        with pytest.raises(JostleError, match=r"cannot be (used|written)") as caught:
            small_run.run(videos, out, engine=engine)
        assert str(out) in str(caught.value)
    assert calls == []
    assert (tmp_path / "file").read_text() == "mine"
    small_run.run(videos, tmp_path / "new" / "deep" / "run")  # missing parents are created


@pytest.mark.fault("F68")
def test_f68_transient_disk_errors_are_retried(
    videos: dict[str, Path], expected_content: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.replace, [0]

    def fail_every_second_time(source: Any, target: Any) -> None:
        calls[0] += 1
        if calls[0] % 2:
            raise OSError(errno.ESTALE, "Stale file handle")
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", fail_every_second_time)
    monkeypatch.setattr(atomic.time, "sleep", lambda _: None)
    atomic.write_text(tmp_path / "one.txt", ["whole"])
    assert (tmp_path / "one.txt").read_text() == "whole"
    monkeypatch.setattr(atomic.os, "replace", partial(refuse, errno.ESTALE))
    with pytest.raises(DataError, match="cannot be written"):
        atomic.write_text(tmp_path / "two.txt", ["whole"])
    assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]


def refuse(number: int, *_: object) -> None:
    raise OSError(number, os.strerror(number))


# Memory, devices, limits.


class OutOfMemoryExtractor:
    """Extractor that runs out of memory."""

    def __init__(self, error: type[BaseException]) -> None:
        inner = small_run.load_predictor().extractor
        self.spec, self.dim, self.frame_dim, self._error = inner.spec, inner.dim, inner.frame_dim, error

    def see(self, frames: np.ndarray) -> np.ndarray:
        raise self._error("no memory")


@pytest.mark.fault("F69")
def test_f69_a_run_without_memory_stops_and_can_be_resumed(
    videos: dict[str, Path], expected_content: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch size is never reduced, which would change results: the run stops, and the user takes fewer jobs."""
    main = importlib.import_module("jostle.cli.app")
    benchmark_model = replace(
        small_run.benchmark_model(),
        load=lambda: FeatureDetectionPredictor(OutOfMemoryExtractor(MemoryError), small_run.Leaning()),
    )
    with pytest.raises((MemoryError, ResourceError)):
        run_benchmark(RECIPE, data_of(videos), benchmark_model, tmp_path / "run", cells=select_cells(RECIPE))
    small_run.run(videos, tmp_path / "run")
    assert content(tmp_path / "run") == expected_content
    out_of_memory = type("OutOfMemoryError", (RuntimeError,), {})  # the name of torch's exception
    for error in (MemoryError(), out_of_memory("CUDA out of memory")):
        monkeypatch.setattr(main, "_command", partial(partial, throw, error))
        assert main._run() == 5


def throw(error: BaseException) -> None:
    raise error


@pytest.mark.fault("F70")
def test_f70_a_missing_device_is_reported() -> None:
    torch = pytest.importorskip("torch")
    from jostle.models.devices import device_for

    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert device_for("auto").type == "cpu"
    with pytest.raises(ResourceError, match="no CUDA device here; pass --device cpu, or auto") as caught:
        device_for("cuda")
    assert (caught.value.fault, caught.value.exit_code) == ("F70", 5)


@pytest.mark.fault("F71")
def test_f71_limits_are_named() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 3, hard))
    try:
        with pytest.raises(
            ResourceError, match=rf"open files.*the limit of open files is {used + 3}.*fewer jobs"
        ) as caught:
            list(map_unordered(partial(list), [1, 2, 3, 4, 5, 6, 7, 8], 8))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.fault == "F71"


# Changed inputs and concurrent runs.


@pytest.mark.fault("F73")
def test_f73_truncated_results_are_computed_again(
    videos: dict[str, Path], expected_content: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small_run.run(videos, out)
    shutil.rmtree(out / "predictions")
    results = out / "videos" / "b.npz"
    results.write_bytes(results.read_bytes()[:-7])
    done = small_run.run(videos, out)
    assert done.clean.decoded == 48  # one video is processed again
    assert content(out) == expected_content
    (out / "scores.json").write_text("{}")
    assert check_run(out).lacking or check_run(out).altered
    small_run.run(videos, out)
    assert content(out) == expected_content


@pytest.mark.fault("F74")
def test_f74_a_folder_is_locked_by_its_run(videos: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_run.run(videos, out)
    with FolderLock(out):
        assert str(os.getpid()) in (out / NOTE).read_text()
        with pytest.raises(ResourceError) as caught:
            small_run.run(videos, out)
    assert f"process {os.getpid()} on " in str(caught.value)
    assert caught.value.fault == "F74"
    small_run.run(videos, out)  # the lock is released
    (out / NOTE).write_text("elsewhere 1 1999\n")  # left by a killed process whose id is in use again
    small_run.run(videos, out)
    assert not (out / NOTE).exists()


@pytest.mark.fault("F75")
def test_f75_clocks_may_jump(
    videos: dict[str, Path], expected_content: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = {name: Path(shutil.copy(path, tmp_path)) for name, path in videos.items()}
    now = [2e9]

    def backwards() -> float:
        now[0] -= 86400
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 7.0)
    small_run.run(copies, tmp_path / "run")
    assert content(tmp_path / "run") == expected_content
    for path in copies.values():
        os.utime(path, (0, 0))
    assert small_run.run(copies, tmp_path / "run").clean.decoded == 0  # another time stamp, the same bytes


# User-defined models, and very many videos.


def raising(frames: np.ndarray) -> Segments:
    raise KeyError("a mistake of theirs")


def returning_list(frames: np.ndarray) -> Any:
    return [(0.1, 0.2)]


def without_scores(frames: np.ndarray) -> Segments:
    return Segments([0.1], [0.2], [0])


def returning_nan(frames: np.ndarray) -> Segments:
    return Segments([0.1], [0.2], [0], [float("nan")], ("action",))


def frame_predictor(model: Callable[..., Any]) -> WholeVideoPredictor:
    return WholeVideoPredictor(model)


@pytest.mark.fault("F78")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (raising, "a mistake of theirs"),
        (returning_list, "list"),
        (without_scores, "no scores"),
        (returning_nan, "finite|nan"),
    ],
)
def test_f78_a_model_that_fails_is_named(
    videos: dict[str, Path], tmp_path: Path, model: Callable[..., Any], message: str
) -> None:
    benchmark_model = BenchmarkModel(partial(frame_predictor, model), model="theirs")
    with pytest.raises(DataError, match="none of 4 videos could be used"):
        run_benchmark(RECIPE, data_of(videos), benchmark_model, tmp_path / "run", cells=select_cells(RECIPE))
    lines = [json.loads(line) for line in (tmp_path / "run" / "failures.jsonl").read_text().splitlines()]
    assert [line["video"] for line in lines] == list(videos)
    assert all(re.search(message, line["message"]) for line in lines)
    assert all(line["fault"] == "F78" for line in lines) or model is returning_nan  # Segments itself refuses NaN


def overwriting_model(frames: np.ndarray) -> Segments:
    light = float(frames.astype(np.float64).sum() % 997) / 997
    frames[:] = 0
    return Segments([0.1], [1.0 + light / 3], [0], [light], ("action",))


def copying_model(frames: np.ndarray) -> Segments:
    return overwriting_model(frames.copy())


@pytest.mark.fault("F78")
def test_f78_a_model_that_writes_into_its_input_changes_no_result(videos: dict[str, Path], tmp_path: Path) -> None:
    contents = []
    for model in (overwriting_model, copying_model):
        benchmark_model = BenchmarkModel(partial(frame_predictor, model), model="theirs")
        run_benchmark(RECIPE, data_of(videos), benchmark_model, tmp_path / model.__name__, cells=select_cells(RECIPE))
        contents.append(content(tmp_path / model.__name__))
    assert contents[0] == contents[1]


@pytest.mark.fault("F79")
def test_f79_a_journal_grows_by_the_line(tmp_path: Path) -> None:
    sizes = []
    event = VideoKept("v_00000", "v.mp4", "0" * 64, (1, 1), ((0, 4),), size=1, changed_ns=1, source="0" * 64)
    line = event_to_dict(event)
    for count in (1_000, 10_000):
        path = tmp_path / f"{count}.jsonl"
        path.write_text("".join(json.dumps(line | {"video": f"v_{i:05}"}) + "\n" for i in range(count)))
        state = State.of(read_events(path))
        assert len(state.videos) == count
        assert state.videos["v_00999", None].video == "v_00999"
        with journal_of(path) as journal:
            before = path.stat().st_size
            journal.add(event)
            sizes.append(path.stat().st_size - before)
    assert sizes[0] == sizes[1]


@pytest.mark.fault("F72")
def test_f72_another_seed_is_refused_with_the_difference(videos: dict[str, Path], tmp_path: Path) -> None:
    small_run.run(videos, tmp_path / "run")
    with pytest.raises(SourceChanged, match=r"seed was 0, now 3.*Name another folder") as caught:
        small_run.run(videos, tmp_path / "run", seed=3)
    assert caught.value.exit_code == 6
