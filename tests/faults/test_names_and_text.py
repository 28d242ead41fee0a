"""Faults 20 to 26: duplicate and missing videos, ids and names in any script, text in any encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.numpy_extractor import write_video
from helpers.refusals import refused
from jostle.datasets.dataset import Dataset
from jostle.datasets.videos import check_data, coverage, find_videos
from jostle.errors import DataError
from jostle.io.files.annotations import segments_of
from jostle.io.files.text import read_json, read_text
from jostle.io.files.video_ids import collisions, file_name_for, normalize_id, refuse_collisions

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
AWKWARD = ["-rf", "a b", "it's", 'say "x"', "100%", "#1", "a\nb", "a\0b", "..", "../../x", "/etc/passwd", "a\\b", ""]
RESERVED = ["CON", "nul", "Com1.x", "LPT9", "aux.", "a.", "a ", "con.mp4"]


def touch(folder: Path, *names: bytes) -> None:
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(name)


@pytest.mark.fault("F20")
def test_F20_two_files_for_one_id_are_listed(tmp_path: Path) -> None:
    touch(tmp_path, b"a.mp4", b"a.avi", b"b.mp4")
    with refused("F20", DataError) as caught:
        find_videos(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: 1 id(s) have more than one file: a (a.avi and a.mp4); move one of each away, "
        "or pass an explicit map from id to file"
    )


@pytest.mark.fault("F20")
def test_F20_one_id_in_two_unicode_forms_is_two_files_for_one_id(tmp_path: Path) -> None:
    touch(tmp_path, f"{COMPOSED}.mp4".encode(), f"{DECOMPOSED}.mp4".encode())
    if len(os.listdir(tmp_path)) < 2:
        pytest.skip("this disk stores one Unicode form only")
    with pytest.raises(DataError, match="1 id\\(s\\) have more than one file: caf\u00e9 "):
        find_videos(tmp_path)


@pytest.mark.fault("F20")
@pytest.mark.parametrize("how", ["copy", "hard link", "link"])
def test_F20_one_video_under_two_ids_is_listed(tmp_path: Path, how: str) -> None:
    original = tmp_path / "a.mkv"
    write_video(original, 5, seed=1)
    write_video(tmp_path / "c.mkv", 5, seed=2)
    twin = tmp_path / "b.mkv"
    if how == "copy":
        twin.write_bytes(original.read_bytes())
    elif how == "link":
        twin.symlink_to(original)
    else:
        os.link(original, twin)
    data = Dataset("folder", "all", tmp_path, (), find_videos(tmp_path))
    assert check_data(data).lacking == (
        "1 video(s) appear under more than one id and count as often: a = b; remove all but one of each",
    )


@pytest.mark.fault("F21")
def test_F21_listed_and_present_videos_are_counted_both_ways() -> None:
    listed = [f"v{i:03}" for i in range(198)] + ["lost 1", "lost2"]
    result = coverage(listed, [*listed[:198], "x", "y", "z"])
    assert (len(result.used), result.missing, result.unlisted) == (198, ("lost 1", "lost2"), ("x", "y", "z"))
    assert result.share == 0.99
    assert str(result) == "198 of 200 videos (2 missing: 'lost 1', lost2; 3 unlisted)"


@pytest.mark.fault("F21")
def test_F21_coverage_matches_under_nfc() -> None:
    assert str(coverage([DECOMPOSED, "b"], [COMPOSED, "b"])) == "2 of 2 videos"


@pytest.mark.fault("F22")
def test_F22_ids_match_in_every_unicode_form() -> None:
    assert normalize_id(COMPOSED) == normalize_id(DECOMPOSED)
    assert normalize_id("\u1112\u1161\u11ab") == normalize_id("\ud55c")  # three jamo, one syllable
    assert normalize_id("a") != normalize_id("A")
    assert normalize_id("\ufb01") != normalize_id("fi")  # compatible is not canonical
    for video_id in ("🏊\u200d♀️", "\u202eabc", "שלום", "\ud83d", "\udce9"):
        assert normalize_id(normalize_id(video_id)) == normalize_id(video_id)


@pytest.mark.fault("F22")
def test_F22_the_bytes_of_file_names_are_kept(tmp_path: Path) -> None:
    names = [f"{DECOMPOSED}.mp4".encode(), b"latin\xe9.mp4", "走る🏃.mp4".encode(), "\u202eabc.mp4".encode()]
    touch(tmp_path, *names)
    videos = find_videos(tmp_path)
    assert set(videos) == {COMPOSED, "latin\udce9", "走る🏃", "\u202eabc"}
    assert {os.fsencode(path.name) for path in videos.values()} == set(names)
    assert all(path.read_bytes() == os.fsencode(path.name) for path in videos.values())


@pytest.mark.fault("F22")
def test_F22_annotations_find_their_video_in_another_form(tmp_path: Path) -> None:
    entry = {"annotations": [{"label": "Run", "segment": [1, 2]}]}
    truth = tmp_path / "gt.json"
    truth.write_text(json.dumps({"database": {DECOMPOSED: entry}}))
    assert segments_of(truth, COMPOSED).start.tolist() == [1.0]


@pytest.mark.fault("F23")
@pytest.mark.parametrize("video_id", AWKWARD)
def test_F23_awkward_ids_stay_in_their_folder(tmp_path: Path, video_id: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    name = file_name_for(video_id, ".mp4")
    (home / name).write_bytes(b"x")
    assert [path.name for path in home.iterdir()] == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert not set(name) & set("/\\\0\n\"'%# ")
    assert not name.startswith(("-", "."))


@pytest.mark.fault("F23")
def test_F23_different_awkward_ids_get_different_names() -> None:
    ids = [*AWKWARD, *RESERVED, "a_b", "_rf", "__", "a_b~" + "0" * 16]
    assert len({file_name_for(i, ".mp4") for i in ids}) == len(set(ids))
    name = file_name_for("a b", "")
    assert file_name_for(name, "") != name


@pytest.mark.fault("F24")
@pytest.mark.parametrize("video_id", RESERVED)
def test_F24_reserved_names_are_changed(video_id: str) -> None:
    name = file_name_for(video_id, "")
    base = name.split(".")[0].upper()
    assert base not in {"CON", "NUL", "COM1", "LPT9", "AUX"}
    assert name[-1] not in ". "
    assert "~" in name


@pytest.mark.fault("F24")
def test_F24_long_ids_are_shortened_with_a_hash(tmp_path: Path) -> None:
    ids = ["x" * 300, "x" * 301, "走" * 100, "🏊" * 5000]
    names = [file_name_for(i, ".mp4") for i in ids]
    assert len(set(names)) == len(ids)
    for name in names:
        assert len(os.fsencode(name)) <= 255
        (tmp_path / name).touch()
    assert names[0].startswith("xxx")
    assert names[2].startswith("走走")


@pytest.mark.fault("F24")
def test_F24_names_that_differ_by_case_or_form_are_listed() -> None:
    names = ["-AbC.mp4", "-abc.mp4", "x.mp4", COMPOSED, DECOMPOSED.upper()]
    assert collisions(names) == [("-AbC.mp4", "-abc.mp4"), (COMPOSED, DECOMPOSED.upper())]
    with refused("F24", DataError) as caught:
        refuse_collisions(names[:3], "out")
    assert str(caught.value) == (
        "out: 1 group(s) of names are one file on a disk that ignores case or Unicode form: "
        "-AbC.mp4 = -abc.mp4; rename one of each, or write them to different folders"
    )


@pytest.mark.fault("F25")
@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfa\nb\nc\n", b"a\r\nb\r\nc\r\n", b"a\r\nb\nc\r", b"\xef\xbb\xbfa\rb\rc\r\n"]
)
def test_F25_byte_order_mark_and_any_newline_are_accepted(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(data)
    assert read_text(file) == "a\nb\nc\n"


@pytest.mark.fault("F25")
@pytest.mark.parametrize(
    ("data", "where", "looks_like"),
    [
        ("a\nb".encode("utf-16"), "byte 0 (0xff, line 1)", "UTF-16, little-endian"),
        (b"\xfe\xff" + "a\nb".encode("utf-16-be"), "byte 0 (0xfe, line 1)", "UTF-16, big-endian"),
        ("a\nb".encode("utf-16-le"), "byte 1 (0x00, line 1)", "UTF-16, little-endian, without a byte order mark"),
        ("a\nb".encode("utf-16-be"), "byte 0 (0x00, line 1)", "UTF-16, big-endian, without a byte order mark"),
        ("a\nb".encode("utf-32"), "byte 0 (0xff, line 1)", "UTF-32"),
        ("x\nnaïve".encode("latin-1"), "byte 4 (0xef, line 2)", "Latin-1 or another 8-bit encoding"),
        ("x\n“naïve”".encode("cp1252"), "byte 2 (0x93, line 2)", "Windows-1252 or another 8-bit encoding"),
        ("走".encode()[:2], "byte 0 (0xe8, line 1)", "UTF-8 that was cut off in the middle of a character"),
    ],
)
def test_F25_other_encodings_are_refused_with_the_offset(
    tmp_path: Path, data: bytes, where: str, looks_like: str
) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(data)
    with refused("F25", DataError) as caught:
        read_text(file)
    assert str(caught.value) == (
        f"{file}: not UTF-8 text at {where}: it looks like {looks_like}; save the file as UTF-8"
    )


@pytest.mark.fault("F25")
def test_F25_json_with_a_byte_order_mark_is_json(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{"a":\r\n 1}')
    assert read_json(file) == {"a": 1}


LOCALE_PROGRAM = """
import os, sys
from pathlib import Path
from jostle.io.files.annotations import read_truth
from jostle.io.files.video_ids import file_name_for, path_for
from jostle.datasets.videos import coverage, find_videos
root = Path(sys.argv[1])
truth = read_truth(root / "gt.json")
videos = find_videos(root)
for row, video_id in enumerate(truth.videos):
    name = file_name_for(video_id, ".out")
    path_for(root, name).write_bytes(b"x")
    print(ascii((video_id, name, truth.classes, float(truth.start[row]), float(truth.duration[row]))))
    print(videos[video_id].read_bytes() == b"frames")
print(ascii((list(videos), str(coverage(truth.videos, videos)))))
print(sorted(os.listdir(os.fsencode(root))))
"""


@pytest.mark.fault("F26")
def test_F26_a_bare_locale_gives_the_same_numbers_and_files(tmp_path: Path) -> None:
    ids = [COMPOSED, "走る", "plain"]
    bare = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}
    settings = {"bare": bare, "utf8": {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}}
    outputs = {}
    for name, locale in settings.items():
        root = tmp_path / name
        root.mkdir()
        for video_id in ids:
            (root / f"{video_id}.mp4").write_bytes(b"frames")
        entries = {
            i: {"duration": 1234.5, "annotations": [{"label": "Läufer", "segment": [0.1, 1234.25]}]} for i in ids
        }
        truth = json.dumps({"database": entries}, ensure_ascii=False)
        (root / "gt.json").write_text(truth, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", LOCALE_PROGRAM, str(root)],
            env={**os.environ, **locale},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs[name] = done.stdout
    assert outputs["bare"] == outputs["utf8"]
    assert "('caf\\xe9', 'caf\\xe9.out', ('L\\xe4ufer',), 0.1, 1234.5)" in outputs["bare"]
    assert "'3 of 3 videos'" in outputs["bare"]
