"""Weather on tensors; see `jostle.corruptions.weather`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from jostle.corrupting.scene import Moment
from jostle.corruptions import weather as own
from jostle.corruptions.kernels.sway import OverTime, drift, texture_key
from jostle.corruptions.kernels.textures import Plane, cloud, covering_side
from jostle.corruptions.tensors.clouds import clouds
from jostle.corruptions.tensors.holding import held

SHARE_BITS = 14


def fog(
    frames: Tensor,
    bank: tuple[float, float],
    at: Sequence[Moment],
    *,
    over_time: OverTime = "moving",
    side: int | None = None,
) -> Tensor:
    """Fog that is redrawn is drawn here, for all frames at once; fog that stays comes from the compiled side."""
    thickness, decay = bank
    height, width = frames.shape[1:3]
    side = covering_side((height, width), side)
    if over_time == "redrawn":
        planes = clouds(side, decay, [texture_key(moment, over_time) for moment in at], frames.device)
        plane = planes[:, :height, :width]
    else:
        plane = torch.stack([_drifted(moment, side, decay, over_time, frames) for moment in at])
    thick = float(np.float32(thickness))
    brightest = frames.amax((1, 2, 3)).float() / 255
    gain = brightest / (brightest + thick)
    lift = gain * float(np.float32(255) * np.float32(thickness))
    level = frames.float() * gain[:, None, None, None] + (plane * lift[:, None, None])[..., None]
    return level.clamp_(max=255).to(torch.int32).to(torch.uint8)


def _drifted(moment: Moment, side: int, decay: float, over_time: OverTime, frames: Tensor) -> Tensor:
    plane = held(_cloud(side, decay, texture_key(moment, over_time)), frames.device)
    dy, dx = drift(moment, side, over_time)
    return plane.roll((-dy, -dx), (0, 1))[: frames.shape[1], : frames.shape[2]]


def frost(frames: Tensor, blend: tuple[float, float], at: Sequence[Moment], *, over_time: OverTime = "still") -> Tensor:
    """Two whole shares, added."""
    height, width = frames.shape[1:3]
    share, other = (round(part * (1 << SHARE_BITS)) for part in blend)
    windows = []
    for moment in at:
        texture, y, x = own.pane(moment, height, width, over_time)
        windows.append(held(texture, frames.device)[y : y + height, x : x + width])
    level = (frames.to(torch.int32) * share + torch.stack(windows).to(torch.int32) * other) >> SHARE_BITS
    return level.clamp_(max=255).to(torch.uint8)


@lru_cache(32)
def _cloud(side: int, decay: float, key: int) -> Plane:
    """The plane of a clip's fog: the same object as long as it is in use, so that a device keeps it."""
    return cloud(side, decay, key)
