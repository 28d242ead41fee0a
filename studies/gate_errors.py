"""How often the gate passes or fails a model that is exactly at its limit: `python -m studies.gate_errors -o DIR`.

Every draw of a study is a data set of few videos from a large population whose score is known. The limit of a condition
is that score, so that each decision is a wrong one with the probability that the level allows for its side. Models are
mediocre on clean video and worse when it is corrupted; videos differ in difficulty, and the cells of one video go
together.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.random import rng_for
from jostle.core.types import Predictions, Segments, Truth
from jostle.core.types.boxes import Boxes
from jostle.core.types.columns import Floats, Ints
from jostle.gate.evidence import Evidence, enough_draws
from jostle.metrics.bootstrap import Resamples, unseen_weights
from jostle.metrics.measured import MeanOverItems
from jostle.metrics.pm_k_detection import MatchedFrames
from jostle.metrics.score import score

VIDEOS = (2, 3, 5, 8, 12, 20, 50)
CONDITIONS = ("clean", "cell", "family or mean", "relative", "below reference")
SHARES = ("top-1 accuracy", "pm-k", "accuracy of answers", "R@1 of moments")
METRICS = (*SHARES, "mAP of moments", "mAP of detections", "pm-k mAP of boxes")
POPULATION = 4000
CELLS = 4
LEVEL = 0.95
NOMINAL = (1 - LEVEL) / 2  # on each side


@dataclass(frozen=True)
class Draws:
    """Scores of a run in one cell: the value, in draws of the videos, and with an unseen video at its two ends."""

    value: float
    drawn: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Items:
    """Population of videos with items that are right or wrong, or have a value from 0 to 1, in every cell."""

    count: Ints  # (videos,) items of each
    total: Floats  # (runs, cells, videos) sum of their values

    def measure(self, run: int, cell: int, videos: Ints, weights: Any) -> Draws:
        """Measure a cell on some videos."""
        total, count = self.total[run, cell, videos], self.count[videos].astype(np.float64)
        mean = MeanOverItems([str(v) for v in videos], total, count)
        drawn, ends = mean.drawn(weights)
        assert ends is not None
        return Draws(mean.value, drawn, *ends)

    def true_value(self, run: int, cell: int) -> float:
        """Return the score of the population."""
        return float(self.total[run, cell].sum() / self.count.sum())


def item_population(items: int, *, graded: bool = False, seed: int = 0) -> Items:
    """Return videos with 1 to `items` items each, whose difficulty differs from video to video."""
    rng = rng_for(seed, "gate errors", "items", items, graded)
    count = rng.integers(1, items + 1, POPULATION) if items > 1 else np.ones(POPULATION, np.int64)
    ease = rng.normal(0, 0.8, POPULATION)
    total = np.empty((2, CELLS + 1, POPULATION))
    for run in range(2):
        own = ease + rng.normal(0, 0.5, POPULATION)
        for cell in range(CELLS + 1):
            logit = 1.2 - (0.9 if cell else 0.0) - 0.3 * run + own + rng.normal(0, 0.4, POPULATION)
            right = 1 / (1 + np.exp(-logit))
            total[run, cell] = rng.beta(4 * right, 4 * (1 - right)) * count if graded else rng.binomial(count, right)
    return Items(count, total)


@dataclass(frozen=True, eq=False)
class Detections:
    """Population of videos with actions of three classes, and detections in every cell."""

    parts: Mapping[tuple[int, int], Resamples]  # by run and cell

    def measure(self, run: int, cell: int, videos: Ints, weights: Any) -> Draws:
        """Measure a cell on some videos."""
        part = select_videos(self.parts[run, cell], videos)
        drawn, ends = part.drawn(weights)
        assert ends is not None
        value = float(part.weighted(np.ones((1, len(videos)), np.int16)).mean())
        return Draws(value, drawn, *ends)

    def true_value(self, run: int, cell: int) -> float:
        """Return the score of the population."""
        return float(self.parts[run, cell].weighted(np.ones((1, POPULATION), np.int16)).mean())


def detection_population(seed: int = 0) -> Detections:
    """Return videos with 1 to 4 actions each, and what two detectors find of them."""
    rng, classes = rng_for(seed, "gate errors", "detections"), ("jump", "run", "sit down")
    truth, names = {}, [f"video_{v:05d}" for v in range(POPULATION)]
    ease = np.clip(0.6 + rng.normal(0, 0.2, POPULATION), 0.05, 0.95)
    for name in names:
        count = int(rng.integers(1, 5))
        start = 20.0 * np.arange(count) + 5 * rng.random(count)
        truth[name] = Segments(start, start + 5 + 8 * rng.random(count), rng.integers(0, 3, count), classes=classes)
    known, parts = Truth.from_segments(truth), {}
    for run in range(2):
        for cell in range(2):
            rows: list[tuple[float, ...]] = []
            for v, name in enumerate(names):
                rows += _detections_of(v, truth[name], ease[v] - 0.2 * cell - 0.05 * run, rng)
            video, start, end, label, confidence = np.array(rows).T
            table = Predictions(
                videos=tuple(names),
                video=video.astype(np.int32),
                start=start,
                end=end,
                label=label.astype(np.int32),
                score=confidence,
                classes=classes,
            )
            parts[run, cell] = score(table, known, protocol="thumos14", tious=(0.5,)).resamples
    return Detections(parts)


def _detections_of(video: int, actions: Segments, skill: float, rng: np.random.Generator) -> list[tuple[float, ...]]:
    """Return a detector's segments in one video: those that it finds, and false alarms."""
    rows = []
    for start, end, label in zip(actions.start, actions.end, actions.label, strict=True):
        if rng.random() < 0.1 + 0.85 * skill:
            shift = rng.normal(0, 0.15, 2) * (end - start) * (1.2 - skill)
            own = label if rng.random() < 0.85 else (label + 1) % 3
            rows.append((video, start + shift[0], max(end + shift[1], start + shift[0] + 0.1), own, rng.beta(4, 2)))
    for _ in range(rng.poisson(0.3 + 2 * (1 - skill))):
        start = 20 * len(actions) * rng.random()
        rows.append((video, start, start + 5, rng.integers(3), rng.beta(2, 4)))
    return rows


def select_videos(whole: Resamples, videos: Ints) -> Resamples:
    """Return the detections and instances of some videos, in their order."""
    index = np.full(len(whole.videos), -1)
    index[videos] = np.arange(len(videos))
    classes, groups = len(whole.first) - 1, len(whole.hit_first) - 1
    own = np.flatnonzero(index[whole.place_video] >= 0)
    hits = index[whole.place_video[whole.hit_place]] >= 0
    instances = index[whole.instance_video] >= 0
    label = np.repeat(np.arange(classes), np.diff(whole.first))[own]
    group = np.repeat(np.arange(groups), np.diff(whole.hit_first))[hits]
    return replace(
        whole,
        videos=tuple(whole.videos[v] for v in videos.tolist()),
        place_video=index[whole.place_video[own]].astype(np.int32),
        first=np.concatenate([[0], np.cumsum(np.bincount(label, minlength=classes))]),
        hit_place=np.searchsorted(own, whole.hit_place[hits]),
        hit_first=np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))]),
        instance_label=whole.instance_label[instances],
        instance_video=index[whole.instance_video[instances]].astype(np.int32),
    )


@dataclass(frozen=True, eq=False)
class BoxFrames:
    """Population of videos with an anchor each, its two neighbours, and boxes of three classes in every cell."""

    truth: Mapping[str, Boxes]
    found: Mapping[tuple[int, int], Mapping[str, Boxes]]  # by run and cell

    def measure(self, run: int, cell: int, videos: Ints, weights: Any) -> Draws:
        """Measure a cell on some videos."""
        names = [f"v{v:05d}" for v in videos.tolist()]
        sets = {f"{name}/5": [f"{name}/4", f"{name}/6"] for name in names}
        part = MatchedFrames.of(self.found[run, cell], self.truth, sets, 1)
        drawn, ends = part.drawn(weights)
        assert ends is not None
        return Draws(float(part.drawn(np.ones((1, len(names)), np.int16))[0][0]), drawn, *ends)

    def true_value(self, run: int, cell: int) -> float:
        """Return the score of the population."""
        names = [f"v{v:05d}" for v in range(POPULATION)]
        sets = {f"{name}/5": [f"{name}/4", f"{name}/6"] for name in names}
        whole = MatchedFrames.of(self.found[run, cell], self.truth, sets, 1)
        return float(whole.drawn(np.ones((1, POPULATION), np.int16))[0][0])


def box_population(seed: int = 0) -> BoxFrames:
    """Return videos with one or two objects on each of three frames, and what two detectors find of them."""
    rng = rng_for(seed, "gate errors", "boxes")
    truth: dict[str, Boxes] = {}
    found: dict[tuple[int, int], dict[str, Boxes]] = {(run, cell): {} for run in range(2) for cell in range(2)}
    for v in range(POPULATION):
        count, ease = int(rng.integers(1, 3)), rng.normal(0, 0.8)
        corner = 100.0 * np.arange(count)[:, None] + 20 * rng.random((count, 2))
        own, label = np.hstack([corner, corner + 40]), rng.integers(0, 3, count)
        for t in (4, 5, 6):
            truth[f"v{v:05d}/{t}"] = Boxes(own, label)
            for (run, cell), frames in found.items():
                skill = 1 / (1 + np.exp(-(1.4 - 0.9 * cell - 0.2 * run + ease)))
                there = rng.random(count) < skill
                alarms = rng.poisson(0.6 * (1 - skill))
                place = 300 + 100 * rng.random((alarms, 2))
                frames[f"v{v:05d}/{t}"] = Boxes(
                    np.vstack([own[there] + rng.normal(0, 4, (there.sum(), 4)), np.hstack([place, place + 40])]),
                    np.concatenate([label[there], rng.integers(0, 3, alarms)]),
                    np.concatenate([rng.beta(4, 2, there.sum()), rng.beta(2, 4, alarms)]),
                )
    return BoxFrames(truth, found)


POPULATIONS: dict[str, Callable[[], Any]] = {
    "top-1 accuracy": partial(item_population, 1),
    "pm-k": partial(item_population, 4, seed=1),
    "accuracy of answers": partial(item_population, 3, seed=2),
    "R@1 of moments": partial(item_population, 2, seed=3),
    "mAP of moments": partial(item_population, 3, graded=True, seed=4),
    "mAP of detections": detection_population,
    "pm-k mAP of boxes": box_population,
}


@cache
def population_of(metric: str) -> Any:
    """Return the population of a metric, made once a process."""
    return POPULATIONS[metric]()


@cache
def true_value(metric: str, run: int, cell: int) -> float:
    """Return the score of the population of a metric, which is computed once a process."""
    return float(population_of(metric).true_value(run, cell))


def evidence_of(metric: str, condition: str, videos: Ints, weights: Any) -> tuple[Evidence, float]:
    """Return what the gate knows of a condition on some videos, and the limit that the model is exactly at."""
    whole, count = population_of(metric), len(videos)
    cells = range(1, CELLS + 1) if isinstance(whole, Items) else (1,)
    averaged = isinstance(whole, Items)

    def metric_of(run: int) -> tuple[Draws, float]:
        if condition == "clean":
            return whole.measure(run, 0, videos, weights), true_value(metric, run, 0)
        if condition == "cell":
            return whole.measure(run, 1, videos, weights), true_value(metric, run, 1)
        parts = [whole.measure(run, cell, videos, weights) for cell in cells]
        means = Draws(*(np.mean([getattr(one, key) for one in parts], axis=0) for key in vars(parts[0])))
        true = float(np.mean([true_value(metric, run, cell) for cell in cells]))
        if condition != "relative":
            return replace(means, value=float(means.value)), true
        clean = whole.measure(run, 0, videos, weights)
        with np.errstate(all="ignore"):
            ratio = Draws(
                float(np.divide(means.value, clean.value)),
                means.drawn / clean.drawn,
                means.low / clean.high,
                means.high / clean.low,
            )
        return ratio, true / true_value(metric, run, 0)

    own, limit = metric_of(1)
    if condition != "below reference":
        trials = count if metric == "top-1 accuracy" and condition in ("clean", "cell") else None
        return Evidence(own.value, own.value, None, count, own.drawn, own.low, own.high, trials, averaged), limit
    other, reference = metric_of(0)
    ends = own.low - other.high, own.high - other.low
    gap = own.value - other.value
    drawn = own.drawn - other.drawn
    return Evidence(gap, own.value, other.value, count, drawn, *ends, averaged=averaged), limit - reference


def count_wrong(metric: str, condition: str, videos: int, repeats: int, seed: int = 0) -> tuple[int, int]:
    """Return how many of the repeats pass, and how many fail, at the limit."""
    passed = failed = 0
    averaged = isinstance(population_of(metric), Items)
    draws = min(enough_draws([LEVEL], 1, videos, averaged=averaged), 2000)
    names = [f"{i:04d}" for i in range(videos)]
    for repeat in range(repeats):
        chosen = rng_for(seed, "gate errors", metric, videos, repeat).permutation(POPULATION)[:videos]
        weights = unseen_weights(names, draws, seed * repeats + repeat)
        measured, limit = evidence_of(metric, condition, chosen, weights)
        interval = measured.interval(LEVEL) if math.isfinite(measured.value) else None
        if interval is not None:
            passed += interval[0] >= limit
            failed += interval[1] < limit
    return passed, failed


def _row(job: tuple[str, str, int, int]) -> dict[str, Any]:
    metric, condition, videos, repeats = job
    passed, failed = count_wrong(metric, condition, videos, repeats)
    return {
        "metric": metric,
        "condition": condition,
        "videos": videos,
        "repeats": repeats,
        "passed": passed,
        "failed": failed,
    }


def most_allowed(repeats: int) -> float:
    """Return the nominal rate and three standard errors of the simulation."""
    return NOMINAL + 3 * math.sqrt(NOMINAL * (1 - NOMINAL) / repeats)


def table(rows: Sequence[Mapping[str, Any]], side: str = "passed") -> str:
    """Return the rates of wrong decisions as Markdown, in percent."""
    sizes = sorted({row["videos"] for row in rows})
    lines = [
        "| metric | condition | " + " | ".join(map(str, sizes)) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    rates = {(row["metric"], row["condition"], row["videos"]): row[side] / row["repeats"] for row in rows}
    for metric, condition in dict.fromkeys((row["metric"], row["condition"]) for row in rows):
        cells = [f"{100 * rates[metric, condition, size]:.1f}" for size in sizes]
        lines.append(f"| {metric} | {condition} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Simulate, write the rows and the tables, and end with an error if a rate is too high."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--metrics", nargs="*", default=METRICS)
    parser.add_argument("--videos", nargs="*", type=int, default=VIDEOS)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (metric, condition, videos, options.repeats)
        for metric in options.metrics
        for condition in CONDITIONS
        for videos in options.videos
    ]
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool, open(options.out / "gate_errors.jsonl", "w") as file:
        for row in pool.map(_row, jobs):
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
    for side in ("passed", "failed"):
        print(f"{side} at the limit, percent; nominal {100 * NOMINAL:g}\n\n{table(rows, side)}\n")
    allowed = most_allowed(options.repeats)
    high = [row for row in rows if row["passed"] / row["repeats"] > allowed]
    print(f"{len(high)} of {len(rows)} rates are above {100 * allowed:.2f} %")
    raise SystemExit(1 if high else 0)


if __name__ == "__main__":
    main()
