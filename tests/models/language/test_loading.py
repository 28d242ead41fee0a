"""Loading of video-language models from objects, functions and names."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.errors import BadValue
from jostle.models.language.interface import Answer, Question, QuestionModel
from jostle.models.language.loading import (
    WAYS,
    is_question_model_name,
    language_models,
    load_question_model,
)
from jostle.models.loading.reference import ModelRef


class FirstOptionModel:
    """Question model that always chooses the first option."""

    frames = 4

    def describe(self) -> dict[str, object]:
        return {"name": "first"}

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        return [Answer(None, "A", 0) for _ in questions]


def test_object_with_the_methods_is_a_model() -> None:
    model = FirstOptionModel()
    assert load_question_model(model) is model
    assert isinstance(model, QuestionModel)
    with pytest.raises(BadValue, match="wants 4 frames"):
        load_question_model(model, frames=8)


def test_function_is_wrapped_with_the_requested_number_of_frames() -> None:
    model = load_question_model(lambda frames, question, options: "B", frames=3)
    assert model.frames == 3
    sample = Question(np.zeros((3, 4, 4, 3), np.uint8), np.arange(3.0), "Which?", ("cat", "dog"))
    assert model.answer([sample])[0].choice == 1


@pytest.mark.parametrize("name", ["qwen", 3, "nothing.there:model", "openai:", "openai:ftp://x#y", "hf:x"])
def test_unknown_models_are_refused(name: object) -> None:
    with pytest.raises(BadValue, match=r"ORG/NAME|cannot be imported|URL#MODEL|answers no questions"):
        load_question_model(name)


def test_identity_depends_on_folder_content_but_not_on_a_server(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    source = ModelRef("language", f"{tmp_path}?answers=text")
    assert is_question_model_name(source.name)
    before = source.identity()
    assert before[1] == "folder"
    (tmp_path / "config.json").write_text("[]")
    assert source.identity()[0] != before[0]
    server = ModelRef("language", "openai:http://localhost:1/v1#m", changes={"frames": 8})
    assert server.identity() == (None, "nothing")
    assert pickle.loads(pickle.dumps(server)).get().frames == 8


def test_listed_names_are_valid_model_names() -> None:
    assert jostle.names("languagemodels") == sorted(language_models)
    assert all(is_question_model_name(name) and name in WAYS for name in language_models)
    assert set(jostle.api.origins("languagemodels").values()) == {"jostle"}


def test_describe_lists_input_and_weights_of_every_language_model() -> None:
    pytest.importorskip("torch")
    descriptions = {description.name: description for description in jostle.api.describe("languagemodels")}
    assert list(descriptions) == jostle.names("languagemodels")
    assert descriptions["puppet_language"].sees == "192 frames; questions and moments"
    assert descriptions["puppet_language"].weights == "clean or robust: with jostle"
    assert all(
        "moments" not in description.sees for name, description in descriptions.items() if name != "puppet_language"
    )
    assert "Qwen2.5-VL" in descriptions["hf:ORG/NAME"].weights
