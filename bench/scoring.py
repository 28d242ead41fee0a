"""Cost of scoring and diagnosis, compared with the public evaluators' algorithm: `python -m bench.scoring`.

Both sides process the same predictions on one thread. The rival is a plain transcription over data frames, which takes
minutes; as its time is linear in the predictions, it gets a tenth of them by default and the ratio is that of the cost
of one prediction. With `--whole` it gets all. Results are compared before anything is timed.
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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bench.detections import make_predictions, make_truth
from bench.timing import compare, finish, make_parser, time_call, time_median
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.io.files.annotations import read_predictions, write_predictions
from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.score import score

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
COUNT = 200_000
TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
DRAWS = 1000
CURVE = (10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class ScoringTiming:
    """Seconds of an analysis, ours for `count` predictions and the rival's for `rival_count`."""

    what: str
    count: int
    ours_s: float
    rival_count: int
    rival_s: float
    target: float

    @property
    def ratio(self) -> float:
        """Cost of one prediction by the rival, relative to ours."""
        return (self.rival_s / self.rival_count) / (self.ours_s / self.count)

    def __str__(self) -> str:
        met = "" if self.ratio >= self.target else f"  (target {self.target:g}x)"
        return (
            f"{self.what:34s} ours {self.ours_s:8.3f} s of {self.count:>9,}   "
            f"rival {self.rival_s:9.2f} s of {self.rival_count:>9,}   {self.ratio:8.0f}x{met}"
        )


def head(predictions: Predictions, count: int) -> Predictions:
    """Return the first `count` predictions."""
    columns = {name: getattr(predictions, name)[:count] for name in ("video", "start", "end", "label", "score")}
    return Predictions(predictions.videos, predictions.classes, **columns)


def make_frames(truth: Truth, predictions: Predictions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ground truth and predictions as data frames for the rival."""
    import pandas as pd

    names, classes = np.array(truth.videos), np.array(truth.classes)
    truth_frame = pd.DataFrame(
        {"video": names[truth.video], "start": truth.start, "end": truth.end, "label": classes[truth.label]}
    )
    prediction_frame = pd.DataFrame(
        {
            "video": np.array(predictions.videos)[predictions.video],
            "start": predictions.start,
            "end": predictions.end,
            "label": np.array(predictions.classes)[predictions.label],
            "score": predictions.score,
        }
    )
    return truth_frame, prediction_frame


def time_rival(name: str, work: Callable[[], T]) -> tuple[T, float]:
    """Return the result and the seconds of an analysis by the rival."""
    results: list[T] = []
    seconds = time_call(lambda: results.append(work()))
    print(f"  rival, {name}: {seconds:.1f} s", file=sys.stderr)
    return results[0], seconds


def compare_analyses(count: int, rival_count: int) -> list[ScoringTiming]:
    """Time mAP, diagnosis and resampling, after a check that the results agree."""
    import pandas as pd

    from bench.transcriptions import detection as rival

    truth = make_truth()
    predictions = make_predictions(truth, count)
    part = head(predictions, rival_count)
    frames = make_frames(truth, part)

    ours = score(part, truth, protocol="activitynet", tious=TIOUS)
    mean_ap, mean_ap_s = time_rival("mAP", lambda: rival.mean_ap(*frames, TIOUS))
    check_equal("mAP", ours.map, mean_ap)

    diagnosis = diagnose(part, truth, style="thumos14")
    buckets = {
        name: pd.Series([c.labels[i] for i in c.bucket]) for name, c in diagnosis.instances.characteristics.items()
    }
    rival_diagnosis = rival.Diagnosis(*frames, styles["thumos14"].tious)
    impact, impact_s = time_rival("impact", rival_diagnosis.impact)
    sensitivity, sensitivity_s = time_rival("sensitivity", lambda: rival_diagnosis.sensitivity(buckets))
    misses, misses_s = time_rival("misses", lambda: rival_diagnosis.false_negatives(buckets))
    check_equal("impact", list(diagnosis.false_positives.impact.values()), list(impact.values()))
    for name, scores in sensitivity.items():
        for bucket, value in scores.items():
            check_equal(f"sensitivity {name} {bucket}", diagnosis.sensitivity.buckets[name][bucket], value)
    for name, rates in misses.items():
        for bucket, value in rates.items():
            check_equal(f"misses {name} {bucket}", diagnosis.false_negatives.buckets[name][bucket], value)

    whole = score(predictions, truth, tious=TIOUS)
    diagnose(predictions, truth, style="thumos14")
    resampling_s = time_call(lambda: whole.resamples.mean_aps(draws=DRAWS, seed=0))
    score_s = time_median(lambda: score(predictions, truth, tious=TIOUS), repeats=5, clock="cpu")
    diagnosis_s = time_median(lambda: diagnose(predictions, truth), repeats=5, clock="cpu")
    rival_diagnosis_s = impact_s + sensitivity_s + misses_s
    return [
        ScoringTiming("mAP at five thresholds", count, score_s, rival_count, mean_ap_s, 500),
        ScoringTiming("the full diagnosis", count, diagnosis_s, rival_count, rival_diagnosis_s, 500),
        ScoringTiming(f"{DRAWS} resamples, rival: one pass", count, resampling_s, rival_count, mean_ap_s, 10),
    ]


def check_equal(what: str, ours: object, theirs: object) -> None:
    """Exit unless both results agree to 1e-9."""
    if not np.allclose(np.array(ours, float), np.array(theirs, float), rtol=0, atol=1e-9):
        raise SystemExit(f"{what}: {ours} is not {theirs}; nothing was timed")


def compare_reading(count: int) -> str:
    """Time reading predictions from JSON and the standard parser alone, and return a line with both."""
    predictions = make_predictions(make_truth(), count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.json"
        write_predictions(predictions, path)
        text = path.read_text()
        times = compare(lambda: read_predictions(path), lambda: json.loads(text), repeats=3, clock="cpu")
    ratio = times.ours / times.peer
    return f"reading {count:,} from JSON: {times.ours:.2f} s, json.loads {times.peer:.2f} s ({ratio:.2f}x)"


def measure_point(count: int) -> None:
    """Score and diagnose in this process, whose peak memory is that of the predictions, and print JSON."""
    truth = make_truth()
    score(make_predictions(truth, 1000), truth, tious=TIOUS)
    diagnose(make_predictions(truth, 1000), truth)  # compiles
    predictions = make_predictions(truth, count)
    reset_peak()
    score_s = time_call(lambda: score(predictions, truth, tious=TIOUS))
    score_peak_mb = peak_mb()
    diagnose_s = time_call(lambda: diagnose(predictions, truth))
    columns = sum(getattr(predictions, name).nbytes for name in ("video", "start", "end", "label", "score"))
    point = {"count": count, "score_s": score_s, "diagnose_s": diagnose_s, "columns_mb": columns / 1e6}
    print(json.dumps(point | {"score_peak_mb": score_peak_mb, "peak_mb": peak_mb()}))


def reset_peak() -> None:
    """Reset peak memory, where the system can: generating the predictions needs more than scoring them."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Return the peak memory of this process since it started, or since `reset_peak`."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measure_curve() -> list[dict[str, float]]:
    """Return the points of the curve, each measured in a process of its own."""
    points = []
    for count in CURVE:
        command = [sys.executable, "-m", "bench.scoring", "--point", str(count)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        points.append(json.loads(output))
    return points


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparisons and the curve, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--whole", action="store_true", help="give the rival all predictions")
    parser.add_argument("--no-curve", action="store_true", help="skip the curve from ten thousand to ten million")
    parser.add_argument("--point", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.point:
        measure_point(options.point)
        return 0
    print(f"{COUNT:,} predictions, 3,300 instances, 212 videos, CPU seconds of one thread")
    rows = compare_analyses(COUNT, COUNT if options.whole else COUNT // 10)
    for row in rows:
        print(row)
    print(compare_reading(400_000))
    points = [] if options.no_curve else measure_curve()
    for point in points:
        print(
            f"{point['count']:>11,.0f} predictions ({point['columns_mb']:4.0f} MB): score {point['score_s']:7.3f} s, "
            f"diagnose {point['diagnose_s']:7.3f} s, peak {point['score_peak_mb']:.0f} and {point['peak_mb']:.0f} MB"
        )
    numbers = {"rows": [asdict(row) | {"ratio": row.ratio} for row in rows], "curve": points}
    return finish(options, numbers, missed=any(row.ratio < row.target for row in rows))


if __name__ == "__main__":
    sys.exit(main())
