"""A run folder: one origin, and damage is named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from jostle.errors import DataError, SourceChanged
from jostle.runs.folder import Origin, RunFolder

ORIGIN = Origin("b-c", "sha256:1", {}, "m", "sha256:2", "e", None, 0, "folder", "test", "sha256:3", ("x",))


def test_every_fact_of_the_origin_counts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.check(ORIGIN)
    folder.about.write_text(json.dumps({"format": 1} | ORIGIN.to_dict()))
    assert folder.check(ORIGIN)
    for field in dataclasses.fields(Origin):
        if field.name != "content":  # the fingerprint stands for it
            other = dataclasses.replace(ORIGIN, **{field.name: ("y" * 500,) if field.name == "missing" else "other"})
            with pytest.raises(SourceChanged, match=f"{field.name} was .*, now"):
                folder.check(other)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_damaged_run_json_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(text)
    with pytest.raises(DataError, match=r"run\.json"):
        folder.check(ORIGIN)
