"""FrameDrop: single frames are struck before the extractor sees them, in every epoch other ones.

What the extractor sees of each frame, as it is and as it is when struck, is read from disk; a draw then only costs
the windows that contain a struck frame. The features are those that extracting the struck video would give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from jostle.core.random import key_for
from jostle.corruptions.engine.placement import Placement, Timeline, parse
from jostle.errors import BadValue, DataError
from jostle.features.windows import WindowGrid
from jostle.io.files.arrays import read_features
from jostle.models.checkpoints import read_weights
from jostle.models.extractors.extractor import Extractor, load_extractor
from jostle.models.weights.shipped import weights_file
from jostle.training.detection_config import DataConfig, DropConfig
from jostle.training.feature_crops import Features, Video

FRAMES = "frames"  # folder beside the features that holds what was seen of each frame


@dataclass(frozen=True, eq=False)
class FrameDrop:
    """Corrupted features of videos, drawn anew.

    Attributes:
        config: which frames, and whether anew in every epoch.
        placement: the rule that draws them.
        extractor: joins what was seen.
        stride: frames between two rows of features.
        clean: (N, D) of each video: what was seen of its frames.
        struck: the same, with every frame struck.
        seed: of the draws.
    """

    config: DropConfig
    placement: Placement
    extractor: Extractor
    stride: int
    clean: Mapping[str, Features]
    struck: Mapping[str, Features]
    seed: int

    @classmethod
    def of(cls, data: DataConfig, videos: Sequence[Video], seed: int, device: torch.device) -> FrameDrop | None:
        """What the settings ask for; None if they ask for no drop.

        Raises:
            BadValue: if the extractor sees windows whole.
            DataError: if what was seen of a video is missing or does not fit its features.
        """
        config = data.drop
        if config is None:
            return None
        path = weights_file(config.extractor) if config.weights is None else Path(config.weights)
        extractor = load_extractor(config.extractor, weights=read_weights(path), device=str(device))
        if extractor.frame_dim is None:
            raise BadValue(
                f"data.drop: {config.extractor} sees windows whole, so a drop needs the videos themselves; extract "
                "corrupted features once, with -c black_frame --placement pair, and set data.corrupted"
            )
        clean, struck = {}, {}
        for video in videos:
            name = f"{data.prefix}{video.name}{data.suffix}"
            kept, hit = (Path(folder) / FRAMES / name for folder in (data.features, config.struck))
            clean[video.name] = read_features(kept, channels=extractor.frame_dim)
            struck[video.name] = read_features(hit, channels=extractor.frame_dim)
            _check(video, clean[video.name], struck[video.name], hit, data)
        return cls(config, parse(config.placement), extractor, data.grid[0], clean, struck, seed)

    def on(self, videos: Sequence[Video], epoch: int) -> list[Video]:
        """Videos with the corrupted features of an epoch."""
        windows = WindowGrid(self.extractor.spec.frames, self.stride)
        seed = key_for(self.seed, "drop", epoch if self.config.fresh else 0)
        touched, mixed = [], []
        for video in videos:
            seen, hit = self.clean[video.name], self.struck[video.name]
            actions = video.segments.astype(np.float64) * self.stride + 0.5 * windows.window  # frame positions
            mask = self.placement.mask(Timeline(len(seen), actions, seed, video.name))
            rows = windows.touched(mask)
            rows = rows[rows < len(video.features)]  # other rules of counting leave out the last
            frames = windows.frames_of(rows, len(seen))  # (B, window)
            mixed.append(np.where(mask[frames][..., None], hit[frames], seen[frames]))
            touched.append(rows)
        joined = self.extractor.join(np.concatenate(mixed))
        made = []
        for video, rows, new in zip(
            videos, touched, np.split(joined, np.cumsum([len(r) for r in touched])[:-1]), strict=True
        ):
            features = video.features.copy()
            features[rows] = new
            made.append(replace(video, corrupted=features))
        return made

    def fingerprint(self) -> str:
        """Of all that was seen."""
        made = hashlib.sha256()
        for name in self.clean:
            for seen in (self.clean[name], self.struck[name]):
                made.update(f"{name} {seen.shape} {seen.sum(dtype=np.float64):.9e}".encode("utf-8", "surrogatepass"))
        return made.hexdigest()


def _check(video: Video, clean: Features, struck: Features, path: Path, data: DataConfig) -> None:
    if clean.shape != struck.shape:
        raise DataError(f"{path}: {struck.shape}, but of the clean video {clean.shape} was seen", fault="F51")
    windows = WindowGrid(data.grid[1], data.grid[0]).count(len(clean))
    if not windows - 2 <= len(video.features) <= windows:
        raise DataError(
            f"{path}: {len(clean)} frames make {windows} windows, but video {video.name} has {len(video.features)}; "
            "extract features and frames together, with --keep-frames",
            fault="F51",
        )
