"""Extractors, and features from video: of one file or of a folder, clean or corrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.corrupting import SegmentsLike
from jostle.api.detecting import need_torch
from jostle.api.models import NamedRecogniser
from jostle.api.recognising import load_recogniser
from jostle.api.sources import videos_and_corruptions
from jostle.errors import UnknownName
from jostle.shipped import shipped_names, weights_file
from jostle.types.truth import Truth
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.corrupting.spec import Spec
    from jostle.extraction.folder import Extracted
    from jostle.extraction.windows import ReleasedFault, Rule
    from jostle.models.extractor import Extractor

Progress = Callable[[int, int], None]


def load_extractor(name: str, *, weights: str | Path | None = None, device: str = "cpu", **changes: Any) -> Extractor:
    """A feature extractor by name: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

    Args:
        name: one of `jostle names extractors`; or one of `jostle names models`, whose features are what its last layer
            makes scores of.
        weights: a checkpoint in the public layout, for a model what `jostle.load_recogniser` takes; None for those
            that come with jostle, and where none do, an error that says where to get them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `stride=8`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("extractors")
    from jostle.detectors.checkpoints import read_weights
    from jostle.models.extractor import load_extractor as load
    from jostle.models.penultimate import as_extractor

    if _is_model(name):
        return as_extractor(load_recogniser(name, weights=weights, device=device, **changes))
    found = _weights(name, weights)
    return load(name, weights=None if found is None else read_weights(found), device=device, **changes)


def extract(
    source: str | Path,
    extractor: str,
    out: str | Path,
    *,
    weights: str | Path | None = None,
    spec: str | Spec | Sequence[str | Spec] = (),
    placement: str | None = None,
    segments: SegmentsLike = None,
    truth: Truth | str | Path | None = None,
    subset: str | None = None,
    video_id: str | None = None,
    seed: int = 0,
    stride: int | None = None,
    rule: Rule = "all",
    released_faults: Sequence[ReleasedFault] = (),
    keep_frames: bool = False,
    clean: str | Path | None = None,
    overwrite: bool = False,
    jobs: int | None = 1,
    device: str = "auto",
    progress: Progress | None = None,
) -> Extracted:
    """Write the features of a video, or of every video in a folder, as `<out>/<video id>.npy` and `features.json`.

    What is there already and was made the same way from the same video is left as it is, so a stopped run goes on.

    Args:
        source: a video file, or a folder of them.
        extractor: one of `jostle names extractors`, or of `jostle names models`; see `load_extractor`.
        weights: its checkpoint; None for those that come with jostle.
        spec: corruptions to apply first, in order.
        placement: which frames they strike; by default what each spec says.
        segments: the actions of a single video as (start, end) pairs in seconds.
        truth: annotations to take actions from; of a folder only the videos named there are extracted.
        subset: only videos of this subset of the truth.
        video_id: of a single video; by default the name of the file without its ending.
        stride: frames from one window to the next, if not as is usual for the extractor.
        rule: how windows are counted; see `jostle.extraction.windows.WindowGrid`.
        released_faults: faults of the THUMOS14-C extractors to repeat; see there as well.
        keep_frames: also write what was seen of each frame, as `<out>/frames/<video id>.npy`.
        clean: folder of clean features made with `keep_frames`; then only what a corruption changes is computed.
        overwrite: replace features in `out` that were made otherwise, instead of refusing to.
        jobs: videos at once, each in a process of its own; None for one a core, on a GPU one.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (videos done, videos in all), or for a single video with frames.

    Raises:
        JostleError: if nothing could be made. Videos of a folder that cannot be read are set aside and listed.
    """
    need_torch("extractors")
    from jostle.detectors.devices import device_for
    from jostle.extraction.folder import extract_videos

    videos, corrupting = videos_and_corruptions(
        source, spec, placement, segments=segments, truth=truth, subset=subset, video_id=video_id, seed=seed
    )
    place = str(device_for(device))
    if jobs is None:
        jobs = cores() if place == "cpu" else 1
    changes = {} if stride is None else {"stride": stride}
    return extract_videos(
        videos,
        partial(load_extractor, extractor, weights=weights, device=place, **changes),
        Path(out),
        name=extractor,
        weights=_fingerprint(extractor, weights),
        corrupting=corrupting,
        rule=rule,
        released_faults=released_faults,
        keep_frames=keep_frames,
        clean=None if clean is None else Path(clean),
        overwrite=overwrite,
        jobs=jobs,
        progress=progress,
    )


def _is_model(name: str) -> bool:
    """Whether a name is that of a recogniser, and not that of an extractor."""
    from jostle.models.extractor import extractors
    from jostle.models.recogniser import recognisers

    if name not in extractors and name not in recognisers:
        raise UnknownName("extractor", name, [*extractors, *recognisers])
    return name not in extractors


def _weights(extractor: str, weights: str | Path | None) -> str | Path | None:
    return weights_file(extractor) if weights is None and extractor in shipped_names() else weights


def _fingerprint(extractor: str, weights: str | Path | None) -> str | None:
    """Of the weights that an extractor gets, where there are any; whoever loads them says what is wrong with them."""
    from jostle.extraction.store import file_fingerprint

    if _is_model(extractor):
        return NamedRecogniser(extractor, weights).identity()[0]
    found = _weights(extractor, weights)
    return file_fingerprint(Path(found)) if found is not None and Path(found).is_file() else None
