"""Loading of models that answer questions: a folder, `hf:ORG/NAME`, `openai:URL#MODEL`, import path or object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jostle.core.plugins import import_object, is_import_path
from jostle.errors import BadValue
from jostle.models.language.callables import as_question_model
from jostle.models.language.interface import QuestionModel
from jostle.models.loading.models import Identity, folder_fingerprint
from jostle.models.weights.resolve import fetch_from_hub
from jostle.models.weights.shipped.sources import HUB

SERVER = "openai:"
WAYS = (
    "a folder of transformers, hf:ORG/NAME, openai:http://HOST:PORT/v1#MODEL, package.module:attribute, a "
    "function (frames, question, options) -> scores or text, or an object with frames, describe() and answer()"
)


def is_question_model_name(name: str) -> bool:
    """Whether a name is that of a video-language model: a server, the Hub, or a folder.

    >>> is_question_model_name("openai:http://localhost:8000/v1#qwen"), is_question_model_name("slow_r50")
    (True, False)
    """
    return name.startswith((SERVER, HUB)) or _is_folder(name)


def _is_folder(name: str) -> bool:
    return Path(name.partition("?")[0]).is_dir()  # settings may follow


def load_question_model(
    name: str | object, *, device: str = "cpu", precision: str = "float32", frames: int | None = None
) -> QuestionModel:
    """Load a model that answers questions about videos.

    Args:
        name: a folder of transformers; `hf:ORG/NAME`, which is fetched; `openai:URL#MODEL`, a server;
            `package.module:attribute`; a function `(frames, question, options) -> scores or text`; or the model itself.
        device: `cpu` or `cuda`, for networks.
        precision: `float32`, `bfloat16` or `float16`, for networks.
        frames: number of frames to show; None for the model's default.

    Raises:
        BadValue: if it is none of these.
    """
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


@dataclass(frozen=True)
class NamedQuestionModel:
    """Picklable source of a video-language model that has a name, which loads it in any process."""

    name: str
    device: str = "cpu"
    precision: str = "float32"
    frames: int | None = None

    def get(self) -> QuestionModel:
        """Load and return the model."""
        return load_question_model(self.name, device=self.device, precision=self.precision, frames=self.frames)

    def identity(self) -> Identity:
        """Return the fingerprint of a folder; weights behind a server are not known."""
        plain = self.name.partition("?")[0]
        if plain.startswith(HUB):
            return folder_fingerprint(fetch_from_hub(plain, folder=True)), "folder"
        return (folder_fingerprint(Path(plain)), "folder") if _is_folder(plain) else (None, "nothing")
