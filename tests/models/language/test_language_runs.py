"""Benchmark runs of video-language models given by name: an OpenAI server and a transformers folder."""

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


def test_server_model_runs_in_every_cell_without_storing_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret")
    data, out = write_data(tmp_path / "data"), tmp_path / "run"
    with language_server(reply(chat("B"))) as server:
        model = f"openai:{server.url}#m"
        options = {"data": data, "out": out, "cells": CELLS, "jobs": 1, "input": {"frames": 2}}
        scores = jostle.run("next-qa-c", model=model, **options).scores
        request_count = len(server.requests)
        assert all("Bearer very-secret" in headers["Authorization"] for headers in server.headers)
        jostle.run("next-qa-c", model=model, **options)
        assert len(server.requests) == request_count  # a finished run sends no requests
    assert scores["coverage"]["videos"] == 3
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert (record["model"], record["weights"], record["weights_from"]) == (model, None, "nothing")
    assert record["shown"]["model"]["prompt"]
    assert not any(b"very-secret" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_transformers_folder_runs_and_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from helpers.tiny_language import save_tiny

    folder, out = tmp_path / "qwen", tmp_path / "run"
    folder.mkdir()
    save_tiny("qwen2_5_vl", folder, processor=False)
    options = {"data": write_data(tmp_path / "data"), "out": out, "cells": CELLS, "device": "cpu", "jobs": 1}
    scores = jostle.run("next-qa-c", model=str(folder), input={"frames": 4}, **options).scores
    assert scores["coverage"]["videos"] == 3
    assert scores["clean_more"]["baselines"]["blind"]["unreadable"] == 0  # it answers without frames too
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["weights_from"] == "folder"
    assert record["shown"]["model"]["family"] == "qwen2_5_vl"
    assert record["shown"]["frames"] == 4


def test_question_model_is_refused_for_moment_retrieval(tmp_path: Path) -> None:
    data = write_sentences(write_data(tmp_path / "data"))
    with pytest.raises(BadValue, match="asks for windows"):
        jostle.run("charades-sta-c", model="openai:http://127.0.0.1:1/v1#m", data=data, out=tmp_path / "run")


def test_unknown_model_error_lists_the_alternatives(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="hf:ORG/NAME"):
        jostle.run("next-qa-c", model="no-such-model", data=write_data(tmp_path / "data"), out=tmp_path / "run")
