"""Zero-shot recognisers of transformers: CLIP, SigLIP, SigLIP 2 and X-CLIP, which compare frames with class names.

The classes are those of the data set, each written as a sentence by a template. CLIP and SigLIP see single frames, and
their normalised embeddings are averaged; X-CLIP sees clips of the length that it was built for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, RecogniserKind, Weights, changed, library
from jostle.models.transformers_folder import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Triple,
    library_class,
    pretrained,
    read_settings,
    scale_of,
)
from jostle.models.weights.sources import WeightSource

SOURCE = "a folder with config.json, model.safetensors and the tokenizer, such as openai/clip-vit-base-patch32 of "
SOURCE += "https://huggingface.co"
CLIP_MEAN: Triple = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Triple = (0.26862954, 0.26130258, 0.27577711)
HALF: Triple = (0.5, 0.5, 0.5)
FRAMES = 8  # of a video that CLIP and SigLIP take
BETWEEN = "|"  # templates
Prompts = tuple[tuple[str, ...], ...]  # of each class, one for each template


@dataclass(frozen=True)
class ZeroShotFamily:
    """Settings of one family of zero-shot recognisers."""

    network: str  # class in transformers
    owner: str  # of the published models, on the Hub
    template: str
    mean: Triple
    std: Triple
    bicubic: bool
    squashed: bool  # whether frames are resized to a square, instead of cropped to one
    padded: bool  # whether texts are filled up to full length, as in training


FAMILIES = {
    "clip": ZeroShotFamily("CLIPModel", "openai", "a video of {}.", CLIP_MEAN, CLIP_STD, True, False, False),
    "siglip": ZeroShotFamily("SiglipModel", "google", "a video of {}.", HALF, HALF, True, True, True),
    "siglip2": ZeroShotFamily("Siglip2Model", "google", "a video of {}.", HALF, HALF, False, True, True),
    "xclip": ZeroShotFamily("XCLIPModel", "microsoft", "{}", IMAGENET_MEAN, IMAGENET_STD, False, False, False),
}
# SigLIP 2 of a fixed size is published as a SigLIP.
HELD = {"clip": ("clip",), "siglip": ("siglip",), "siglip2": ("siglip2", "siglip"), "xclip": ("xclip",)}


@library("zeroshot", source=SOURCE)
def zero_shot_model(inner: str) -> RecogniserKind:
    """CLIP, SigLIP, SigLIP 2 or X-CLIP on the class names of the data set."""
    name, stem = f"zeroshot/{inner}", inner.partition("-")[0]
    if stem not in FAMILIES:
        raise UnknownName("zero-shot recogniser", name, [f"zeroshot/{family}" for family in FAMILIES])
    family = FAMILIES[stem]
    place = None if inner == stem else WeightSource(f"hf:{family.owner}/{inner}")
    options = {"template": family.template}
    return RecogniserKind(name, partial(_load, name, stem), SOURCE, takes="folder", place=place, options=options)


class ZeroShotRecogniser(Recogniser):
    """Recogniser whose classes are given in words, by `for_classes`."""

    def __init__(self, model: nn.Module, tokenizer: Any, kind: str, template: str, spec: InputSpec, name: str) -> None:
        if kind == "xclip" and BETWEEN in template:
            raise BadValue(f"{name}: takes one template, not {template!r}, as it changes texts by the video")
        super().__init__(PromptedNetwork(model, kind), spec, name=name)
        self.model, self.tokenizer, self.kind, self.template = model, tokenizer, kind, template

    def for_classes(self, classes: Sequence[str]) -> ZeroShotRecogniser:
        """Return a recogniser of these classes, which shares the weights.

        Raises:
            BadValue: F178 if two classes have one prompt, or one is longer than the model reads.
        """
        prompted = ZeroShotRecogniser(self.model, self.tokenizer, self.kind, self.template, self._spec, self.name)
        prompts = write_prompts(self.template, classes, self.name)
        texts = torch.stack([self._embed(one) for one in zip(*prompts, strict=True)]).mean(0)
        prompted.network = PromptedNetwork(self.model, self.kind, texts, prompts).eval()
        prompted.classes = tuple(classes)
        return prompted

    @property
    def _spec(self) -> InputSpec:
        assert self.spec is not None
        return self.spec

    def _embed(self, prompts: Sequence[str]) -> Tensor:
        """Return (classes, width) embeddings of texts; X-CLIP changes them by the video, and normalises later."""
        model: Any = self.model
        most = int(model.config.text_config.max_position_embeddings)
        lengths = [len(ids) for ids in self.tokenizer(list(prompts))["input_ids"]]
        longest = prompts[lengths.index(max(lengths))]
        if max(lengths) > most:
            raise BadValue(
                f"{self.name}: reads {most} tokens, and {longest!r} has {max(lengths)}; give a shorter template",
                fault="F178",
            )
        padding = {"padding": "max_length", "max_length": most} if FAMILIES[self.kind].padded else {"padding": True}
        tokens = self.tokenizer(list(prompts), return_tensors="pt", **padding)
        known = {name: tokens[name] for name in ("input_ids", "attention_mask") if name in tokens}
        with torch.inference_mode():
            texts = _pooled(model.get_text_features(**known))
        texts = texts.clone()
        return texts if self.kind == "xclip" else texts / texts.norm(dim=-1, keepdim=True)


class PromptedNetwork(nn.Module):
    """Network that scores clips (B, T, 3, H, W) against embedded class names."""

    texts: Tensor | None

    def __init__(self, model: nn.Module, kind: str, texts: Tensor | None = None, prompts: Prompts = ()) -> None:
        super().__init__()
        self.model, self.kind, self.prompts = model, kind, prompts
        self.register_buffer("texts", texts)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of clips (B, T, 3, H, W)."""
        if self.texts is None:
            raise BadValue("a zero-shot recogniser has no classes of its own; name them with for_classes([...])")
        logits: Tensor = self._clip_logits(clips) if self.kind == "xclip" else self._frame_logits(clips)
        return logits

    def _frame_logits(self, clips: Tensor) -> Tensor:
        model: Any = self.model
        frames = clips.flatten(0, 1)
        arguments = _patches(frames, model.config.vision_config.patch_size) if self.kind == "siglip2" else {}
        embeddings = _pooled(model.get_image_features(**(arguments or {"pixel_values": frames})))
        embeddings = embeddings / embeddings.norm(dim=-1, keepdim=True)
        mean = embeddings.unflatten(0, clips.shape[:2]).mean(1)
        logits: Tensor = model.logit_scale.exp() * mean @ self._texts.t()
        return logits

    def _clip_logits(self, clips: Tensor) -> Tensor:
        """Return what `XCLIPModel` does, without embedding the same texts with every clip."""
        model: Any = self.model
        length = model.config.vision_config.num_frames
        if clips.shape[1] != length:
            raise BadValue(f"X-CLIP: takes clips of {length} frames, not of {clips.shape[1]}", fault="F177")
        features = model.vision_model(pixel_values=clips.flatten(0, 1))
        videos = model.mit(model.visual_projection(features[1]).unflatten(0, clips.shape[:2]))[1]
        patches = model.prompts_visual_layernorm(features[0][:, 1:]) @ model.prompts_visual_projection
        patches = patches.unflatten(0, clips.shape[:2]).mean(1)
        texts = self._texts[None].expand(len(clips), -1, -1)
        texts = texts + model.prompts_generator(texts, patches)
        videos, texts = (value / value.norm(dim=-1, keepdim=True) for value in (videos, texts))
        return torch.einsum("bd,bkd->bk", videos, model.logit_scale.exp() * texts)

    @property
    def _texts(self) -> Tensor:
        assert self.texts is not None
        return self.texts


def write_prompts(template: str, classes: Sequence[str], name: str) -> Prompts:
    """Return the prompts of each class, one for each template.

    Args:
        template: text with `{}` for the class; several are separated by `|`, and their embeddings averaged.
        name: of the recogniser, for messages.

    Raises:
        BadValue: F178 if two classes have one prompt, or a class is a mere number.

    >>> write_prompts("a video of {}.", ["ApplyEyeMakeup", "jump_rope"], "zeroshot/clip")
    (('a video of apply eye makeup.',), ('a video of jump rope.',))
    """
    templates = [text.strip() for text in template.split(BETWEEN)]
    if any(text.count("{}") != 1 for text in templates):
        raise BadValue(f"{name}: a template holds {{}} once, for the class, as 'a video of {{}}.', not {template!r}")
    words = [class_words(text) for text in classes]
    numbers = [text for text in words if not re.search(r"[^\W\d]", text)]
    twice = sorted({text for text in words if words.count(text) > 1})
    if numbers or twice or not words:
        what = f"{twice[0]!r} stands for two classes" if twice else f"{(numbers or ['nothing'])[0]!r} is no name"
        raise BadValue(f"{name}: needs classes in words, and {what}; give annotations with names", fault="F178")
    return tuple(tuple(text.replace("{}", one) for text in templates) for one in words)


def class_words(name: str) -> str:
    """Return the words of a class name, which data sets write in many ways.

    >>> class_words("HandStandPushups"), class_words("tai_chi"), class_words("shooting goal (soccer)")
    ('hand stand pushups', 'tai chi', 'shooting goal (soccer)')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\s]+", " ", name)
    return spaced.strip().lower()


def _load(name: str, stem: str, weights: Weights, changes: Changes) -> Recogniser:
    if isinstance(weights, Mapping) or str(weights) == "random":
        raise BadValue(f"{name}: weights are {SOURCE}")
    folder = Path(weights)
    config = read_settings(folder / "config.json", name)
    kind = config.get("model_type")
    if kind not in HELD[stem]:
        raise CheckpointError(f"{folder}: holds a {kind!r}, not a {stem!r}", fault="F54")
    template = changes.get("template", FAMILIES[kind].template)
    try:
        tokenizer = library_class(name, "AutoTokenizer").from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, AttributeError, ImportError) as error:
        raise CheckpointError(f"{folder}: its tokenizer cannot be loaded: {error}", fault="F54") from None
    model = pretrained(folder, name, FAMILIES[kind].network, "text tower", dtype=torch.float32)
    fields = {key: value for key, value in changes.items() if key != "template"}
    spec = changed(name, _spec(kind, model.config, _picture_settings(folder, name)), fields)
    _check_frames(name, kind, model.config, spec)
    write_prompts(template, ["a class"], name)  # refuses a template that is none
    return ZeroShotRecogniser(model, tokenizer, kind, template, spec, name)


def _check_frames(name: str, kind: str, config: Any, spec: InputSpec) -> None:
    length = config.vision_config.num_frames if kind == "xclip" else spec.frames
    if spec.frames != length:
        raise BadValue(f"{name}: was built for clips of {length} frames, not of {spec.frames}", fault="F177")


def _spec(kind: str, config: Any, settings: Mapping[str, Any]) -> InputSpec:
    family, vision = FAMILIES[kind], config.vision_config
    size = _side(settings.get("crop_size")) or _side(settings.get("size"))
    if kind == "siglip2":
        size = math.isqrt(settings.get("max_num_patches", vision.num_patches)) * vision.patch_size
    size = size or vision.image_size
    short = _side(settings.get("size")) or size
    mean, std = scale_of(settings, family.mean, family.std)
    bicubic = settings.get("resample", 3 if family.bicubic else 2) == 3
    return InputSpec(
        frames=vision.num_frames if kind == "xclip" else FRAMES,
        resize=(size, size) if family.squashed else short,
        size=size,
        mean=mean,
        std=std,
        layout="TCHW",
        interpolation="bicubic" if bicubic else "bilinear",
        arithmetic="pillow",
        spread="even",
        clips=1,
    )


def _side(size: Any) -> int | None:
    """Return the side of a square, however the library wrote it down."""
    if isinstance(size, Mapping):
        size = size.get("shortest_edge", size.get("height"))
    return int(size) if isinstance(size, int) else None


def _picture_settings(folder: Path, name: str) -> Mapping[str, Any]:
    nested = folder / "processor_config.json"
    if nested.is_file() and isinstance(settings := read_settings(nested, name).get("image_processor"), dict):
        return settings
    path = folder / "preprocessor_config.json"
    return read_settings(path, name) if path.is_file() else {}


def _patches(frames: Tensor, side: int) -> dict[str, Tensor]:
    """Return the arguments of SigLIP 2 for (N, 3, H, W) frames: flat patches, all of them real."""
    count, _, height, width = frames.shape
    rows, columns = height // side, width // side
    split = frames.reshape(count, 3, rows, side, columns, side)
    flat = split.permute(0, 2, 4, 3, 5, 1).reshape(count, rows * columns, side * side * 3)
    return {
        "pixel_values": flat,
        "pixel_attention_mask": torch.ones(flat.shape[:2], dtype=torch.int32, device=flat.device),
        "spatial_shapes": torch.tensor([[rows, columns]] * count, device=flat.device),
    }


def _pooled(output: Any) -> Tensor:
    """Return the embedding of an output, which is a tensor in older versions of transformers."""
    pooled: Tensor = getattr(output, "pooler_output", output)
    return pooled
