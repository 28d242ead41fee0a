"""Inputs of video-language models of transformers, from frames, their times and a prompt.

jostle decodes, samples and corrupts; the library's processor only prepares. It would sample frames again and take them
for 24 a second by default, so it gets their number and times.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.errors import CheckpointError, DataError, ResourceError
from jostle.models.language.interface import Question
from jostle.models.language.prompts import video_metadata, write_prompt
from jostle.models.language.qwen_preparation import QwenFrames, changed_parts, frames_of_parts
from jostle.models.transformers_folder import library_class, read_settings

Inputs = dict[str, Tensor]
OWN = ("qwen2_vl", "qwen2_5_vl")  # families that can be prepared without torchvision
CPU = torch.device("cpu")
PIXELS, GRID = "pixel_values_videos", "video_grid_thw"
FRAME_WISE = {PIXELS, GRID, "video_metadata"}  # outputs of a processor that prepares frames one by one, or pairs
VIDEO_TYPE = 2  # of tokens that stand for video, among `mm_token_type_ids`


class QuestionPreparation(Protocol):
    """Preparation of a question for a network."""

    tokenizer: Any

    def inputs(self, question: Question, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> Inputs:
        """Return the arguments of the network, on a device; `dtype` is that of pixels, as times would lose digits."""

    def describe(self) -> dict[str, object]:
        """Return how frames become an input."""

    def placeholders(self) -> set[str]:
        """Return texts that stand for something else than themselves."""


class PreparedOnce:
    """Video processor of transformers that prepares a frame once for successive questions that show it.

    A processor that gives something else than pixels frame by frame, such as what does not change between frames, gets
    every video whole.
    """

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._last: tuple[Question, dict[str, Any], Any] | None = None
        self._whole_only: set[tuple[int, ...]] = set()  # shapes of frames whose size depends on how many there are
        self.question: Question | None = None  # whose frames come next

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, videos: Any = None, **settings: Any) -> Any:
        """Return the prepared frames; a copy, as the library takes parts out of it."""
        question, prepared = self.question, None
        request = deepcopy(settings)  # the library fills up an odd number of frames, in their metadata too
        if self._last is not None and question is not None:
            before, known, whole = self._last
            if before.frames is question.frames and before.times is question.times and known == request:
                prepared = whole
            elif before.frames.shape == question.frames.shape and known == request and {*whole} <= FRAME_WISE:
                prepared = self._update(question.frames, before.frames, whole, deepcopy(request))
        if prepared is None:
            prepared = self._processor(videos=videos, **settings)
        self._last = None if question is None else (question, request, prepared)
        return copy(prepared)

    def _update(
        self, frames: npt.NDArray[np.uint8], before: npt.NDArray[np.uint8], whole: Any, settings: dict[str, Any]
    ) -> Any:
        """Return what was prepared of the frames before, with those parts anew that differ; None if it cannot be."""
        span = int(getattr(self._processor, "temporal_patch_size", None) or 1)
        known = _pixels_by_part(whole)
        if len(known) != -(-len(frames) // span) or frames.shape in self._whole_only:
            return None
        changed = changed_parts(frames, before, span)
        updated = known.clone()
        if changed:
            video = as_video(frames[frames_of_parts(changed, span, len(frames))])
            prepared = self._processor(videos=[video], **settings)
            new = _pixels_by_part(prepared)
            if new.shape != (len(changed), *known.shape[1:]) or not _same_size(prepared, whole):
                self._whole_only.add(frames.shape)
                return None
            updated[changed] = new
        result = copy(whole)
        result[PIXELS] = updated.view_as(whole[PIXELS])
        return result


def _pixels_by_part(prepared: Any) -> Tensor:
    """Return the pixels of a video frame by frame, or patches of as many frames as they span."""
    pixels: Tensor = prepared[PIXELS]
    return torch.unflatten(pixels, 0, (int(prepared[GRID][0, 0]), -1)) if GRID in prepared else pixels[0]


def _same_size(prepared: Any, other: Any) -> bool:
    return GRID not in prepared or torch.equal(prepared[GRID][:, 1:], other[GRID][:, 1:])


def as_video(frames: npt.NDArray[np.uint8]) -> Tensor:
    """Return frames (T, H, W, 3) as the processors take them, (T, 3, H, W)."""
    return torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2)


@dataclass
class LibraryPreparation:
    """Preparation by the processor of transformers."""

    processor: Any
    at_least: int = 1  # frames that the processor takes; fewer are filled up with the last
    capped: bool = True  # pixels of a frame, as Qwen's own tools do; pinned, as the library's default changes
    tokenizer: Any = field(init=False)
    # Pixels of the last question by name, as prepared and as sent.
    _pixels: dict[str, tuple[Tensor, Tensor]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.tokenizer = self.processor.tokenizer
        self.processor.video_processor = PreparedOnce(self.processor.video_processor)

    @property
    def _temporal(self) -> int:
        return int(getattr(self.processor.video_processor, "temporal_patch_size", None) or 1)

    def _settings(self) -> dict[str, Any]:
        pinned: dict[str, Any] = {"do_sample_frames": False}
        if hasattr(self.processor.video_processor, "cap_pixels_per_frame"):
            pinned["cap_pixels_per_frame"] = self.capped
        return pinned

    def inputs(self, question: Question, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> Inputs:
        """Return the arguments of the network, on a device.

        Raises:
            DataError: F173 if the processor shows the network another number of frames.
        """
        count = len(question.frames)
        content: list[dict[str, Any]] = [{"type": "text", "text": write_prompt(question)}]
        arguments: dict[str, Any] = {}
        if count:
            metadata, video = (
                video_metadata(question.times),
                as_video(question.frames.copy()),
            )
            if lacking := max(self.at_least - count, 0):
                video = torch.cat([video, video[-1:].expand(lacking, -1, -1, -1)])
                metadata["frames_indices"] += metadata["frames_indices"][-1:] * lacking
            content.insert(0, {"type": "video", "video": video})
            arguments = {**self._settings(), "video_metadata": [metadata]}
        self.processor.video_processor.question = question
        prepared = self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs=arguments,
        )
        inputs = {name: torch.as_tensor(value) for name, value in prepared.items()}
        if count:
            self._check_frames(inputs, count)
        return {
            name: self._send_pixels(name, value, device, dtype) if name.startswith("pixel_values") else value.to(device)
            for name, value in inputs.items()
        }

    def _send_pixels(self, name: str, pixels: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Copy pixels to a device, unless those of the last question are the same and there already."""
        prepared, sent = self._pixels.get(name, (None, pixels))
        if prepared is not pixels or (sent.device, sent.dtype) != (device, dtype):
            sent = pixels.to(device, dtype)
            self._pixels[name] = (pixels, sent)
        return sent

    def _check_frames(self, inputs: Inputs, count: int) -> None:
        if "video_grid_thw" in inputs:
            used = int(inputs["video_grid_thw"][0, 0]) * self._temporal
        else:
            values = inputs["pixel_values_videos" if "pixel_values_videos" in inputs else "pixel_values"]
            used = values.shape[1] if values.ndim == 5 else values.shape[0]
        if used != count + -count % self._temporal:
            raise DataError(
                f"{type(self.processor).__name__}: shows the network {used} of {count} frames; it may have sampled "
                "them again, so use a version of transformers that jostle was tested with",
                fault="F173",
            )

    def describe(self) -> dict[str, object]:
        """Return how frames become an input: the processor and its settings."""
        settings = {**self.processor.video_processor.to_dict(), **self._settings()}
        plain = {name: value for name, value in settings.items() if isinstance(value, str | int | float | list | dict)}
        return {
            "processor": type(self.processor).__name__,
            "video_processor": dict(sorted(plain.items())),
            "chat_template": self.processor.chat_template,
        }

    def placeholders(self) -> set[str]:
        """Return texts that stand for something else than themselves."""
        names = ("image_token", "video_token")
        own = {str(getattr(self.processor, name)) for name in names if getattr(self.processor, name, None)}
        return own | set(self.tokenizer.all_special_tokens) | set(self.tokenizer.get_added_vocab())


@dataclass
class QwenPreparation:
    """Our own preparation for Qwen2-VL and Qwen2.5-VL, for where torchvision is missing."""

    tokenizer: Any
    template: str
    frames: QwenFrames
    video_token: str
    timed: bool  # Qwen2.5-VL takes seconds; Qwen2-VL does not
    # Frames of the last question, and their patches on the device, part by part.
    _last: tuple[npt.NDArray[np.uint8], list[Tensor]] | None = field(init=False, default=None, repr=False)

    def inputs(self, question: Question, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> Inputs:
        """Return the arguments of the network, on a device."""
        content: list[dict[str, Any]] = [{"type": "text", "text": write_prompt(question)}]
        if len(question.frames):
            content.insert(0, {"type": "video"})
        text: str = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], chat_template=self.template, tokenize=False,
            add_generation_prompt=True,
        )  # fmt: skip
        inputs: Inputs = {}
        if len(question.frames):
            patches, grid = self._prepare(question.frames, device, dtype)
            inputs = {"pixel_values_videos": patches, "video_grid_thw": grid}
            if self.timed:
                known = video_metadata(question.times)
                rate = len(question.times) / known["total_num_frames"] * known["fps"]
                inputs["second_per_grid_ts"] = torch.tensor([self.frames.temporal_patch_size / rate])
            pads = int(grid.prod()) // self.frames.merge_size**2
            text = text.replace(self.video_token, self.video_token * pads)
        ids = torch.tensor([self.tokenizer(text)["input_ids"]])
        video = self.tokenizer.convert_tokens_to_ids(self.video_token)
        types = torch.where(ids == video, VIDEO_TYPE, 0)
        inputs |= {"input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": types}
        return {name: value.to(device) for name, value in inputs.items()}

    def _prepare(
        self, frames: npt.NDArray[np.uint8], device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return patches and grid; parts of the video that are those of the last question are not prepared again."""
        span = self.frames.temporal_patch_size
        every = range(-(-len(frames) // span))
        parts, changed, grid = [torch.empty(0)] * len(every), list(every), self.frames.grid_of(frames)
        if self._last is not None:
            before, known = self._last
            if before.shape == frames.shape and (known[0].device, known[0].dtype) == (device, dtype):
                parts = known.copy()
                changed = [] if before is frames else changed_parts(frames, before, span)
        if changed:
            new = self.frames.prepare_parts(frames, changed).to(device, dtype)
            for part, patches in zip(changed, new, strict=True):
                parts[part] = patches
        self._last = (frames, parts)
        whole = torch.cat(parts)
        if whole.is_cuda:  # another thread may go on with the parts, in a stream of its own
            torch.cuda.current_stream(device).synchronize()
        return whole, grid

    def describe(self) -> dict[str, object]:
        """Return how frames become an input: our settings."""
        return {
            "processor": "jostle",
            "video_processor": {name: getattr(self.frames, name) for name in self.frames.__dataclass_fields__},
            "chat_template": self.template,
        }

    def placeholders(self) -> set[str]:
        """Return texts that stand for something else than themselves."""
        return set(self.tokenizer.all_special_tokens) | set(self.tokenizer.get_added_vocab())


def load_preparation(folder: Path, family: str) -> QuestionPreparation:
    """Return the library's processor of a model folder, or our own where torchvision is missing and we have one.

    Raises:
        ResourceError: if a package is missing.
        CheckpointError: if the folder has no processor.
    """
    try:
        processor = library_class(family, "AutoProcessor").from_pretrained(folder, local_files_only=True)
    except (ImportError, RuntimeError) as error:
        if family in OWN:
            return _own_preparation(folder, family)
        lacking = "num2words" if "num2words" in str(error) else "a torchvision that belongs to the installed torch"
        raise ResourceError(
            f"{folder}: the processor of a {family} needs {lacking}: pip install "
            f"{'num2words' if lacking == 'num2words' else 'torchvision'} ({str(error).strip().splitlines()[0][:200]})"
        ) from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: its processor cannot be loaded: {error}", fault="F54") from None
    if not getattr(processor, "video_processor", None) or not processor.chat_template:
        raise CheckpointError(
            f"{folder}: has no video processor or no chat template; fetch all its JSON and Jinja files", fault="F54"
        )
    # Qwen3-VL refuses fewer frames than a patch has, where its older sisters repeat the last.
    return LibraryPreparation(processor, at_least=2 if family == "qwen3_vl" else 1)


def _own_preparation(folder: Path, family: str) -> QwenPreparation:
    try:
        tokenizer = library_class(family, "AutoTokenizer").from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{folder}: its tokenizer cannot be loaded: {error}", fault="F54") from None
    template, older = tokenizer.chat_template, folder / "chat_template.json"
    if not template and older.is_file():
        template = read_settings(older, family).get("chat_template")
    token = tokenizer.convert_ids_to_tokens(read_settings(folder / "config.json", family).get("video_token_id", -1))
    if not template or not isinstance(token, str) or token not in template:
        raise CheckpointError(f"{folder}: has no chat template with a video; fetch all its files", fault="F54")
    return QwenPreparation(tokenizer, template, QwenFrames.read(folder), token, timed=family == "qwen2_5_vl")
