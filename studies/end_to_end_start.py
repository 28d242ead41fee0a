"""Backbones to begin with: what puppets look like and what they do at each moment, learned from the extractor's films.

As detectors of frames begin with a video network that knows Kinetics, these begin with one that has told the classes of
single steps apart and pointed at joints, on the films `puppet_net` has learned from. What points and tells is thrown
away afterwards.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.random import key_for
from jostle.models.checkpoints import write_weights
from jostle.models.detection.detector import load_detector
from jostle.training.memory_format import channels_last_on_gpu
from studies.films import BACKGROUND, POINTS, Films, draw_films
from studies.recognition_start import pointed

FPS = 24  # of the films
SPAN = 384  # frames of a film that every clip lies in
BATCH, RATE, DECAY, GRAIN = 24, 2e-3, 0.05, 0.03
STEPS = {"afsd": 1600, "basictad": 3000, "e2e_tad": 4000}
JOINTS = 2.0  # weight of all that is about joints


def learn_to_see(detectors: Sequence[str], folder: Path, *, jobs: int, minutes: float) -> None:
    """Train the backbones that are not there yet, all at once on one GPU, and write each as a file of its tensors."""
    left = [name for name in detectors if not (folder / f"{name}.safetensors").exists()]
    if not left:
        return
    folder.mkdir(parents=True, exist_ok=True)
    films = draw_films(window=SPAN, jobs=jobs, clips=0)
    context = multiprocessing.get_context("fork")  # the films are shared, and nobody has touched the GPU yet
    learners = [context.Process(target=_learn, args=(name, films, folder, minutes)) for name in left]
    for learner in learners:
        learner.start()
    for learner in learners:
        learner.join()
    assert all(learner.exitcode == 0 for learner in learners), "a backbone has not been learned"


def _learn(name: str, films: Films, folder: Path, minutes: float) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(1)
    torch.manual_seed(key_for(0, "begin", name) % 2**63)
    detector: Any = load_detector(f"{name}_puppets").to(device).train()
    channels_last_on_gpu(detector, device)
    look = Looking(name, detector)
    config, step_of = detector.config, round(FPS / detector.config.fps)
    assert films.joints is not None
    frames, joints = torch.from_numpy(films.frames), torch.from_numpy(films.joints).to(device)
    frames = frames.to(device)
    first, acting = torch.from_numpy(films.first).to(device), torch.from_numpy(films.acting).to(device)
    with torch.no_grad():
        seen, told = look(torch.zeros(1, 3, config.max_length, config.crop, config.crop, device=device))
    pointer = nn.Conv3d(seen.shape[1], POINTS * 5, 1).to(device)
    teller = nn.Conv1d(told.shape[1], BACKGROUND + 1, 1).to(device)
    parameters = [*detector.backbone.parameters(), *pointer.parameters(), *teller.parameters()]
    optimiser = torch.optim.AdamW(parameters, RATE, weight_decay=DECAY, fused=device.type == "cuda")
    span = torch.arange(config.max_length, device=device) * step_of
    begun, total, limit = time.monotonic(), STEPS[name], 60 * minutes
    for step in range(total):
        # How far the rate has fallen is told by whichever is nearer, the last step or the last minute.
        part = max(step / total, (time.monotonic() - begun) / limit)
        if part >= 1:
            break
        rows = first[torch.randint(0, len(first), (BATCH,), device=device)]
        shown, points = _varied(frames, joints, rows[:, None] + span, config.crop)
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 100, 2 * (1 - part))
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            seen, told = look(detector.scaled(shown))
        said = teller(told.float())
        # A step shows several frames: it is what its middle one is.
        middles = (torch.arange(said.shape[2], device=device) + 0.5) * (config.max_length // said.shape[2])
        label = acting[rows[:, None] + middles.long() * step_of]
        missed = F.cross_entropy(said, label, label_smoothing=0.1)
        found, placed, hit = pointed(pointer(seen.float()), points, config.crop)
        optimiser.zero_grad(set_to_none=True)
        (missed + JOINTS * (found + 3 * placed)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if (step + 1) % 100 == 0 or step + 1 == total:
            right, active = said.argmax(1) == label, label < BACKGROUND
            told_of = {"step": step + 1, "class": float(missed.detach()), "joints": float(hit)}
            told_of |= {"acting": float(right[active].float().mean()), "resting": float(right[~active].float().mean())}
            print(name, json.dumps(told_of | {"s": round(time.monotonic() - begun, 1)}), flush=True)
            write_weights(
                {f"backbone.{key}": value.cpu() for key, value in detector.backbone.state_dict().items()},
                folder / f"{name}.part",
                metadata={"steps": str(step + 1)},
            )
    (folder / f"{name}.part").rename(folder / f"{name}.safetensors")


class Looking:
    """What a backbone sees at each place and step on the way, and at each step in the end."""

    def __init__(self, name: str, detector: Any) -> None:
        self._backbone, self._name = detector.backbone, name
        self._seen: dict[str, Tensor] = {}
        part = {
            "basictad": lambda: detector.backbone.blocks[3],
            "e2e_tad": lambda: detector.backbone["backbone"].layer3[-1],
        }.get(name)
        if part is not None:
            part().register_forward_hook(lambda module, inputs, made: self._seen.update(on_the_way=made))

    def __call__(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """(B, C, t, h, w) and (B, D, steps), of clips (B, 3, T, crop, crop)."""
        if self._name == "afsd":
            fine, coarse = self._backbone(clips)
            return fine, coarse.mean((3, 4))
        if self._name == "basictad":
            alone = self._backbone.see(clips.transpose(1, 2).flatten(0, 1))
            made = self._backbone.join(alone.unflatten(0, (len(clips), -1)))
            return self._seen["on_the_way"], made.mean((3, 4))
        made = self._backbone["backbone"](clips)
        return self._seen["on_the_way"].unflatten(0, (len(clips), -1)).transpose(1, 2), made


def _varied(frames: Tensor, joints: Tensor, rows: Tensor, crop: int) -> tuple[Tensor, Tensor]:
    """Clips (B, 3, T, crop, crop) of 0 to 255, cut out and mirrored by chance, and (B, T, POINTS, 2) joints."""
    count, device, side = len(rows), rows.device, frames.shape[1]
    moves = torch.randint(0, side - crop + 1, (count, 2), device=device)
    mirror = torch.rand(count, 1, device=device) < 0.5
    span = torch.arange(crop, device=device)
    down, across = span + moves[:, :1], span + moves[:, 1:]
    across = torch.where(mirror, across.flip(1), across)
    shown = frames[rows[:, :, None, None], down[:, None, :, None], across[:, None, None, :]]
    clips = shown.permute(0, 4, 1, 2, 3).float()
    clips = clips + torch.randn_like(clips) * torch.rand(count, 1, 1, 1, 1, device=device) * GRAIN * 255
    points = joints[rows] - moves.flip(1)[:, None, None]
    x = torch.where(mirror[..., None], crop - 1 - points[..., 0], points[..., 0])
    return clips, torch.stack([x, points[..., 1]], -1)
