"""Weights to begin with: what a puppet looks like and how it moves, learned before any treatment.

From 960 clips and their classes alone the recognisers learn next to nothing: they do not find the puppet. So each is
first shown drawn clips of another cast and taught, besides the class, in which part of the picture every joint is at
every step, where in this part, and where it goes. As networks for video begin with Kinetics, these begin here; what
points at joints is thrown away afterwards.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.random import key_for
from jostle.datasets.puppets.film import CLASSES as NAMES
from jostle.datasets.puppets.film import SIZE
from jostle.models.checkpoints import write_weights
from jostle.models.networks.slowfast import SlowFast, slow_frames
from jostle.models.networks.tam_resnet import TamResNet
from jostle.models.recognition.puppets import SPEC, PuppetRecogniser
from jostle.models.recognition.recogniser import load_recogniser
from studies.films import POINTS
from studies.recognition_films import KEPT, DrawnClips


@dataclass(frozen=True)
class Schedule:
    """How a network begins.

    Attributes:
        steps: of training.
        batch: clips in a step.
        lr: at its highest; it rises over the first tenth and falls along a cosine.
        joints: weight of all that is about joints.
        grain: largest noise, as a stand-in for what a codec leaves.
    """

    steps: int = 2000
    batch: int = 64
    lr: float = 3e-3
    decay: float = 0.05
    joints: float = 1.0
    grain: float = 0.03


RATES = {"puppet_divided": 1.5e-3}


def learn_to_see(name: str, clips: DrawnClips, out: Path, *, seed: int = 0, schedule: Schedule | None = None) -> None:
    """Train a network on drawn clips and write its weights."""
    plan = schedule or Schedule()
    lr = RATES.get(name, plan.lr)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(key_for(seed, "begin", name) % 2**63)
    network = load_recogniser(name, weights="random").network.to(device).train()
    with torch.no_grad():
        dim = look(network, torch.zeros(1, 3, SPEC.frames, *SIZE, device=device))[0].shape[1]
    pointer = nn.Conv3d(dim, POINTS * 5, 1).to(device)
    parameters = [*network.parameters(), *pointer.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=lr, weight_decay=plan.decay, fused=device.type == "cuda")
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=plan.steps, pct_start=0.1)
    frames, joints = torch.from_numpy(clips.frames).to(device), torch.from_numpy(clips.joints).to(device)
    label = torch.from_numpy(clips.label).to(device)
    begun = time.monotonic()
    for step in range(plan.steps):
        rows = torch.randint(0, len(frames), (plan.batch,), device=device)
        shown, points = varied(frames, joints, rows, plan.grain)
        with torch.autocast(device.type, torch.bfloat16):
            seen, logits = look(network, shown)
        told = F.cross_entropy(logits.float(), label[rows], label_smoothing=0.1)
        found, placed, hit = pointed(pointer(seen.float()), points)
        optimiser.zero_grad(set_to_none=True)
        (told + plan.joints * (found + 3 * placed)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        rate.step()
        if (step + 1) % 300 == 0 or step + 1 == plan.steps:
            right = (logits.argmax(1) == label[rows]).float().mean()
            said = {"step": step + 1, "class": float(told.detach()), "right": float(right), "joints": float(hit)}
            print(name, json.dumps(said | {"s": round(time.monotonic() - begun, 1)}), flush=True)
    kept = {key: value.cpu() for key, value in network.state_dict().items()}
    write_weights(kept, out, metadata={"recogniser": name, "classes": json.dumps(NAMES), "seed": str(seed)})


def look(network: nn.Module, clips: Tensor) -> tuple[Tensor, Tensor]:
    """(B, C, T, h, w), what a network sees at each place and step before it decides, and its (B, classes) logits."""
    if isinstance(network, SlowFast):
        alpha = network.config.alpha
        both = network.blocks[:-2]((clips[:, :, slow_frames(clips.shape[2], alpha)], clips))
        slow, fast = both
        return torch.cat([slow, F.avg_pool3d(fast, (alpha, 1, 1))], 1), network.blocks[-2:](both)
    if isinstance(network, TamResNet):
        seen = network.see(clips).transpose(1, 2)
        return seen, network.fc(network.drop(seen.mean((2, 3, 4))))
    assert isinstance(network, PuppetRecogniser)
    seen = network.see(clips)
    return seen, network.classifier(network.drop(seen.mean((2, 3, 4))))


def varied(frames: Tensor, joints: Tensor, rows: Tensor, grain: float) -> tuple[Tensor, Tensor]:
    """Clips (B, 3, 16, 112, 112) as networks want them, moved and mirrored by chance, and (B, 16, POINTS, 2) joints."""
    count, device = len(rows), rows.device
    side = frames.shape[2]
    low = torch.rand(count, 1, device=device) * 0.2 * KEPT
    high = KEPT - 1 - torch.rand(count, 1, device=device) * 0.2 * KEPT
    steps = (low + (high - low) * torch.linspace(0, 1, SPEC.frames, device=device)).round().long()
    moves = torch.randint(-10, 11, (count, 2), device=device)
    mirror = torch.rand(count, 1, device=device) < 0.5
    span = torch.arange(side, device=device)
    down, across = (span + moves[:, :1]).clamp(0, side - 1), (span + moves[:, 1:]).clamp(0, side - 1)
    across = torch.where(mirror, across.flip(1), across)
    shown = frames[rows[:, None, None, None], steps[:, :, None, None], down[:, None, :, None], across[:, None, None, :]]
    clips = shown.permute(0, 4, 1, 2, 3).float() / 255
    clips = clips + torch.randn_like(clips) * torch.rand(count, 1, 1, 1, 1, device=device) * grain
    points = joints[rows[:, None], steps] - moves.flip(1)[:, None, None]
    x = torch.where(mirror[..., None], side - 1 - points[..., 0], points[..., 0])
    mean, std = (torch.tensor(values, device=device)[:, None, None, None] for values in (SPEC.mean, SPEC.std))
    return (clips - mean) / std, torch.stack([x, points[..., 1]], -1)


def pointed(seen: Tensor, points: Tensor, width: int = SIZE[1]) -> tuple[Tensor, Tensor, Tensor]:
    """Two losses, which place holds each joint, and where in it and where it goes; and how often the place is right.

    Args:
        seen: (B, POINTS * 5, T, h, w): whether a joint is there, and four numbers about it.
        points: (B, 16, POINTS, 2) in pixels.
        width: of the picture.
    """
    length, high, wide = seen.shape[2:]
    side = width / wide  # pixels along each side of a place
    told = seen.unflatten(1, (POINTS, 5)).permute(0, 3, 1, 2, 4, 5).flatten(4).float()  # (B, T, POINTS, 5, places)
    together = points.unflatten(1, (length, -1))  # (B, T, frames of a step, POINTS, 2)
    middle = together.mean(2)
    moved = F.pad(middle[:, 1:] - middle[:, :-1], (0, 0, 0, 0, 0, 1)) / side
    cell = (middle / side).floor().long()
    inside = ((cell >= 0) & (cell < torch.tensor([wide, high], device=seen.device))).all(-1)
    cell = torch.stack([cell[..., 0].clamp(0, wide - 1), cell[..., 1].clamp(0, high - 1)], -1)
    place = cell[..., 1] * wide + cell[..., 0]  # (B, T, POINTS)
    found = F.cross_entropy(told[:, :, :, 0][inside], place[inside])
    there = told[:, :, :, 1:].gather(4, place[..., None, None].expand(-1, -1, -1, 4, 1))[..., 0]
    wanted = torch.cat([middle / side - cell - 0.5, moved], -1)
    hit = (told[:, :, :, 0].argmax(-1) == place)[inside].float().mean()
    return found, F.smooth_l1_loss(there[inside], wanted[inside], beta=0.1), hit
