"""Cost of probing: one damaged frame at every position of the actions, in clean passes: `python -m bench.probing`.

Beside it stands what the same trials cost by brute force, which is a corrupted video, features of all of it and the
detector for each; a few of them are measured. The scores are the same to the bit.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import sys
from collections.abc import Sequence

import numpy as np
import torch

import jostle
from bench.timing import finish, hold_to_one_thread, make_parser, seconds
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
from jostle.features.engine import VideoFeatures

KIND = "thumos14-c/black_frame"
MOST_CLEAN_PASSES, LEAST_GAIN = 40, 20


def by_brute_force(models: FeatureDetectionPredictor, job: VideoJob, trial: Trial) -> Segments:
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
        found = prober.judge(job, trials)
        judged.update(zip(trials, found, strict=True))
        return found

    spans = prober.spans(job)
    Search(spans, np.ones(len(spans), np.bool_), {KIND: (1,)}, judge).curves()
    return judged


def main() -> int:
    """Measure and print; exit with 1 under --strict when an aim is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="actionformer_puppets")
    parser.add_argument("--videos", type=int, default=2, help="of the test set")
    parser.add_argument("--brute", type=int, default=5, help="trials of each video by brute force")
    options = parser.parse_args()
    hold_to_one_thread()
    torch.set_num_threads(1)
    data = jostle.load_dataset("puppets", subset="test")
    task = make_task(load_benchmark("puppets-c"), data)
    models = FeatureDetectionPredictor(jostle.load_extractor("puppet_net"), jostle.load_detector(options.model))
    rows, same = [], True
    for turn, name in enumerate([task.videos[0], *task.videos[: options.videos]]):
        job = task.make_job(name, data.videos[name], (CLEAN_CELL,), 0)
        clean = min(seconds(lambda: models(job)) for _ in range(3))  # noqa: B023
        judged: dict[Trial, Judgement] = {}
        taken = seconds(lambda: judged.update(probe_all_positions(models, task, job)))  # noqa: B023
        some = list(judged)[:: max(len(judged) // options.brute, 1)][: options.brute]
        outputs: list[Segments] = []
        brute = seconds(lambda: outputs.extend(by_brute_force(models, job, trial) for trial in some))  # noqa: B023
        for trial, output in zip(some, outputs, strict=True):
            same &= bool(np.array_equal(task.judge(name, output, 0.0)[0], judged[trial][0]))
        if turn:  # the first video is done twice: the first time compiles kernels and fills caches
            rows.append((len(judged), taken / clean, len(judged) * brute / len(some) / taken))
            print(
                f"{name}: {len(judged)} positions, {taken / clean:.1f} clean passes, "
                f"{rows[-1][2]:.1f} times cheaper than each video whole",
                flush=True,
            )
    passes, gain = (float(np.mean([row[i] for row in rows])) for i in (1, 2))
    print(f"{options.model}: {passes:.1f} clean passes (at most {MOST_CLEAN_PASSES})")
    print(f"{gain:.1f} times cheaper (at least {LEAST_GAIN}); {'the same scores' if same else 'OTHER SCORES'}")
    numbers = {"model": options.model, "clean_passes": passes, "gain": gain, "same": same}
    return finish(options, numbers, missed=passes > MOST_CLEAN_PASSES or gain < LEAST_GAIN or not same)


if __name__ == "__main__":
    sys.exit(main())
