"""Fault F113: the disk fills up during `build` (with `--clean` too), `extract` or `train`; all report it and resume."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.e2e.test_random_kills import VERBS, whole_files, write_sources

from helpers import tiny_sets
from helpers.small_disks import fill, small_disk
from jostle.cli.app import _run

assert tiny_sets  # registers its data set


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sources(tmp_path_factory.mktemp("full") / "here")


def run_verb(monkeypatch: pytest.MonkeyPatch, root: Path, verb: str, out: Path) -> int:
    monkeypatch.chdir(root)
    jobs = [] if verb == "train" else ["-j", "1"]
    monkeypatch.setattr(sys, "argv", ["jostle", *VERBS[verb], str(out), *jobs])
    return _run()


@pytest.mark.fault("F113")
@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_f113_a_disk_that_fills_up(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert run_verb(monkeypatch, root, verb, tmp_path / "whole") == 0
    expected = whole_files(tmp_path / "whole")
    size = sum(len(data) for data in expected.values())
    with small_disk(tmp_path / "disk", 4 * size // 1024 + 400) as disk:
        for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9):
            out = disk / f"out-{share}"
            ballast = fill(disk, int(share * size))
            capsys.readouterr()
            code = run_verb(monkeypatch, root, verb, out)
            message = capsys.readouterr().err
            assert code == 5, (share, message)
            assert "on the disk" in message or "No space" in message, (share, message)
            partial = whole_files(out) if out.exists() else {}
            assert not list(disk.rglob(".*.part-*")), share
            ballast.unlink()
            assert run_verb(monkeypatch, root, verb, out) == 0
            content = whole_files(out)
            assert content == expected, share
            for name in set(partial) - {"features.json", "log.jsonl", "checkpoint.safetensors", "best.safetensors"}:
                assert partial[name] == expected[name], (share, name)
            for path in sorted(out.rglob("*"), reverse=True):
                path.unlink() if not path.is_dir() else path.rmdir()
            out.rmdir()
