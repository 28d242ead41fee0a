"""Pretraining of the frame classifier on drawn frames, in which the main puppet holds a prop.

From anchors and their classes alone `puppet_frames` learns nothing that holds for other puppets: a prop is a few pixels
among things that lie about and things that others hold. So it is first trained on drawn frames of another cast to
predict, beside the class, the cell of the picture in which the hand with the prop is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.datasets.puppets.film import SIZE, Film, trimmed, untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.datasets.puppets.rasterize import visible
from jostle.datasets.puppets.similar_frames import LABELS, LEAST_AREA
from jostle.models.checkpoints import write_weights
from jostle.models.recognition.puppet_frames import CLASSES, SPEC, FrameClassifier
from jostle.training.clips import Indices, evenly_spaced
from studies.drawn_films import SHARED, draw_shared
from studies.fitting import Losses, RandomCrops, fit, training_device

FILMS = 7000
HOLDING = ("raise", "lower", "pick_up", "put_down")  # actions with any prop
LONG = 3  # one film in so many is as those of the data set; to plan one takes three times as long as a clip
EACH = 10  # frames of a film, at most
APART = 8  # frames between two of them, at least
TRIES = 3  # as many are tried for each that is drawn, as a prop may be hidden
QUALITY = (55, 96)  # of JPEG, from and up to
CELL = 8  # pixels along each side of a cell
STEPS, BATCH, RATE, DECAY = 2500, 256, 3e-3, 0.05
PLACE_WEIGHT = 0.5  # of the loss of the cell
SHIFT = 11  # largest shift of the picture in pixels
GRAIN = 0.02  # largest noise


@dataclass(frozen=True, eq=False)
class DrawnFrames:
    """Frames in which the main puppet holds a prop.

    Attributes:
        frames: (N, H, W, 3).
        place: (N, 2) x and y of the hand that holds the prop, in pixels.
        label: (N,) the class of the prop.
    """

    frames: npt.NDArray[np.uint8]
    place: npt.NDArray[np.float32]
    label: npt.NDArray[np.int64]


def draw_frames(
    *, jobs: int, seed: int = 0, films: int = FILMS, cast: Sequence[int] = CASTS["extractor"]
) -> DrawnFrames:
    """Draw frames in which the main puppet holds a prop."""
    shapes = {"frames": ((films, EACH, *SIZE, 3), np.uint8), "known": ((films, EACH, 3), np.float32)}
    arrays = draw_shared(shapes, partial(_draw, seed=seed, cast=cast), films, jobs=jobs, chunk=8)
    frames, known = arrays["frames"], arrays["known"]
    drawn = known[..., 2] > 0
    return DrawnFrames(frames[drawn], known[drawn][:, :2], known[drawn][:, 2].astype(np.int64) - 1)


def _draw(number: int, seed: int, cast: Sequence[int]) -> None:
    film = pretraining_film(number, seed, cast)
    times, place, label = held_in(film)
    quality = rng_for(seed, film.name, "quality").integers(*QUALITY, len(times))
    for i in range(len(times)):
        frame = film.draw(int(times[i]), int(times[i]) + 1)[0]
        SHARED["frames"][number, i] = compress_frame(frame, int(quality[i]))
        SHARED["known"][number, i] = (*place[i], label[i] + 1)  # 0: not drawn


def compress_frame(frame: npt.NDArray[np.uint8], quality: int) -> npt.NDArray[np.uint8]:
    """Return a frame after JPEG, which takes about as much from a small prop as the codec of the videos does."""
    _, coded = cv2.imencode(".jpg", np.ascontiguousarray(frame[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(coded, cv2.IMREAD_COLOR)
    assert decoded is not None
    return np.ascontiguousarray(decoded[..., ::-1], np.uint8)


def pretraining_film(number: int, seed: int, cast: Sequence[int]) -> Film:
    """Return a film with several puppets, or a clip of one puppet with something in its hand."""
    name = f"puppet_frames_{number:05d}"
    if number % LONG == 0:
        return untrimmed(seed, name, cast=cast)
    puppet = cast[key_for(seed, "first", name) % len(cast)]
    return trimmed(seed, name, label=HOLDING[number % len(HOLDING)], puppet=puppet)


def held_in(film: Film) -> tuple[Indices, npt.NDArray[np.float64], Indices]:
    """Return some frames in which a prop in the main puppet's hand is visible, the positions of hands, and the props.

    As `Film.held`, but for a few frames only: to render all takes longer than to plan the film.
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
    visible_times = few[area >= LEAST_AREA]
    times = visible_times[evenly_spaced(len(visible_times), min(many, len(visible_times)))]
    hands = ((at - scene.lens.centre) * scene.lens.zoom)[times] + complex(SIZE[1], SIZE[0]) / 2
    return times, np.stack([hands.real, hands.imag], 1), held[times]


def pretrain_classifier(drawn: DrawnFrames, out: Path, *, seed: int = 0) -> None:
    """Train the network on drawn frames and write its weights."""
    device = training_device()
    torch.manual_seed(key_for(seed, "begin", "puppet_frames") % 2**63)
    network = FrameClassifier(CLASSES).to(device)
    frames, place = torch.from_numpy(drawn.frames).to(device), torch.from_numpy(drawn.place).to(device)
    label = torch.from_numpy(drawn.label).to(device)

    def compute() -> Losses:
        rows = torch.randint(0, len(frames), (BATCH,), device=device)
        inputs, hand = augment_frames(frames, place, rows)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            maps = network.see(inputs)
            cells = network.where(maps)[:, 0].float()
            logits = network.classify(maps)
        wrong = F.cross_entropy(logits.float(), label[rows], label_smoothing=0.05)
        cell_loss, hit = hand_loss(cells, hand)
        right = (logits.argmax(1) == label[rows]).float().mean()
        return wrong + PLACE_WEIGHT * cell_loss, {"class": wrong, "right": right, "place": hit}

    fit("start", list(network.parameters()), compute, steps=STEPS, lr=RATE, decay=DECAY, every=250)
    tensors = {key: value.cpu() for key, value in network.state_dict().items()}
    write_weights(tensors, out, metadata={"recogniser": "puppet_frames", "seed": str(seed)})


def augment_frames(frames: Tensor, place: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return normalised frames (B, 1, 3, 112, 112), shifted and mirrored at random, and (B, 2) positions of hands."""
    count, device, side = len(rows), rows.device, frames.shape[1]
    crops = RandomCrops(count, side, side, (-SHIFT, SHIFT + 1), device)
    pixels = frames[rows[:, None, None], crops.rows[:, :, None], crops.columns[:, None, :]]
    pixels = pixels.permute(0, 3, 1, 2).float() / 255
    pixels = pixels + torch.randn_like(pixels) * torch.rand(count, 1, 1, 1, device=device) * GRAIN
    mean, std = (torch.tensor(values, device=device)[:, None, None] for values in (SPEC.mean, SPEC.std))
    return ((pixels - mean) / std)[:, None], crops.move_points(place[rows], side)


def hand_loss(cells: Tensor, hand: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of the cell (B, 14, 14) that holds the hand, and the share of right cells."""
    high, wide = cells.shape[1:]
    cell = (hand / CELL).floor().long()
    inside = ((cell >= 0) & (cell < torch.tensor([wide, high], device=hand.device))).all(1)
    aim = cell[inside, 1] * wide + cell[inside, 0]
    scores = cells[inside].flatten(1)
    return F.cross_entropy(scores, aim), (scores.argmax(1) == aim).float().mean()
