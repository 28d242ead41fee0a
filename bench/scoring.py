"""What scoring and diagnosing cost, beside the public evaluators' algorithm: `python -m bench.scoring`.

One run, one thread, the same predictions. The rival is a plain transcription over data frames, whose cost is linear in
predictions and takes minutes; by default it is given a tenth of them and the ratio is of the cost of one prediction.
`--whole` gives it all. Answers are compared before anything is timed.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.detections import made_predictions, made_truth
from bench.timing import by_turns, finish, make_parser, seconds
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.io.files.annotations import read_predictions, write_predictions
from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.score import score

COUNT = 200_000
TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
DRAWS = 1000
CURVE = (10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class Row:
    """One contest: seconds, ours for `count` predictions and the rival's for `rival_count`."""

    what: str
    count: int
    ours_s: float
    rival_count: int
    rival_s: float
    target: float

    @property
    def ratio(self) -> float:
        """How many times longer the rival takes over one prediction."""
        return (self.rival_s / self.rival_count) / (self.ours_s / self.count)

    def __str__(self) -> str:
        met = "" if self.ratio >= self.target else f"  (target {self.target:g}x)"
        return (
            f"{self.what:34s} ours {self.ours_s:8.3f} s of {self.count:>9,}   "
            f"rival {self.rival_s:9.2f} s of {self.rival_count:>9,}   {self.ratio:8.0f}x{met}"
        )


def first(predictions: Predictions, count: int) -> Predictions:
    """The first rows."""
    columns = {name: getattr(predictions, name)[:count] for name in ("video", "start", "end", "label", "score")}
    return Predictions(predictions.videos, predictions.classes, **columns)


def frames(truth: Truth, predictions: Predictions):  # type: ignore[no-untyped-def]
    """Both as the rival has them."""
    import pandas as pd

    names, classes = np.array(truth.videos), np.array(truth.classes)
    real = pd.DataFrame(
        {"video": names[truth.video], "start": truth.start, "end": truth.end, "label": classes[truth.label]}
    )
    found = pd.DataFrame(
        {
            "video": np.array(predictions.videos)[predictions.video],
            "start": predictions.start,
            "end": predictions.end,
            "label": np.array(predictions.classes)[predictions.label],
            "score": predictions.score,
        }
    )
    return real, found


def contests(count: int, rival_count: int) -> list[Row]:
    """mAP, diagnosis and resampling, after a check that the answers agree."""
    import pandas as pd

    from bench.transcriptions import detection as rival

    truth = made_truth()
    predictions = made_predictions(truth, count)
    some = first(predictions, rival_count)
    real, found = frames(truth, some)

    theirs: dict[str, object] = {}

    def timed(name: str, work: Callable[[], object]) -> float:
        def once() -> None:
            theirs[name] = work()

        taken = seconds(once)
        print(f"  rival, {name}: {taken:.1f} s", file=sys.stderr)
        return taken

    ours = score(some, truth, protocol="activitynet", tious=TIOUS)
    rival_map = timed("mAP", lambda: rival.mean_ap(real, found, TIOUS))
    agree("mAP", ours.map, theirs["mAP"])

    explained = diagnose(some, truth, style="thumos14")
    buckets = {
        name: pd.Series([c.labels[i] for i in c.bucket]) for name, c in explained.instances.characteristics.items()
    }
    diagnosis = rival.Diagnosis(real, found, styles["thumos14"].tious)
    rival_diagnosis = sum(
        timed(name, work)
        for name, work in (
            ("impact", diagnosis.impact),
            ("sensitivity", lambda: diagnosis.sensitivity(buckets)),
            ("misses", lambda: diagnosis.false_negatives(buckets)),
        )
    )
    agree("impact", list(explained.false_positives.impact.values()), list(theirs["impact"].values()))  # type: ignore[attr-defined]
    for name, buckets_of in theirs["sensitivity"].items():  # type: ignore[attr-defined]
        for bucket, value in buckets_of.items():
            agree(f"sensitivity {name} {bucket}", explained.sensitivity.buckets[name][bucket], value)
    for name, rates in theirs["misses"].items():  # type: ignore[attr-defined]
        for bucket, value in rates.items():
            agree(f"misses {name} {bucket}", explained.false_negatives.buckets[name][bucket], value)

    made = score(predictions, truth, tious=TIOUS)
    diagnose(predictions, truth, style="thumos14")
    drawing = seconds(lambda: made.resamples.mean_aps(draws=DRAWS, seed=0))
    return [
        Row(
            "mAP at five thresholds",
            count,
            turns(lambda: score(predictions, truth, tious=TIOUS)),
            rival_count,
            rival_map,
            500,
        ),
        Row(
            "the full diagnosis", count, turns(lambda: diagnose(predictions, truth)), rival_count, rival_diagnosis, 500
        ),
        Row(f"{DRAWS} resamples, rival: one pass", count, drawing, rival_count, rival_map, 10),
    ]


def turns(work: Callable[[], object]) -> float:
    return by_turns(work, None, repeats=5, clock="cpu").ours


def agree(what: str, ours: object, theirs: object) -> None:
    if not np.allclose(np.array(ours, float), np.array(theirs, float), rtol=0, atol=1e-9):
        raise SystemExit(f"{what}: {ours} is not {theirs}; nothing was timed")


def reading(count: int) -> str:
    """JSON of many predictions, beside the standard parser alone."""
    predictions = made_predictions(made_truth(), count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.json"
        write_predictions(predictions, path)
        text = path.read_text()
        pair = by_turns(lambda: read_predictions(path), lambda: json.loads(text), repeats=3, clock="cpu")
    assert pair.peer is not None
    took = f"{pair.ours:.2f} s beside {pair.peer:.2f} s of json.loads ({pair.ours / pair.peer:.2f}x)"
    return f"reading {count:,} from JSON: {took}"


def curve_point(count: int) -> None:
    """Score and diagnose in a process of its own, so that its peak memory is its own."""
    truth = made_truth()
    score(made_predictions(truth, 1000), truth, tious=TIOUS)
    diagnose(made_predictions(truth, 1000), truth)  # compiled
    predictions = made_predictions(truth, count)
    forget_peak()
    scoring = seconds(lambda: score(predictions, truth, tious=TIOUS))
    scored = peak_mb()
    explaining = seconds(lambda: diagnose(predictions, truth))
    columns = sum(getattr(predictions, name).nbytes for name in ("video", "start", "end", "label", "score"))
    point = {"count": count, "score_s": scoring, "diagnose_s": explaining, "columns_mb": columns / 1e6}
    print(json.dumps(point | {"score_peak_mb": scored, "peak_mb": peak_mb()}))


def forget_peak() -> None:
    """Start counting peak memory afresh, where the system can: making the predictions took more than scoring them."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Peak memory of this process since it began, or since `forget_peak`."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def curve() -> list[dict[str, float]]:
    made = []
    for count in CURVE:
        done = subprocess.run(
            [sys.executable, "-m", "bench.scoring", "--point", str(count)],
            capture_output=True,
            text=True,
            check=True,
        )
        made.append(json.loads(done.stdout))
    return made


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--whole", action="store_true", help="give the rival all predictions")
    parser.add_argument("--no-curve", action="store_true", help="leave out ten thousand to ten million")
    parser.add_argument("--point", type=int, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.point:
        curve_point(words.point)
        return
    print(f"{COUNT:,} predictions, 3,300 instances, 212 videos, CPU seconds of one thread")
    rows = contests(COUNT, COUNT if words.whole else COUNT // 10)
    for row in rows:
        print(row)
    print(reading(400_000))
    points = [] if words.no_curve else curve()
    for point in points:
        print(
            f"{point['count']:>11,.0f} predictions ({point['columns_mb']:4.0f} MB): score {point['score_s']:7.3f} s, "
            f"diagnose {point['diagnose_s']:7.3f} s, peak {point['score_peak_mb']:.0f} and {point['peak_mb']:.0f} MB"
        )
    numbers = {"rows": [asdict(row) | {"ratio": row.ratio} for row in rows], "curve": points}
    raise SystemExit(finish(words, numbers, missed=any(row.ratio < row.target for row in rows)))


if __name__ == "__main__":
    main()
