"""The shipped detector of puppets and props: trained on drawn frames of other casts than those it is tested on.

    python -m studies.boxes WORK draw train weights

Steps that are done already are skipped. `draw` needs the cores, `train` a GPU.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.random import rng_for
from jostle.core.types.boxes import Boxes
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.datasets.puppets.similar_frames import boxes_of
from jostle.metrics.pm_k_detection import pm_k_detection
from jostle.models.checkpoints import write_weights
from jostle.models.objects.puppet_boxes import CLASSES, SIDE, STRIDE, BoxNetwork, puppet_boxes
from studies.fitting import Descent, report
from studies.frame_pretraining import compress_frame
from studies.harness import get_device, map_in_processes, run_module, run_study, ship_weights

FILMS = {"train": 1600, "select": 40}
CAST = {"train": (*CASTS["training"], *CASTS["extractor"]), "select": tuple(CASTS["validation"])}
EACH = 24  # frames of a film
QUALITY = (40, 96)  # of JPEG, from and up to: films are coded, too
MOST = 24  # things in a frame
PLACES = SIDE // STRIDE
EPOCHS, BATCH, RATE, DECAY = 40, 128, 2e-3, 1e-2
SEED = 0

Frames = npt.NDArray[np.uint8]


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "draw": draw_all,
        "train": train,
        "weights": lambda work: ship_weights({"puppet_boxes-clean": work / "last.safetensors"}),
    }
    run_study(__doc__, "boxes", steps, films=int, epochs=EPOCHS)


def draw_all(work: Path, films: int | None) -> None:
    """Draw the frames of both parts."""
    for part, count in FILMS.items():
        draw(work / f"{part}.npz", part, min(films or count, count))


def draw(path: Path, part: str, films: int) -> None:
    """Draw frames of films, each with a table (things, 5) of class, x1, y1, x2, y2, padded with -1; write both."""
    if path.exists():
        return
    begin = time.monotonic()
    parts = map_in_processes(partial(_draw_frames, part), range(films), None, chunk=4)
    frames, things = (np.concatenate(column) for column in zip(*parts, strict=True))
    np.savez(path, frames=frames, things=things)
    print(json.dumps({"step": "draw", "part": part, "films": films, "s": round(time.monotonic() - begin)}), flush=True)


def _draw_frames(part: str, number: int) -> tuple[Frames, npt.NDArray[np.float32]]:
    film = untrimmed(SEED, f"boxes_{part}_{number:05d}", cast=CAST[part])
    rng = rng_for(SEED, "boxes", part, number)
    numbers = sorted(rng.choice(film.frames, EACH, replace=False).tolist())
    things = np.full((EACH, MOST, 5), -1, np.float32)
    for row, boxes in zip(things, boxes_of(film, numbers).values(), strict=True):
        row[: len(boxes)] = np.column_stack([boxes.label, boxes.box])
    frames = [compress_frame(film.draw(t, t + 1)[0], int(rng.integers(*QUALITY))) for t in numbers]
    return np.stack(frames), things


def train(work: Path, epochs: int) -> None:
    """Train, write the last weights, and print their score on films of other puppets."""
    out = work / "last.safetensors"
    if out.exists():
        return
    device = torch.device(get_device())
    held = np.load(work / "train.npz")
    frames, things = torch.from_numpy(held["frames"]).to(device), torch.from_numpy(held["things"]).to(device)
    torch.manual_seed(SEED)
    network = BoxNetwork().to(device)
    steps = len(frames) // BATCH
    step_down = Descent(
        network.parameters(), RATE, steps=epochs * steps, decay=DECAY, rise=0.3, clip=5.0, cycle_momentum=True
    )
    begin = time.monotonic()
    for epoch in range(epochs):
        network.train()
        total = 0.0
        order = torch.from_numpy(rng_for(SEED, "boxes", "order", epoch).permutation(len(frames))).to(device)
        for step in range(steps):
            some = order[step * BATCH : (step + 1) * BATCH]
            inputs, boxes = augment_frames(frames[some].permute(0, 3, 1, 2).float() / 255, things[some])
            loss = detection_loss(network(inputs), boxes)
            step_down(loss)
            total += float(loss.detach()) if step % 20 == 0 else 0.0
        if epoch % 5 == 4 or epoch + 1 == epochs:
            mean = total / (1 + (steps - 1) // 20)
            report("boxes", epoch + 1, {"loss": mean, "map": validate(work, network)}, begin)
    tensors = {key: value.cpu() for key, value in network.state_dict().items()}
    write_weights(tensors, out, metadata={"classes": json.dumps(CLASSES)})


def augment_frames(frames: Tensor, things: Tensor) -> tuple[Tensor, Tensor]:
    """Return frames and boxes mirrored at random, in another light."""
    frames, things = frames.clone(), things.clone()
    there = things[..., 0] >= 0
    turned = torch.rand(len(frames), device=frames.device) < 0.5
    frames[turned] = frames[turned].flip(3)
    left, right = things[..., 1].clone(), things[..., 3].clone()
    which = turned[:, None] & there
    things[..., 1], things[..., 3] = torch.where(which, SIDE - right, left), torch.where(which, SIDE - left, right)
    light = torch.empty(len(frames), 3, 1, 1, device=frames.device).uniform_(0.8, 1.2)
    return (frames * light).clamp(0, 1), things


def detection_loss(outputs: tuple[Tensor, Tensor], things: Tensor) -> Tensor:
    """Return the focal loss of the maps of middles, and the generalised IoU loss of boxes predicted near a middle."""
    middles, sides = outputs
    device = middles.device
    there = things[..., 0] >= 0
    x, y = (things[..., 1] + things[..., 3]) / 2, (things[..., 2] + things[..., 4]) / 2
    across, down = things[..., 3] - things[..., 1], things[..., 4] - things[..., 2]
    grid = (torch.arange(PLACES, device=device) + 0.5) * STRIDE
    apart_x = (grid[None, None] - x[..., None]) / (0.12 * across[..., None] + 1.5)
    apart_y = (grid[None, None] - y[..., None]) / (0.12 * down[..., None] + 1.5)
    near = torch.exp(-(apart_y[..., :, None] ** 2 + apart_x[..., None, :] ** 2) / 2) * there[..., None, None]
    column = (x / STRIDE).long().clamp(0, PLACES - 1)
    row = (y / STRIDE).long().clamp(0, PLACES - 1)
    frame, thing = torch.nonzero(there, as_tuple=True)
    label = things[frame, thing, 0].long()
    near[frame, thing, row[frame, thing], column[frame, thing]] = 1.0
    target = torch.zeros(middles.shape, device=device)
    target.view(-1).scatter_reduce_(
        0,
        (((frame * middles.shape[1] + label) * PLACES * PLACES)[:, None] + torch.arange(PLACES**2, device=device)).view(
            -1
        ),
        near[frame, thing].flatten(),
        "amax",
    )
    score = middles.sigmoid().clamp(1e-4, 1 - 1e-4)
    peak = target == 1
    focal = torch.where(peak, (1 - score) ** 2 * score.log(), (1 - target) ** 4 * score**2 * (1 - score).log())
    count = max(int(peak.sum()), 1)
    # Every position near a middle predicts the sides of its thing; of several things the one whose middle is nearest.
    owner_near, owner = near.max(1)
    here = owner_near > 0.5
    n, v, u = torch.nonzero(here, as_tuple=True)
    box = things[n, owner[n, v, u], 1:]
    predicted = sides[n, :, v, u]
    at = torch.stack([grid[u], grid[v]], 1)
    true = torch.cat([at - box[:, :2], box[:, 2:] - at], 1)
    inside = (true > 0).all(1)
    true, predicted = true[inside], predicted[inside]
    low, high = torch.minimum(true, predicted), torch.maximum(true, predicted)
    both = (low[:, 0] + low[:, 2]) * (low[:, 1] + low[:, 3])
    area, guess = ((one[:, 0] + one[:, 2]) * (one[:, 1] + one[:, 3]) for one in (true, predicted))
    hull = (high[:, 0] + high[:, 2]) * (high[:, 1] + high[:, 3])
    union = area + guess - both
    lacking = 1 - both / union + (hull - union) / hull
    return -focal.sum() / count + 2 * lacking.mean()


def validate(work: Path, network: BoxNetwork) -> float:
    """Return the mean average precision at an overlap of 0.5 on films of the puppets for model selection."""
    held = np.load(work / "select.npz")
    device = next(network.parameters()).device
    detector = puppet_boxes({key: value.cpu() for key, value in network.state_dict().items()}).to(str(device))
    names = [f"v/{i:06d}" for i in range(len(held["frames"]))]
    truth = {
        name: Boxes(rows[rows[:, 0] >= 0, 1:], rows[rows[:, 0] >= 0, 0])
        for name, rows in zip(names, held["things"].astype(np.float64), strict=True)
    }
    detected = dict(zip(names, detector(held["frames"]), strict=True))
    return round(pm_k_detection(detected, truth, {name: [] for name in names}).mean_ap, 4)


if __name__ == "__main__":
    run_module("studies.boxes")
