"""Train `puppet_net` to classify the actions of windows, on films that no detector is trained on.

First it learns from single frames where the main puppet's joints are, which the films know, then from windows the
action of the puppet: from the classes alone it takes thousands of steps before it finds the puppets at all. The head
for joints is thrown away afterwards.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.models.checkpoints import write_weights
from jostle.models.extractors.puppet_net import FRAME_DIM, SPEC, PuppetNet
from studies.drawn_films import BACKGROUND, POINTS, Films
from studies.fitting import Descent, as_shipped, follow, report
from studies.harness import load_settings

SCHEDULE = SimpleNamespace(**load_settings("detection")["extractor"])


def train_puppet_net(films: Films, held_out: Films, out: Path, *, seed: int) -> dict[str, float]:
    """Train, write the weights, and return the accuracy on windows of the held-out films."""
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(key_for(seed, "puppet_net") % 2**63)
    rng = rng_for(seed, "windows")
    network = PuppetNet(BACKGROUND + 1).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    pointer = nn.Linear(FRAME_DIM, 2 * POINTS).to(device)
    average = PuppetNet(BACKGROUND + 1).to(device)
    average.load_state_dict(network.state_dict())
    parameters = [*network.parameters(), *pointer.parameters()]
    assert films.joints is not None
    assert films.height is not None
    frames = torch.from_numpy(films.frames).to(device)
    joints, height = torch.from_numpy(films.joints).to(device), torch.from_numpy(films.height).to(device)
    first, label = torch.from_numpy(films.first).to(device), torch.from_numpy(films.label).to(device)
    of_class = [np.flatnonzero(films.label == c) for c in range(BACKGROUND + 1)]
    span = torch.arange(SPEC.frames, device=device)
    begun = time.monotonic()
    step_down = _descent(parameters, SCHEDULE.joint_steps)
    for step in range(SCHEDULE.joint_steps):
        rows = torch.randint(0, len(frames), (SCHEDULE.joint_batch,), device=device)
        moves = draw_moves(SCHEDULE.joint_batch, device)
        with torch.autocast("cuda", torch.bfloat16):
            pointed = pointer(network.see(augment_windows(frames[rows], moves, 1)))
        joint_loss = F.smooth_l1_loss(pointed.float(), move_joints(joints[rows], height[rows], moves, 1), beta=0.1)
        step_down(SCHEDULE.joints * joint_loss)
        if (step + 1) % 1000 == 0:
            report("joints", step + 1, {"joints": joint_loss}, begun)
    step_down = _descent(parameters, SCHEDULE.steps)
    for step in range(SCHEDULE.steps):
        chosen = torch.from_numpy(_draw_windows(of_class, SCHEDULE.batch, rng)).to(device)
        rows = (first[chosen, None] + span).flatten()
        moves = draw_moves(SCHEDULE.batch, device)
        with torch.autocast("cuda", torch.bfloat16):
            features = network.see(augment_windows(frames[rows], moves, SPEC.frames))
            logits = network(features.view(SCHEDULE.batch, SPEC.frames, -1))
            class_loss = F.cross_entropy(logits.float(), label[chosen], label_smoothing=SCHEDULE.smoothing)
            target = move_joints(joints[rows], height[rows], moves, SPEC.frames)
            joint_loss = F.smooth_l1_loss(pointer(features).float(), target, beta=0.1)
        step_down(class_loss + SCHEDULE.joints * joint_loss)
        follow(average.state_dict(), network, step, SCHEDULE.average)
        if (step + 1) % 500 == 0:
            scores = held_out_accuracy(average.eval(), held_out)
            report("windows", step + 1, {"loss": class_loss, "joints": joint_loss, **scores}, begun)
    measured = held_out_accuracy(average.eval(), held_out)
    write_weights(
        as_shipped(average.state_dict()),
        out,
        metadata={"extractor": "puppet_net", "seed": str(seed), "held_out": json.dumps(measured)},
    )
    return measured


@torch.inference_mode()
def held_out_accuracy(network: PuppetNet, films: Films) -> dict[str, float]:
    """Return the share of right windows: of those that show an action, and of background."""
    device = next(network.parameters()).device
    right = np.zeros(len(films.first), np.bool_)
    with torch.autocast("cuda", torch.bfloat16):
        features = torch.cat(
            [network.see(normalise(torch.from_numpy(part).to(device))) for part in np.array_split(films.frames, 64)]
        )
        span = torch.arange(SPEC.frames, device=device)
        for rows in np.array_split(np.arange(len(films.first)), 16):
            windows = features[torch.from_numpy(films.first[rows]).to(device)[:, None] + span]
            right[rows] = network(windows).argmax(1).cpu().numpy() == films.label[rows]
    acting = films.label < BACKGROUND
    return {"foreground": float(right[acting].mean()), "background": float(right[~acting].mean())}


def normalise(frames: Tensor) -> Tensor:
    """Return the input of the network, (N, 3, H, W), of (N, H, W, 3) uint8."""
    mean, std = (torch.tensor(values, device=frames.device)[:, None, None] for values in (SPEC.mean, SPEC.std))
    return (frames.permute(0, 3, 1, 2).float() / 255 - mean) / std


@dataclass(frozen=True)
class Moves:
    """Augmentation of each window: mirrored, scaled and moved; at g is what was at scale * g + shift."""

    scale: Tensor  # (B, 2) by x and y; x is negative where mirrored
    shift: Tensor  # (B, 2) in half frames


def draw_moves(count: int, device: torch.device) -> Moves:
    """Draw the augmentation of some windows."""
    size = torch.rand(count, device=device) * 0.3 + 0.85
    mirror = torch.randint(0, 2, (count,), device=device) * 2.0 - 1
    shift = (torch.rand(count, 2, device=device) - 0.5) * torch.tensor([0.24, 0.16], device=device)
    return Moves(torch.stack([size * mirror, size], 1), shift)


def move_joints(joints: Tensor, height: Tensor, moves: Moves, window: int) -> Tensor:
    """Return (N, 2 * POINTS) joints after the moves: the hip in half frames, the others from it in heights."""
    scale, shift = (part.repeat_interleave(window, 0)[:, None] for part in (moves.scale, moves.shift))
    half = torch.tensor([SPEC.size / 2, SPEC.size / 2], device=joints.device)
    hip = (joints[:, :1] / half - 1 - shift) / scale
    rest = (joints[:, 1:] - joints[:, :1]) / height[:, None, None] * torch.sign(scale)
    return torch.cat([hip.clamp(-2, 2), rest], 1).flatten(1)


def augment_windows(frames: Tensor, moves: Moves, window: int) -> Tensor:
    """Return the input of the network, each window moved at random, and a little noisy."""
    count, device = len(frames) // window, frames.device
    none = torch.zeros(count, device=device)
    rows = torch.stack([moves.scale[:, 0], none, moves.shift[:, 0], none, moves.scale[:, 1], moves.shift[:, 1]], 1)
    grid = F.affine_grid(
        rows.view(count, 2, 3).repeat_interleave(window, 0), [len(frames), 3, *frames.shape[1:3]], align_corners=False
    )
    moved = F.grid_sample(normalise(frames), grid, padding_mode="border", align_corners=False)
    # Films on disk have passed a codec, whose grain a little noise stands for. Nothing else is corrupted: the
    # robustness of the network is the subject of the study.
    moved = moved + torch.randn_like(moved) * _uniform(count, window, 0.0, 0.06, device)
    return moved * _uniform(count, window, 0.9, 1.1, device) + _uniform(count, window, -0.1, 0.1, device)


def _uniform(count: int, window: int, low: float, high: float, device: torch.device) -> Tensor:
    drawn = torch.rand(count, device=device) * (high - low) + low
    return drawn.repeat_interleave(window)[:, None, None, None]


def _descent(parameters: list[nn.Parameter], steps: int) -> Descent:
    return Descent(parameters, SCHEDULE.lr, steps=steps, decay=SCHEDULE.decay, rise=0.05, clip=5.0)


def _draw_windows(of_class: list[np.ndarray], batch: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the windows of a step: half show an action, each class as often; half are background."""
    classes = len(of_class) - 1
    of = np.concatenate([rng.integers(0, classes, batch // 2), np.full(batch - batch // 2, classes)])
    return np.array([of_class[c][rng.integers(len(of_class[c]))] for c in of])
