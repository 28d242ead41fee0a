"""Weather on tensors; see `jostle.corruptions.weather`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.corrupting.scene import Moment
from jostle.corruptions import weather as own
from jostle.corruptions.kernels.frame_draws import first_integers
from jostle.corruptions.kernels.sway import OverTime, drift, texture_key
from jostle.corruptions.kernels.textures import ICE_TEXTURES, Plane, cloud, covering_side, ice_covering
from jostle.corruptions.tensors.clouds import clouds, raw_clouds
from jostle.corruptions.tensors.holding import held, sent
from jostle.corruptions.tensors.keys import keys_on
from jostle.corruptions.tensors.moments import Moments
from jostle.corruptions.tensors.programs import has_triton, runs_on, strips

if has_triton():
    from jostle.corruptions.tensors.weather_program import blend, lay_fog, lay_plane

SHARE_BITS = 14


def fog(
    frames: Tensor,
    bank: tuple[float, float],
    at: Moments,
    *,
    over_time: OverTime = "moving",
    side: int | None = None,
) -> Tensor:
    """Fog that is redrawn is drawn here, for all frames at once; fog that stays comes from the compiled side."""
    thickness, decay = bank
    height, width = frames.shape[1:3]
    side = covering_side((height, width), side)
    if over_time == "redrawn" and runs_on(frames):
        return _fog_by_program(frames, thickness, raw_clouds(side, decay, keys_on(frames, at, "texture")))
    if over_time == "redrawn":
        planes = clouds(side, decay, keys_on(frames, at, "texture"))
        plane = planes[:, :height, :width]
    elif runs_on(frames):
        return _drifting_fog_by_program(frames, bank, at, side, over_time)
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


def _fog_by_program(frames: Tensor, thickness: float, clouds: Tensor) -> Tensor:
    height, values = frames.shape[1], frames.shape[2] * 3
    low, high = clouds.flatten(1).aminmax(dim=1)
    brightest = frames.flatten(1).amax(1)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    size = (height, values, clouds.shape[1])
    lay_fog[grid](frames, out, clouds, low, high, brightest, float(np.float32(thickness)), *size, **ways)
    return out


def _drifting_fog_by_program(
    frames: Tensor, bank: tuple[float, float], at: Moments, side: int, over_time: OverTime
) -> Tensor:
    thickness, decay = bank
    height, values = frames.shape[1], frames.shape[2] * 3
    planes = [held(_cloud(side, decay, scene.key("texture")), frames.device) for scene in at.scenes]
    moves = np.array([drift(moment, side, over_time) for moment in at], np.int32)
    brightest = frames.flatten(1).amax(1)
    out = torch.empty_like(frames)
    places = (sent(at.clip.astype(np.int32), frames.device), sent(moves, frames.device))
    grid, ways = strips(len(frames) * height, values)
    size = (float(np.float32(thickness)), height, values, side)
    lay_plane[grid](frames, out, torch.stack(planes), *places, brightest, *size, **ways)
    return out


def frost(frames: Tensor, blend: tuple[float, float], at: Moments, *, over_time: OverTime = "still") -> Tensor:
    """Two whole shares, added."""
    height, width = frames.shape[1:3]
    share, other = (round(part * (1 << SHARE_BITS)) for part in blend)
    panes = _panes(height, width)
    keys = at.keys() if over_time == "redrawn" else at.scene_keys()
    number, y, x = first_integers(keys, ICE_TEXTURES, *own.places(panes[0], height, width)).T
    ice = held(panes, frames.device)
    if runs_on(frames):
        begins = (number * panes.shape[1] + y) * panes.shape[2] + x
        return _frost_by_program(frames, ice, 3 * begins, share, other)
    windows = [
        ice[n, v : v + height, u : u + width] for n, v, u in zip(number.tolist(), y.tolist(), x.tolist(), strict=True)
    ]
    level = (frames.to(torch.int32) * share + torch.stack(windows).to(torch.int32) * other) >> SHARE_BITS
    return level.clamp_(max=255).to(torch.uint8)


def _frost_by_program(frames: Tensor, ice: Tensor, begins: Any, share: int, other: int) -> Tensor:
    height, values = frames.shape[1], frames.shape[2] * 3
    there = sent(begins, frames.device)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    size = (height, values, ice.shape[2] * 3)
    blend[grid](frames, out, ice, there, share, other, *size, BITS=SHARE_BITS, **ways)
    return out


@lru_cache(4)
def _panes(height: int, width: int) -> Any:
    """All textures of ice, each large enough for a frame."""
    return np.stack([ice_covering(number, height, width) for number in range(ICE_TEXTURES)])


@lru_cache(32)
def _cloud(side: int, decay: float, key: int) -> Plane:
    """The plane of a clip's fog: the same object as long as it is in use, so that a device keeps it."""
    return cloud(side, decay, key)
