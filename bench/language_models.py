"""Cost of video-language models with random weights of a real size: `python -m bench.language_models --device cuda`.

Measurements of each network, on questions about 16 frames of 360x640:

- transformers alone: its processor and a forward pass, all frames at once;
- jostle on new frames: questions one by one, through a vision tower in small batches;
- 15 cells that corrupt a tenth of the frames, in clean passes, with cached outputs for unchanged frames;
- further questions about the same frames.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench.timing import finish, make_blocking, make_parser, synchronize, time_call
from helpers import tiny_language
from jostle.models.language.interface import Question
from jostle.models.language.preparation import LibraryPreparation, QuestionPreparation, QwenPreparation
from jostle.models.language.qwen_preparation import QwenFrames
from jostle.models.language.transformers_model import TransformersModel

FRAMES, HEIGHT, WIDTH = 16, 360, 640
CHANGED = slice(7, 9)  # two of 16 frames, across two pairs
CELLS, VIDEOS, OPTIONS = 15, 4, ("a cat", "a dog", "a cow", "a hen")
MIN_SHARE, MAX_PASSES = 0.85, 6.0  # targets of the speed relative to transformers, and of the cells in clean passes
PIXELS = {"size": {"shortest_edge": 128 * 28 * 28, "longest_edge": 768 * 28 * 28}}
QWEN_2B = {
    "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
    "num_key_value_heads": 2, "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24], "rope_theta": 1000000.0},
}  # fmt: skip
QWEN_2B_VISION = {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16, "mlp_ratio": 4}
LLAVA_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 32768,
}  # fmt: skip
LLAVA_HALF_B = LLAVA_7B | {
    "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
    "num_key_value_heads": 2,
}  # fmt: skip
LLAVA_VISION = {
    "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 26,
    "num_attention_heads": 16, "image_size": 384, "patch_size": 14,
}  # fmt: skip


@dataclass(frozen=True)
class LanguageModelTiming:
    """Seconds a question of one network.

    Attributes:
        alone: of transformers alone, with its processor.
        passes: of the network alone, on preprocessed inputs.
        looks: of jostle, on new frames.
        cells: of 15 cells, in clean passes of jostle.
        more: of a further question about the same frames.
    """

    network: str
    alone: float
    passes: float
    looks: float
    cells: float
    more: float

    @property
    def share(self) -> float:
        """Questions a second of jostle, relative to transformers alone."""
        return self.alone / self.looks


def build_network(name: str, device: str, dtype: torch.dtype) -> tuple[Any, QuestionPreparation]:
    """Return a network with random weights on a device, and the preparation of its inputs."""
    library = tiny_language.transformers()
    family = "llava_onevision" if name.startswith("llava") else "qwen2_vl"
    special, video, named, _, rest = tiny_language.KINDS[family]
    tokenizer = tiny_language.tiny_tokenizer(special, video, **named)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in special}
    ends = {"vocab_size": len(tokenizer), "pad_token_id": ids[special[0]], "eos_token_id": ids[special[0]]}
    if family == "qwen2_vl":
        config = library.Qwen2VLConfig(
            text_config=QWEN_2B | ends, vision_config=QWEN_2B_VISION, image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
        )  # fmt: skip
        kind, processor = library.Qwen2VLForConditionalGeneration, library.Qwen2VLProcessor
        pictures, videos = library.Qwen2VLImageProcessor(), library.Qwen2VLVideoProcessor(**PIXELS)
    else:
        text = LLAVA_7B if name.endswith("7b") else LLAVA_HALF_B
        config = library.LlavaOnevisionConfig(
            text_config=text | ends, vision_config=LLAVA_VISION, image_token_index=ids["<image>"],
            video_token_index=ids["<video>"], image_grid_pinpoints=[[384, 384]],
        )  # fmt: skip
        kind, processor = library.LlavaOnevisionForConditionalGeneration, library.LlavaOnevisionProcessor
        size = {"size": {"height": 384, "width": 384}}
        pictures, videos = library.LlavaOnevisionImageProcessor(), library.LlavaOnevisionVideoProcessor(**size)
        rest = {"num_image_tokens": 729, "vision_feature_select_strategy": "full"}
    torch.set_default_dtype(dtype)
    with torch.device(device):
        network = kind(config).eval()
    torch.set_default_dtype(torch.float32)
    if name.endswith("own"):
        return network, QwenPreparation(tokenizer, tokenizer.chat_template, QwenFrames(), "<|video_pad|>", timed=False)
    whole = processor(
        image_processor=pictures, tokenizer=tokenizer, video_processor=videos, chat_template=tokenizer.chat_template,
        **rest,
    )  # fmt: skip
    return network, LibraryPreparation(whole)


def time_on_device(work: Callable[[], object], device: str) -> float:
    """Return the wall time of a call, until the device has finished."""
    synchronize(device)
    return time_call(make_blocking(work, device), "wall")


def measure(
    name: str, device: str, dtype: torch.dtype, *, videos: int = VIDEOS, measured_cells: int = CELLS, tokens: int = 0
) -> LanguageModelTiming:
    """Time one network on all kinds of questions.

    Args:
        measured_cells: the time of `CELLS` is that of so many, scaled.
        tokens: of a piece of a prompt; jostle's own number for 0.
    """
    network, preparation = build_network(name, device, dtype)
    family = "llava_onevision" if name.startswith("llava") else "qwen2_vl"
    rng = np.random.default_rng(0)
    films = [rng.integers(0, 256, (FRAMES, HEIGHT, WIDTH, 3), np.uint8) for _ in range(videos + 2)]
    times = np.arange(FRAMES) + 0.5
    questions = [Question(film, times.copy(), "What is in the video?", OPTIONS) for film in films]

    def make_inputs(question: Question) -> dict[str, Any]:
        return {
            key: value.to(device, dtype if key.startswith("pixel_values") else None)
            for key, value in preparation.inputs(question).items()
        }

    def answer_by_transformers(some: Sequence[Question]) -> None:
        with torch.inference_mode():
            for question in some:
                network(**make_inputs(question), logits_to_keep=1).logits[0, -1].float().cpu()

    def run_network() -> None:
        with torch.inference_mode():
            for inputs in prepared:
                network(**inputs, logits_to_keep=1).logits[0, -1].cpu()

    answer_by_transformers(questions[:2])
    alone = time_on_device(lambda: answer_by_transformers(questions[2:]), device) / videos
    prepared = [make_inputs(question) for question in questions[2:]]
    passes = time_on_device(run_network, device) / videos
    model = TransformersModel(name, family, network, preparation, FRAMES)
    if tokens and model._prefixes is not None:
        model._prefixes._tokens = tokens
    model.answer(questions[:2])
    looks = time_on_device(lambda: model.answer(questions[2:]), device) / videos
    cells = []
    for number in range(measured_cells):
        frames = films[-1].copy()
        frames[CHANGED] = rng.integers(0, 256, frames[CHANGED].shape, np.uint8) if number else 0
        cells.append(Question(frames, times, "What is in the video?", OPTIONS))
    corrupted = time_on_device(lambda: model.answer(cells), device) / looks * CELLS / measured_cells
    further = [Question(cells[-1].frames, times, f"What is number {number}?", OPTIONS) for number in range(5)]
    model.answer(further[:1])  # loads the kernels for a piece of this length
    more = time_on_device(lambda: model.answer(further[1:]), device) / len(further[1:])
    return LanguageModelTiming(name, alone, passes, looks, corrupted, more)


def main() -> int:
    """Print the timings of each network and the missed targets, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--networks", nargs="+", default=["qwen2_vl_2b", "qwen2_vl_2b_own", "llava_onevision_7b"])
    parser.add_argument("--videos", type=int, default=VIDEOS)
    parser.add_argument("--cells", type=int, default=CELLS, help="number of cells to time; their time is scaled to 15")
    parser.add_argument("--tokens", type=int, default=0, help="tokens of a piece of a prompt; default: jostle's own")
    options = parser.parse_args()
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    numbers = {"videos": options.videos, "measured_cells": options.cells, "tokens": options.tokens}
    rows, missed = [], []
    for name in options.networks:
        row = measure(name, options.device, dtype, **numbers)
        rows.append(asdict(row) | {"share": row.share})
        print(
            f"{name}: transformers {1000 * row.alone:.0f} ms a question (network {1000 * row.passes:.0f}), jostle "
            f"{1000 * row.looks:.0f} ({row.share:.2f}); {CELLS} cells {row.cells:.2f} clean passes; a further question "
            f"{1000 * row.more:.0f} ms",
            flush=True,
        )
        if row.share < MIN_SHARE:
            missed.append(f"{name}: {row.share:.2f} of the speed of transformers alone, target {MIN_SHARE}")
        if row.cells > MAX_PASSES:
            missed.append(f"{name}: {row.cells:.1f} clean passes for {CELLS} cells, target {MAX_PASSES:g}")
        torch.cuda.empty_cache()
    for line in missed:
        print(f"missed: {line}")
    return finish(options, rows, missed=bool(missed))


if __name__ == "__main__":
    sys.exit(main())
