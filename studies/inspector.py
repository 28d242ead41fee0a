"""The shipped inspector: trained on drawn films and on filmed clips, struck by jostle; tried on clips from elsewhere.

    python -m studies.inspector WORK films train choose validate weights

`films` needs the cores and what decodes video, and leaves two files in WORK, `films.bank` and `held.bank`, which are
all that the next three read; those need torch alone, and leave weights and a record there. Clips are looked
for in the folder that `--clips` names, and films are drawn without them where there is none. `train` takes a GPU where
there is one. `weights` puts the weights into the package, and the record beside this file.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.mending.inspector import SIDES, InspectorNetworks, build_inspector
from jostle.models.checkpoints import read_metadata, read_weights, write_weights
from jostle.training.descriptor_bank import FilmBank, read_bank, write_bank
from jostle.training.inspection import ALARMS, false_alarms, predict_films, recall, threshold_at
from jostle.training.inspection_windows import WindowBatch, draw_windows, render_windows
from studies.harness import parse_arguments, ship_weights

STEPS = ("films", "train", "choose", "validate", "weights")
LOG = Path(__file__).with_name("inspector.jsonl")
KINDS = ("black_frame", "motion_blur", "occlusion", "packet_loss", "overexposure")  # of THUMOS14-C
BATCH, LENGTH, RATE, DECAY, AVERAGE = 64, 192, 2e-3, 1e-2, 0.998
SEED = 0


def main() -> None:
    """Do the steps that are arguments for."""
    arguments = parse_arguments(
        __doc__,
        STEPS,
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
    weights = arguments.work / "last.safetensors"
    if "films" in arguments.steps:
        from studies.inspector_material import make_banks

        learn, held = make_banks(arguments.clips, arguments.films, arguments.jobs, SEED)
        write_bank(learn, arguments.work / "films.bank")
        write_bank(held, arguments.work / "held.bank")
    if "train" in arguments.steps:
        train(read_bank(arguments.work / "films.bank"), weights, arguments)
    if "choose" in arguments.steps:
        choose(read_bank(arguments.work / "films.bank"), weights)
    if "validate" in arguments.steps:
        rows = list(validate(read_bank(arguments.work / "held.bank"), weights))
        for line in table(rows):
            print(line, flush=True)
        (arguments.work / LOG.name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    if "weights" in arguments.steps:
        ship_weights({"inspector": arguments.work / "last.safetensors"})
        LOG.write_bytes((arguments.work / LOG.name).read_bytes())


def train(bank: FilmBank, out: Path, arguments: Any) -> None:
    """Learn from all films but those that thresholds are chosen by."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    learn = bank.only(film for film in bank.films if not film.kind.startswith("choose"))
    torch.manual_seed(key_for(SEED, "inspector") % 2**63)
    networks = InspectorNetworks().to(device)
    if arguments.begin is not None:
        networks.load_state_dict(read_weights(arguments.begin))
    average = {name: value.detach().clone() for name, value in networks.state_dict().items()}
    optimiser = torch.optim.AdamW(networks.parameters(), RATE, weight_decay=DECAY, fused=device.type == "cuda")
    frames = torch.from_numpy(bank.frames).to(device)
    begun, step = time.monotonic(), 0
    batches = drawn(learn, arguments.batch, arguments.length, arguments.jobs)
    losses: list[torch.Tensor] = []
    limit = 60 * arguments.minutes
    while step < arguments.steps_of_training:
        # How far the rate has fallen is told by whichever is nearer, the last step or the last minute.
        part = max(step / arguments.steps_of_training, (time.monotonic() - begun) / limit)
        if part >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 100) * 0.5 * (1 + np.cos(np.pi * part))
        windows = next(batches).to(device)
        glances = render_windows(frames, windows)
        optimiser.zero_grad(set_to_none=True)
        networks.train()
        for side in arguments.sides:
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = networks[side](glances)
            wrong = F.binary_cross_entropy_with_logits(logits.float(), windows["damaged"], reduction="none")
            loss = (wrong * windows["weight"]).sum() / windows["weight"].sum()
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(networks.parameters(), 1.0)
        optimiser.step()
        step += 1
        _follow(average, networks, min(AVERAGE, step / (step + 10)))
        if step % 100 == 0:
            told = {"step": step, "loss": round(float(torch.stack(losses).mean()), 4)}
            losses.clear()
            print(json.dumps(told | {"s": round(time.monotonic() - begun)}), flush=True)
    tensors = {name: _rounded(value).cpu() for name, value in average.items()}
    write_weights(tensors, out, metadata={"steps": str(step), "seed": str(SEED)})


def choose(bank: FilmBank, weights: Path) -> None:
    """Set the thresholds, by the films to choose by, and write them beside the weights."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tensors, networks = read_weights(weights), InspectorNetworks().to(device)
    networks.load_state_dict(tensors)
    films = bank.only(film for film in bank.films if film.kind.startswith("choose"))
    thresholds = {}
    for side in SIDES:
        told = predict_films(networks[side], films, device)
        thresholds[side] = threshold_at(told, ALARMS)
        found_here = {"found": round(recall(told, thresholds[side]), 4), "alarms": false_alarms(told, thresholds[side])}
        print(json.dumps({"chosen by": side, "threshold": thresholds[side], **found_here}), flush=True)
    write_weights(tensors, weights, metadata=read_metadata(weights) | {"thresholds": json.dumps(thresholds)})


def drawn(bank: FilmBank, batch: int, length: int, jobs: int) -> Iterator[WindowBatch]:
    """The windows of one step after the other, each drawn by its number; several processes draw ahead of a GPU."""
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


@torch.no_grad()
def _follow(average: dict[str, torch.Tensor], networks: InspectorNetworks, decay: float) -> None:
    for name, value in networks.state_dict().items():
        if value.is_floating_point():
            average[name].lerp_(value, 1 - decay)
        else:
            average[name].copy_(value)


def _rounded(value: torch.Tensor) -> torch.Tensor:
    return value.half().to(value.dtype) if value.is_floating_point() else value


def validate(held: FilmBank, weights: Path) -> Iterator[dict[str, Any]]:
    """What is found, and what falsely, film by film and kind by kind."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    networks = InspectorNetworks().to(device)
    networks.load_state_dict(read_weights(weights))
    thresholds = json.loads(read_metadata(weights)["thresholds"])
    inspector = build_inspector(networks.state_dict(), thresholds, name="inspector", device="cpu")
    for side in SIDES:
        network, least = networks[side].eval(), thresholds[side]
        yield {"side": side, "threshold": least, "fingerprint": inspector.fingerprint}
        for film in held.films:
            told = predict_films(network, held.only([film]), device, blank_rule=side == SIDES[0])
            row: dict[str, Any] = {"side": side, "film": film.name, "set": film.kind, "frames": film.count}
            row["alarms"] = sum(int((one.clean >= least).sum()) for one in told)
            row["beside"] = sum(int((one.beside >= least).sum()) for one in told)
            row["beside_of"] = sum(len(one.beside) for one in told)
            kinds = sorted({one.kind for one in told if one.kind})
            row["found"] = {
                kind: [
                    sum(int((one.damaged >= least).sum()) for one in told if one.kind == kind),
                    sum(len(one.damaged) for one in told if one.kind == kind),
                ]
                for kind in kinds
            }
            yield row


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The same to be read."""
    for side in SIDES:
        own = [row for row in rows if row["side"] == side and "film" in row]
        yield f"{side}: share of frames found, of five in a row that were struck, and false alarms"
        for name in sorted({row["set"] for row in own}):
            here = [row for row in own if row["set"] == name]
            alarms, frames = sum(row["alarms"] for row in here), sum(row["frames"] for row in here)
            kinds = sorted({kind for row in here for kind in row["found"]})
            said = []
            for kind in kinds:
                hit, of = (sum(row["found"].get(kind, [0, 0])[i] for row in here) for i in range(2))
                said.append((hit / of, f"{kind} {100 * hit / of:.1f}"))
            five = [share for share, text in said if text.split()[0] in KINDS]
            mean = f"; mean of five {100 * np.mean(five):.1f}" if five else ""
            yield (
                f"  {name}: {alarms} of {frames} clean ({100 * alarms / frames:.2f} %); "
                + ", ".join(text for _, text in said)
                + mean
            )
            for row in here:
                if row["alarms"] * 200 > row["frames"]:
                    yield f"    {row['film']}: {row['alarms']} of {row['frames']}"


if __name__ == "__main__":
    main()
