"""Corruption as a transform of a data loader: tensors, `tv_tensors`, NumPy frames and albumentations-style keywords.

It is a plain module that behaves as a transform of `torchvision.transforms.v2` does, so that torchvision, which is
needed for none of it, is never imported from here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from jostle.core.random import rng_for
from jostle.core.types.clip import check_rate
from jostle.corruptions.engine.placement import Placement, parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.gpu.batch import corrupt_tensor
from jostle.errors import BadValue

# Axes of (B, T, H, W, 3), the layout of the corruptions, in a tensor of each layout with its batch axis.
AXES = {"TCHW": (0, 1, 3, 4, 2), "CTHW": (0, 2, 3, 4, 1), "THWC": (0, 1, 2, 3, 4)}
IMAGE_KEYS = ("image", "images", "volume", "frames", "video")  # keywords that hold pixels, as albumentations calls them
NO_EPOCH = -1


class Corrupt(nn.Module):
    """A transform that corrupts clips: one spec is drawn for all frames of a clip.

    It takes what transforms of `torchvision.transforms.v2` take, in any nesting of tuples, lists and dicts: a
    `tv_tensors.Video` or `Image`, or else the first plain tensor or array with at least four axes; everything else is
    passed through. Called with keywords, as `albumentations` does, it corrupts `image` (H, W, 3) and `images` (T, H, W,
    3) and returns a dict. A tensor on a GPU is corrupted there. Input and output have the same type, shape and range.

    A draw is keyed by seed, epoch, rank, worker of the data loader and number of the call, so that the same order of
    samples in the same number of workers gives the same bytes. With `video_id` it is keyed by seed, epoch and id
    alone. Without `set_epoch`, the seed that torch gives its workers anew in each epoch stands for the epoch.

    Args:
        specs: one or several corruptions, `[profile/]name[:severity]`, of which each clip gets one.
        p: the share of clips that are corrupted; the others come back as they are.
        seed: of all draws.
        layout: axes of a plain tensor, `TCHW`, `CTHW` or `THWC`; a tensor of five axes has its batch in front, and
            every clip of it has its own draw. A `tv_tensors.Video` is always TCHW, an array THWC.
        placement: which frames, such as `random:4`; by default what the spec says, for most of them everywhere.
        fps: frame rate of the clips.

    >>> import torch
    >>> clip = torch.full((8, 3, 32, 32), 90, dtype=torch.uint8)
    >>> transform = Corrupt(["shot_noise:3", "fog:2"], seed=1)
    >>> rough = transform(clip, video_id="v_0001")
    >>> rough.shape, torch.equal(rough, transform(clip, video_id="v_0001"))
    (torch.Size([8, 3, 32, 32]), True)
    """

    def __init__(
        self,
        specs: str | Spec | Sequence[str | Spec],
        *,
        p: float = 1.0,
        seed: int = 0,
        layout: str = "TCHW",
        placement: str | Placement | None = None,
        fps: float = 30.0,
    ) -> None:
        super().__init__()
        self.specs = tuple(Spec.parse(spec) for spec in ([specs] if isinstance(specs, str | Spec) else specs))
        if not self.specs:
            raise BadValue("Corrupt needs at least one spec, such as 'fog:2'")
        if not 0 <= p <= 1:
            raise BadValue(f"p is a share of clips from 0 to 1, got {p}")
        if layout not in AXES:
            raise BadValue(f"layout is one of {', '.join(AXES)}, got {layout!r}")
        check_rate(fps)
        self.p, self.seed, self.layout, self.fps = p, seed, layout, fps
        self.placement = None if placement is None else parse_placement(placement)
        # In shared memory, so that `set_epoch` reaches workers that outlive an epoch.
        self._epoch = torch.full((), NO_EPOCH, dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]
        self._calls, self._calls_of = 0, NO_EPOCH

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that draws are keyed by; call it before iterating over the data loader."""
        if epoch < 0:
            raise BadValue(f"epochs count from 0, got {epoch}")
        self._epoch.fill_(epoch)

    def extra_repr(self) -> str:
        return f"{', '.join(map(str, self.specs))}, p={self.p}, seed={self.seed}, layout={self.layout}"

    def forward(self, *inputs: Any, video_id: str | Sequence[str] | None = None, **named: Any) -> Any:
        """Return the inputs with their clips corrupted; keywords give a dict.

        Args:
            video_id: what the draw is keyed by in place of worker and call; of a batch one for each clip.
        """
        if bool(inputs) == bool(named):
            raise BadValue("call the transform with clips, or with keywords such as image=; with one of the two")
        if named:
            return self._corrupt_named(named, video_id)
        leaves, structure = pytree.tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        chosen = _clips_among(leaves)
        keys = self._keys(leaves[chosen[0]], video_id)
        for index in chosen:
            leaves[index] = self._corrupt_leaf(leaves[index], keys)
        return pytree.tree_unflatten(leaves, structure)

    def _corrupt_named(self, named: dict[str, Any], video_id: str | Sequence[str] | None) -> dict[str, Any]:
        chosen = [key for key in IMAGE_KEYS if key in named]
        if not chosen:
            raise BadValue(
                f"none of the keywords {', '.join(named)} holds frames; pass one of {', '.join(IMAGE_KEYS)}",
                fault="F181",
            )
        keys = self._keys(named[chosen[0]], video_id)
        return named | {key: self._corrupt_leaf(named[key], keys) for key in chosen}

    def _keys(self, clips: Any, video_id: str | Sequence[str] | None) -> list[str]:
        """Return one random key a clip: epoch, and the video's id or rank, worker and number of the call."""
        count = len(clips) if clips.ndim == 5 else 1
        epoch = int(self._epoch)
        worker = torch.utils.data.get_worker_info()
        if epoch == NO_EPOCH and worker is not None:
            epoch = worker.seed - worker.id  # drawn by the data loader in each epoch
        if video_id is not None:
            names = [video_id] if isinstance(video_id, str) else list(video_id)
            if len(names) != count:
                raise BadValue(f"got {len(names)} video ids for {count} clips; pass one each")
            return [f"{epoch}/{name}" for name in names]
        if epoch != self._calls_of:
            self._calls, self._calls_of = 0, epoch
        first = self._calls
        self._calls += count
        process = f"{os.environ.get('RANK', '0')}/{0 if worker is None else worker.id}"
        return [f"{epoch}/{process}/{first + number}" for number in range(count)]

    def _corrupt_leaf(self, clips: Any, keys: list[str]) -> Any:
        """Corrupt one input of any accepted type."""
        if isinstance(clips, np.ndarray):
            return self._corrupt_plain(torch.from_numpy(np.ascontiguousarray(clips)), "THWC", keys).numpy()
        tv_tensors = sys.modules.get("torchvision.tv_tensors")
        if tv_tensors is not None and isinstance(clips, tv_tensors.TVTensor):
            done = self._corrupt_plain(clips.as_subclass(Tensor), "TCHW", keys)
            return tv_tensors.wrap(done, like=clips)
        return self._corrupt_plain(clips, self.layout, keys)

    def _corrupt_plain(self, clips: Tensor, layout: str, keys: list[str]) -> Tensor:
        """Corrupt a tensor of one frame, one clip or several."""
        lacking = 5 - clips.ndim
        batch = clips[(None,) * max(lacking, 0)]  # a single frame is a clip of one
        axes = AXES["TCHW" if layout == "CTHW" and lacking == 2 else layout]
        _check_layout(clips, batch, axes, layout)
        if len(batch) != len(keys):
            raise BadValue(f"clips of one sample must be as many each, got {len(batch)} and {len(keys)}", fault="F182")
        drawn = [self._draw(key) for key in keys]
        if not any(spec.severity for spec in drawn):
            return clips
        with torch.no_grad():
            levels = _as_bytes(batch).permute(axes)
            done = levels.clone(memory_format=torch.contiguous_format)
            for spec in self.specs:  # clips of one spec at once, as a GPU likes them
                rows = [row for row, own in enumerate(drawn) if own is spec]
                if rows:
                    done[rows] = corrupt_tensor(
                        levels[rows].contiguous(),
                        [spec],
                        seed=self.seed,
                        video_ids=[keys[row] for row in rows],
                        placement=self.placement,
                        segments=None,
                        fps=self.fps,
                    )
            back = np.argsort(axes).tolist()
            return _as_before(done, levels, batch.permute(axes)).permute(back).reshape(clips.shape)

    def _draw(self, key: str) -> Spec:
        """Draw the spec of a clip, one of severity 0 for a clip that stays clean."""
        # Keyed by the list too: two transforms of one seed, one after the other, choose independently.
        rng = rng_for(self.seed, "corrupt transform", *map(str, self.specs), key)
        if rng.random() >= self.p:
            return replace(self.specs[0], severity=0)
        return self.specs[int(rng.integers(len(self.specs)))]


def _clips_among(leaves: list[Any]) -> list[int]:
    """Return which inputs are corrupted: those marked as video or image, or else the first plain one that can be."""
    tv_tensors = sys.modules.get("torchvision.tv_tensors")
    if tv_tensors is not None:
        marked = [i for i, leaf in enumerate(leaves) if isinstance(leaf, tv_tensors.Video | tv_tensors.Image)]
        if marked:
            return marked
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor | np.ndarray) and leaf.ndim >= 4:
            return [index]
    kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
    raise BadValue(f"no clip to corrupt: need a tensor or array of at least four axes, got {kinds}", fault="F181")


def _check_layout(clips: Tensor, batch: Tensor, axes: tuple[int, ...], layout: str) -> None:
    if not 3 <= clips.ndim <= 5 or batch.shape[axes[-1]] != 3 or 0 in batch.shape:
        raise BadValue(
            f"a clip of layout {layout} needs three channels there, got {tuple(clips.shape)}; pass layout= "
            f"({', '.join(AXES)}) with the axes of your tensors",
            fault="F182",
        )


def _as_bytes(batch: Tensor) -> Tensor:
    """Convert float values of [0, 1] to bytes; anything else would be clipped without a word, and is refused."""
    if batch.dtype == torch.uint8:
        return batch
    if not batch.dtype.is_floating_point:
        raise BadValue(f"frames must be uint8 or floating point in 0..1, got {batch.dtype}", fault="F183")
    low, high = (float(value) for value in torch.aminmax(batch.detach().float()))
    if not (low >= 0 and high <= 1):  # NaN included
        raise BadValue(
            f"floating-point frames must lie in 0..1, got {low:.3g} to {high:.3g}; corrupt before you normalise",
            fault="F183",
        )
    return batch.detach().float().mul(255).round_().to(torch.uint8)


def _as_before(done: Tensor, levels: Tensor, values: Tensor) -> Tensor:
    """Convert bytes back; pixels that were not changed keep their value to the last bit."""
    if values.dtype == torch.uint8:
        return done
    return torch.where(done == levels, values, done.to(torch.float32).div_(255).to(values.dtype))
