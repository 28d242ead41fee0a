"""Preparation as a user's transform does it, found out from the transform, and its difference shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle

torch = pytest.importorskip("torch")

from jostle.extend import InputSpec

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PROGRAM = '''
import torch
from torch.nn import functional as F

class Resize:
    """Shaped like torchvision's: the long side is rounded down, and sizes are of the short side, or both."""
    def __init__(self, size, interpolation="bilinear", antialias=True, rounds=False):
        self.size, self.interpolation, self.antialias, self.rounds = size, interpolation, antialias, rounds
    def __call__(self, video):
        height, width = video.shape[-2:]
        short = min(height, width)
        to = self.size
        if isinstance(to, int):
            to = (to, int(to * width / short)) if height <= width else (int(to * height / short), to)
        out = F.interpolate(video.float(), to, mode=self.interpolation, align_corners=False, antialias=self.antialias)
        out = out.clamp(0, 255)
        return out.round().to(video.dtype) if self.rounds else out

class CenterCrop:
    def __init__(self, size):
        self.size = (size, size)
    def __call__(self, video):
        top = int(round((video.shape[-2] - self.size[0]) / 2.0))
        left = int(round((video.shape[-1] - self.size[1]) / 2.0))
        return video[..., top : top + self.size[0], left : left + self.size[1]]

class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std
    def __call__(self, video):
        mean, std = (torch.tensor(one)[:, None, None] for one in (self.mean, self.std))
        return (video / 255 - mean) / std

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms
    def __call__(self, video):
        for one in self.transforms:
            video = one(video)
        return video

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
evaluation = Compose([Resize(64), CenterCrop(56), Normalize(MEAN, STD)])
'''
shaped: dict[str, Any] = {}
exec(PROGRAM, shaped)
Compose, Resize, CenterCrop, Normalize = (shaped[name] for name in ("Compose", "Resize", "CenterCrop", "Normalize"))


def clip(height: int, width: int, frames: int = 2) -> Any:
    y, x = np.mgrid[:height, :width]
    grain = np.random.default_rng(height * width).integers(-20, 21, (frames, height, width, 3))
    return np.clip((120 + 70 * np.sin(x / 9) + 40 * np.cos(y / 6))[None, ..., None] + grain, 0, 255).astype(np.uint8)


def alone(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A transform of single pictures (H, W, 3) uint8, which refuses tensors."""

    def prepare(picture: Any) -> Any:
        if isinstance(picture, torch.Tensor):
            raise TypeError("pic should be PIL Image or ndarray")
        return transform(torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1)[None])[0].numpy()

    return prepare


TRANSFORMS = {
    "short side, centre": Compose([Resize(64), CenterCrop(56), Normalize(MEAN, STD)]),
    "short side, centre, grey levels": Compose([Resize(64, rounds=True), CenterCrop(56), Normalize(MEAN, STD)]),
    "no filter": Compose([Resize(48, antialias=False), CenterCrop(48), Normalize((0.5,) * 3, (0.5,) * 3)]),
    "bicubic": Compose([Resize(72, "bicubic"), CenterCrop(63), Normalize(MEAN, STD)]),
    "both sides": Compose([Resize((60, 80)), CenterCrop(55), Normalize((0.0,) * 3, (1.0,) * 3)]),
    "only a crop": Compose([CenterCrop(95), Normalize(MEAN, STD)]),
    "blue first": lambda video: TRANSFORMS["short side, centre"](video.flip(1)),
    "time last": lambda video: TRANSFORMS["short side, centre"](video).transpose(0, 1),
    "single pictures": alone(Compose([Resize(64), CenterCrop(56), Normalize(MEAN, STD)])),
    "values to 255": Compose([Resize(64), CenterCrop(56)]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_spec_like_a_transform_prepares_as_it_does(name: str) -> None:
    transform = TRANSFORMS[name]
    spec = InputSpec.like(transform, frames=2, layout="TCHW")
    for height, width in ((180, 321), (333, 181), (200, 267), (127, 128)):
        frames = clip(height, width)
        output = (
            torch.as_tensor(np.stack([transform(frame) for frame in frames]))
            if name == "single pictures"
            else transform(torch.from_numpy(frames).permute(0, 3, 1, 2))
        )
        output = output.transpose(0, 1) if name == "time last" else output
        levels = 255 * torch.tensor(spec.std)[:, None, None] * (spec.prepare(frames)[0] - output)
        assert float(levels.abs().max()) < (1.01 if "grey" in name else 0.05), (height, width)


def test_the_default_spec_gives_another_crop_and_like_says_which() -> None:
    spec = InputSpec.like(TRANSFORMS["short side, centre"], frames=8, step=4)
    assert (spec.frames, spec.step, spec.resize, spec.size) == (8, 4, 64, 56)
    assert (spec.floored, spec.odd_margin, spec.mean, spec.std) == (True, "even", MEAN, STD)
    frames = clip(333, 181)
    default = InputSpec(frames=2, resize=64, size=56, mean=MEAN, std=STD, layout="TCHW").prepare(frames)[0]
    output = TRANSFORMS["short side, centre"](torch.from_numpy(frames).permute(0, 3, 1, 2))
    assert float((default - output).abs().max()) > 0.1


@pytest.mark.fault("F193")
@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (lambda video: torch.rand(len(video), 3, 8, 8), "is random"),
        (lambda video: TRANSFORMS["short side, centre"](video).flip(-1), "turns, mirrors or pads"),
        (lambda video: TRANSFORMS["short side, centre"](video) ** 3, "something else than to resize|brighter"),
        (lambda video: TRANSFORMS["short side, centre"](video)[..., :40], "crops are square"),
        (lambda video: "frames", "takes no frames|gives a str"),
        (lambda video: 1 / 0, "takes no frames"),
        (lambda video: video.float().mean((1, 2, 3)), "gives .* of 1 frames"),
    ],
)
def test_a_transform_that_no_spec_is_like_is_refused(transform: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(jostle.JostleError, match=message) as caught:
        InputSpec.like(transform, frames=2)
    assert getattr(caught.value, "fault", None) == "F193"


def test_the_difference_of_two_preparations_is_shown() -> None:
    spec = InputSpec(frames=2, resize=64, size=56, mean=MEAN, std=STD)
    difference = jostle.api.compare_preparation(spec, TRANSFORMS["short side, centre"], clip(333, 181))
    assert difference.largest > 5
    assert not difference.alike
    assert difference.change == {"floored": True, "odd_margin": "even"}
    like = InputSpec.like(TRANSFORMS["short side, centre"], frames=2)
    assert jostle.api.compare_preparation(like, TRANSFORMS["short side, centre"], clip(180, 321)).alike
    other = jostle.api.compare_preparation(spec, TRANSFORMS["no filter"], clip(180, 321))
    assert (other.largest, other.shapes) == (None, ((56, 56), (48, 48)))


def test_doctor_compares_a_model_with_a_transform(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        PROGRAM + "\n\nclass Net(torch.nn.Module):\n    pass\n\n\nnet = Net()\n"
        "from jostle.extend import InputSpec\n"
        "net.spec = InputSpec(frames=2, resize=64, size=56, mean=MEAN, std=STD)\n"
    )
    command = [
        sys.executable,
        "-m",
        "jostle",
        "doctor",
        "--model",
        "mine:net",
        "--against",
        "mine:evaluation",
        "--json",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    report = json.loads(done.stdout)
    assert report["alike"] is False
    assert report["change"] == {"floored": True, "odd_margin": "even"}


def test_like_torchvision() -> None:
    transforms = pytest.importorskip("torchvision.transforms", exc_type=(ImportError, RuntimeError))
    transform = transforms.Compose(
        [transforms.Resize(64, antialias=True), transforms.CenterCrop(56), transforms.ConvertImageDtype(torch.float32),
         transforms.Normalize(MEAN, STD)]
    )  # fmt: skip
    spec = InputSpec.like(transform, frames=2, layout="TCHW")
    frames = clip(180, 321)
    output = transform(torch.from_numpy(frames).permute(0, 3, 1, 2))
    levels = 255 * torch.tensor(STD)[:, None, None] * (spec.prepare(frames)[0] - output)
    assert float(levels.abs().max()) < 1.01
