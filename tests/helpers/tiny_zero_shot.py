"""CLIP, SigLIP, SigLIP 2 and X-CLIP of transformers, so small that they are made in no time."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from helpers.tiny_language import tiny_tokenizer

TOWER: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
LENGTH = 48  # tokens of a text


def zero_shot_config(kind: str, words: int, end: int) -> Any:
    """Return the settings of a tiny network."""
    library = importlib.import_module("transformers")
    text = TOWER | {"vocab_size": words, "max_position_embeddings": LENGTH, "eos_token_id": end, "pad_token_id": end}
    text |= {"bos_token_id": end, "projection_size": 32}
    vision = TOWER | {"image_size": 32, "patch_size": 8}
    if kind == "clip":
        return library.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    if kind == "siglip":
        return library.SiglipConfig(text_config=text, vision_config=vision)
    if kind == "siglip2":
        return library.Siglip2Config(text_config=text, vision_config=vision | {"num_patches": 16})
    mit = {"mit_hidden_size": 16, "mit_intermediate_size": 32, "mit_num_hidden_layers": 1, "mit_num_attention_heads": 2}
    return library.XCLIPConfig(
        text_config=text,
        vision_config=vision | {"num_frames": 4} | mit,
        projection_dim=16,
        prompt_num_attention_heads=2,
    )


def save_zero_shot(kind: str, folder: Path, **settings: Any) -> Any:
    """Save a tiny model, with settings of its pictures, and return it; weights are the same every time."""
    torch = importlib.import_module("torch")
    library = importlib.import_module("transformers")
    tokenizer = tiny_tokenizer(("<|endoftext|>",), "")
    config = zero_shot_config(kind, len(tokenizer), tokenizer.eos_token_id)
    names = {"clip": "CLIPModel", "siglip": "SiglipModel", "siglip2": "Siglip2Model", "xclip": "XCLIPModel"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = getattr(library, names[kind])(config).eval()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if settings:
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return network
