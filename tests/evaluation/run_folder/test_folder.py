"""Run folders: one origin per folder, and errors that name damaged files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from jostle.errors import DataError, SourceChanged
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.metadata import About, CellContent, Content, RunFacts

CONTENT = Content(
    *(1, "b-c", 1, "folder", "test", "recognition", "top_k_accuracy", 1, None, None, (), None),
    (CellContent("clean", "", False, ()),),
)
FACTS = RunFacts(
    benchmark="b-c",
    fingerprint="sha256:1",
    content=CONTENT,
    model="m",
    weights="sha256:2",
    weights_from="file",
    extractor="e",
    rule="released",
    reproduce_bugs=("early-row",),
    seed=0,
    dataset="folder",
    subset="test",
    truth="sha256:3",
    missing=("x",),
)

BUILDS = {"python": "3.12.1", "av": "18.1.0"}


def metadata_json(facts: RunFacts) -> str:
    own = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    return json.dumps(About(**own, videos=1, classes=(), versions=BUILDS, format=1).to_dict())


def test_every_fact_is_compared(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.check(FACTS, BUILDS)
    folder.about.write_text(metadata_json(FACTS))
    assert folder.check(FACTS, BUILDS)
    for field in dataclasses.fields(RunFacts):
        if field.name != "content":  # covered by the fingerprint
            others: dict[str, object] = {"missing": ("y" * 500,), "adapt": {"method": "bn", "protocol": "online"}}
            other = dataclasses.replace(FACTS, **{field.name: others.get(field.name, "other")})  # type: ignore[arg-type]
            with pytest.raises(SourceChanged, match=f"{field.name} was .*, now"):
                folder.check(other, BUILDS)


@pytest.mark.fault("F72")
def test_F72_other_builds_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(metadata_json(FACTS))
    assert folder.check(FACTS, BUILDS | {"python": "3.13.0", "torch": "2.13.0"})  # neither affects any result so far
    with pytest.raises(SourceChanged, match=r"av was '18\.1\.0', now '18\.2\.0'"):
        folder.check(FACTS, BUILDS | {"av": "18.2.0"})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_damaged_run_json_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.about.write_text(text)
    with pytest.raises(DataError, match=r"run\.json"):
        folder.check(FACTS, BUILDS)
