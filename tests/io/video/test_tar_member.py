"""Members of tar archives: read where they lie, with the pixels of the file."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

import jostle
from jostle.datasets.videos import id_at
from jostle.errors import MediaError, SourceChanged
from jostle.extend import Reader


@pytest.fixture
def shard(videos: dict[str, Path], tmp_path: Path) -> Path:
    path = tmp_path / "shard.tar"
    with tarfile.open(path, "w") as archive:
        for name, video in videos.items():
            archive.add(video, f"./clips/{name}{video.suffix}")
        archive.add(videos["h264_vfr"], "0001.mp4")
    return path


@pytest.mark.parametrize("name", ["h264_b_frames", "h264_open_gop", "mpeg4_avi", "mpeg2_ts", "vp9_mkv", "mjpeg_mkv"])
def test_a_member_has_the_pixels_of_the_file(name: str, videos: dict[str, Path], shard: Path) -> None:
    with Reader(videos[name]) as file, Reader(f"{shard}#clips/{name}{videos[name].suffix}") as member:
        assert (member.block(0, len(member)) == file.block(0, len(file))).all()
        assert (member.warnings, member.ticks.tolist()) == (file.warnings, file.ticks.tolist())
        for number in (40, 7, 59, 0):
            assert (member.frame(number) == file.frame(number)).all()


def test_verbs_read_members(videos: dict[str, Path], shard: Path, tmp_path: Path) -> None:
    spec = ["gaussian_noise:3", "thumos14-c/packet_loss:2"]
    jostle.corrupt_file(f"{shard}#0001.mp4", spec, tmp_path / "member.mkv", lossless=True)
    jostle.corrupt_file(videos["h264_vfr"], spec, tmp_path / "file.mkv", lossless=True, video_id="0001")
    assert (tmp_path / "member.mkv").read_bytes() == (tmp_path / "file.mkv").read_bytes()
    assert (jostle.inspect(f"{shard}#0001.mp4") == jostle.inspect(videos["h264_vfr"])).all()
    assert id_at(Path(f"{shard}#clips/0002.mp4")) == "0002"


def test_a_missing_member_is_named_with_near_ones(shard: Path) -> None:
    with pytest.raises(MediaError, match=r"^shard\.tar: holds no file 0002\.mp4; did you mean 0001\.mp4\?$"):
        jostle.read(f"{shard}#0002.mp4")
    with pytest.raises(MediaError, match=r"^none\.tar: no such file"):
        jostle.read(f"{shard.with_name('none.tar')}#0002.mp4")


def test_names_of_members_are_no_paths(videos: dict[str, Path], tmp_path: Path) -> None:
    """An archive is never unpacked; links and special files in it are no videos."""
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(videos["h264_b_frames"], "../../b.mp4")
        link = tarfile.TarInfo("link.mp4")
        link.type, link.linkname = tarfile.SYMTYPE, str(videos["h264_b_frames"])
        archive.addfile(link)
    assert len(jostle.read(f"{path}#../../b.mp4")) == 60
    with pytest.raises(MediaError, match=r"holds no file link\.mp4"):
        jostle.read(f"{path}#link.mp4")


def test_a_compressed_archive_is_refused(shard: Path) -> None:
    packed = shard.with_name("packed.tar")
    packed.write_bytes(gzip.compress(shard.read_bytes()))
    with pytest.raises(MediaError, match=r"^packed\.tar: no plain tar archive .* so unpack it$"):
        jostle.read(f"{packed}#0001.mp4")


def test_an_archive_that_is_cut_off_is_refused(shard: Path) -> None:
    content = shard.read_bytes()
    shard.write_bytes(content[: content.rindex(b"0001.mp4") + 3000])
    with pytest.raises(MediaError, match=r"^shard\.tar: ends within 0001\.mp4; the archive is cut off"):
        jostle.read(f"{shard}#0001.mp4")


def test_an_archive_that_changes_while_it_is_read(shard: Path) -> None:
    reader = Reader(f"{shard}#0001.mp4")
    reader.frame(0)
    with shard.open("ab") as file:
        file.write(bytes(512))
    with pytest.raises(SourceChanged):
        reader.check_unchanged()
    reader.close()


def test_members_of_an_archive_at_an_address(shard: Path, videos: dict[str, Path]) -> None:
    pytest.importorskip("aiohttp")
    from helpers.range_server import serve

    with serve() as served:
        served.files["/shard.tar"] = shard.read_bytes()
        clip = jostle.read(f"{served.url('/shard.tar')}#clips/h264_b_frames.mp4")
        served.ranges = False
        with pytest.raises(MediaError, match="its server answers no requests for a part"):
            jostle.read(f"{served.url('/shard.tar')}#0001.mp4")
    assert (clip.frames == jostle.read(videos["h264_b_frames"]).frames).all()


def test_a_file_whose_name_looks_like_a_member(videos: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "a.tar#b.mp4"
    path.write_bytes(videos["h264_b_frames"].read_bytes())
    assert len(jostle.read(path)) == 60
