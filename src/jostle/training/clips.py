"""Store of training clips as pixels, read once in parallel, with corrupted versions of each.

The file is memory-mapped, so that several runs share it, and what does not fit into memory is read when it is needed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from jostle.core.environment import cache_folder
from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.core.types.frame_sets import FrameSets
from jostle.core.types.video import ClipSource, VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain
from jostle.datasets.dataset import Dataset, Request, datasets
from jostle.errors import DataError, JostleError, ResourceError
from jostle.io.files.atomic import replacing
from jostle.io.video.decode import Reader
from jostle.io.video.source import kind_of, source_state
from jostle.metrics.frame_sets import frame_number
from jostle.models.input_spec import InputSpec, resized
from jostle.parallel.workers import available_cpus, map_unordered
from jostle.training.recognition_config import ClipsConfig, CorruptionsConfig

Indices = npt.NDArray[np.int64]
FORMAT = 1  # of the files of pixels: raise it when the same settings give other bytes


@dataclass(frozen=True)
class VideoClip:
    """One video and its class.

    Attributes:
        frames: of a set of frames, their numbers in the video; empty for a whole video.
        fps: the rate of a folder of images, where the folder does not say it.
    """

    name: str
    path: Path
    label: int
    frames: tuple[int, ...] = ()
    fps: Fraction | None = None


@dataclass(frozen=True, eq=False)
class PixelClips:
    """Training clips as arrays of pixels.

    Attributes:
        names: one for each clip.
        labels: (N,) class numbers.
        where: (N,) the row of each in `frames`.
        frames: (M, versions, T, H, W, 3) uint8; the first version is clean.
        are_sets: whether the frames of a clip are a set around an anchor, rather than a stretch of time.
    """

    names: tuple[str, ...]
    labels: Indices
    where: Indices
    frames: Frames
    are_sets: bool = False

    def __len__(self) -> int:
        return len(self.names)

    def of(self, rows: Sequence[int]) -> PixelClips:
        """Return a subset of the clips; the pixels are shared."""
        some = np.asarray(rows, np.int64)
        return replace(self, names=tuple(self.names[i] for i in rows), labels=self.labels[some], where=self.where[some])


@dataclass(frozen=True)
class Preparation:
    """Conversion of a video to a row of pixels; plain data, as it is sent to other processes.

    Attributes:
        shown: number of frames to keep, evenly spaced.
        resize: target size of frames; see `InputSpec`.
        versions: number of corrupted versions.
        specs: corruptions to draw from, one for each version; missing severities are drawn too.
        severities: severities to draw from.
        seed: seed of the draws and of the corruptions.
    """

    shown: int
    resize: tuple[int, int] | int | None = None
    versions: int = 0
    specs: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, config: ClipsConfig, corruptions: CorruptionsConfig, spec: InputSpec) -> Preparation:
        """Create the preparation from the settings."""
        for text in corruptions.specs:
            Spec.parse(text)
        many = corruptions.versions
        return cls(
            spec.frames * config.denser,
            spec.resize,
            many,
            corruptions.specs if many else (),
            corruptions.severities if many else (),
            config.seeds[0],
        )

    def draw_spec(self, name: str, version: int) -> Spec:
        """Draw the corruption of a version of a clip."""
        return draw_corruption(self.specs, self.severities, rng_for(self.seed, "version", name, version))

    def rows(self, video: VideoClip) -> Frames:
        """Return the (1 + versions, shown, H, W, 3) pixels of a video."""
        try:
            with Reader(video.path, fps=video.fps) as reader:
                first, stop = (min(video.frames), max(video.frames) + 1) if video.frames else (0, len(reader))
                clip = Clip(reader.block(first, stop), reader.pts[first:stop], reader.fps)
        except JostleError as error:
            error.add_note(f"while reading {video.name} to learn from it")
            raise
        indices = np.array(video.frames) - first if video.frames else evenly_spaced(len(clip), self.shown)
        versions = [_gather(ClipSource(clip), indices)]
        for version in range(self.versions):
            seed = key_for(self.seed, "version", version)
            versions.append(
                corrupt_frames(clip, [self.draw_spec(video.name, version)], indices, seed=seed, video=video)
            )
        return self._resized(np.stack(versions))

    def _resized(self, frames: Frames) -> Frames:
        if self.resize is None or frames.shape[2:4] == self.resize:
            return frames
        flat = torch.from_numpy(frames).flatten(0, 1).permute(0, 3, 1, 2).float()
        small = resized(flat, self.resize).round_().clamp_(0, 255).byte().permute(0, 2, 3, 1)
        result: Frames = small.reshape(*frames.shape[:2], *small.shape[1:]).numpy()
        return result


def draw_corruption(specs: Sequence[str], severities: Sequence[int], rng: np.random.Generator) -> Spec:
    """Draw one of the corruptions, and its severity if it names none."""
    text = specs[int(rng.integers(len(specs)))]
    return Spec.parse(text if ":" in text else f"{text}:{severities[int(rng.integers(len(severities)))]}")


def evenly_spaced(total: int, many: int) -> Indices:
    """Return the middles of `many` equal parts of a video of `total` frames.

    >>> evenly_spaced(10, 5).tolist()
    [1, 3, 5, 7, 9]
    """
    return (2 * np.arange(many) + 1) * total // (2 * many)


def corrupt_frames(clip: Clip, specs: Sequence[Spec], indices: Indices, *, seed: int, video: VideoClip) -> Frames:
    """Return some frames of a corrupted clip, as `corrupt` would; other frames are made only if needed."""
    timeline = Timeline.of(clip.pts, clip.fps, None, seed=seed, video_id=video.name)
    masks = masks_for(specs, None, timeline)
    coded = video.path if kind_of(video.path).is_coded else None
    return _gather(chain(ClipSource(clip), specs, masks, seed=seed, video_id=video.name, path=coded), indices)


def _gather(source: VideoSource, indices: Indices) -> Frames:
    unique, inverse = np.unique(indices, return_inverse=True)
    return np.stack([source.block(int(t), int(t) + 1)[0] for t in unique])[inverse]


def list_videos(config: ClipsConfig, subset: str, *, seeds: Sequence[int]) -> tuple[tuple[str, ...], list[VideoClip]]:
    """Return the classes of a data set, and the available videos of a subset."""
    kind = datasets[config.dataset]
    kind.check_subset(subset)
    root = cache_folder() if config.root is None else Path(config.root)
    jobs = config.jobs or available_cpus()
    classes: tuple[str, ...] = ()
    videos: list[VideoClip] = []
    for seed in seeds:
        data = kind.load(Request(subset, root, seed, jobs)).at_hand()
        prefix = f"{seed}/" if len(seeds) > 1 else ""
        if isinstance(data.annotations[0], FrameSets):
            videos += _frame_set_clips(data, prefix, config.k)
            classes = tuple(map(str, range(1 + max(video.label for video in videos)))) if videos else ()
        else:
            classes = data.labels.classes
            videos += _labelled_clips(data, prefix)
    if not videos:
        raise DataError(f"{config.dataset}: no videos of subset {subset!r} in {root}", fault="F21")
    return classes, videos


def _labelled_clips(data: Dataset, prefix: str) -> Iterator[VideoClip]:
    labels = data.labels
    for row, video in enumerate(labels.videos):
        own = labels.label[labels.video == row]
        if len(own) != 1:
            raise DataError(f"{data.name}: video {video} has {len(own)} classes; a recogniser is taught one a video")
        yield VideoClip(prefix + video, Path(data.videos[video]), int(own[0]), fps=data.rate_of(video))


def _frame_set_clips(data: Dataset, prefix: str, k: int) -> Iterator[VideoClip]:
    """Yield a clip for each anchor: its similar neighbours, and itself in place of dissimilar ones."""
    sets = data.frames
    for anchor, others in sets.sets.items():
        label, near = sets.labels[anchor], {frame_number(frame)[1] for frame in others}
        own, middle = [label] if isinstance(label, int) else list(label), frame_number(anchor)[1]
        path = data.videos.get(anchor.rpartition("/")[0])
        if path is None or Path(path).is_dir():
            raise DataError(
                f"{data.name}: frame {anchor} is not one of a video file; frames are only learned from video"
            )
        numbers = tuple(t if t in near else middle for t in range(middle - k, middle + k + 1))
        yield VideoClip(prefix + anchor, Path(path), own[0], numbers)


def load_clips(
    videos: Sequence[VideoClip],
    preparation: Preparation,
    *,
    cache: Path,
    jobs: int,
    progress: Callable[[int, int], None] | None = None,
) -> PixelClips:
    """Load the pixels of videos, prepared by `jobs` processes unless they are cached.

    Raises:
        ResourceError: if there is no room for them on the disk.
    """
    path = cache / f"clips-{_key(videos, preparation)}.npy"
    if not path.exists():
        _make(videos, preparation, path, jobs, progress)
    labels = np.array([video.label for video in videos], np.int64)
    frames = np.load(path, mmap_mode="r")
    are_sets = bool(videos[0].frames)
    return PixelClips(tuple(video.name for video in videos), labels, np.arange(len(videos)), frames, are_sets)


def _key(videos: Sequence[VideoClip], preparation: Preparation) -> str:
    digest = hashlib.sha256(f"{FORMAT} {preparation!r}".encode())
    for video in videos:
        digest.update(json.dumps([video.name, video.frames, *source_state(video.path, video.fps)]).encode())
    return digest.hexdigest()[:24]


def _make(
    videos: Sequence[VideoClip],
    preparation: Preparation,
    path: Path,
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    first = preparation.rows(videos[0])
    needed, free = len(videos) * first.nbytes, shutil.disk_usage(path.parent).free
    if needed > free:
        raise ResourceError(
            f"{path.parent}: the pixels of {len(videos)} clips take {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
            "free; lower corruptions.draws or data.denser, or set data.cache"
        )
    with replacing(path) as part:
        pixels = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=(len(videos), *first.shape))
        row_of = {video.name: row for row, video in enumerate(videos)}
        done = map_unordered(partial(_worker, preparation), list(videos), jobs)
        for count, (video, rows) in enumerate(done, 1):
            if rows.shape != first.shape:
                raise DataError(
                    f"{video.path}: its frames come out as {rows.shape[2:4]}, those of {videos[0].path} as "
                    f"{first.shape[2:4]}; set input.resize to a height and a width"
                )
            pixels[row_of[video.name]] = rows
            if progress is not None:
                progress(count, len(videos))
        pixels.flush()


def _worker(preparation: Preparation) -> Callable[[VideoClip], Frames]:
    import cv2

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    return preparation.rows
