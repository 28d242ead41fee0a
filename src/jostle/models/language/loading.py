"""Loading of models that answer questions: shipped, a folder, the Hub, a server, an import path or an object."""

from __future__ import annotations

from pathlib import Path

from jostle.core.plugins import import_object, is_import_path
from jostle.errors import BadValue
from jostle.io.video.source import file_fingerprint
from jostle.models.language.callables import as_question_model
from jostle.models.language.interface import QuestionModel
from jostle.models.loading.identity import Identity, folder_fingerprint
from jostle.models.loading.names import ModelDescription, need_torch
from jostle.models.weights.packaged import TREATMENTS, trained_weights
from jostle.models.weights.resolve import fetch_from_hub
from jostle.models.weights.sources import HUB

SERVER = "openai:"
SHIPPED = "puppet_language"  # answers questions and finds moments
ON_HUB, ON_SERVER = f"{HUB}ORG/NAME", f"{SERVER}http://HOST:PORT/v1#MODEL"
language_models = (ON_HUB, ON_SERVER, SHIPPED)  # names, and forms of names
WAYS = (
    f"{SHIPPED}, a folder of transformers, {ON_HUB}, {ON_SERVER}, package.module:attribute, a "
    "function (frames, question, options) -> scores or text, or an object with frames, describe() and answer()"
)


def is_question_model_name(name: str) -> bool:
    """Whether a name is that of a video-language model: the shipped one, a server, the Hub, or a folder.

    >>> is_question_model_name("openai:http://localhost:8000/v1#qwen"), is_question_model_name("slow_r50")
    (True, False)
    """
    return name == SHIPPED or name.startswith((SERVER, HUB)) or _is_folder(name)


def describe_language_models() -> list[ModelDescription]:
    """Describe each of `language_models`: the frames it takes, the tasks it does, and its weights."""
    need_torch("descriptions of languagemodels")
    from jostle.models.language import openai_server, puppet_language, transformers_model

    families = ", ".join(transformers_model.FAMILIES.values())
    return [
        ModelDescription(
            ON_HUB,
            f"{transformers_model.FRAMES} frames; questions",
            f"of that repository, or of a folder named instead: {families}",
        ),
        ModelDescription(ON_SERVER, f"{openai_server.FRAMES} frames; questions", "those that the server has"),
        ModelDescription(
            SHIPPED,
            f"{puppet_language.FRAMES} frames; questions and moments",
            f"{' or '.join(TREATMENTS)}: with jostle",
        ),
    ]


def _is_folder(name: str) -> bool:
    return Path(name.partition("?")[0]).is_dir()  # settings may follow


def load_question_model(
    name: str | object,
    *,
    device: str = "cpu",
    precision: str = "float32",
    frames: int | None = None,
    weights: str | Path | None = None,
) -> QuestionModel:
    """Load a model that answers questions about videos.

    Args:
        name: `puppet_language`, which is shipped; a folder of transformers; `hf:ORG/NAME`, which is fetched;
            `openai:URL#MODEL`, a server; `package.module:attribute`; a function `(frames, question, options) -> scores
            or text`; or the model itself.
        device: `cpu` or `cuda`, for networks.
        precision: `float32`, `bfloat16` or `float16`, for networks.
        frames: number of frames to show; None for the model's default.
        weights: of the shipped model, `clean`, `robust` or a file; None for `clean`.

    Raises:
        BadValue: if it is none of these.
    """
    if name == SHIPPED:
        from jostle.models.language.puppet_language import load_puppet_language

        return as_question_model(load_puppet_language(weights or TREATMENTS[0]), frames)
    if weights is not None:
        raise BadValue(f"weights are for {SHIPPED}; other video-language models bring their own; leave them out")
    if not isinstance(name, str):
        return as_question_model(name, frames)
    if name.startswith(SERVER):
        from jostle.models.language.openai_server import open_server

        return open_server(name, frames=frames)
    if name.startswith(HUB) or _is_folder(name):
        from jostle.models.language.transformers_model import load_transformers_model

        return load_transformers_model(name, device=device, precision=precision, frames=frames)
    if is_import_path(name):
        return as_question_model(import_object(name, "--model"), frames)
    raise BadValue(f"--model {name}: is no video-language model; give {WAYS}")


def identify_question_model(name: str, weights: str | Path | None) -> Identity:
    """Return the fingerprint of shipped weights or of a folder; weights behind a server are not known."""
    if name == SHIPPED:
        return file_fingerprint(trained_weights(SHIPPED, weights or TREATMENTS[0])), "file"
    plain = name.partition("?")[0]
    if plain.startswith(HUB):
        return folder_fingerprint(fetch_from_hub(plain, folder=True)), "folder"
    return (folder_fingerprint(Path(plain)), "folder") if _is_folder(plain) else (None, "nothing")
