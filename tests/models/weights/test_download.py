"""One file by https, from a server that cuts off, stalls, lies, moves and serves something else."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from jostle.errors import CheckpointError, ResourceError, Tampered
from jostle.models.weights.download import MIB, WeightFile, download

WHOLE = bytes(range(256)) * 4000


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_whole(files, tmp_path: Path) -> None:
    files.held["/a/net.pth"] = WHOLE
    told: list[tuple[int, int]] = []
    download(WeightFile(f"{files.url}/a/net.pth"), tmp_path / "net.pth", progress=lambda *now: told.append(now))
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    assert leftovers(tmp_path) == ["net.pth"]
    assert told[-1] == (len(WHOLE) // MIB, max(1, len(WHOLE) // MIB))


def test_what_was_cut_off_goes_on_where_it_stopped(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE
    files.cut = [100_000, 200_000]
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    assert [asked for _, asked in files.asked] == [None, "bytes=100000-", "bytes=300000-"]


def test_a_later_call_goes_on_too(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE
    files.cut = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError, match=r"cut off after 100000 of 1024000 bytes.*goes on after 0\.1 MiB"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert not (tmp_path / "net.pth").exists()
    files.cut, files.asked = [], []
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    assert [asked for _, asked in files.asked] == ["bytes=100000-"]


@pytest.mark.parametrize("tagless", [False, True])
def test_another_version_is_not_joined_to_the_first(files, tmp_path: Path, tagless: bool) -> None:
    files.held["/net.pth"], files.tagless = WHOLE, tagless
    files.cut = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    files.cut = []
    files.held["/net.pth"] = WHOLE[::-1]
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE[::-1]


def test_more_here_than_there_begins_anew(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE
    files.cut = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    files.cut = []
    with (tmp_path / ".net.pth.part").open("ab") as file:
        file.write(bytes(2 * len(WHOLE)))
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE


def test_a_server_that_stalls_is_given_up(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE
    files.cut, files.stall = [1000, 0, 0, 0], True
    with pytest.raises(ResourceError, match="nothing came for a while"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert not (tmp_path / "net.pth").exists()


def test_a_length_that_is_a_lie_is_no_file(files, tmp_path: Path) -> None:
    files.held["/net.pth"], files.claims = WHOLE, len(WHOLE) + 5
    with pytest.raises(ResourceError, match=r"cannot be fetched: (it was cut off|what was here did not belong to it)"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert not (tmp_path / "net.pth").exists()


def test_a_file_of_another_size_is_not_even_begun(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = b"<html>please log in</html>"
    with pytest.raises(Tampered, match=r"offers 0\.000 MiB, and the file has 127\.359"):
        download(WeightFile(f"{files.url}/net.pth", mebibytes=127.359), tmp_path / "net.pth")
    assert not (tmp_path / "net.pth").exists()


def test_a_passing_error_is_waited_out_and_a_lasting_one_told(files, tmp_path: Path) -> None:
    files.held["/net.pth"], files.status = WHOLE, [503, 429]
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert len(files.asked) == 3
    with pytest.raises(ResourceError, match=r"answers 404 Not Found.*put it at .*other\.pth") as told:
        download(WeightFile(f"{files.url}/other.pth"), tmp_path / "other.pth")
    assert f"{files.url}/other.pth" in str(told.value)
    assert len(files.asked) == 4
    assert leftovers(tmp_path) == ["net.pth"]


def test_it_is_followed_to_itself_and_to_hosts_that_were_named(files, tmp_path: Path) -> None:
    port = files.url.rpartition(":")[2]
    files.held["/new.pth"] = WHOLE
    files.moved = {"/same.pth": "/new.pth", "/named.pth": f"https://127.0.0.1:{port}/new.pth"}
    download(WeightFile(f"{files.url}/same.pth"), tmp_path / "same.pth")
    download(WeightFile(f"{files.url}/named.pth", through=(f"127.0.0.1:{port}",)), tmp_path / "named.pth")
    assert (tmp_path / "same.pth").read_bytes() == (tmp_path / "named.pth").read_bytes() == WHOLE


@pytest.mark.parametrize("where", ["https://localhost:{}/new.pth", "http://127.0.0.1:{}/new.pth"])
def test_it_is_followed_nowhere_else(files, tmp_path: Path, where: str) -> None:
    files.held["/new.pth"] = WHOLE
    files.moved = {"/net.pth": where.format(files.url.rpartition(":")[2])}
    with pytest.raises(Tampered, match="refused, the server sends on to"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert [path for path, _ in files.asked] == ["/net.pth"]
    assert leftovers(tmp_path) == []


def test_it_is_not_followed_to_a_file_of_this_machine(files, tmp_path: Path) -> None:
    files.moved = {"/net.pth": "file:///etc/hosts"}
    with pytest.raises(ResourceError, match=r"Redirection to url .* is not allowed"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert leftovers(tmp_path) == []


def test_a_certificate_that_nobody_vouches_for_is_refused(
    files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.held["/net.pth"] = WHOLE
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ResourceError, match="CERTIFICATE_VERIFY_FAILED"):
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert files.asked == []


def test_what_the_check_refuses_is_not_kept(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE

    def refuse(path: Path) -> None:
        assert path.read_bytes() == WHOLE
        raise CheckpointError("no")

    with pytest.raises(CheckpointError):
        download(WeightFile(f"{files.url}/net.pth", check=refuse), tmp_path / "net.pth")
    assert leftovers(tmp_path) == []


def test_without_a_network_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.models.weights.download.PAUSE_S", 0)
    url = "https://127.0.0.1:1/net.pth"
    with pytest.raises(ResourceError) as told:
        download(WeightFile(url), tmp_path / "deep" / "net.pth")
    said = str(told.value)
    assert url in said
    assert str(tmp_path / "deep" / "net.pth") in said
    assert leftovers(tmp_path / "deep") == []


def test_two_that_want_the_same_fetch_it_once(files, tmp_path: Path) -> None:
    files.held["/net.pth"] = WHOLE
    both = [
        threading.Thread(target=download, args=(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth"))
        for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    assert len(files.asked) == 1


@pytest.mark.fault("F135")
@pytest.mark.parametrize("length", ["", "500000\r\nTransfer-Encoding: chunked"], ids=["none", "chunked"])
def test_f135_more_than_the_published_size_is_not_stored(files, tmp_path: Path, length: str) -> None:
    """Also in chunks, which go on whatever length is announced."""
    files.held["/net.pth"], files.claims = (b"FA000\r\n" + WHOLE + b"\r\n0\r\n\r\n" if length else WHOLE), length
    with pytest.raises(Tampered, match=r"sends more than the 5\d{5} bytes") as caught:
        download(WeightFile(f"{files.url}/net.pth", mebibytes=500_000 / MIB), tmp_path / "net.pth")
    assert caught.value.fault == "F135"
    assert leftovers(tmp_path) == []
    assert len(files.asked) == 1


def test_a_file_without_a_length_is_fetched_if_its_size_is_the_published_one(files, tmp_path: Path) -> None:
    files.held["/net.pth"], files.claims = WHOLE, ""
    download(WeightFile(f"{files.url}/net.pth", mebibytes=len(WHOLE) / MIB), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    with pytest.raises(Tampered, match=r"offers 0\.977 MiB, and the file has 2\.000"):
        download(WeightFile(f"{files.url}/net.pth", mebibytes=2), tmp_path / "short.pth")
    assert not (tmp_path / "short.pth").exists()


@pytest.mark.fault("F136")
@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "9" * 400, "-5", "0x10"])
def test_f136_a_length_that_is_no_number_is_refused(files, tmp_path: Path, length: str) -> None:
    files.held["/net.pth"], files.claims = WHOLE, length
    with pytest.raises(ResourceError, match="a length that is no number of bytes") as caught:
        download(WeightFile(f"{files.url}/net.pth", mebibytes=1), tmp_path / "net.pth")
    assert caught.value.fault == "F136"
    assert leftovers(tmp_path) == []


@pytest.mark.fault("F136")
@pytest.mark.parametrize("where", ["https://[::1", "https://[nothing]/net.pth"])
def test_f136_an_address_that_is_none_is_not_followed(files, tmp_path: Path, where: str) -> None:
    files.moved = {"/net.pth": where}
    with pytest.raises(Tampered, match="sends on to an address that is none") as caught:
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert caught.value.fault == "F136"
    assert leftovers(tmp_path) == []


@pytest.mark.fault("F137")
@pytest.mark.parametrize("record", [b"[" * 100_000, b'{"url": 5', b"pipe", b'{"url": "URL", "mark": "a\\r\\nb"}'])
def test_f137_a_damaged_record_of_a_partial_file_begins_anew(files, tmp_path: Path, record: bytes) -> None:
    files.held["/net.pth"] = WHOLE
    (tmp_path / ".net.pth.part").write_bytes(b"something else")
    note = tmp_path / ".net.pth.part.json"
    if record == b"pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(record.replace(b"URL", f"{files.url}/net.pth".encode()))
    download(WeightFile(f"{files.url}/net.pth"), tmp_path / "net.pth")
    assert (tmp_path / "net.pth").read_bytes() == WHOLE
    assert files.asked == [("/net.pth", None)]


@pytest.mark.fault("F138")
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("cut", [False, True])
def test_f138_a_partial_file_that_is_a_link_leaves_its_target_alone(files, tmp_path: Path, link, cut: bool) -> None:
    files.held["/net.pth"] = WHOLE
    files.cut = [100_000, 0, 0, 0] if cut else []
    (tmp_path / "thesis.tex").write_bytes(b"years of work")
    (tmp_path / "cache").mkdir()
    link(tmp_path / "thesis.tex", tmp_path / "cache" / ".net.pth.part")
    note = {"url": f"{files.url}/net.pth", "mark": f'"{hash(WHOLE):x}"'}
    (tmp_path / "cache" / ".net.pth.part.json").write_text(json.dumps(note))
    if cut:
        with pytest.raises(ResourceError, match="cut off after 100000"):
            download(WeightFile(f"{files.url}/net.pth"), tmp_path / "cache" / "net.pth")
    else:
        download(WeightFile(f"{files.url}/net.pth"), tmp_path / "cache" / "net.pth")
        assert (tmp_path / "cache" / "net.pth").read_bytes() == WHOLE
    assert (tmp_path / "thesis.tex").read_bytes() == b"years of work"
