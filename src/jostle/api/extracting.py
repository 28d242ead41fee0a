"""Features from video: of one file or of a folder, clean or corrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.corrupting import SegmentsLike
from jostle.api.sources import rates_of, videos_and_corruptions
from jostle.loading.extractor import AskedExtractor
from jostle.loading.inspector import AskedMending
from jostle.loading.installed import need_torch
from jostle.types.truth import Truth
from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.corrupting.spec import Spec
    from jostle.extraction.extractor import FeatureExtractor
    from jostle.extraction.folder import Extracted
    from jostle.extraction.windows import ReleasedFault, Rule
    from jostle.models.inspector import Inspector
    from jostle.models.recogniser import Recogniser

Progress = Callable[[int, int], None]


def extract(
    source: str | Path,
    extractor: str | FeatureExtractor | Recogniser,
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
    fps: Fraction | float | None = None,
    stride: int | None = None,
    rule: Rule = "all",
    released_faults: Sequence[ReleasedFault] = (),
    keep_frames: bool = False,
    clean: str | Path | None = None,
    mend: str | Path | Inspector | None = None,
    overwrite: bool = False,
    jobs: int | None = 1,
    model_processes: int | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Extracted:
    """Write the features of a video, or of every video in a folder, as `<out>/<video id>.npy` and `features.json`.

    What is there already and was made the same way from the same video is left as it is, so a stopped run goes on.

    Args:
        source: a video file or a folder of numbered images, or a folder of either.
        extractor: one of `jostle names extractors`, or of `jostle names models`; `package.module:attribute`; or the
            thing itself, such as what `as_extractor` makes of a recogniser. See `load_extractor`.
        weights: its checkpoint; None for those that come with jostle.
        spec: corruptions to apply first, in order.
        placement: which frames they strike; by default what each spec says.
        segments: the actions of a single video as (start, end) pairs in seconds.
        truth: annotations to take actions from; of a folder only the videos named there are extracted.
        subset: only videos of this subset of the truth.
        video_id: of a single video; by default the name of the file without its ending.
        fps: the rate of images, where neither `times.json` nor the truth says it; 30 if nothing does.
        stride: frames from one window to the next, if not as is usual for the extractor.
        rule: how windows are counted; see `jostle.extraction.windows.WindowGrid`.
        released_faults: faults of the THUMOS14-C extractors to repeat; see there as well.
        keep_frames: also write what was seen of each frame, as `<out>/frames/<video id>.npy`.
        clean: folder of clean features made with `keep_frames`; then only what a corruption changes is computed.
        mend: replace what struck frames touch by what lies around it: `jostle` for the inspector that comes along,
            weights of your own, or an `Inspector` says which they are. `clean` features are then those of the video as
            it is, not mended.
        overwrite: replace features in `out` that were made otherwise, instead of refusing to.
        jobs: videos at once, each in a process of its own; None for one a core.
        model_processes: processes that hold the extractor, for those that decode and corrupt to ask; 0 for one in each
            of those. By default one a GPU if there are several jobs, and none on a CPU. Features do not depend on it.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (videos done, videos in all), or for a single video with frames.

    Raises:
        JostleError: if nothing could be made. Videos of a folder that cannot be read are set aside and listed.
    """
    need_torch("extractors")
    from jostle.api.engines import place_of
    from jostle.detectors.devices import device_for
    from jostle.extraction.folder import extract_videos
    from jostle.looking.remote import extracting, extractor_from_afar
    from jostle.models.threads import one_thread

    mending = None if mend is None else AskedMending(mend)
    if mending is not None:
        mending.check(known=False)
    videos, corrupting = videos_and_corruptions(
        source, spec, placement, segments=segments, truth=truth, subset=subset, video_id=video_id, seed=seed
    )
    changes = {} if stride is None else {"stride": stride}
    asked = AskedExtractor(extractor, weights)
    named = isinstance(extractor, str)
    if jobs is None and not named and str(device_for(device)) == "cpu":
        jobs = cores()  # a thing on a GPU stays where it is
    many = named and len(videos) > 1 and jobs != 1
    with place_of("local", device, jobs, many=many, model_processes=model_processes) as place:
        load: Callable[[], FeatureExtractor] = partial(asked.get, device=place.device, **changes)
        with place.serving(partial(extracting, load, one_thread)) as served:
            if served is not None:
                load = partial(extractor_from_afar, served)
            here = place.device if served is None else "cpu"  # where struck frames are found
            return extract_videos(
                videos,
                load,
                Path(out),
                name=asked.name,
                weights=asked.fingerprint(),
                corrupting=corrupting,
                rule=rule,
                released_faults=released_faults,
                keep_frames=keep_frames,
                clean=None if clean is None else Path(clean),
                mend=None if mending is None else partial(mending.get, here),
                rates=rates_of(videos, truth, fps),
                overwrite=overwrite,
                jobs=place.jobs,
                progress=progress,
            )
