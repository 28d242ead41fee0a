"""Faults F52-F55, F97 and F106: checkpoints that are hostile, damaged, of another network, or contradict themselves."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.hostile import MaliciousObject
from helpers.refusals import refused
from jostle.core.state_dict import describe_mismatch
from jostle.errors import CheckpointError, JostleError
from jostle.models.checkpoints import read_metadata, read_note, read_weights, write_weights
from jostle.models.loading.detectors import load_detector


def assert_refused(path: Path, fault: str, message: str | None = None) -> None:
    before = path.read_bytes()
    with refused(fault, CheckpointError, match=message) as caught:
        read_weights(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return tmp_path / "sprung"


def hostile(trap: Path) -> dict[str, Any]:
    return {
        "posix.system": MaliciousObject(os.system, f"touch {trap}"),
        "eval": MaliciousObject(builtins.eval, f"open({str(trap)!r}, 'w')"),
        "exec": MaliciousObject(builtins.exec, f"open({str(trap)!r}, 'w')"),
        "getattr": MaliciousObject(builtins.getattr, "text", "format"),
        "open": MaliciousObject(builtins.open, str(trap), "w"),
        "bytearray": MaliciousObject(builtins.bytearray, 10**13),
        "numpy._core.multiarray._reconstruct": __import__("numpy").zeros(3),
        "torch._utils._rebuild_meta_tensor_no_storage": torch.zeros(2, device="meta"),
    }


@pytest.mark.fault("F52")
@pytest.mark.parametrize("zipped", [True, False], ids=["torch", "legacy"])
@pytest.mark.parametrize("where", ["top", "weight", "list", "key", "optimizer"])
@pytest.mark.parametrize("kind", sorted(hostile(Path("x"))))
def test_f52_a_hostile_pickle_runs_nothing(tmp_path: Path, trap: Path, kind: str, where: str, zipped: bool) -> None:
    bad = hostile(trap)[kind]
    weight = {"a": torch.zeros(2)}
    content = {
        "top": bad,
        "weight": {"state_dict_ema": {**weight, "b": bad}},
        "list": {"state_dict_ema": weight, "scheduler": [{"deep": ([bad],)}]},
        "key": {"state_dict_ema": weight, "hooks": [(bad, 1)]},
        "optimizer": {"state_dict_ema": weight, "optimizer": {"state": {0: {"step": bad}}}},
    }[where]
    path = tmp_path / "a.pth.tar"
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    assert_refused(path, "F52", f"nothing in it was run: it asks for .*{kind.split('.')[-1]}")
    assert not trap.exists()


@pytest.mark.fault("F52")
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_f52_a_bare_pickle_runs_nothing(tmp_path: Path, trap: Path, protocol: int) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(pickle.dumps({"a": MaliciousObject(os.system, f"touch {trap}")}, protocol))
    assert_refused(path, "F52" if protocol > 1 else "F53", "posix.system" if protocol > 1 else "not a checkpoint")
    assert not trap.exists()


@pytest.mark.fault("F52")
def test_f52_the_environment_cannot_switch_safety_off(
    tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    torch.save({"a": MaliciousObject(os.system, f"touch {trap}")}, tmp_path / "a.pth")
    assert_refused(tmp_path / "a.pth", "F52")
    # A call that passes the list of names is still refused by torch's restricted reader.
    monkeypatch.setattr("jostle.models.pickled_weights._check_program", lambda *_: None)
    assert_refused(tmp_path / "a.pth", "F53", "torch cannot read it")
    assert not trap.exists()


def rewrite_archive(
    source: Path, target: Path, change: Callable[[list[tuple[str, bytes]]], Any], **options: Any
) -> Path:
    with zipfile.ZipFile(source) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(target, "w", **options) as archive:
        for name, data in change(entries):
            archive.writestr(zipfile.ZipInfo(name) if not options else name, data)
    return target


@pytest.fixture
def good(tmp_path: Path) -> Path:
    torch.save({"state_dict_ema": {"a": torch.arange(64.0)}}, tmp_path / "good.pth")
    return tmp_path / "good.pth"


@pytest.mark.fault("F52")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_f52_tricks_with_the_archive_are_refused(tmp_path: Path, good: Path, trap: Path) -> None:
    bad = pickle.dumps(MaliciousObject(os.system, f"touch {trap}"), 2)
    tricks: dict[str, Callable[[list[tuple[str, bytes]]], Any]] = {
        "twice.pth": lambda entries: [*entries, ("good/data.pkl", bad)],
        "case.pth": lambda entries: [*entries, ("good/DATA.PKL", bad)],
        "two.pth": lambda entries: [*entries, ("evil/data.pkl", bad)],
        "up.pth": lambda entries: [*entries, ("good/../../data.pkl", bad)],
        "stray.pth": lambda entries: [("data.pkl", bad), *entries],
    }
    for name, change in tricks.items():
        assert_refused(rewrite_archive(good, tmp_path / name, change), "F52", "doubled or stray entries")
    packed = rewrite_archive(good, tmp_path / "packed.pth", list, compression=zipfile.ZIP_DEFLATED)
    assert_refused(packed, "F52", "its archive is compressed")
    program = rewrite_archive(
        good, tmp_path / "program.pt", lambda e: [*e, ("good/constants.pkl", b""), ("good/code/a.py", b"")]
    )
    assert_refused(program, "F52", "a TorchScript program, not weights")
    assert not trap.exists()


@pytest.mark.fault("F53")
def test_f53_a_storage_that_claims_more_than_it_holds(tmp_path: Path, good: Path) -> None:
    def grown(entries: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        return [(name, data.replace(b"K@", b"K\xff") if name.endswith("data.pkl") else data) for name, data in entries]

    assert_refused(rewrite_archive(good, tmp_path / "grown.pth", grown), "F53", "torch cannot read it")


@pytest.mark.fault("F53")
@pytest.mark.parametrize("zipped", [True, False], ids=["torch", "legacy"])
def test_f53_checkpoints_cut_off_anywhere_are_refused(tmp_path: Path, zipped: bool) -> None:
    torch.save({"state_dict_ema": {"a": torch.arange(64.0)}}, tmp_path / "w.pth", _use_new_zipfile_serialization=zipped)
    data = (tmp_path / "w.pth").read_bytes()
    path = tmp_path / "cut.pth"
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        assert_refused(path, "F53")


@pytest.mark.fault("F53")
def test_f53_a_flipped_bit_in_a_tensor_is_detected(tmp_path: Path, good: Path) -> None:
    data = bytearray(good.read_bytes())
    offset = bytes(data).index(torch.arange(64.0).numpy().tobytes()[:64])
    data[offset + 3] ^= 1
    (tmp_path / "flipped.pth").write_bytes(data)
    assert_refused(tmp_path / "flipped.pth", "F53", "the checksum of good/data/0 is wrong")


@pytest.mark.fault("F53")
@pytest.mark.parametrize("name", ["a.pth", "a.safetensors"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html><body>Quota exceeded</body></html>", "looks like a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "looks like a Git LFS pointer"),
        (b"\x1f\x8b\x08\x00abcdefghijkl", "looks like a gzip archive"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'", "looks like a NumPy array"),
        (b'{"results": {}, "version": "1"}', "looks like JSON"),
        (b"x" * 257 + b"ustar\x00" + b"\x00" * 300, "looks like a tar archive"),
    ],
)
def test_f53_another_kind_of_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert_refused(tmp_path / name, "F53", message)


@pytest.mark.fault("F53")
def test_f53_another_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pth", "w") as archive:
        archive.writestr("readme.txt", "weights are elsewhere")
    assert_refused(tmp_path / "a.pth", "F53", r"a zip archive, but not one of torch.save \(readme.txt\)")
    with pytest.raises(CheckpointError, match=r"no such file"):
        read_weights(tmp_path / "none.pth")
    with pytest.raises(CheckpointError, match=r"no such file"):
        read_weights(tmp_path)


@pytest.mark.fault("F54")
def test_f54_weights_of_another_network_are_described(tmp_path: Path) -> None:
    torch.save({"state_dict_ema": {"module.a": torch.zeros(2, 4), "module.c": torch.zeros(1)}}, tmp_path / "a.pth")
    message = describe_mismatch({"a": (2, 3), "b": (1,)}, read_weights(tmp_path / "a.pth"))
    assert message.splitlines() == ["1 missing: b", "1 unexpected: c", "1 of another shape: a is (2, 4), not (2, 3)"]


@pytest.mark.fault("F54")
def test_f54_raw_weights_do_not_pass_for_averaged_ones(tmp_path: Path) -> None:
    torch.save({"state_dict": {"module.a": torch.zeros(2)}}, tmp_path / "a.pth")
    with pytest.warns(UserWarning, match="no averaged weights; the raw ones"):
        assert list(read_weights(tmp_path / "a.pth")) == ["a"]


def entry(begin: int, end: int, shape: tuple[int, ...] = (4,), dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def raw(header: Any, data: bytes = bytes(32), length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


TWICE = json.dumps({"a": entry(0, 16)}).encode()[:-1] + b", " + json.dumps({"a": entry(0, 16)}).encode()[1:]
CONTRADICTIONS = {
    "overlap": raw({"a": entry(0, 16), "b": entry(8, 24)}, bytes(24)),
    "same place": raw({"a": entry(0, 16), "b": entry(0, 16)}, bytes(16)),
    "outside": raw({"a": entry(0, 16), "b": entry(16, 48, (8,))}),
    "gap": raw({"a": entry(16, 32)}),
    "left over": raw({"a": entry(0, 16)}),
    "negative": raw({"a": entry(-16, 0)}),
    "backwards": raw({"a": entry(16, 0)}),
    "shape": raw({"a": entry(0, 16, (5,))}, bytes(16)),
    "overflow": raw({"a": entry(0, 16, (2**63, 8))}, bytes(16)),
    "type": raw({"a": entry(0, 16, dtype="F33")}, bytes(16)),
    "name twice": raw(TWICE, bytes(16)),
    "oversize": raw(b"{}", length=2**62),
    "beyond the file": raw(b'{"a":1}', length=10_000),
    "no header": raw(b""),
    "no JSON": raw(b'{"a": hello}'),
    "deep": raw(b'{"a":' * 100_000),
    "a list": raw(b"[1, 2, 3]"),
    "cut": raw({"a": entry(0, 16), "b": entry(16, 32)})[:-5],
    "short": b"abc",
}


@pytest.mark.fault("F55")
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_f55_a_safetensors_file_that_contradicts_itself(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(CONTRADICTIONS[case])
    assert_refused(
        path, "F55", "the name 'a' is there twice" if case == "name twice" else "not a whole safetensors file"
    )


@pytest.mark.fault("F55")
def test_f55_safetensors_cut_off_anywhere_are_refused(tmp_path: Path) -> None:
    write_weights({"a": torch.arange(9.0), "b": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    data = (tmp_path / "w.safetensors").read_bytes()
    path = tmp_path / "cut.safetensors"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        assert_refused(path, "F55")


CLAIMS = {
    "one value repeated": torch.ones(1).expand(10**11),
    "one row repeated": torch.ones(1, 4).expand(10**10, 4),
    "steps that overlap": torch.arange(64.0).as_strided((32, 32), (1, 1)),
}


@pytest.mark.fault("F97")
@pytest.mark.parametrize("zipped", [True, False], ids=["torch", "legacy"])
@pytest.mark.parametrize("case", CLAIMS)
def test_f97_a_tensor_that_claims_more_than_the_file_holds(tmp_path: Path, case: str, zipped: bool) -> None:
    path = tmp_path / "a.pth"
    torch.save({"state_dict_ema": {"a": torch.ones(3), "b": CLAIMS[case]}}, path, _use_new_zipfile_serialization=zipped)
    assert path.stat().st_size < 10_000
    assert_refused(path, "F97", "'b' claims [0-9]+ values .*more than the file holds; save the weights again")


@pytest.mark.fault("F97")
def test_f97_many_transposed_views_of_one_tensor_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    tensor = torch.ones(100, 200)
    torch.save({str(number): tensor.T for number in range(50)}, path)
    assert_refused(path, "F97", "more than the file holds")
    torch.save({"a": tensor.T, "b": tensor}, path)
    assert read_weights(path)["a"].shape == (200, 100)


def nested(levels: int) -> bytes:
    return b"\x80\x02})" + b"\x85" * levels + b"N" + b"s."


def doubled(levels: int) -> bytes:
    """Return a pickle in which each tuple contains the previous one twice."""
    return b"\x80\x02})q\x00" + b"h\x00\x86q\x00" * levels + b"Ns."


@pytest.mark.fault("F97")
@pytest.mark.parametrize("program", [nested(1_000_000), doubled(60)], ids=["deep", "doubled"])
def test_f97_a_key_of_deeply_nested_tuples_is_refused(tmp_path: Path, good: Path, program: bytes) -> None:
    path = rewrite_archive(
        good, tmp_path / "bad.pth", lambda entries: [(n, program if n.endswith("data.pkl") else d) for n, d in entries]
    )
    assert_refused(path, "F97", "a tuple of more than 10000 parts")


@pytest.mark.fault("F97")
def test_f97_announced_lengths_beyond_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(b"\x80\x04\x8d" + struct.pack("<Q", 10**12) + b"short")
    assert_refused(path, "F53", "cut off or damaged")


@pytest.mark.fault("F106")
@pytest.mark.parametrize("note", ["{", "[1]", "[" * 100_000, "7"])
def test_f106_damaged_metadata_of_weights_is_refused(tmp_path: Path, note: str) -> None:
    path = tmp_path / "a.safetensors"
    write_weights({"a": torch.ones(2)}, path, metadata={"detector": "tridet", "settings": note, "classes": "{}"})
    for name, default in (("settings", {}), ("classes", [])):
        with refused("F106", CheckpointError, match=f"what it notes as '{name}' is damaged"):
            read_note(path, name, default)
    assert read_note(path, "input", {"size": 4}) == {"size": 4}


@pytest.mark.fault("F106")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dim": 60_000}, "the weights do not fit temporalmaxer"),
        ({"levels": 10**9}, "levels must be a whole number from 1 to 32"),
        ({"max_length": 10**12}, "max_length must be a whole number from 1 to 1048576"),
        ({"dims": 3}, "has no setting dims"),
    ],
)
def test_f106_settings_beyond_their_limits_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.safetensors"
    settings = {"input_dim": 8, "dim": 8, "classes": 2, "levels": 2}
    weights = load_detector("temporalmaxer", **settings).state_dict()
    write_weights(weights, path, metadata={"detector": "temporalmaxer", "settings": json.dumps(settings)})
    assert load_detector("temporalmaxer", weights=path).state_dict().keys() == weights.keys()
    write_weights(weights, path, metadata={"detector": "temporalmaxer", "settings": json.dumps(settings | changed)})
    with pytest.raises(JostleError, match=message):
        load_detector("temporalmaxer", weights=path)


@pytest.mark.fault("F106")
def test_f106_named_pipes_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.safetensors")
    assert read_metadata(tmp_path / "a.safetensors") == {}
    with pytest.raises(CheckpointError, match="no such file; give the path of"):
        read_weights(tmp_path / "a.safetensors")
