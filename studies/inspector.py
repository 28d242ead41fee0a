"""The shipped inspector: trained on drawn films and filmed clips that jostle corrupts, tested on clips from elsewhere.

    python -m studies.inspector WORK films train choose validate weights record

`films` needs the cores and a video decoder, and writes two files into WORK, `films.bank` and `held.bank`, which are
all that the next three read; these need torch alone, and write weights and a record there. Clips are those of the
folder that `--clips` names; without one, only drawn films are used. `train` takes a GPU where
there is one. `weights` puts the weights into the package, and `record` the record beside this file.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.mending.inspection import build_inspector
from jostle.mending.network import SIDES, InspectorNetworks
from jostle.models.checkpoints import read_metadata, read_weights, write_weights
from jostle.models.weights.packaged import FOLDER
from jostle.training.descriptor_bank import FilmBank, read_bank, write_bank
from jostle.training.inspection import ALARMS, false_alarms, predict_films, recall, threshold_at
from jostle.training.inspection_windows import WindowBatch, draw_windows, render_windows
from studies.fitting import as_shipped, descend, follow, report
from studies.harness import Results, get_device, run_module, run_study, ship_weights, write_records
from studies.inspector_tables import content_table, found_table

BATCH, LENGTH, RATE, DECAY, AVERAGE = 64, 192, 2e-3, 1e-2, 0.998
SEED = 0


def main() -> None:
    """Run the steps that are arguments."""
    steps = {
        "films": make_films,
        "train": train_all,
        "choose": lambda work: choose(read_bank(work / "films.bank"), work / "last.safetensors"),
        "validate": validate_all,
        "weights": lambda work: ship_weights({"inspector": work / "last.safetensors"}, FOLDER),
    }
    run_study(
        __doc__,
        "inspector",
        steps,
        clips=Path,
        films=480,
        jobs=1,
        steps_of_training=40000,
        batch=BATCH,
        length=LENGTH,
        begin=Path,
        minutes=8.0,
        sides=tuple(SIDES),
    )


def make_films(work: Path, clips: Path | None, films: int, jobs: int) -> None:
    """Draw films and read clips, and write the banks for training and for testing."""
    from studies.inspector_material import make_banks

    for name, bank in zip(("films", "held"), make_banks(clips, films, jobs, SEED), strict=True):
        write_bank(bank, work / f"{name}.bank")


def train_all(
    work: Path,
    steps_of_training: int,
    minutes: float,
    jobs: int,
    batch: int,
    length: int,
    begin: Path | None,
    sides: Sequence[str],
) -> None:
    """Train on the films of WORK."""
    films, out = read_bank(work / "films.bank"), work / "last.safetensors"
    train(films, out, steps_of_training, minutes, jobs, batch=batch, length=length, begin=begin, sides=sides)


def validate_all(work: Path) -> None:
    """Test the weights of WORK on films from elsewhere; write and print the results."""
    results = Results()
    results.inspector = list(validate(read_bank(work / "held.bank"), work / "last.safetensors"))
    write_records(work / "inspector.jsonl", results.inspector)
    print(found_table(results), content_table(results), sep="\n\n", flush=True)


def train(
    bank: FilmBank,
    out: Path,
    steps_of_training: int,
    minutes: float,
    jobs: int,
    *,
    batch: int = BATCH,
    length: int = LENGTH,
    begin: Path | None = None,
    sides: Iterable[str] = SIDES,
) -> None:
    """Train on all films but those that thresholds are chosen by."""
    device = torch.device(get_device())
    learn = bank.only(film for film in bank.films if not film.kind.startswith("choose"))
    torch.manual_seed(key_for(SEED, "inspector") % 2**63)
    networks = InspectorNetworks().to(device)
    if begin is not None:
        networks.load_state_dict(read_weights(begin))
    average = {name: value.detach().clone() for name, value in networks.state_dict().items()}
    optimiser = torch.optim.AdamW(networks.parameters(), RATE, weight_decay=DECAY, fused=device.type == "cuda")
    frames = torch.from_numpy(bank.frames).to(device)
    start, step = time.monotonic(), 0
    batches = draw_batches(learn, batch, length, jobs)
    losses: list[torch.Tensor] = []
    while step < steps_of_training:
        # The rate falls with the steps or with the time, whichever is further.
        part = max(step / steps_of_training, (time.monotonic() - start) / (60 * minutes))
        if part >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 100) * 0.5 * (1 + np.cos(np.pi * part))
        windows = next(batches).to(device)
        descriptors = render_windows(frames, windows)
        networks.train()
        total = torch.zeros((), device=device)
        for side in sides:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = networks[side](descriptors)
            wrong = F.binary_cross_entropy_with_logits(logits.float(), windows["damaged"], reduction="none")
            loss = (wrong * windows["weight"]).sum() / windows["weight"].sum()
            total = total + loss
            losses.append(loss.detach())
        descend(total, networks.parameters(), optimiser)
        step += 1
        follow(average, networks, step, AVERAGE)
        if step % 100 == 0:
            report("inspector", step, {"loss": torch.stack(losses).mean()}, start)
            losses.clear()
    write_weights(as_shipped(average), out, metadata={"steps": str(step), "seed": str(SEED)})


def choose(bank: FilmBank, weights: Path) -> None:
    """Set the thresholds, by the films to choose by, and write them beside the weights."""
    device = torch.device(get_device())
    tensors, networks = read_weights(weights), InspectorNetworks().to(device)
    networks.load_state_dict(tensors)
    films = bank.only(film for film in bank.films if film.kind.startswith("choose"))
    thresholds = {}
    for side in SIDES:
        predictions = predict_films(networks[side], films, device)
        threshold = thresholds[side] = threshold_at(predictions, ALARMS)
        rates = {"found": round(recall(predictions, threshold), 4), "alarms": false_alarms(predictions, threshold)}
        print(json.dumps({"chosen by": side, "threshold": threshold, **rates}), flush=True)
    write_weights(tensors, weights, metadata=read_metadata(weights) | {"thresholds": json.dumps(thresholds)})


def draw_batches(bank: FilmBank, batch: int, length: int, jobs: int) -> Iterator[WindowBatch]:
    """Yield the windows of one step after the other, drawn by its number; processes draw ahead of a GPU."""
    if jobs < 2:
        yield from (draw_windows(bank, rng_for(SEED, "windows", step), batch, length) for step in itertools.count())
    _known["bank"] = bank  # processes that are forked know it, too
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        waiting: deque[Future[WindowBatch]] = deque()
        for step in itertools.count():
            waiting.append(pool.submit(_draw, step, batch, length))
            if len(waiting) > 4 * jobs:
                yield waiting.popleft().result()


_known: dict[str, FilmBank] = {}


def _draw(step: int, batch: int, length: int) -> WindowBatch:
    return draw_windows(_known["bank"], rng_for(SEED, "windows", step), batch, length)


def validate(held: FilmBank, weights: Path) -> Iterator[dict[str, Any]]:
    """Yield true and false detections, film by film and kind by kind."""
    device = torch.device(get_device())
    networks = InspectorNetworks().to(device)
    networks.load_state_dict(read_weights(weights))
    thresholds = json.loads(read_metadata(weights)["thresholds"])
    inspector = build_inspector(networks.state_dict(), thresholds, name="inspector", device="cpu")
    for side in SIDES:
        network, least = networks[side].eval(), thresholds[side]
        yield {"side": side, "threshold": least, "fingerprint": inspector.fingerprint}
        for film in held.films:
            predictions = predict_films(network, held.only([film]), device, blank_rule=side == SIDES[0])
            row: dict[str, Any] = {"side": side, "film": film.name, "set": film.kind, "frames": film.count}
            row["alarms"] = sum(int((one.clean >= least).sum()) for one in predictions)
            row["beside"] = sum(int((one.beside >= least).sum()) for one in predictions)
            row["beside_of"] = sum(len(one.beside) for one in predictions)
            kinds = sorted({one.kind for one in predictions if one.kind})
            row["found"] = {
                kind: [
                    sum(int((one.damaged >= least).sum()) for one in predictions if one.kind == kind),
                    sum(len(one.damaged) for one in predictions if one.kind == kind),
                ]
                for kind in kinds
            }
            yield row


if __name__ == "__main__":
    run_module("studies.inspector")
