"""Cost of probing one damaged frame at every position of the actions, in clean passes: `python -m bench.probing`.

It is compared with brute force, which corrupts the video, extracts all features and runs the detector for each
trial; only a few of these are timed. Scores must be equal to the bit.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import sys
from collections.abc import Sequence

import numpy as np

import jostle
from bench.timing import finish, limit_threads, make_parser, time_call
from jostle.core.types import Segments
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.inference.feature_detection import FeatureGrid, submit_detection
from jostle.evaluation.inference.footage import open_video
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.probing.predictor import ProbePredictor, ProbeSettings
from jostle.evaluation.probing.search import Judgement, Search, Trial
from jostle.evaluation.recipes.recipe import CLEAN_CELL
from jostle.evaluation.recipes.selection import load_benchmark
from jostle.evaluation.tasks.task import Task, make_task
from jostle.features.video import VideoFeatures

KIND = "thumos14-c/black_frame"
MAX_CLEAN_PASSES, MIN_GAIN = 40, 20


def detect_by_brute_force(models: FeatureDetectionPredictor, job: VideoJob, trial: Trial) -> Segments:
    """Decode, corrupt and extract the whole video, and detect in it."""
    grid = FeatureGrid(models.extractor.spec.stride, models.extractor.spec.frames)
    with open_video(job) as reader:
        video = VideoFeatures(reader, models.extractor, video_id=job.name, segments=job.segments)
        features = video.whole(trial.cell.parsed, trial.cell.placement).features
        finish_detection = submit_detection(
            models.detector, np.array(features), grid, name=job.name, fps=video.fps, duration=reader.end_s
        )
        return finish_detection()


def probe_all_positions(
    models: FeatureDetectionPredictor, task: Task[Segments], job: VideoJob
) -> dict[Trial, Judgement]:
    """Judge one damaged frame at every position of every action."""
    prober = ProbePredictor(models, task, ProbeSettings({KIND: (1,)}, 1, 0.0))
    judged: dict[Trial, Judgement] = {}

    def judge(trials: Sequence[Trial]) -> list[Judgement]:
        judgements = prober.judge(job, trials)
        judged.update(zip(trials, judgements, strict=True))
        return judgements

    spans = prober.spans(job)
    Search(spans, np.ones(len(spans), np.bool_), {KIND: (1,)}, judge).curves()
    return judged


def main() -> int:
    """Print the cost for each video and the means, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="actionformer_puppets")
    parser.add_argument("--videos", type=int, default=2, help="number of test videos")
    parser.add_argument("--brute", type=int, default=5, help="trials of each video by brute force")
    options = parser.parse_args()
    limit_threads()
    data = jostle.load_dataset("puppets", subset="test")
    task = make_task(load_benchmark("puppets-c"), data)
    models = FeatureDetectionPredictor(jostle.load_extractor("puppet_net"), jostle.load_detector(options.model))
    rows, same = [], True
    for turn, name in enumerate([task.videos[0], *task.videos[: options.videos]]):
        job = task.make_job(name, data.videos[name], (CLEAN_CELL,), 0)
        clean_s = min(time_call(lambda: models(job)) for _ in range(3))  # noqa: B023
        judged: dict[Trial, Judgement] = {}
        probe_s = time_call(lambda: judged.update(probe_all_positions(models, task, job)))  # noqa: B023
        trials = list(judged)[:: max(len(judged) // options.brute, 1)][: options.brute]
        outputs: list[Segments] = []
        brute_s = time_call(
            lambda: outputs.extend(detect_by_brute_force(models, job, trial) for trial in trials)  # noqa: B023
        )
        for trial, output in zip(trials, outputs, strict=True):
            same &= bool(np.array_equal(task.judge(name, output, 0.0)[0], judged[trial][0]))
        if turn:  # the first video is probed twice: the first time compiles kernels and fills caches
            passes, gain = probe_s / clean_s, len(judged) * brute_s / len(trials) / probe_s
            rows.append((passes, gain))
            print(
                f"{name}: {len(judged)} positions, {passes:.1f} clean passes, "
                f"{gain:.1f} times cheaper than brute force",
                flush=True,
            )
    passes, gain = (float(mean) for mean in np.mean(rows, 0))
    print(f"{options.model}: {passes:.1f} clean passes (target: at most {MAX_CLEAN_PASSES}); ", end="")
    print(f"{gain:.1f} times cheaper than brute force (target: at least {MIN_GAIN}); ", end="")
    print("equal scores" if same else "SCORES DIFFER")
    numbers = {"model": options.model, "clean_passes": passes, "gain": gain, "same": same}
    return finish(options, numbers, missed=passes > MAX_CLEAN_PASSES or gain < MIN_GAIN or not same)


if __name__ == "__main__":
    sys.exit(main())
