"""Pretraining on drawn films: backbones of end-to-end detectors, recognisers and the frame classifier.

From the films of a study and their labels alone, these networks learn next to nothing: they do not find the puppet. So
each is first trained on drawn films of another cast to predict, beside the class, the cell of the picture in which
every joint is, the offset within it, and its motion; as networks for video begin with weights from Kinetics. The heads
for joints are thrown away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.random import key_for
from jostle.datasets.puppets.film import CLASSES, SIZE
from jostle.models.checkpoints import write_weights
from jostle.models.detection.detector import make_detector
from jostle.models.devices import channels_last_on_gpu
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.puppets import SPEC, PuppetRecogniser
from studies.drawn_films import BACKGROUND, CLIP_FRAMES, POINTS, DrawnClips, Films, draw_films
from studies.fitting import Losses, RandomCrops, descend, fit, report, training_device
from studies.harness import start_process, wait_for_processes

JOINT_WEIGHT = {"recogniser": 1.0, "backbone": 2.0}  # of all terms about joints
GRAIN = 0.03  # largest noise, as a stand-in for the grain of a codec
FPS = 24  # of the films
SPAN = 384  # frames of a film that every clip of a backbone lies in
BACKBONE_STEPS = {"afsd": 1600, "basictad": 3000, "e2e_tad": 4000}
BACKBONE_BATCH, BACKBONE_RATE, DECAY = 24, 2e-3, 0.05
RECOGNISER_STEPS, RECOGNISER_BATCH = 2000, 64
RECOGNISER_RATES = {"puppet_divided": 1.5e-3}  # 3e-3 for the others


def pretrain_recogniser(name: str, clips: DrawnClips, out: Path, *, seed: int = 0) -> None:
    """Train a recogniser on drawn clips and write its weights."""
    device = training_device()
    torch.manual_seed(key_for(seed, "begin", name) % 2**63)
    network = load_recogniser(name, weights="random").network.to(device).train()
    with torch.no_grad():
        dim = encode_clips(network, torch.zeros(1, 3, SPEC.frames, *SIZE, device=device))[0].shape[1]
    joint_head = nn.Conv3d(dim, POINTS * 5, 1).to(device)
    frames, joints = torch.from_numpy(clips.frames).to(device), torch.from_numpy(clips.joints).to(device)
    label = torch.from_numpy(clips.label).to(device)

    def compute() -> Losses:
        rows = torch.randint(0, len(frames), (RECOGNISER_BATCH,), device=device)
        inputs, points = augment_clips(frames, joints, rows)
        with torch.autocast(device.type, torch.bfloat16):
            maps, logits = encode_clips(network, inputs)
        wrong = F.cross_entropy(logits.float(), label[rows], label_smoothing=0.1)
        cell, offset, hit = joint_losses(joint_head(maps.float()), points)
        right = (logits.argmax(1) == label[rows]).float().mean()
        loss = wrong + JOINT_WEIGHT["recogniser"] * (cell + 3 * offset)
        return loss, {"class": wrong, "right": right, "joints": hit}

    parameters = [*network.parameters(), *joint_head.parameters()]
    rate = RECOGNISER_RATES.get(name, 3e-3)
    fit(name, parameters, compute, steps=RECOGNISER_STEPS, lr=rate, decay=DECAY, every=300)
    tensors = {key: value.cpu() for key, value in network.state_dict().items()}
    write_weights(tensors, out, metadata={"recogniser": name, "classes": json.dumps(CLASSES), "seed": str(seed)})


def encode_clips(network: nn.Module, clips: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last feature maps of a recogniser, (B, C, T, h, w), and its (B, classes) logits."""
    from jostle.models.networks.frame_resnet import TamResNet
    from jostle.models.networks.slowfast import SlowFast, slow_frames

    if isinstance(network, SlowFast):
        alpha = network.config.alpha
        both = network.blocks[:-2]((clips[:, :, slow_frames(clips.shape[2], alpha)], clips))
        slow, fast = both
        return torch.cat([slow, F.avg_pool3d(fast, (alpha, 1, 1))], 1), network.blocks[-2:](both)
    if isinstance(network, TamResNet):
        maps = network.see(clips).transpose(1, 2)
        return maps, network.fc(network.drop(maps.mean((2, 3, 4))))
    assert isinstance(network, PuppetRecogniser)
    maps = network.see(clips)
    return maps, network.classifier(network.drop(maps.mean((2, 3, 4))))


def augment_clips(frames: Tensor, joints: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return normalised clips (B, 3, 16, 112, 112), shifted and mirrored at random, and (B, 16, POINTS, 2) joints."""
    count, device = len(rows), rows.device
    side = frames.shape[2]
    low = torch.rand(count, 1, device=device) * 0.2 * CLIP_FRAMES
    high = CLIP_FRAMES - 1 - torch.rand(count, 1, device=device) * 0.2 * CLIP_FRAMES
    steps = (low + (high - low) * torch.linspace(0, 1, SPEC.frames, device=device)).round().long()
    crops = RandomCrops(count, side, side, (-10, 11), device)
    down, across = crops.rows[:, None, :, None], crops.columns[:, None, None, :]
    pixels = frames[rows[:, None, None, None], steps[:, :, None, None], down, across]
    clips = pixels.permute(0, 4, 1, 2, 3).float() / 255
    clips = clips + torch.randn_like(clips) * torch.rand(count, 1, 1, 1, 1, device=device) * GRAIN
    mean, std = (torch.tensor(values, device=device)[:, None, None, None] for values in (SPEC.mean, SPEC.std))
    return (clips - mean) / std, crops.move_points(joints[rows[:, None], steps], side - 1)


def joint_losses(maps: Tensor, points: Tensor, width: int = SIZE[1]) -> tuple[Tensor, Tensor, Tensor]:
    """Return two losses, of the cell that holds each joint and of offset and motion, and the share of right cells.

    Args:
        maps: (B, POINTS * 5, T, h, w): a score for each cell, and four numbers about it.
        points: (B, 16, POINTS, 2) in pixels.
        width: of the picture.
    """
    length, high, wide = maps.shape[2:]
    side = width / wide  # pixels along each side of a cell
    outputs = maps.unflatten(1, (POINTS, 5)).permute(0, 3, 1, 2, 4, 5).flatten(4).float()  # (B, T, POINTS, 5, cells)
    together = points.unflatten(1, (length, -1))  # (B, T, frames of a step, POINTS, 2)
    middle = together.mean(2)
    moved = F.pad(middle[:, 1:] - middle[:, :-1], (0, 0, 0, 0, 0, 1)) / side
    cell = (middle / side).floor().long()
    inside = ((cell >= 0) & (cell < torch.tensor([wide, high], device=maps.device))).all(-1)
    cell = torch.stack([cell[..., 0].clamp(0, wide - 1), cell[..., 1].clamp(0, high - 1)], -1)
    place = cell[..., 1] * wide + cell[..., 0]  # (B, T, POINTS)
    cell_loss = F.cross_entropy(outputs[:, :, :, 0][inside], place[inside])
    there = outputs[:, :, :, 1:].gather(4, place[..., None, None].expand(-1, -1, -1, 4, 1))[..., 0]
    target = torch.cat([middle / side - cell - 0.5, moved], -1)
    hit = (outputs[:, :, :, 0].argmax(-1) == place)[inside].float().mean()
    return cell_loss, F.smooth_l1_loss(there[inside], target[inside], beta=0.1), hit


def pretrain_backbones(detectors: Sequence[str], folder: Path, *, jobs: int, minutes: float) -> None:
    """Train the backbones that are missing, all at once on one GPU, and write each as a file of its tensors."""
    missing = [name for name in detectors if not (folder / f"{name}.safetensors").exists()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    films = draw_films(window=SPAN, jobs=jobs, clips=0)
    for name in missing:
        start_process(_pretrain_backbone, name, films, folder, minutes)
    wait_for_processes()


def _pretrain_backbone(name: str, films: Films, folder: Path, minutes: float) -> None:
    device = training_device()
    torch.set_num_threads(1)
    torch.manual_seed(key_for(0, "begin", name) % 2**63)
    detector: Any = make_detector(f"{name}_puppets").to(device).train()
    channels_last_on_gpu(detector, device)
    encoder = BackboneEncoder(name, detector)
    config, stride = detector.config, round(FPS / detector.config.fps)
    assert films.joints is not None
    frames, joints = torch.from_numpy(films.frames).to(device), torch.from_numpy(films.joints).to(device)
    first, acting = torch.from_numpy(films.first).to(device), torch.from_numpy(films.acting).to(device)
    with torch.no_grad():
        maps, steps = encoder(torch.zeros(1, 3, config.max_length, config.crop, config.crop, device=device))
    joint_head = nn.Conv3d(maps.shape[1], POINTS * 5, 1).to(device)
    classifier = nn.Conv1d(steps.shape[1], BACKGROUND + 1, 1).to(device)
    parameters = [*detector.backbone.parameters(), *joint_head.parameters(), *classifier.parameters()]
    optimiser = torch.optim.AdamW(parameters, BACKBONE_RATE, weight_decay=DECAY, fused=device.type == "cuda")
    span = torch.arange(config.max_length, device=device) * stride
    begin, total, limit = time.monotonic(), BACKBONE_STEPS[name], 60 * minutes
    for step in range(total):
        # The rate falls with the steps or with the time, whichever is further.
        progress = max(step / total, (time.monotonic() - begin) / limit)
        if progress >= 1:
            break
        rows = first[torch.randint(0, len(first), (BACKBONE_BATCH,), device=device)]
        inputs, points = augment_films(frames, joints, rows[:, None] + span, config.crop)
        for group in optimiser.param_groups:
            group["lr"] = BACKBONE_RATE * min(1.0, (step + 1) / 100, 2 * (1 - progress))
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            maps, steps = encoder(detector.scaled(inputs))
        logits = classifier(steps.float())
        # A step covers several frames; its class is that of the middle one.
        middles = (torch.arange(logits.shape[2], device=device) + 0.5) * (config.max_length // logits.shape[2])
        label = acting[rows[:, None] + middles.long() * stride]
        wrong = F.cross_entropy(logits, label, label_smoothing=0.1)
        cell, offset, hit = joint_losses(joint_head(maps.float()), points, config.crop)
        descend(wrong + JOINT_WEIGHT["backbone"] * (cell + 3 * offset), parameters, optimiser)
        if (step + 1) % 100 == 0 or step + 1 == total:
            right, active = (logits.argmax(1) == label).float(), label < BACKGROUND
            info = {"class": wrong, "joints": hit, "acting": right[active].mean(), "resting": right[~active].mean()}
            report(name, step + 1, info, begin)
            tensors = {f"backbone.{key}": value.cpu() for key, value in detector.backbone.state_dict().items()}
            write_weights(tensors, folder / f"{name}.part", metadata={"steps": str(step + 1)})
    (folder / f"{name}.part").rename(folder / f"{name}.safetensors")


class BackboneEncoder:
    """Feature maps of a backbone, from a layer on the way and at its end."""

    def __init__(self, name: str, detector: Any) -> None:
        self._backbone, self._name = detector.backbone, name
        self._maps: dict[str, Tensor] = {}
        part = {
            "basictad": lambda: detector.backbone.blocks[3],
            "e2e_tad": lambda: detector.backbone["backbone"].layer3[-1],
        }.get(name)
        if part is not None:
            part().register_forward_hook(lambda module, inputs, outputs: self._maps.update(on_the_way=outputs))

    def __call__(self, clips: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, C, t, h, w) and (B, D, steps) of clips (B, 3, T, crop, crop)."""
        if self._name == "afsd":
            fine, coarse = self._backbone(clips)
            return fine, coarse.mean((3, 4))
        if self._name == "basictad":
            single = self._backbone.see(clips.transpose(1, 2).flatten(0, 1))
            outputs = self._backbone.join(single.unflatten(0, (len(clips), -1)))
            return self._maps["on_the_way"], outputs.mean((3, 4))
        outputs = self._backbone["backbone"](clips)
        return self._maps["on_the_way"].unflatten(0, (len(clips), -1)).transpose(1, 2), outputs


def augment_films(frames: Tensor, joints: Tensor, rows: Tensor, crop: int) -> tuple[Tensor, Tensor]:
    """Return clips (B, 3, T, crop, crop) of 0 to 255, cropped and mirrored at random, and (B, T, POINTS, 2) joints."""
    count, device, side = len(rows), rows.device, frames.shape[1]
    crops = RandomCrops(count, side, crop, (0, side - crop + 1), device)
    pixels = frames[rows[:, :, None, None], crops.rows[:, None, :, None], crops.columns[:, None, None, :]]
    clips = pixels.permute(0, 4, 1, 2, 3).float()
    clips = clips + torch.randn_like(clips) * torch.rand(count, 1, 1, 1, 1, device=device) * GRAIN * 255
    return clips, crops.move_points(joints[rows], crop - 1)
