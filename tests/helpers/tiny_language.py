"""Video-language models of transformers so small that they are made in no time: random weights, one token a byte."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

TEXT: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
TOWER: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
QWEN = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
LLAVA = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>")
INTERN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>", "<video>")
SMOL = (
    "<|endoftext|>", "<|im_start|>", "<end_of_utterance>", "<image>", "<video>", "<fake_token_around_image>",
    "<global-img>",
)  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}{% if c.type == 'video' %}VIDEO"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WRAPPED = "<|vision_start|><|video_pad|><|vision_end|>"
PLAIN = {"size": {"height": 28, "width": 28}}
PIXELS = {"size": {"shortest_edge": 56 * 56, "longest_edge": 84 * 84}}
PIXELS_3 = {"size": {"shortest_edge": 4 * 64 * 64, "longest_edge": 16 * 64 * 64}}


def transformers() -> Any:
    return importlib.import_module("transformers")


def tiny_tokenizer(special: tuple[str, ...], video: str, **named: str) -> Any:
    """A tokenizer with a token for each byte, and none besides but the special ones."""
    tokenizers = importlib.import_module("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    known = {letter: i for i, letter in enumerate([*alphabet, "<unk>"])}  # which some families insist on
    whole = tokenizers.Tokenizer(tokenizers.models.BPE(known, []))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = tokenizers.decoders.ByteLevel()
    made = transformers().PreTrainedTokenizerFast(
        tokenizer_object=whole, eos_token=special[0], pad_token=special[0], extra_special_tokens=named
    )
    made.add_special_tokens({"additional_special_tokens": list(special)} if not named else {})
    made.add_tokens(list(special), special_tokens=True)
    made.chat_template = TEMPLATE.replace("VIDEO", video)
    return made


def _configs(kind: str, ids: dict[str, int], words: int) -> tuple[str, Any]:
    """Return the stem of the class names, and the settings."""
    library = transformers()
    text = TEXT | {"vocab_size": words}
    ends = {"pad_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|endoftext|>"], "bos_token_id": None}
    if kind.startswith("qwen"):
        tokens = {
            "image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"],
            "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
        }  # fmt: skip
        rope = {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0}
        text |= {"rope_parameters": rope} | ends
        if kind == "qwen2_vl":
            vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "mlp_ratio": 2}
            return "Qwen2VL", library.Qwen2VLConfig(text_config=text, vision_config=vision, **tokens)
        if kind == "qwen2_5_vl":
            vision = {
                "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "window_size": 56,
                "fullatt_block_indexes": [1], "out_hidden_size": 32,
            }  # fmt: skip
            return "Qwen2_5_VL", library.Qwen2_5_VLConfig(text_config=text, vision_config=vision, **tokens)
        vision = {
            "depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "out_hidden_size": 32,
            "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
        }  # fmt: skip
        return "Qwen3VL", library.Qwen3VLConfig(text_config=text | {"head_dim": 8}, vision_config=vision, **tokens)
    if kind == "video_llama_3":
        vision = TOWER | {"patch_size": 14, "model_type": "video_llama_3_vision"}
        text |= {"model_type": "qwen2"} | ends
        return "VideoLlama3", library.VideoLlama3Config(
            text_config=text, vision_config=vision, image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
        )  # fmt: skip
    text |= {"model_type": "llama" if kind in ("llava_next_video", "smolvlm") else "qwen2"} | ends
    if kind == "llava_onevision":
        vision = TOWER | {"model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14}
        return "LlavaOnevision", library.LlavaOnevisionConfig(
            text_config=text, vision_config=vision, image_token_index=ids["<image>"], video_token_index=ids["<video>"],
            image_grid_pinpoints=[[28, 28]],
        )  # fmt: skip
    if kind == "llava_next_video":
        vision = TOWER | {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 7, "projection_dim": 32}
        return "LlavaNextVideo", library.LlavaNextVideoConfig(
            text_config=text, vision_config=vision, image_token_index=ids["<image>"], video_token_index=ids["<video>"],
            image_grid_pinpoints=[[28, 28]], spatial_pool_stride=2,
        )  # fmt: skip
    if kind == "internvl":
        vision = TOWER | {"image_size": [28, 28], "patch_size": [7, 7]}
        return "InternVL", library.InternVLConfig(
            text_config=text, vision_config=vision, image_token_id=ids["<IMG_CONTEXT>"], downsample_ratio=0.5,
            image_seq_length=4,
        )  # fmt: skip
    vision = TOWER | {"image_size": 28, "patch_size": 7}
    return "SmolVLM", library.SmolVLMConfig(
        text_config=text, vision_config=vision, image_token_id=ids["<image>"], scale_factor=2,
        pad_token_id=ids["<|endoftext|>"],
    )  # fmt: skip


KINDS: dict[str, tuple[tuple[str, ...], str, dict[str, str], dict[str, Any], dict[str, Any]]] = {
    # special tokens, video in the template, tokens with names, settings of the video processor, of the processor
    "qwen2_vl": (QWEN, WRAPPED, {}, PIXELS, {}),
    "qwen2_5_vl": (QWEN, WRAPPED, {}, PIXELS, {}),
    "qwen3_vl": (QWEN, WRAPPED, {}, PIXELS_3, {}),
    "llava_onevision": (
        LLAVA, "<video>", {}, PLAIN, {"num_image_tokens": 4, "vision_feature_select_strategy": "full"},
    ),
    "llava_next_video": (
        LLAVA, "<video>", {}, {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}},
        {"patch_size": 7, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1},
    ),
    "internvl": (
        INTERN, "<video>",
        {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
         "video_token": "<video>"},
        PLAIN, {"image_seq_length": 4},
    ),
    "smolvlm": (
        SMOL, "<video>", {}, {"size": {"longest_edge": 28}, "max_image_size": {"longest_edge": 28}},
        {"image_seq_len": 4},
    ),
    "video_llama_3": (QWEN, WRAPPED, {}, PIXELS, {}),
}  # fmt: skip
IMAGES = {  # where the class is not the family's own
    "qwen2_5_vl": "Qwen2VL", "qwen3_vl": "Qwen2VL", "internvl": "GotOcr2", "llava_next_video": "LlavaNext",
}  # fmt: skip
VIDEOS = {"qwen2_5_vl": "Qwen2VL"}


def tiny_network(kind: str) -> tuple[Any, Any]:
    """Return (network, tokenizer) of a family; weights are the same every time."""
    torch = importlib.import_module("torch")
    special, video, named, _, _ = KINDS[kind]
    tokenizer = tiny_tokenizer(special, video, **named)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in special}
    stem, config = _configs(kind, ids, len(tokenizer))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = getattr(transformers(), f"{stem}ForConditionalGeneration")(config)
    return network.eval(), tokenizer


def save_tiny(kind: str, folder: Path, *, processor: bool = True) -> None:
    """Save a tiny model as published ones lie in a folder; without `processor` in the older layout of Qwen."""
    library = transformers()
    network, tokenizer = tiny_network(kind)
    network.save_pretrained(folder)
    if not processor:
        tokenizer.save_pretrained(folder)
        settings = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 56 * 56, "max_pixels": 84 * 84}
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
        return
    stem = type(network).__name__.removesuffix("ForConditionalGeneration")
    _, _, _, video, rest = KINDS[kind]
    pictures = getattr(library, f"{IMAGES.get(kind, stem)}ImageProcessor")()
    videos = getattr(library, f"{VIDEOS.get(kind, stem)}VideoProcessor")(**video)
    whole = getattr(library, f"{stem}Processor")(
        image_processor=pictures,
        tokenizer=tokenizer,
        video_processor=videos,
        chat_template=tokenizer.chat_template,
        **rest,
    )
    whole.save_pretrained(folder)
