"""The look-ahead inspector: its networks, trained on a bank of damaged films, and its calibration.

    python -m studies.lookahead train --bank BANKS --minutes 8 --out OUT
    python -m studies.lookahead ship --out OUT

`train` needs torch and NumPy alone. It learns from the files that `studies.lookahead_material` wrote, and takes a GPU
where there is one. Whenever a network is better on held-out films than before, OUT/ahead_N.pt is written anew; OUT
also gets a log. `ship` turns these files into the package's weights.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.random import rng_for
from jostle.mending.lookahead_network import (
    DAMAGE_KINDS,
    LOOKAHEADS,
    LookaheadNetwork,
    LookaheadNetworks,
    compute_medians,
)
from jostle.training.descriptor_bank import FilmBank, read_bank
from studies.harness import parse_arguments
from studies.lookahead_windows import CLEAN, UNKNOWN, LiveWindows, dither_table, draw_live_windows, render

BATCH, LENGTH, RATE, DECAY, AVERAGE = 48, 320, 2e-3, 1e-2, 0.998
KIND_WEIGHT = 0.3  # of the loss of kinds
ALARMS = 1 / 1000  # clean frames above the threshold
LEAST = 30  # frames of a kind that its share found is told for
SEED = 0

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Train, or put trained weights into the package."""
    arguments = parse_arguments(
        __doc__, ("train", "ship"), folder=False, bank=Path, out=Path, minutes=8.0, batch=BATCH, length=LENGTH,
        jobs=max((os.cpu_count() or 2) - 2, 1), check_windows=256, check_seconds=45.0, begin=Path,
    )  # fmt: skip
    arguments.out.mkdir(parents=True, exist_ok=True)
    if "train" in arguments.steps:
        train(arguments)
    if "ship" in arguments.steps:
        ship(arguments.out)


def read_banks(folder: Path) -> FilmBank:
    """Read all files of a folder as one bank."""
    frames, films, visible, offset = [], [], [], 0
    for path in sorted(folder.glob("*.bank")):
        bank = read_bank(path)
        for film in bank.films:
            spans = tuple(replace(span, first=span.first + offset) for span in film.spans)
            films.append(replace(film, first=film.first + offset, spans=spans))
        frames.append(bank.frames)
        visible.append(bank.visible)
        offset += len(bank.frames)
    if not films:
        raise SystemExit(f"{folder}: has no *.bank; make some with studies.lookahead_material")
    return FilmBank(np.concatenate(frames), tuple(films), np.concatenate(visible))


def train(arguments: Any) -> None:
    """Learn from the films to learn from, and keep what is best on the others."""
    begun = time.monotonic()
    bank = read_banks(arguments.bank)
    learn, choose = (bank.only(f for f in bank.films if f.kind.startswith(how)) for how in ("learn", "choose"))
    batches = draw_ahead(learn, arguments.batch, arguments.length, arguments.jobs)
    first = next(batches)  # processes are forked before the device is set up
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(SEED)
    networks = LookaheadNetworks().to(device)
    if arguments.begin is not None:
        for lookahead in LOOKAHEADS:
            state = torch.load(arguments.begin / f"ahead_{lookahead}.pt", weights_only=True)["state"]
            networks.network(lookahead).load_state_dict(state)
    average = {name: value.detach().clone() for name, value in networks.state_dict().items()}
    optimiser = torch.optim.AdamW(networks.parameters(), RATE, weight_decay=DECAY, fused=device.type == "cuda")
    frames, dither = torch.from_numpy(bank.frames).to(device), dither_table(device)
    checks = [
        (damage, draw_live_windows(choose, rng_for(SEED, "check", number, damage), 16, arguments.length, damage=damage))
        for damage in (False, True)
        for number in range(arguments.check_windows // 16)
    ]
    log = (arguments.out / "log.jsonl").open("a")
    tell(
        log,
        films={kind: sum(f.kind == kind for f in bank.films) for kind in sorted({f.kind for f in bank.films})},
        rows=len(bank.frames),
        parameters=sum(p.numel() for p in networks.parameters()),
        s=round(time.monotonic() - begun),
    )
    best: dict[int, float] = {}
    start, limit, step, losses, checked = time.monotonic(), 60 * arguments.minutes, 0, [], time.monotonic()
    limit -= start - begun
    while True:
        part = (time.monotonic() - start) / limit
        if part >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 200) * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * part)))
        windows = (first if step == 0 else next(batches)).to(device)
        networks.train()
        with torch.no_grad():
            descriptors, weight = render(frames, dither, windows)
            medians = compute_medians(descriptors)
        optimiser.zero_grad(set_to_none=True)
        for lookahead in LOOKAHEADS:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = networks.network(lookahead)(descriptors, medians)
            loss = loss_of(logits.float(), windows["kind"], weight)
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(networks.parameters(), 1.0)
        optimiser.step()
        step += 1
        _follow(average, networks, min(AVERAGE, step / (step + 10)))
        if step % 100 == 0 or (device.type == "cpu" and step % 5 == 0):
            tell(log, step=step, loss=round(float(torch.stack(losses).mean()), 4), s=round(time.monotonic() - start))
            losses.clear()
        if time.monotonic() - checked > arguments.check_seconds:
            check(average, checks, frames, dither, best, arguments.out, log, step)
            checked = time.monotonic()
    check(average, checks, frames, dither, best, arguments.out, log, step)
    tell(log, ended=step, s=round(time.monotonic() - begun), best=best)


def loss_of(logits: Tensor, kind: Tensor, weight: Tensor) -> Tensor:
    """Return the loss of damage and of its kind."""
    damaged = (kind != CLEAN).float()
    loss = F.binary_cross_entropy_with_logits(logits[..., 0], damaged, weight, reduction="sum") / weight.sum()
    named = (kind >= 0) & (weight > 0)
    if named.any():
        loss = loss + KIND_WEIGHT * F.cross_entropy(logits[..., 1:][named], kind[named])
    return loss


@torch.no_grad()
def check(
    average: dict[str, Tensor],
    checks: list[tuple[bool, LiveWindows]],
    frames: Tensor,
    dither: Tensor,
    best: dict[int, float],
    out: Path,
    log: Any,
    step: int,
) -> None:
    """Measure the averaged networks on held-out films, and write each that is better than before."""
    networks = LookaheadNetworks().to(frames.device).eval()
    networks.load_state_dict({name: value.half().to(value.dtype) for name, value in average.items()})
    results: dict[int, list[tuple[Tensor, ...]]] = {lookahead: [] for lookahead in LOOKAHEADS}
    for damage, batch in checks:
        windows = batch.to(frames.device)
        descriptors, weight = render(frames, dither, windows)
        medians = compute_medians(descriptors)
        filmed = windows["filmed"][:, None].expand_as(weight)
        for lookahead in LOOKAHEADS:
            logits = networks.network(lookahead)(descriptors, medians)
            guessed = logits[..., 1:].argmax(-1)
            parts = (logits[..., 0], windows["kind"], guessed, weight, filmed, torch.full_like(weight, damage))
            results[lookahead].append(tuple(part.flatten().cpu() for part in parts))
    for lookahead in LOOKAHEADS:
        columns = [torch.cat(parts).numpy() for parts in zip(*results[lookahead], strict=True)]
        row, calibration = measure(*columns)
        tell(log, step=step, lookahead=lookahead, **row)
        if row["score"] > best.get(lookahead, -1):
            best[lookahead] = row["score"]
            save(networks.network(lookahead), calibration, row, out / f"ahead_{lookahead}.pt")


def measure(
    logits: Any, kind: Any, guessed: Any, weight: Any, filmed: Any, damage: Any
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return what is found at one false frame in a thousand, by kind, and the calibration."""
    clean = damage == 0
    threshold = float(np.quantile(logits[clean], 1 - ALARMS))
    seen = (weight > 0) & ~clean
    hit = logits >= threshold
    row: dict[str, Any] = {}
    named = {"unknown": UNKNOWN} | {name: index for index, name in enumerate(DAMAGE_KINDS)}
    found = {name: seen & (kind == index) for name, index in named.items()}
    row["found"] = {name: _share(hit[which]) for name, which in found.items() if which.sum() >= LEAST}
    row["filmed"] = {
        name: _share(hit[which & filmed]) for name, which in found.items() if (which & filmed).sum() >= LEAST
    }
    row["named"] = {
        name: _share(guessed[which] == named[name])
        for name, which in found.items()
        if which.sum() >= LEAST and name != "unknown"
    }
    row["beside"] = _share(hit[seen & (kind == CLEAN)])  # clean frames of damaged films
    row["alarms"] = {"filmed": _share(hit[clean & filmed]), "drawn": _share(hit[clean & ~filmed])}
    row["score"] = round(float(np.mean([v for k, v in row["found"].items() if k != "out_of_order"])), 4)
    scale, bias = platt(logits[weight > 0], (kind != CLEAN)[weight > 0])
    probability = 1 / (1 + np.exp(-(scale * logits + bias)))
    row["reliability"] = reliability(probability[weight > 0], (kind != CLEAN)[weight > 0])
    level = float(1 / (1 + np.exp(-(scale * threshold + bias))))
    calibration = {"scale": scale, "bias": bias, "threshold": min(max(level, 1e-4), 1 - 1e-4)}
    row["calibration"] = {name: round(value, 4) for name, value in calibration.items()}
    return row, calibration


def _share(values: Any) -> float:
    return round(float(np.mean(values)), 4) if len(values) else 0.0


def platt(logits: Any, damaged: Any) -> tuple[float, float]:
    """Fit scale and bias of logits by maximum likelihood, with Newton's method.

    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(0, 2, 20000)
    >>> scale, bias = platt((true - 1) * 2, rng.random(20000) < 1 / (1 + np.exp(-true)))
    >>> round(scale, 1), round(bias, 1)
    (0.5, 1.0)
    """
    x = np.stack([logits, np.ones_like(logits)], 1).astype(np.float64)
    y, fit = damaged.astype(np.float64), np.array([1.0, 0.0])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ fit, -30, 30)))
        slope = x.T @ (p - y) + 1e-3 * (fit - (1, 0))
        bend = (x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(2)
        step = np.linalg.solve(bend, slope)
        fit = fit - np.clip(step, -1, 1)
    return float(max(fit[0], 0.05)), float(fit[1])


def reliability(probability: Floats, damaged: Any) -> list[list[float]]:
    """Return for tenths of probability the mean of it, the share of damaged frames and their number."""
    rows = []
    tenth = np.minimum((probability * 10).astype(int), 9)
    for number in range(10):
        here = tenth == number
        if here.any():
            rows.append([round(float(probability[here].mean()), 3), _share(damaged[here]), int(here.sum())])
    return rows


def save(network: LookaheadNetwork, calibration: dict[str, float], row: dict[str, Any], path: Path) -> None:
    """Write one network in half precision, whole or not at all."""
    state = {name: value.half().cpu() for name, value in network.state_dict().items()}
    new = path.with_suffix(".new")
    torch.save({"state": state, "calibration": calibration, "row": json.dumps(row)}, new)
    new.replace(path)


def ship(folder: Path) -> None:
    """Put trained networks and their calibrations into the package."""
    from jostle.mending.descriptor_stream import BUNDLED, LogitCalibration, calibrations_note, read_lookahead_inspector
    from jostle.models.checkpoints import write_weights
    from jostle.models.weights.shipped import FOLDER

    tensors: dict[str, Tensor] = {}
    calibrations = {}
    for lookahead in LOOKAHEADS:
        stored = torch.load(folder / f"ahead_{lookahead}.pt", weights_only=True)
        tensors |= {f"ahead_{lookahead}.{name}": value for name, value in stored["state"].items()}
        calibrations[lookahead] = LogitCalibration(**stored["calibration"])
        print(lookahead, stored["row"])
    path = FOLDER / f"{BUNDLED}.safetensors"
    write_weights(tensors, path, metadata={"calibrations": calibrations_note(calibrations), "seed": str(SEED)})
    print(path, path.stat().st_size, read_lookahead_inspector(path).fingerprint)


def draw_ahead(bank: FilmBank, batch: int, length: int, jobs: int) -> Iterator[LiveWindows]:
    """Draw the windows of one step after the other, each by its number, in several processes."""
    _known["bank"] = bank  # forked processes have it
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        waiting: deque[Future[LiveWindows]] = deque()
        for step in itertools.count():
            waiting.append(pool.submit(_draw, step, batch, length))
            if len(waiting) > 3 * jobs:
                yield waiting.popleft().result()


_known: dict[str, FilmBank] = {}


def _draw(step: int, batch: int, length: int) -> LiveWindows:
    return draw_live_windows(_known["bank"], rng_for(SEED, "lookahead windows", step), batch, length)


@torch.no_grad()
def _follow(average: dict[str, Tensor], networks: LookaheadNetworks, decay: float) -> None:
    for name, value in networks.state_dict().items():
        average[name].lerp_(value, 1 - decay)


def tell(log: Any, **row: Any) -> None:
    """Print a line of the log and write it."""
    print(json.dumps(row), flush=True)
    log.write(json.dumps(row) + "\n")
    log.flush()


if __name__ == "__main__":
    main()
