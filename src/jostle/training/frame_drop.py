"""FrameDrop: corruption of single frames before the extractor, drawn anew in every epoch.

The features of each frame, clean and corrupted, are read from disk; a draw then only costs the windows that contain a
corrupted frame. The result equals the features of the corrupted video.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from jostle.core.random import key_for
from jostle.corruptions.engine.placement import Placement, Timeline, parse_placement
from jostle.errors import BadValue, DataError
from jostle.features.windows import WindowGrid
from jostle.io.files.arrays import read_features
from jostle.models.checkpoints import read_weights
from jostle.models.extractors.extractor import Extractor, build_extractor
from jostle.models.weights.packaged import weights_file
from jostle.training.detection_config import DataConfig, DropConfig
from jostle.training.feature_crops import Features, FeatureVideo

FRAMES = "frames"  # folder of frame features beside the features


@dataclass(frozen=True, eq=False)
class FrameDrop:
    """Source of corrupted features of videos, drawn per epoch.

    Attributes:
        config: settings.
        placement: the rule that draws them.
        extractor: computes windows from frame features.
        stride: frames between two rows of features.
        clean: (N, D) frame features of each video.
        corrupted: the same of videos with every frame corrupted.
        seed: seed of the draws.
    """

    config: DropConfig
    placement: Placement
    extractor: Extractor
    stride: int
    clean: Mapping[str, Features]
    corrupted: Mapping[str, Features]
    seed: int

    @classmethod
    def of(cls, data: DataConfig, videos: Sequence[FeatureVideo], seed: int, device: torch.device) -> FrameDrop | None:
        """Create the FrameDrop of the settings; None if they have none.

        Raises:
            BadValue: if the extractor processes whole windows.
            DataError: if frame features are missing or do not fit the features of a video.
        """
        config = data.drop
        if config is None:
            return None
        path = weights_file(config.extractor) if config.weights is None else Path(config.weights)
        extractor = build_extractor(config.extractor, read_weights(path), str(device))
        if extractor.frame_dim is None:
            raise BadValue(
                f"data.drop: {config.extractor} processes whole windows, so a drop needs the videos; extract "
                "corrupted features once, with -c black_frame --placement pair, and set data.corrupted"
            )
        clean, dropped = {}, {}
        for video in videos:
            name = f"{data.prefix}{video.name}{data.suffix}"
            clean_path, dropped_path = (Path(folder) / FRAMES / name for folder in (data.features, config.struck))
            clean[video.name] = read_features(clean_path, channels=extractor.frame_dim)
            dropped[video.name] = read_features(dropped_path, channels=extractor.frame_dim)
            _check(video, clean[video.name], dropped[video.name], dropped_path, data)
        return cls(config, parse_placement(config.placement), extractor, data.grid[0], clean, dropped, seed)

    def draw(self, videos: Sequence[FeatureVideo], epoch: int) -> list[FeatureVideo]:
        """Return videos with the corrupted features of an epoch."""
        windows = WindowGrid(self.extractor.spec.frames, self.stride)
        seed = key_for(self.seed, "drop", epoch if self.config.fresh else 0)
        touched, mixed = [], []
        for video in videos:
            clean, dropped = self.clean[video.name], self.corrupted[video.name]
            actions = video.segments.astype(np.float64) * self.stride + 0.5 * windows.window  # frame positions
            mask = self.placement.mask(Timeline(len(clean), actions, seed, video.name))
            rows = windows.touched(mask)
            rows = rows[rows < len(video.features)]  # other counting rules drop the last
            frames = windows.frames_of(rows, len(clean))  # (B, window)
            mixed.append(np.where(mask[frames][..., None], dropped[frames], clean[frames]))
            touched.append(rows)
        joined = self.extractor.join(np.concatenate(mixed))
        corrupted = []
        for video, rows, new in zip(
            videos, touched, np.split(joined, np.cumsum([len(r) for r in touched])[:-1]), strict=True
        ):
            features = video.features.copy()
            features[rows] = new
            corrupted.append(replace(video, corrupted=features))
        return corrupted

    def fingerprint(self) -> str:
        """Return a hash of all frame features."""
        digest = hashlib.sha256()
        for name in self.clean:
            for features in (self.clean[name], self.corrupted[name]):
                digest.update(
                    f"{name} {features.shape} {features.sum(dtype=np.float64):.9e}".encode("utf-8", "surrogatepass")
                )
        return digest.hexdigest()


def _check(video: FeatureVideo, clean: Features, dropped: Features, path: Path, data: DataConfig) -> None:
    if clean.shape != dropped.shape:
        raise DataError(
            f"{path}: frame features are {dropped.shape}, those of the clean video {clean.shape}", fault="F51"
        )
    windows = WindowGrid(data.grid[1], data.grid[0]).count(len(clean))
    if not windows - 2 <= len(video.features) <= windows:
        raise DataError(
            f"{path}: {len(clean)} frames make {windows} windows, but video {video.name} has {len(video.features)}; "
            "extract features and frames together, with --keep-frames",
            fault="F51",
        )
