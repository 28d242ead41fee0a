"""Weights to begin with: what a prop in a hand looks like, learned before any treatment.

From anchors and their classes alone `puppet_frames` learns nothing that holds for other puppets: a prop is a few pixels
among things that lie about and things that others hold. So it is first shown drawn frames of another cast and taught,
besides the class, in which part of the picture the hand with the prop is.
"""

from __future__ import annotations

import json
import mmap
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.datasets.puppets.film import SIZE, Film, trimmed, untrimmed
from jostle.datasets.puppets.rasterize import visible
from jostle.datasets.puppets.similar_frames import LABELS, LEAST_AREA
from jostle.datasets.puppets.splits import CASTS
from jostle.models.checkpoints import write_weights
from jostle.models.recognition.puppet_frames import CLASSES, SPEC, FrameClassifier
from jostle.training.clips import Indices, evenly_spaced

FILMS = 7000
HOLDING = ("raise", "lower", "pick_up", "put_down")  # actions with any prop
LONG = 3  # one film in so many is as those of the data set; to plan one takes three times as long as a clip
EACH = 10  # frames of a film, at most
APART = 8  # frames between two of them, at least
TRIES = 3  # as many are looked at for each that is drawn, as a prop may be hidden
QUALITY = (55, 96)  # of JPEG, from and up to
CELL = 8  # pixels along each side of a place


@dataclass(frozen=True, eq=False)
class DrawnFrames:
    """Frames and what is known of them.

    Attributes:
        frames: (N, H, W, 3).
        place: (N, 2) x and y of the hand that holds the prop, in pixels.
        label: (N,) which prop it is.
    """

    frames: npt.NDArray[np.uint8]
    place: npt.NDArray[np.float32]
    label: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """How the network begins.

    Attributes:
        steps: of training.
        batch: frames in a step.
        lr: at its highest; it rises over the first tenth and falls along a cosine.
        place: weight of what is about the place.
        shift: largest move of the picture in pixels.
        grain: largest noise.
    """

    steps: int = 2500
    batch: int = 256
    lr: float = 3e-3
    decay: float = 0.05
    place: float = 0.5
    shift: int = 11
    grain: float = 0.02


def draw_frames(
    *, jobs: int, seed: int = 0, films: int = FILMS, cast: Sequence[int] = CASTS["extractor"]
) -> DrawnFrames:
    """Draw frames in which the main puppet holds something, several films at once, into memory that all share."""
    shared = (mmap.mmap(-1, films * EACH * SIZE[0] * SIZE[1] * 3), mmap.mmap(-1, films * EACH * 3 * 4))
    frames = np.frombuffer(shared[0], np.uint8).reshape(films, EACH, *SIZE, 3)
    known = np.frombuffer(shared[1], np.float32).reshape(films, EACH, 3)
    _target.update(frames=frames, known=known)
    _draw(0, seed, cast)  # compiles what draws, before it is forked
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:  # forked after the memory is there
        list(pool.map(_draw, range(films), [seed] * films, [cast] * films, chunksize=8))
    drawn = known[..., 2] > 0
    return DrawnFrames(frames[drawn], known[drawn][:, :2], known[drawn][:, 2].astype(np.int64) - 1)


_target: dict[str, npt.NDArray[np.generic]] = {}


def _draw(number: int, seed: int, cast: Sequence[int]) -> None:
    film = first_film(number, seed, cast)
    times, place, label = held_in(film)
    quality = rng_for(seed, film.name, "quality").integers(*QUALITY, len(times))
    for i in range(len(times)):
        _target["frames"][number, i] = _coded(film.draw(int(times[i]), int(times[i]) + 1)[0], int(quality[i]))
        _target["known"][number, i] = (*place[i], label[i] + 1)  # 0: not drawn


def _coded(frame: npt.NDArray[np.uint8], quality: int) -> npt.NDArray[np.uint8]:
    """A frame after JPEG, which takes about as much from a small prop as the codec of the videos does."""
    _, coded = cv2.imencode(".jpg", frame[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    made = cv2.imdecode(coded, cv2.IMREAD_COLOR)
    assert made is not None
    return np.asarray(made[..., ::-1], np.uint8)


def first_film(number: int, seed: int, cast: Sequence[int]) -> Film:
    """A film with others about, or a clip of one puppet alone with something in its hand."""
    name = f"puppet_frames_{number:05d}"
    if number % LONG == 0:
        return untrimmed(seed, name, cast=cast)
    puppet = cast[key_for(seed, "first", name) % len(cast)]
    return trimmed(seed, name, label=HOLDING[number % len(HOLDING)], puppet=puppet)


def held_in(film: Film) -> tuple[Indices, npt.NDArray[np.float64], Indices]:
    """Some frames of a film in which a prop in the main puppet's hand is to be seen, the places of hands, and props.

    As in `Film.held`, but only a few frames are looked at: to look at all takes longer than to plan the film.
    """
    scene = film.scene
    held = np.full(film.frames, -1)
    at = np.zeros(film.frames, complex)
    watched = np.zeros((film.frames, len(scene.drawing.kinds)), np.int32)
    for prop, track, (first, last) in zip(film.stage.props, scene.tracks, scene.owned, strict=True):
        if prop.owner == 0:
            held[track.held] = LABELS.index(prop.kind)
            at[track.held] = track.at[track.held]
            watched[track.held, first:last] = 1
    able = np.flatnonzero(held >= 0)
    many = min(EACH, len(able) // APART)
    few = able[evenly_spaced(len(able), TRIES * many)]
    area = np.zeros(len(few))
    visible(scene.drawing.kinds, scene.drawing.shapes[few], watched[few], *SIZE, area)
    shown = few[area >= LEAST_AREA]
    times = shown[evenly_spaced(len(shown), min(many, len(shown)))]
    seen = ((at - scene.lens.centre) * scene.lens.zoom)[times] + complex(SIZE[1], SIZE[0]) / 2
    return times, np.stack([seen.real, seen.imag], 1), held[times]


def learn_to_see(drawn: DrawnFrames, out: Path, *, seed: int = 0, schedule: Schedule | None = None) -> None:
    """Train the network on drawn frames and write its weights."""
    plan = schedule or Schedule()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(key_for(seed, "begin", "puppet_frames") % 2**63)
    network = FrameClassifier(CLASSES).to(device)
    parameters = list(network.parameters())
    optimiser = torch.optim.AdamW(parameters, lr=plan.lr, weight_decay=plan.decay, fused=device.type == "cuda")
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, plan.lr, total_steps=plan.steps, pct_start=0.1)
    frames, place = torch.from_numpy(drawn.frames).to(device), torch.from_numpy(drawn.place).to(device)
    label = torch.from_numpy(drawn.label).to(device)
    begun = time.monotonic()
    for step in range(plan.steps):
        rows = torch.randint(0, len(frames), (plan.batch,), device=device)
        shown, hand = varied(frames, place, rows, plan)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            seen = network.see(shown)
            where = network.where(seen)[:, 0].float()
            logits = network.classify(seen)
        told = F.cross_entropy(logits.float(), label[rows], label_smoothing=0.05)
        found, hit = pointed(where, hand)
        optimiser.zero_grad(set_to_none=True)
        (told + plan.place * found).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        rate.step()
        if (step + 1) % 250 == 0 or step + 1 == plan.steps:
            right = (logits.argmax(1) == label[rows]).float().mean()
            said = {"step": step + 1, "class": float(told.detach()), "right": float(right), "place": float(hit)}
            print("start", json.dumps(said | {"s": round(time.monotonic() - begun, 1)}), flush=True)
    kept = {key: value.cpu() for key, value in network.state_dict().items()}
    write_weights(kept, out, metadata={"recogniser": "puppet_frames", "seed": str(seed)})


def varied(frames: Tensor, place: Tensor, rows: Tensor, plan: Schedule) -> tuple[Tensor, Tensor]:
    """Frames (B, 1, 3, 112, 112) as the network wants them, moved and mirrored by chance, and (B, 2) places."""
    count, device, side = len(rows), rows.device, frames.shape[1]
    moves = torch.randint(-plan.shift, plan.shift + 1, (count, 2), device=device)
    mirror = torch.rand(count, 1, device=device) < 0.5
    span = torch.arange(side, device=device)
    down, across = (span + moves[:, :1]).clamp(0, side - 1), (span + moves[:, 1:]).clamp(0, side - 1)
    across = torch.where(mirror, across.flip(1), across)
    shown = frames[rows[:, None, None], down[:, :, None], across[:, None, :]].permute(0, 3, 1, 2).float() / 255
    shown = shown + torch.randn_like(shown) * torch.rand(count, 1, 1, 1, device=device) * plan.grain
    hand = place[rows] - moves.flip(1)
    x = torch.where(mirror[:, 0], side - hand[:, 0], hand[:, 0])
    mean, std = (torch.tensor(values, device=device)[:, None, None] for values in (SPEC.mean, SPEC.std))
    return ((shown - mean) / std)[:, None], torch.stack([x, hand[:, 1]], 1)


def pointed(where: Tensor, hand: Tensor) -> tuple[Tensor, Tensor]:
    """How far the places that the network looks at (B, 14, 14) are from telling the hand's, and how often they do."""
    high, wide = where.shape[1:]
    cell = (hand / CELL).floor().long()
    inside = ((cell >= 0) & (cell < torch.tensor([wide, high], device=hand.device))).all(1)
    aim = cell[inside, 1] * wide + cell[inside, 0]
    told = where[inside].flatten(1)
    return F.cross_entropy(told, aim), (told.argmax(1) == aim).float().mean()
