"""Video-language models of transformers, from a folder or the Hub.

Options are scored in one pass: the probabilities of their letters as the first token of the answer.
"""

from __future__ import annotations

import importlib
import inspect
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.core.finite import check_finite
from jostle.errors import BadValue, CheckpointError, DataError
from jostle.metrics.answer_text import read_choice
from jostle.models.devices import check_precision, device_for
from jostle.models.language.interface import Answer, Question, split_settings
from jostle.models.language.prefix_cache import PrefixCache, attach_prefix_cache
from jostle.models.language.preparation import Inputs, QuestionPreparation, load_preparation
from jostle.models.language.prompts import (
    LETTERS,
    OPTION,
    TEMPLATE,
    answer_from_log_probs,
    check_question,
    letter_of,
    write_prompt,
)
from jostle.models.language.vision_cache import VisionCache, attach_vision_cache, pool_in_channels_last
from jostle.models.transformers_folder import library_class, pretrained, read_settings
from jostle.models.weights.resolve import fetch_from_hub
from jostle.models.weights.sources import HUB

FAMILIES = {
    "qwen2_vl": "Qwen2-VL",
    "qwen2_5_vl": "Qwen2.5-VL",
    "qwen3_vl": "Qwen3-VL",
    "llava_onevision": "LLaVA-OneVision",
    "llava_next_video": "LLaVA-NeXT-Video",
    "internvl": "InternVL",
    "smolvlm": "SmolVLM",
    "video_llama_3": "VideoLLaMA 3",
}
TYPED = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")  # families whose positions depend on `mm_token_type_ids`
FRAMES = 16
SETTINGS: dict[str, Any] = {"answers": "log_probs", "max_tokens": 16}
EXAMPLE = (360, 640)  # height and width of the frames that a record counts tokens and pixels for


@dataclass
class TransformersModel:
    """Video-language model of transformers, loaded and ready to answer.

    Attributes:
        name: folder or name on the Hub.
        family: `model_type` of its settings.
        network: network, on its device and in its precision.
        preparation: what makes its inputs.
        frames: number of frames to show.
        answers: `log_probs` of the letters, in one pass; or `text`, generated without sampling.
        max_tokens: length of generated text.
    """

    name: str
    family: str
    network: Any
    preparation: QuestionPreparation
    frames: int = FRAMES
    answers: str = "log_probs"
    max_tokens: int = 16
    _letters: dict[str, list[int]] = field(init=False, repr=False)
    _reserved: set[str] = field(init=False, repr=False)
    _vision: VisionCache | None = field(init=False, repr=False)
    _prefixes: PrefixCache | None = field(init=False, repr=False)
    # Threads that serve a model on a GPU take turns, as preparation and caches belong to one question at a time: while
    # one computes, the next prepares.
    _preparing: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)
    _computing: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.answers not in ("log_probs", "text"):
            raise BadValue(f"{self.name}: answers is log_probs or text, not {self.answers!r}")
        if self.frames < 1 or self.max_tokens < 1:
            raise BadValue(f"{self.name}: frames and max_tokens must be at least 1")
        self._letters = letter_tokens(self.preparation.tokenizer)
        self._reserved = self.preparation.placeholders()
        self._vision = attach_vision_cache(self.network, self.family)
        self._prefixes = attach_prefix_cache(self.network)
        if self.family == "llava_onevision":
            pool_in_channels_last(self.network)

    @property
    def device(self) -> torch.device:
        """Device that holds the network, where frames can be corrupted too."""
        device: torch.device = self.network.device
        return device

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions one by one, as batches would be filled up and change the numbers.

        Raises:
            NonFiniteOutput: F121 if the network computes NaN.
            DataError: F173 to F176 if an input is not that of the question.
        """
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        with self._preparing:
            inputs = self._inputs(question)
        with self._computing, torch.inference_mode():
            if self.answers == "text":
                return self._text(question, inputs)
            last = {"logits_to_keep": 1} if "logits_to_keep" in _arguments(self.network) else {}
            # On the CPU all that the caches keep of it is computed too, whichever thread uses it next.
            logits: Tensor = self.network(**inputs, **last).logits[:, -1].float().cpu()
        check_finite(logits.numpy(), f"{self.name}, logits")
        log_probs = logits[0].log_softmax(0)
        values = [float(log_probs[self._letters[letter]].logsumexp(0)) for letter in self._needed(question)]
        return answer_from_log_probs(values, self.name)

    def _needed(self, question: Question) -> str:
        letters = LETTERS[: len(question.options)]
        lacking = [letter for letter in letters if not self._letters[letter]]
        if lacking:
            raise BadValue(
                f"{self.name}: its tokenizer has no token for {', '.join(lacking)}; give ?answers=text behind its name",
                fault="F172",
            )
        return letters

    def _text(self, question: Question, inputs: Inputs) -> Answer:
        library = importlib.import_module("transformers")
        own = self.network.generation_config
        # Its own settings may sample or punish repetition, of the letters in the question too.
        plain = library.GenerationConfig(
            max_new_tokens=self.max_tokens, do_sample=False, bos_token_id=own.bos_token_id,
            eos_token_id=own.eos_token_id, pad_token_id=own.pad_token_id,
        )  # fmt: skip
        whole = self.network.generate(**inputs, generation_config=plain)[0]
        new = whole[inputs["input_ids"].shape[1] :]
        text: str = self.preparation.tokenizer.decode(new, skip_special_tokens=True)
        return Answer(None, text, read_choice(text, question.options))

    def _inputs(self, question: Question) -> Inputs:
        """Return the arguments of the network, on its device.

        Raises:
            DataError: F174 if a text holds a placeholder, F175 if kinds of tokens are not distinguished, F176 if the
                input is longer than the network's positions.
        """
        check_question(question)
        prompt = write_prompt(question)
        reserved = sorted(token for token in self._reserved if token and token in prompt)
        if reserved:
            raise DataError(
                f"{self.name}: the question {question.text!r} holds {reserved[0]!r}, which stands for something else "
                "in this model; reword it",
                fault="F174",
            )
        inputs = self.preparation.inputs(question, self.network.device, self.network.dtype)
        if self.family in TYPED and "mm_token_type_ids" not in inputs:
            raise DataError(
                f"{self.name}: its processor gives no mm_token_type_ids, without which positions are wrong; use a "
                "version of transformers that jostle was tested with",
                fault="F175",
            )
        length, most = inputs["input_ids"].shape[1], self._positions()
        if most and length + self.max_tokens * (self.answers == "text") > most:
            raise DataError(
                f"{self.name}: the question takes {length} tokens, and the model {most}; show fewer frames",
                fault="F176",
            )
        return inputs

    def _positions(self) -> int:
        config = self.network.config
        return int(getattr(getattr(config, "text_config", config), "max_position_embeddings", 0) or 0)

    def describe(self) -> dict[str, object]:
        """Return what goes into the record, with tokens and pixels of a question about frames of 360x640."""
        library = importlib.import_module("transformers")
        frames = np.random.Generator(np.random.SFC64(0)).integers(0, 256, (self.frames, *EXAMPLE, 3), np.uint8)
        example = self.preparation.inputs(Question(frames, np.arange(0.5, self.frames), "Q?", ("one", "two")))
        pixels = next(value for name, value in example.items() if name.startswith("pixel_values"))
        return {
            "kind": "transformers",
            "model": self.name,
            "family": self.family,
            "prompt": TEMPLATE,
            "option": OPTION,
            "frames": self.frames,
            "answers": self.answers,
            "max_tokens": self.max_tokens if self.answers == "text" else None,
            "example": {
                "height": EXAMPLE[0],
                "width": EXAMPLE[1],
                "tokens": example["input_ids"].shape[1],
                "pixels": list(pixels.shape),
                "prompt": shorten_prompt(self.preparation.tokenizer.decode(example["input_ids"][0])),
            },
            "preparation": self.preparation.describe(),
            "precision": str(self.network.dtype).removeprefix("torch."),
            "attention": getattr(self.network.config, "_attn_implementation", None),
            "versions": {"transformers": library.__version__, "torch": torch.__version__},
        }


def load_transformers_model(name: str, *, device: str, precision: str, frames: int | None) -> TransformersModel:
    """Load a model of a folder or of `hf:ORG/NAME`; `?answers=text` behind it has text generated.

    Raises:
        CheckpointError: F54 if the folder holds no model of a known family, F120 if a weight is not finite.
        MissingExtra: without transformers.
    """
    plain, settings = split_settings(name, SETTINGS)
    check_precision(precision, device)
    if precision == "tf32":
        raise BadValue(f"{plain}: video-language models run in float32, bfloat16 or float16, not tf32")
    folder = fetch_from_hub(plain, folder=True) if plain.startswith(HUB) else Path(plain)
    family = read_settings(folder / "config.json", "video-language model").get("model_type")
    if family not in FAMILIES:
        raise CheckpointError(
            f"{folder}: holds a {family!r}, which is no video-language model known here; there are "
            f"{', '.join(FAMILIES)}. Serve others with vLLM, and give openai:URL#MODEL",
            fault="F54",
        )
    library_class(FAMILIES[family], "AutoModelForImageTextToText")
    preparation = load_preparation(folder, family)
    network = pretrained(
        folder, FAMILIES[family], "AutoModelForImageTextToText", "language head", dtype=getattr(torch, precision)
    )
    network = network.eval().to(device_for(device))
    return TransformersModel(plain, family, network, preparation, FRAMES if frames is None else frames, **settings)


def letter_tokens(tokenizer: Any) -> dict[str, list[int]]:
    """Return the ids of all tokens that stand for each letter, such as "A", " A" and "(A"."""
    tokens: dict[str, list[int]] = {letter: [] for letter in LETTERS}
    for text, number in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if (letter := letter_of(text)) is not None:
            tokens[letter].append(number)
    return tokens


def shorten_prompt(text: str) -> str:
    """Return a prompt with repeated placeholders counted.

    >>> shorten_prompt("<s><pad><pad><pad>What?")
    '<s><pad>{3}What?'
    """
    return re.sub(r"(<[^<>\s]+>)\1+", lambda match: f"{match[1]}{{{len(match[0]) // len(match[1])}}}", text)


def _arguments(network: Any) -> Sequence[str]:
    return tuple(inspect.signature(network.forward).parameters)
