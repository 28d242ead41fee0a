"""Video-language models by name in a run: a server, and a folder of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")  # `jostle.run` needs it

import jostle
from helpers.language_server import chat, language_server, reply
from helpers.small_language import write_data, write_sentences
from jostle.errors import BadValue

CELLS = ["reverse_sampling:1", "thumos14-c/black_frame:3"]


def test_a_server_answers_in_every_cell_and_no_key_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret")
    data, out = write_data(tmp_path / "data"), tmp_path / "run"
    with language_server(reply(chat("B"))) as server:
        model = f"openai:{server.url}#m"
        options = {"data": data, "out": out, "cells": CELLS, "jobs": 1, "input": {"frames": 2}}
        scores = jostle.run("next-qa-c", model=model, **options).scores
        asked = len(server.requests)
        assert all("Bearer very-secret" in headers["Authorization"] for headers in server.headers)
        jostle.run("next-qa-c", model=model, **options)
        assert len(server.requests) == asked  # a finished run asks nothing
    assert scores["coverage"]["videos"] == 3
    about = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert (about["model"], about["weights"], about["weights_from"]) == (model, None, "nothing")
    assert about["shown"]["model"]["prompt"]
    assert not any(b"very-secret" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_a_folder_of_transformers_is_run_with_its_fingerprint(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from helpers.tiny_language import save_tiny

    folder, out = tmp_path / "qwen", tmp_path / "run"
    folder.mkdir()
    save_tiny("qwen2_5_vl", folder, processor=False)
    options = {"data": write_data(tmp_path / "data"), "out": out, "cells": CELLS, "device": "cpu", "jobs": 1}
    scores = jostle.run("next-qa-c", model=str(folder), input={"frames": 4}, **options).scores
    assert scores["coverage"]["videos"] == 3
    assert scores["clean_more"]["baselines"]["blind"]["unreadable"] == 0  # it answers without frames too
    about = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert about["weights_from"] == "folder"
    assert about["shown"]["model"]["family"] == "qwen2_5_vl"
    assert about["shown"]["frames"] == 4


def test_a_model_of_questions_finds_no_moments(tmp_path: Path) -> None:
    data = write_sentences(write_data(tmp_path / "data"))
    with pytest.raises(BadValue, match="asks for windows"):
        jostle.run("charades-sta-c", model="openai:http://127.0.0.1:1/v1#m", data=data, out=tmp_path / "run")


def test_a_name_that_is_no_model_says_what_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="hf:ORG/NAME"):
        jostle.run("next-qa-c", model="no-such-model", data=write_data(tmp_path / "data"), out=tmp_path / "run")
