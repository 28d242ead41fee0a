"""Download of one file over HTTPS from a server that truncates, stalls, redirects or sends something else."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.refusals import refused
from jostle.errors import CheckpointError, ResourceError, Tampered
from jostle.models.weights.download import MIB, WeightFile, download

CONTENT = bytes(range(256)) * 4000


Fetch = Callable[..., bytes]


@pytest.fixture
def fetch(file_server, tmp_path: Path) -> Fetch:
    """Put a file on the server; call this to download it and get what then has its name."""
    file_server.files["/net.pth"] = CONTENT

    def download_it(**about: object) -> bytes:
        download(WeightFile(f"{file_server.url}/net.pth", **about), tmp_path / "net.pth")  # type: ignore[arg-type]
        return (tmp_path / "net.pth").read_bytes()

    return download_it


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_download_writes_the_complete_file(file_server, tmp_path: Path) -> None:
    file_server.files["/a/net.pth"] = CONTENT
    progress: list[tuple[int, int]] = []
    download(
        WeightFile(f"{file_server.url}/a/net.pth"),
        tmp_path / "net.pth",
        progress=lambda *update: progress.append(update),
    )
    assert (tmp_path / "net.pth").read_bytes() == CONTENT
    assert file_names(tmp_path) == ["net.pth"]
    assert progress[-1] == (len(CONTENT) // MIB, max(1, len(CONTENT) // MIB))


def test_interrupted_download_resumes_with_a_range_request(file_server, fetch: Fetch) -> None:
    file_server.truncate_after = [100_000, 200_000]
    assert fetch() == CONTENT
    assert [byte_range for _, byte_range in file_server.requests] == [None, "bytes=100000-", "bytes=300000-"]


def test_later_call_resumes_a_partial_download(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.truncate_after = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError, match=r"cut off after 100000 of 1024000 bytes.*goes on after 0\.1 MiB"):
        fetch()
    assert not (tmp_path / "net.pth").exists()
    file_server.truncate_after, file_server.requests = [], []
    assert fetch() == CONTENT
    assert [byte_range for _, byte_range in file_server.requests] == ["bytes=100000-"]


@pytest.mark.parametrize("omit_etag", [False, True])
def test_changed_file_is_not_appended_to_a_partial_download(file_server, fetch: Fetch, omit_etag: bool) -> None:
    file_server.omit_etag = omit_etag
    file_server.truncate_after = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError):
        fetch()
    file_server.truncate_after = []
    file_server.files["/net.pth"] = CONTENT[::-1]
    assert fetch() == CONTENT[::-1]


def test_partial_file_longer_than_the_file_is_discarded(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.truncate_after = [100_000, 0, 0, 0]
    with pytest.raises(ResourceError):
        fetch()
    file_server.truncate_after = []
    with (tmp_path / ".net.pth.part").open("ab") as file:
        file.write(bytes(2 * len(CONTENT)))
    assert fetch() == CONTENT


def test_stalled_download_times_out(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.truncate_after, file_server.stall = [1000, 0, 0, 0], True
    with pytest.raises(ResourceError, match="nothing came for a while"):
        fetch()
    assert not (tmp_path / "net.pth").exists()


def test_wrong_content_length_leaves_no_file(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.content_length = len(CONTENT) + 5
    with pytest.raises(ResourceError, match=r"cannot be fetched: (it was cut off|what was here did not belong to it)"):
        fetch()
    assert not (tmp_path / "net.pth").exists()


def test_unexpected_size_is_refused_before_the_download(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.files["/net.pth"] = b"<html>please log in</html>"
    with pytest.raises(Tampered, match=r"offers 0\.000 MiB, and the file has 127\.359"):
        fetch(mebibytes=127.359)
    assert not (tmp_path / "net.pth").exists()


def test_temporary_errors_are_retried_and_permanent_ones_raised(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.statuses = [503, 429]
    fetch()
    assert len(file_server.requests) == 3
    with pytest.raises(ResourceError, match=r"answers 404 Not Found.*put it at .*other\.pth") as caught:
        download(WeightFile(f"{file_server.url}/other.pth"), tmp_path / "other.pth")
    assert f"{file_server.url}/other.pth" in str(caught.value)
    assert len(file_server.requests) == 4
    assert file_names(tmp_path) == ["net.pth"]


def test_redirects_to_the_same_or_a_listed_host_are_followed(file_server, tmp_path: Path) -> None:
    port = file_server.url.rpartition(":")[2]
    file_server.files["/new.pth"] = CONTENT
    file_server.redirects = {"/same.pth": "/new.pth", "/named.pth": f"https://127.0.0.1:{port}/new.pth"}
    download(WeightFile(f"{file_server.url}/same.pth"), tmp_path / "same.pth")
    download(WeightFile(f"{file_server.url}/named.pth", through=(f"127.0.0.1:{port}",)), tmp_path / "named.pth")
    assert (tmp_path / "same.pth").read_bytes() == (tmp_path / "named.pth").read_bytes() == CONTENT


@pytest.mark.parametrize("target", ["https://localhost:{}/new.pth", "http://127.0.0.1:{}/new.pth"])
def test_redirects_to_other_hosts_are_refused(file_server, fetch: Fetch, tmp_path: Path, target: str) -> None:
    file_server.files["/new.pth"] = CONTENT
    file_server.redirects = {"/net.pth": target.format(file_server.url.rpartition(":")[2])}
    with pytest.raises(Tampered, match="refused, the server sends on to"):
        fetch()
    assert {path for path, _ in file_server.requests} == {"/net.pth"}  # a lost connection is tried again
    assert file_names(tmp_path) == []


def test_redirect_to_a_local_file_is_refused(file_server, fetch: Fetch, tmp_path: Path) -> None:
    file_server.redirects = {"/net.pth": "file:///etc/hosts"}
    with pytest.raises(ResourceError, match=r"Redirection to url .* is not allowed"):
        fetch()
    assert file_names(tmp_path) == []


def test_untrusted_certificate_is_refused(file_server, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ResourceError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch()
    assert file_server.requests == []


def test_file_that_fails_the_check_is_deleted(fetch: Fetch, tmp_path: Path) -> None:

    def refuse(path: Path) -> None:
        assert path.read_bytes() == CONTENT
        raise CheckpointError("no")

    with pytest.raises(CheckpointError):
        fetch(check=refuse)
    assert file_names(tmp_path) == []


def test_connection_error_names_url_and_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.models.weights.download.PAUSE_S", 0)
    url = "https://127.0.0.1:1/net.pth"
    with pytest.raises(ResourceError) as caught:
        download(WeightFile(url), tmp_path / "deep" / "net.pth")
    message = str(caught.value)
    assert url in message
    assert str(tmp_path / "deep" / "net.pth") in message
    assert file_names(tmp_path / "deep") == []


def test_concurrent_downloads_of_one_file_download_once(file_server, tmp_path: Path) -> None:
    file_server.files["/net.pth"] = CONTENT
    threads = [
        threading.Thread(target=download, args=(WeightFile(f"{file_server.url}/net.pth"), tmp_path / "net.pth"))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "net.pth").read_bytes() == CONTENT
    assert len(file_server.requests) == 1


@pytest.mark.fault("F135")
@pytest.mark.parametrize("length", ["", "500000\r\nTransfer-Encoding: chunked"], ids=["none", "chunked"])
def test_f135_response_larger_than_the_published_size_is_refused(
    file_server, fetch: Fetch, tmp_path: Path, length: str
) -> None:
    """Chunked responses too, which may exceed the announced length."""
    file_server.files["/net.pth"], file_server.content_length = (
        (b"FA000\r\n" + CONTENT + b"\r\n0\r\n\r\n" if length else CONTENT),
        length,
    )
    with refused("F135", Tampered, match=r"sends more than the 5\d{5} bytes"):
        fetch(mebibytes=500_000 / MIB)
    assert file_names(tmp_path) == []
    assert len(file_server.requests) == 1


def test_response_without_content_length_must_have_the_published_size(
    file_server, fetch: Fetch, tmp_path: Path
) -> None:
    file_server.content_length = ""
    assert fetch(mebibytes=len(CONTENT) / MIB) == CONTENT
    with pytest.raises(Tampered, match=r"offers 0\.977 MiB, and the file has 2\.000"):
        download(WeightFile(f"{file_server.url}/net.pth", mebibytes=2), tmp_path / "short.pth")
    assert not (tmp_path / "short.pth").exists()


@pytest.mark.fault("F136")
@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "9" * 400, "-5", "0x10"])
def test_f136_invalid_content_length_is_refused(file_server, fetch: Fetch, tmp_path: Path, length: str) -> None:
    file_server.content_length = length
    with refused("F136", ResourceError, match="a length that is no number of bytes"):
        fetch(mebibytes=1)
    assert file_names(tmp_path) == []


@pytest.mark.fault("F136")
@pytest.mark.parametrize("target", ["https://[::1", "https://[nothing]/net.pth"])
def test_f136_invalid_redirect_url_is_refused(file_server, fetch: Fetch, tmp_path: Path, target: str) -> None:
    file_server.redirects = {"/net.pth": target}
    with refused("F136", Tampered, match="sends on to an address that is none"):
        fetch()
    assert file_names(tmp_path) == []


@pytest.mark.fault("F137")
@pytest.mark.parametrize("record", [b"[" * 100_000, b'{"url": 5', b"pipe", b'{"url": "URL", "mark": "a\\r\\nb"}'])
def test_f137_damaged_record_of_a_partial_file_restarts_the_download(
    file_server, fetch: Fetch, tmp_path: Path, record: bytes
) -> None:
    (tmp_path / ".net.pth.part").write_bytes(b"something else")
    note = tmp_path / ".net.pth.part.json"
    if record == b"pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(record.replace(b"URL", f"{file_server.url}/net.pth".encode()))
    assert fetch() == CONTENT
    assert file_server.requests == [("/net.pth", None)]


@pytest.mark.fault("F138")
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("cut", [False, True])
def test_f138_link_in_place_of_a_partial_file_keeps_its_target_unchanged(
    file_server, tmp_path: Path, link, cut: bool
) -> None:
    file_server.files["/net.pth"] = CONTENT
    file_server.truncate_after = [100_000, 0, 0, 0] if cut else []
    (tmp_path / "thesis.tex").write_bytes(b"years of work")
    (tmp_path / "cache").mkdir()
    link(tmp_path / "thesis.tex", tmp_path / "cache" / ".net.pth.part")
    note = {"url": f"{file_server.url}/net.pth", "mark": f'"{hash(CONTENT):x}"'}
    (tmp_path / "cache" / ".net.pth.part.json").write_text(json.dumps(note))
    if cut:
        with pytest.raises(ResourceError, match="cut off after 100000"):
            download(WeightFile(f"{file_server.url}/net.pth"), tmp_path / "cache" / "net.pth")
    else:
        download(WeightFile(f"{file_server.url}/net.pth"), tmp_path / "cache" / "net.pth")
        assert (tmp_path / "cache" / "net.pth").read_bytes() == CONTENT
    assert (tmp_path / "thesis.tex").read_bytes() == b"years of work"
