"""Corruption deferred to the device of the network: frames travel clean, together with what is to be done to them.

A GPU produces the same bytes as a CPU core, in a tenth to a hundredth of the time for most corruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frames
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import ClipContext, Mask
from jostle.corruptions.engine.spec import Spec

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DeferredCorruption:
    """Corruption to apply to some frames of a video before a network sees them."""

    spec: str = ""  # the spec as text; empty for none
    seed: int = 0
    video_id: str = ""
    fps: Fraction = Fraction(30)
    numbers: Any = ()  # of the frames in their video, (N,), or of clips (B, T)
    times: Any = ()  # in seconds from the first frame of the video
    affected: Any = ()  # mask of the frames that the corruption changes
    kind: ClassVar[str] = "strike"  # the same for all, so that frames with different corruptions share a batch

    @classmethod
    def on(
        cls, spec: str, video: VideoSource, mask: Mask, seed: int, name: str, numbers: Indices
    ) -> DeferredCorruption:
        """Create the corruption of the frames with these indices, where the video's mask selects them."""
        times = video.pts[numbers] - video.pts[0]
        return cls(spec, seed, name, video.fps, numbers, times, mask[numbers])


class DeferredCorruptions(tuple[DeferredCorruption, ...]):
    """Corruptions of the same clips, which are sent once: each gives a copy of them; none, the clips as they are."""

    kind: ClassVar[str] = "strike"

    @property
    def copies(self) -> int:
        """Number of copies of the clips that a model processes."""
        return max(len(self), 1)


DeferredCorruptionFactory = Callable[[Indices], DeferredCorruption]  # from frame indices to the corruption of a cell


def corrupts_on_device(model: Any, specs: Sequence[Spec]) -> bool:
    """Whether the device of a remote model applies these corruptions to what it is sent: a single one, if it can."""
    can_corrupt = getattr(model, "can_corrupt", None)
    if can_corrupt is None or len(specs) != 1 or not specs[0].severity:
        return False
    return bool(can_corrupt(str(specs[0])))


def can_corrupt_on_device(model: Any, spec: str) -> bool:
    """Whether a model's device is a GPU with kernels for this corruption, which is faster than the CPU cores."""
    device = getattr(model, "device", None)
    if device is None or device.type != "cuda":
        return False
    if not any(hasattr(model, method) for method in ("together", "see_together", "answer", "locate")):
        return False  # a user's model, which may accept arrays only
    from jostle.core.triton_support import can_compile
    from jostle.corruptions.gpu.batch import gpu_kernel

    return gpu_kernel(Spec.parse(spec)) is not None and can_compile()


def corrupt_on_device(frames: Any, deferred: DeferredCorruption) -> Any:
    """Corrupt a tensor of frames (N, H, W, 3), or of clips of them."""
    from jostle.corruptions.gpu.batch import corrupt_frames

    spec, numbers = Spec.parse(deferred.spec), deferred.numbers.ravel()
    # A video of which only these frames are known, and that the first of all is at 0 s.
    times, mask = np.zeros(numbers.max() + 1), np.zeros(numbers.max() + 1, np.bool_)
    times[numbers], mask[numbers] = deferred.times.ravel(), deferred.affected.ravel()
    size = (int(frames.shape[-3]), int(frames.shape[-2]))
    scene = ClipContext(
        spec.corruption.name, size, times, deferred.fps, mask, seed=deferred.seed, video_id=deferred.video_id
    )
    return corrupt_frames(frames.reshape(-1, *frames.shape[-3:]), numbers, spec, scene).view_as(frames)


def corrupt_copies(model: Any, requests: Sequence[tuple[Frames, DeferredCorruptions]]) -> list[Any]:
    """Return the clips of all requests, one copy after the other, corrupted on the model's device."""
    from jostle.core.cuda import launch_turn, to_device

    copies: list[Any] = []
    for frames, corruptions in requests:
        if not corruptions:
            copies.append(frames)
            continue
        with launch_turn(model.device):
            clean = to_device(frames, model.device)
            copies += [corrupt_on_device(clean, corruption) for corruption in corruptions]
    return copies


def corrupt_to_host(device: Any, frames: Frames, corruption: DeferredCorruption) -> Frames:
    """Return frames that a device has corrupted, for a model that prepares them on the CPU."""
    from jostle.core.cuda import launch_turn, to_device

    with launch_turn(device):
        corrupted: Frames = corrupt_on_device(to_device(frames, device), corruption).cpu().numpy()
    return corrupted
