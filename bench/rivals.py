"""Other implementations that each corruption is compared with, and the targets of the ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from bench.clips import Frames
from bench.peer import NAMES, peer
from bench.transcriptions import glass, kinetics_c, thumos14_c, ucf101_p

SEVERITY = 3
FPS = 30.0

# From a clip to a function of the index of a frame, or to a function for the whole clip. Preparation that a user would
# do once is not part of the measured call.
OnFrame = Callable[[Frames], Callable[[int], Any]]
OnClip = Callable[[Frames], Callable[[], Any]]

NOISE_AND_LIGHT = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "brightness",
    "saturate",
    "contrast",
)
TARGETS = {
    **dict.fromkeys(NOISE_AND_LIGHT, 20.0),
    "zoom_blur": 30.0,
    "glass_blur": 15.0,
    "fog": 10.0,
    "jpeg_compression": 1.5,
}
SPATIAL_MOTION_BLUR = 7.0
NOT_SLOWER = 1.0


@dataclass(frozen=True)
class Rival:
    """Another implementation of a corruption.

    Attributes:
        spec: profile and name, without severity.
        name: name of the implementation.
        on_frame: for implementations that go frame by frame.
        on_clip: for implementations that need the whole clip.
        target: smallest ratio that meets the target.
        counted: whether the ratio is in the geometric mean; that of the second rival of a corruption is not.
    """

    spec: str
    name: str
    on_frame: OnFrame | None = None
    on_clip: OnClip | None = None
    target: float = NOT_SLOWER
    counted: bool = True


def list_rivals() -> list[Rival]:
    """Return all rivals, by profile."""
    return [*_imagenet_c(), *_kinetics_c(), *_ucf101_p(), *_thumos14_c()]


# Corruptions without another implementation; only their own cost is measured.
WITHOUT_PEER = (
    "thumos14-c/jittering",
    "thumos14-c/frame_rate",
    "thumos14-c/slow_motion",
    "thumos14-c/time_lapse",
    "thumos14-c/mix_spatial",
    "thumos14-c/mix_temporal",
)


def _package(profile: str, name: str, *, severity: int = SEVERITY, target: float | None = None) -> Rival:
    def on_frame(frames: Frames) -> Callable[[int], Any]:
        return lambda t: peer(name, frames[t], severity)

    if target is None:
        target = TARGETS.get(name, NOT_SLOWER)
    return Rival(f"{profile}/{name}", "imagecorruptions 1.1.2", on_frame, target=target)


def _imagenet_c() -> list[Rival]:
    package = {name: _package("imagenet-c", name) for name in NAMES}
    package["motion_blur"] = _package("imagenet-c", "motion_blur", target=SPATIAL_MOTION_BLUR)
    slow = package.pop("glass_blur")
    return [
        *package.values(),
        Rival(
            slow.spec,
            "transcription, compiled shuffle",
            lambda frames: lambda t: glass.glass_blur(frames[t], SEVERITY),
            target=TARGETS["glass_blur"],
        ),
        Rival(slow.spec, slow.name, slow.on_frame, counted=False),
    ]


def _kinetics_c() -> list[Rival]:
    rng = np.random.RandomState(0)

    def temporal_blur(profile: str) -> Rival:
        reach = kinetics_c.BLUR_REACH[profile][SEVERITY - 1]
        # The original returns 2 * reach frames fewer than it gets, so its clip is padded to give both the same length.
        before, after = [0] * reach, [-1] * reach

        def on_clip(frames: Frames) -> Callable[[], Any]:
            padded = np.concatenate([frames[before], frames, frames[after]])
            return lambda: kinetics_c.temporal_blur(padded, reach)

        return Rival(f"{profile}/motion_blur", "transcription", on_clip=on_clip)

    rate = kinetics_c.FRAME_RATE["kinetics-c"][SEVERITY - 1]
    return [
        *(_package("kinetics-c", name) for name in ("shot_noise", "brightness", "saturate")),
        Rival(
            "kinetics-c/contrast",
            "transcription",
            lambda frames: lambda t: kinetics_c.contrast(frames[t], SEVERITY),
            target=TARGETS["contrast"],
        ),
        Rival(
            "kinetics-c/rain",
            "transcription",
            lambda frames: lambda t: kinetics_c.rain(frames[t], SEVERITY, rng),
        ),
        Rival(
            "kinetics-c/fog",
            "transcription",
            on_clip=lambda frames: lambda: kinetics_c.fog(frames, SEVERITY, rng),
            target=TARGETS["fog"],
        ),
        temporal_blur("kinetics-c"),
        temporal_blur("ssv2-c"),
        Rival(
            "kinetics-c/frame_rate",
            "transcription",
            on_clip=lambda frames: lambda: kinetics_c.frame_rate(frames, rate, fps=FPS),
        ),
    ]


def _ucf101_p() -> list[Rival]:
    legacy, rng = np.random.RandomState(0), Random(0)

    def noise(name: str, corrupt: Callable[..., Any]) -> Rival:
        return Rival(
            f"ucf101-p/{name}",
            "transcription",
            lambda frames: lambda t: corrupt(frames[t], SEVERITY, legacy),
            target=TARGETS[name],
        )

    def order(name: str, draw: Callable[[int], list[int]]) -> Rival:
        def on_clip(frames: Frames) -> Callable[[], Any]:
            planes = frames.transpose(3, 0, 1, 2)
            return lambda: ucf101_p.gather(planes, draw(len(frames)))

        return Rival(f"ucf101-p/{name}", "transcription", on_clip=on_clip)

    def sampling(name: str, draw: Callable[[int, int], list[int]]) -> Rival:
        # Only the program that generates the data, which works on lists of frames, repeats the sampled ones; the
        # trainer shortens the clip.
        return Rival(
            f"ucf101-p/{name}",
            "transcription",
            on_clip=lambda frames: lambda: ucf101_p.hold(frames, draw(len(frames), SEVERITY)),
        )

    def camera(name: str, move: Callable[[Frames], Any]) -> Rival:
        return Rival(f"ucf101-p/{name}", "transcription", on_clip=lambda frames: lambda: move(frames))

    names = ("gaussian_noise", "impulse_noise", "zoom_blur", "defocus_blur", "jpeg_compression")
    return [
        *(_package("ucf101-p", name) for name in names),
        _package("ucf101-p", "motion_blur", target=SPATIAL_MOTION_BLUR),
        noise("shot_noise", ucf101_p.shot_noise),
        noise("speckle_noise", ucf101_p.speckle_noise),
        sampling("sampling", ucf101_p.sampling_order),
        sampling("reverse_sampling", ucf101_p.reverse_order),
        order("jumble", lambda n: ucf101_p.jumble_order(n, SEVERITY, rng)),
        order("box_jumble", lambda n: ucf101_p.box_jumble_order(n, SEVERITY, rng)),
        order("freeze", lambda n: ucf101_p.freeze_order(n, SEVERITY, rng)),
        camera("static_rotate", lambda frames: ucf101_p.static_rotate(frames, SEVERITY)),
        camera("rotate", lambda frames: ucf101_p.rotate(frames, SEVERITY, rng)),
        camera("translate", lambda frames: ucf101_p.translate(frames, SEVERITY, rng)),
    ]


def _thumos14_c() -> list[Rival]:
    rng = Random(0)
    overlay = thumos14_c.hand()

    def frame_by_frame(name: str, corrupt: Callable[[Frames, int], Any]) -> Rival:
        return Rival(f"thumos14-c/{name}", "transcription", lambda frames: lambda t: corrupt(frames, t))

    return [
        frame_by_frame("black_frame", lambda frames, t: thumos14_c.black_frame(frames[t])),
        frame_by_frame("overexposure", lambda frames, t: thumos14_c.overexposure(frames[t])),
        frame_by_frame("occlusion", lambda frames, t: thumos14_c.occlusion(frames[t], overlay)),
        frame_by_frame("packet_loss", lambda frames, t: thumos14_c.packet_loss(frames, t, rng)),
        # Severity is the share of frames there; the strength is always that of severity 5 in ImageNet-C.
        _package("thumos14-c", "motion_blur", severity=5, target=SPATIAL_MOTION_BLUR),
    ]
