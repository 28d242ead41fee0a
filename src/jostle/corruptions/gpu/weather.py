"""Weather on tensors; see `jostle.corruptions.weather`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton import has_triton, runs_on, strips
from jostle.corruptions import weather as own
from jostle.corruptions.engine.context import FrameContext
from jostle.corruptions.gpu.clouds import clouds, raw_clouds
from jostle.corruptions.gpu.contexts import FrameContexts, Numbers
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.gpu.flakes import flakes
from jostle.corruptions.gpu.keys import keys_on
from jostle.corruptions.kernels.frame_draws import first_integers
from jostle.corruptions.kernels.sway import OverTime, drift, texture_key
from jostle.corruptions.kernels.textures import ICE_TEXTURES, Plane, cloud, covering_side, ice_covering

if has_triton():
    from jostle.corruptions.gpu.flake_program import lay_flakes
    from jostle.corruptions.gpu.weather_program import blend, lay_fog, lay_plane

SHARE_BITS = 14
SNOWED = 128  # frames that snow falls on at a time, as it takes many numbers for each pixel
GREY = tuple(float(np.float32(share)) for share in (0.299, 0.587, 0.114))


def fog(
    frames: Tensor,
    bank: tuple[float, float],
    at: FrameContexts,
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


def _drifted(moment: FrameContext, side: int, decay: float, over_time: OverTime, frames: Tensor) -> Tensor:
    plane = device_table(_cloud(side, decay, texture_key(moment, over_time)), frames.device)
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
    frames: Tensor, bank: tuple[float, float], at: FrameContexts, side: int, over_time: OverTime
) -> Tensor:
    thickness, decay = bank
    height, values = frames.shape[1], frames.shape[2] * 3
    planes = [device_table(_cloud(side, decay, scene.key("texture")), frames.device) for scene in at.scenes]
    moves = np.array([drift(moment, side, over_time) for moment in at], np.int32)
    brightest = frames.flatten(1).amax(1)
    out = torch.empty_like(frames)
    places = (send_values(at.clip.astype(np.int32), frames.device), send_values(moves, frames.device))
    grid, ways = strips(len(frames) * height, values)
    size = (float(np.float32(thickness)), height, values, side)
    lay_plane[grid](frames, out, torch.stack(planes), *places, brightest, *size, **ways)
    return out


def snow(frames: Tensor, fall: tuple[float, ...], at: FrameContexts, *, over_time: OverTime = "moving") -> Tensor:
    """Flakes, each clip's or each frame's own, over frames that turn pale; some frames at a time."""
    size = (int(frames.shape[1]), int(frames.shape[2]))
    keys = at.keys("texture") if over_time == "redrawn" else at.scene_keys("texture")
    moves = _snowfalls(at, size) if over_time == "moving" else np.zeros((len(at), 2, 2), np.int64)
    lay = _flakes_laid_by_program if runs_on(frames) else _flakes_laid
    out = torch.empty_like(frames)
    for lo in range(0, len(at), SNOWED):
        some = slice(lo, lo + SNOWED)
        drawn, number = np.unique(keys[some], return_inverse=True)
        lay(frames[some], out[some], flakes(drawn, fall, size, frames.device), number, moves[some], fall[6])
    return out


def _snowfalls(at: FrameContexts, size: tuple[int, int]) -> npt.NDArray[np.int64]:
    """(N, 2, 2) how far down and to the right near and far flakes have come, round the ends of a frame."""
    ways = np.array([own.snowfall(moment, *size) for moment in at], np.int64)
    return np.asarray(ways % np.array(size), np.int64)


def _flakes_laid(frames: Tensor, out: Tensor, flakes: Tensor, number: Numbers, moves: Numbers, mix: float) -> None:
    """Planes of flakes, each frame's by its number, laid over frames."""
    planes = flakes[send_values(number, frames.device)].float()
    fallen = _carried(planes, moves[:, 0]) + _carried(planes.flip((1, 2)), moves[:, 1])
    out.copy_(_snowed(frames.float(), fallen[..., None], mix))


def _flakes_laid_by_program(
    frames: Tensor, out: Tensor, flakes: Tensor, number: Numbers, moves: Numbers, mix: float
) -> None:
    height, width = frames.shape[1:3]
    falls = send_values(np.column_stack([number, moves.reshape(-1, 4)]).astype(np.int32), frames.device)
    grid, ways = strips(len(frames) * height, width)
    lay_flakes[grid](frames, out, flakes, falls, *_shares(mix), height, width, **ways)


def _shares(mix: float) -> tuple[float, float]:
    """Return the shares of the original and of the paled frame."""
    return float(np.float32(mix)), float(np.float32(1) - np.float32(mix))


def _carried(planes: Tensor, moves: Numbers) -> Tensor:
    """Planes, each moved by its own; what leaves at one end comes in again at the other."""
    if not moves.any():
        return planes
    there = send_values(moves, planes.device)
    down, across = (
        (torch.arange(length, device=planes.device) - there[:, axis, None]) % length
        for axis, length in enumerate(planes.shape[1:])
    )
    number = torch.arange(len(planes), device=planes.device)
    return planes[number[:, None, None], down[:, :, None], across[:, None, :]]


def _snowed(frames: Tensor, fallen: Tensor, mix: float) -> Tensor:
    share, rest = _shares(mix)
    red, green, blue = (frames[..., channel, None] for channel in range(3))
    grey = (red * GREY[0] + green * GREY[1]) + blue * GREY[2]
    white = grey * 1.5 + 127.5
    level = (frames * share + torch.maximum(frames, white) * rest) + fallen
    return level.clamp_(max=255).to(torch.int32).to(torch.uint8)


def frost(frames: Tensor, blend: tuple[float, float], at: FrameContexts, *, over_time: OverTime = "still") -> Tensor:
    """Add frame and ice texture with integer weights."""
    height, width = frames.shape[1:3]
    share, other = (round(part * (1 << SHARE_BITS)) for part in blend)
    panes = _panes(height, width)
    keys = at.keys() if over_time == "redrawn" else at.scene_keys()
    number, y, x = first_integers(keys, ICE_TEXTURES, *own.places(panes[0], height, width)).T
    ice = device_table(panes, frames.device)
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
    there = send_values(begins, frames.device)
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
