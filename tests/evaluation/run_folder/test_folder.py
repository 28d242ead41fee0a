"""Run folders: one origin per folder, and errors that name damaged files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from jostle.errors import DataError, SourceChanged
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import About, CellContent, Content, RunOrigin

CONTENT = Content(
    *(1, "b-c", 1, "folder", "test", "recognition", "top_k_accuracy", 1, None, None, (), None),
    (CellContent("clean", "", False, ()),),
)
ORIGIN = RunOrigin(
    *("b-c", "sha256:1", CONTENT, "m", "sha256:2", "file", "e", None, "released", ("early-row",)),
    *(None, "cpu", 0, "folder", "test", "sha256:3", ("x",)),
)

BUILDS = {"python": "3.12.1", "av": "18.1.0"}


def metadata_json(origin: RunOrigin) -> str:
    own = {field.name: getattr(origin, field.name) for field in dataclasses.fields(origin)}
    return json.dumps(About(**own, videos=1, classes=(), versions=BUILDS, format=1).to_dict())


def test_every_field_of_the_origin_is_compared(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.check(ORIGIN, BUILDS)
    folder.about.write_text(metadata_json(ORIGIN))
    assert folder.check(ORIGIN, BUILDS)
    for field in dataclasses.fields(RunOrigin):
        if field.name != "content":  # covered by the fingerprint
            others: dict[str, object] = {"missing": ("y" * 500,), "adapt": {"method": "bn", "protocol": "online"}}
            other = dataclasses.replace(ORIGIN, **{field.name: others.get(field.name, "other")})  # type: ignore[arg-type]
            with pytest.raises(SourceChanged, match=f"{field.name} was .*, now"):
                folder.check(other, BUILDS)


@pytest.mark.fault("F72")
def test_F72_other_builds_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(metadata_json(ORIGIN))
    assert folder.check(ORIGIN, BUILDS | {"python": "3.13.0", "torch": "2.13.0"})  # neither affects any result so far
    with pytest.raises(SourceChanged, match=r"av was 18\.1\.0, now 18\.2\.0"):
        folder.check(ORIGIN, BUILDS | {"av": "18.2.0"})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_damaged_run_json_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(text)
    with pytest.raises(DataError, match=r"run\.json"):
        folder.check(ORIGIN, BUILDS)
