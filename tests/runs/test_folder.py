"""A run folder: one origin, and damage is named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from jostle.errors import DataError, SourceChanged
from jostle.runs.folder import Origin, RunFolder

ORIGIN = Origin(
    *("b-c", "sha256:1", {}, "m", "sha256:2", "file", "e", None, "released", ("early-row",)),
    *(None, "cpu", 0, "folder", "test", "sha256:3", ("x",)),
)

BUILDS = {"python": "3.12.1", "av": "18.1.0"}


def test_every_fact_of_the_origin_counts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.check(ORIGIN, BUILDS)
    folder.about.write_text(json.dumps({"format": 1} | ORIGIN.to_dict()))
    assert folder.check(ORIGIN, BUILDS)
    for field in dataclasses.fields(Origin):
        if field.name != "content":  # the fingerprint stands for it
            other = dataclasses.replace(ORIGIN, **{field.name: ("y" * 500,) if field.name == "missing" else "other"})
            with pytest.raises(SourceChanged, match=f"{field.name} was .*, now"):
                folder.check(other, BUILDS)


def test_F72_other_builds_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(json.dumps({"format": 1, "versions": BUILDS} | ORIGIN.to_dict()))
    assert folder.check(ORIGIN, BUILDS | {"python": "3.13.0", "torch": "2.13.0"})  # neither decides a bit so far
    with pytest.raises(SourceChanged, match=r"av was 18\.1\.0, now 18\.2\.0"):
        folder.check(ORIGIN, BUILDS | {"av": "18.2.0"})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_damaged_run_json_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(text)
    with pytest.raises(DataError, match=r"run\.json"):
        folder.check(ORIGIN, BUILDS)
