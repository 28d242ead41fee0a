"""Videos at addresses: the pixels of the file, or an error that says what is wrong with the address."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers import mean_extractor
from helpers.range_server import RangeServer, serve
from helpers.striped_videos import StripeReader
from helpers.tiny_clips import write_clips
from jostle.core.types.video_location import VideoAddress, location_of
from jostle.errors import MediaError, MissingExtra, ResourceError, SourceChanged
from jostle.extend import Reader
from jostle.io.video import remote_file

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


@pytest.fixture
def server(videos: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as served:
        for path in videos.values():
            served.files[f"/{path.name}"] = path.read_bytes()
        yield served
    remote_file.forget_copies()


@pytest.fixture
def address(server: RangeServer) -> str:
    return server.url("/b.mp4")


def jostle_of(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jostle", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", ["h264_b_frames", "h264_open_gop", "h264_vfr", "mpeg4_avi", "mpeg2_ts", "vp9_mkv"])
def test_an_address_has_the_pixels_of_the_file(name: str, videos: dict[str, Path], server: RangeServer) -> None:
    path = videos[name]
    with Reader(path) as file, Reader(server.url(f"/{path.name}")) as remote:
        assert (remote.block(0, len(remote)) == file.block(0, len(file))).all()
        assert remote.ticks.tolist() == file.ticks.tolist()
        assert (remote.fps, remote.size, remote.warnings) == (file.fps, file.size, file.warnings)
        for number in (40, 7, 59, 0):  # by seeking, too
            assert (remote.frame(number) == file.frame(number)).all()


def test_a_video_is_fetched_once(server: RangeServer, address: str) -> None:
    for _ in range(3):
        jostle.read(address, 0, 5)
    content = [request for request in server.requests if request[0] == "GET"]
    assert len(content) == 1


@pytest.mark.parametrize("cut", [False, True])
def test_a_server_without_ranges(server: RangeServer, videos: dict[str, Path], cut: bool) -> None:
    server.ranges = False
    if cut:
        server.cut.add("/b.mp4")
        refused(server.url("/b.mp4"), "cut off")
        return
    clip = jostle.read(server.url("/b.mp4"))
    assert (clip.frames == jostle.read(videos["h264_b_frames"]).frames).all()


def test_a_full_disk(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_full(**options: object) -> Any:
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setattr(remote_file.tempfile, "TemporaryFile", open_full)
    with pytest.raises(ResourceError, match=r"b\.mp4: cannot be copied into .* \(No space left on device\)"):
        jostle.read(server.url("/b.mp4"))


@pytest.mark.skipif(find_spec("s3fs") is not None, reason="s3fs is installed")
def test_a_scheme_whose_package_is_missing() -> None:
    refused("s3://bucket/a.mp4", r"^s3://bucket/a\.mp4: needs a package of its scheme \(Install s3fs")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"reading https://host/a\.mp4 .*pip install 'jostle\[remote\]'"):
        jostle.read("https://host/a.mp4")


def test_a_query_goes_to_the_server_and_into_no_message(server: RangeServer, address: str) -> None:
    assert len(jostle.read(f"{address}?key=secret")) == 60
    assert any(path.endswith("?key=secret") for _, path, _ in server.requests)
    assert repr(Reader(f"{address}?key=secret")).startswith("Reader('b.mp4?...'")
    with pytest.raises(MediaError) as caught:
        jostle.read(server.url("/none.mp4?key=secret"))
    assert "secret" not in str(caught.value)


def refused(address: str, message: str) -> MediaError:
    with pytest.raises(MediaError, match=message) as caught:
        jostle.read(address)
    return caught.value


def test_what_is_missing(server: RangeServer) -> None:
    refused(server.url("/none.mp4"), r"^http://127\.0\.0\.1:\d+/none\.mp4: no such file; check the address$")


def test_what_is_forbidden(server: RangeServer) -> None:
    server.statuses["/b.mp4"] = 403
    refused(server.url("/b.mp4"), "refused by its server with status 403")


def test_what_is_not_there_at_all() -> None:
    refused("http://127.0.0.1:9/b.mp4", "cannot be reached; check the address and the network")


def test_what_is_slow(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_TIMEOUT", "0.3")
    server.slow["/b.mp4"] = 1.0
    refused(server.url("/b.mp4"), r"silent for 0\.3 s; try again, or raise JOSTLE_TIMEOUT")


def test_what_is_cut_off(server: RangeServer) -> None:
    server.cut.add("/b.mp4")
    refused(server.url("/b.mp4"), "cut off")


def test_what_changes_while_it_is_fetched(server: RangeServer) -> None:
    server.changing.add("/b.mp4")
    assert isinstance(refused(server.url("/b.mp4"), "changed while it was fetched"), SourceChanged)


def test_what_changes_while_it_is_read(server: RangeServer, address: str) -> None:
    with Reader(address) as reader:
        reader.frame(3)
        reader.check_unchanged()
        server.files["/b.mp4"] += b"\0"
        with pytest.raises(SourceChanged, match="changed while it was being read"):
            reader.check_unchanged()
        server.files["/b.mp4"] = server.files["/b.mp4"][:-1]


def test_what_is_no_video(server: RangeServer) -> None:
    server.files["/a.mp4"] = b"<!DOCTYPE html><html><body>404</body></html>"
    refused(server.url("/a.mp4"), r"a\.mp4: not a video but an HTML page")
    server.files["/empty.mp4"] = b""
    refused(server.url("/empty.mp4"), "empty file; upload it again")


def test_a_playlist_opens_no_other_address(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{server.url('/b.mp4')}\n#EXT-X-ENDLIST\n".encode()
    server.files["/list.mp4"] = playlist
    refused(server.url("/list.mp4"), "is an HLS playlist; give the video file itself")
    monkeypatch.setattr("jostle.io.video.ffmpeg.check_kind", lambda file, name: file.close())
    refused(server.url("/list.mp4"), "no video that FFmpeg can open")
    assert not any(path == "/b.mp4" for _, path, _ in server.requests)


def test_a_path_is_never_an_address(server: RangeServer, address: str) -> None:
    with pytest.raises(MediaError, match="only local files are read, not addresses"):
        jostle.read(Path(address))
    assert not server.requests


def test_any_file_system_of_fsspec(videos: dict[str, Path]) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/clips/b.mp4", videos["h264_b_frames"].read_bytes())
    clip = jostle.read("memory://clips/b.mp4")
    assert (clip.frames == jostle.read(videos["h264_b_frames"]).frames).all()


def test_corrupt_on_the_command_line(
    server: RangeServer, address: str, videos: dict[str, Path], tmp_path: Path
) -> None:
    specs = ("-c", "gaussian_noise:3", "-c", "thumos14-c/packet_loss:2", "--lossless", "--seed", 1)
    for source, out in ((address, "remote.mkv"), (videos["h264_b_frames"], "file.mkv")):
        done = jostle_of("corrupt", source, *specs, "-o", out, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "remote.mkv").read_bytes() == (tmp_path / "file.mkv").read_bytes()
    done = jostle_of("corrupt", server.url("/none.mp4"), *specs, "-o", "none.mkv", folder=tmp_path)
    assert done.returncode == 3
    assert "no such file" in done.stderr


def test_inspect_on_the_command_line(address: str, videos: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    remote, file = (
        json.loads(jostle_of("inspect", source, "--json", folder=tmp_path).stdout)
        for source in (address, videos["h264_b_frames"])
    )
    assert remote["probabilities"] == file["probabilities"]


def test_extract_on_the_command_line(address: str, videos: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shutil.copy(mean_extractor.__file__, tmp_path / "own.py")
    for source, out in ((address, "remote"), (videos["h264_b_frames"], "file")):
        done = jostle_of("extract", source, "--extractor", "own:means", "-o", out, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "remote" / "b.npy") == np.load(tmp_path / "file" / "b.npy")).all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_reads_addresses_and_skips_those_that_fail(server: RangeServer, tmp_path: Path, jobs: int) -> None:
    world = write_clips(tmp_path)
    a, b = world / "clips/test/jump/a.mkv", world / "clips/test/walk/b.mkv"
    server.files |= {"/a.mkv": a.read_bytes(), "/b.mkv": b.read_bytes()}

    def run(out: str, videos: dict[str, str]) -> Any:
        return jostle.run(
            world / "tiny-p.toml", model=StripeReader(), data=world / "clips", out=world / out, jobs=jobs, videos=videos
        )

    run("files", {})
    run("remote", {"a": server.url("/a.mkv"), "b": server.url("/b.mkv")})
    files, remote = (sorted((world / out / "predictions").glob("*.npz")) for out in ("files", "remote"))
    assert len(files) == 2
    for one, other in zip(files, remote, strict=True):
        assert one.read_bytes() == other.read_bytes()
    server.cut.add("/b.mkv")
    partly = run("partly", {"a": server.url("/a.mkv"), "b": server.url("/b.mkv")})
    (failure,) = partly.failures
    assert failure["video"] == "b"
    assert "cut off" in failure["message"]


def test_an_address_goes_where_a_path_goes() -> None:
    import pickle

    address = location_of("https://user:key@host/a%20b/film.mp4?sig=1//2")
    assert isinstance(address, VideoAddress)
    assert (address.name, address.stem, address.suffix, str(address)) == (
        "film.mp4",
        "film",
        ".mp4",
        "https://host/a%20b/film.mp4?...",
    )
    assert pickle.loads(pickle.dumps(address)) == address
    assert hash(location_of("s3://bucket/a//b.mp4")) != hash(location_of("s3://bucket/a/b.mp4"))
    assert location_of("videos//a.mp4") == Path("videos/a.mp4")
