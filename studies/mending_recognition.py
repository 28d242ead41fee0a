"""Mending in front of recognisers: clips struck in part and throughout, as is, mended, and with frames known.

    python -m studies.mending_recognition WORK [--clips 15] [--jobs 12]

The recognisers and the inspector are those that come with jostle. A clip is struck and shown once for all of them; a
line of WORK's `clips.jsonl` is a clip, so that what was stopped goes on, and `recognition.jsonl` sums them up.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.random import rng_for
from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import gather, origins
from jostle.datasets.puppets.film import CLASSES
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.sampling import Sampling, sample_frames
from jostle.features.caches import CachedFrames
from jostle.features.interpolation import nearest_undamaged
from jostle.models.weights.shipped import TREATMENTS
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS, counts
from studies.harness import CORES, Record, finish, parse_arguments, read_records, run_grid
from studies.recognition import SHIPPED_RECOGNISERS

KINDS = (
    "kinetics-c/shot_noise",
    "kinetics-c/motion_blur",
    "kinetics-c/fog",
    "kinetics-c/contrast",
    "kinetics-c/bit_error",
    "kinetics-c/packet_loss",
    "ucf101-p/gaussian_noise",
    "ucf101-p/jpeg_compression",
    "ucf101-p/static_rotate",
    "ucf101-p/freeze",
)
SEVERITY = 5
PLACES = {"10 %": "centre:10%", "30 %": "centre:30%", "60 %": "centre:60%", "all": "everywhere"}


@dataclass(frozen=True)
class Shown:
    """A clip that is shown."""

    name: str
    path: str
    label: int


def cells() -> tuple[Cell, ...]:
    """The clean cell, and every kind in every place."""
    struck = [
        Cell(f"{kind} {word}", (f"{kind}:{SEVERITY}",), place, "struck", True)
        for kind in KINDS
        for word, place in PLACES.items()
    ]
    return (CLEAN_CELL, *struck)


def main() -> None:
    arguments = parse_arguments(
        __doc__, clips=15, classes=len(CLASSES), recognisers=SHIPPED_RECOGNISERS, weights=TREATMENTS, jobs=CORES
    )
    from jostle.training.clips import list_videos
    from jostle.training.recognition_config import ClipsConfig

    _, videos = list_videos(ClipsConfig(jobs=arguments.jobs), "test", seeds=(0,))
    chosen = [
        Shown(video.name, str(video.path), video.label)
        for number in range(arguments.clips)  # class by class, so that a part is a fair sample
        for label in range(arguments.classes)
        for video in [v for v in videos if v.label == label][number : number + 1]
    ]
    lines = arguments.work / "clips.jsonl"
    wanted = tuple((name, weights) for name in arguments.recognisers for weights in arguments.weights)
    failed = run_grid(chosen, partial(look, wanted=wanted), lines, at_once=arguments.jobs, summarise=lambda record: "")
    summed = summed_up(read_records(lines))
    (arguments.work / "recognition.jsonl").write_text("".join(json.dumps(one) + "\n" for one in summed))
    finish(failed)


@cache
def models(wanted: tuple[tuple[str, str], ...]) -> tuple[Any, dict[str, Any]]:
    """What tells the struck frames, by way, and the recognisers."""
    import cv2
    import torch

    from jostle.mending.loading import MendingOptions
    from jostle.models.loading.models import load_recogniser

    cv2.setNumThreads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tellers = {MENDED: MendingOptions("jostle").get(device), KNOWN: MendingOptions("known").get(device)}
    return tellers, {
        f"{name} {weights}": load_recogniser(name, weights=weights, device=device) for name, weights in wanted
    }


def look(clip: Shown, wanted: tuple[tuple[str, str], ...]) -> Record:
    """What each recogniser says of a clip, in every cell and way."""
    begin = time.monotonic()
    tellers, recognisers = models(wanted)
    order = VideoJob(clip.name, Path(clip.path), cells(), seed=0)
    pictures: dict[bytes, tuple[int, Frames]] = {}
    place: dict[str, dict[str, int]] = {way: {} for way in WAYS}
    found: dict[str, list[int]] = {}
    with open_footage(order) as footage:
        spec, rng = next(iter(recognisers.values())).spec, rng_for(0, "clips", clip.name)
        (row,) = sample_frames(Sampling(spread="even"), spec, footage.clean.pts, footage.clean.fps, rng)
        finding = {way: teller.finder_for(footage.clean) for way, teller in tellers.items()}
        for cell in order.cells:
            under = footage.under(cell)
            top, came_from = CachedFrames(under), origins(under)
            struck = {way: one.find_damaged(top, came_from) for way, one in finding.items()}
            found[cell.name] = counts(struck[MENDED], struck[KNOWN])
            for way in WAYS:
                shown = gather(top, row if way == AS_IS else nearest_undamaged(struck[way])[row])
                place[way][cell.name] = pictures.setdefault(shown.tobytes(), (len(pictures), shown))[0]
    frames = np.stack([shown for _, shown in pictures.values()])
    told = {name: one(frames).argmax(1).tolist() for name, one in recognisers.items()}
    seconds = round(time.monotonic() - begin, 1)
    return {"run": asdict(clip), "told": told, "place": place, "found": found, "seconds": seconds}


def summed_up(records: list[Record]) -> list[Record]:
    """A line for each recogniser: the share of clips told right in every cell and way; and one for what was found."""
    if not records:
        return []
    made: list[Record] = []
    for name in records[0]["told"]:
        scores: dict[str, dict[str, float]] = {way: {} for way in WAYS}
        for way in WAYS:
            for cell in records[0]["place"][way]:
                right = [one["told"][name][one["place"][way][cell]] == one["run"]["label"] for one in records]
                scores[way][cell] = round(float(np.mean(right)), 5)
        model, weights = name.split()
        run = {"recogniser": model, "weights": weights}
        made.append({"study": "recognition", "run": run, "clips": len(records), "scores": scores})
    found = {cell: np.sum([one["found"][cell] for one in records], 0).tolist() for cell in records[0]["found"]}
    return [*made, {"study": "recognition found", "found": found}]


if __name__ == "__main__":
    from studies import mending_recognition  # by this name worker processes find it

    mending_recognition.main()
