"""The verb on features: which videos and corruptions they are of, and their extraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.config import ExtractConfig, VideoFeatureOptions
from jostle.api.video import as_segments, video_path
from jostle.core.options import takes
from jostle.core.types.clip import check_rate
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError, JostleError
from jostle.mending.loading import MendingOptions
from jostle.models.loading.names import need_torch
from jostle.models.loading.reference import ModelRef

if TYPE_CHECKING:
    from jostle.features.folder import CorruptionOptions, ExtractionSummary
    from jostle.models.extractors.protocol import FeatureExtractor


@takes(ExtractConfig)
def extract(config: ExtractConfig) -> ExtractionSummary:
    """Write the features of a video, or of every video in a folder, as `<out>/<video id>.npy` and `features.json`.

    What is there already and was made the same way from the same video is left as it is, so a stopped run goes on. An
    extractor that is an object stays in this process, unless `model_processes` is given. `clean` features are those of
    the video as it is, not mended.

    Raises:
        JostleError: if nothing could be made. Videos of a folder that cannot be read are set aside and listed.
    """
    need_torch("extractors")
    from jostle.api.engines import place_of
    from jostle.evaluation.inference.remote import connect_extractor, load_extractor_predictor
    from jostle.features.folder import extract_videos
    from jostle.models.devices import one_thread

    mending = None if config.mend is None else MendingOptions(config.mend)
    if mending is not None:
        mending.check(known=False)
    with video_path(config.source, config.video_id, config.fps) as path:
        videos, corrupting = videos_and_corruptions(config, path, config.truth, config.subset)
        changes = {} if config.stride is None else {"stride": config.stride}
        model = ModelRef("extractor", config.extractor, config.weights, changes)
        with place_of(
            "local",
            config.device,
            config.jobs,
            many=len(videos) > 1 and config.jobs != 1,
            model_processes=config.model_processes,
            picklable=isinstance(config.extractor, str),
        ) as place:
            load: Callable[[], FeatureExtractor] = partial(model.get, place.device)
            with place.serving(partial(load_extractor_predictor, load, one_thread)) as served:
                if served is not None:
                    load = partial(connect_extractor, served)
                here = place.device if served is None else "cpu"  # device of the inspector
                return extract_videos(
                    videos,
                    load,
                    Path(config.out),
                    name=model.name,
                    weights=model.identity()[0],
                    corrupting=corrupting,
                    rule=config.rule,
                    reproduce_bugs=config.reproduce_bugs,
                    keep_frames=config.keep_frames,
                    clean=None if config.clean is None else Path(config.clean),
                    mend=None if mending is None else partial(mending.get, here),
                    rates=rates_of(videos, config.truth, config.fps),
                    overwrite=config.overwrite,
                    jobs=place.jobs,
                    progress=config.progress,
                )


def videos_and_corruptions(
    config: VideoFeatureOptions, source: Path, truth: Truth | str | Path | None, subset: str | None = None
) -> tuple[Mapping[str, Path], CorruptionOptions]:
    """Resolve the videos, and the corruptions to apply to each."""
    from jostle.corruptions.engine.placement import parse_placement
    from jostle.corruptions.engine.spec import Spec
    from jostle.datasets.videos import find_videos, id_at
    from jostle.features.folder import CorruptionOptions

    spec, segments, video_id = config.spec, config.segments, config.video_id
    specs = tuple(str(Spec.parse(one)) for one in ([spec] if isinstance(spec, str | Spec) else spec))
    if config.placement is not None:
        parse_placement(config.placement)
        if not specs:
            raise BadValue("a placement says where a corruption strikes: name one as well, with -c SPEC")
    if segments is not None and truth is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    found = find_videos(source) if source.is_dir() else None
    alone = found is None or list(found.values()) == [source]
    if found is not None and not alone:
        if video_id is not None or segments is not None:
            raise BadValue(f"{source} is a folder of them; an id or actions belong to a single video")
        if not found:
            raise DataError(f"{source}: no videos there; give a video, a folder of images, or a folder that holds some")
        videos: Mapping[str, Path] = found
    else:
        videos = {video_id if video_id is not None else id_at(source): source}
    actions, print_of = _actions(videos, as_segments(segments), truth, subset, alone=alone)
    if truth is not None:
        videos = {name: videos[name] for name in actions}
    known = (actions, print_of) if specs else ({}, None)
    return videos, CorruptionOptions(specs, config.placement, config.seed, *known)


def rates_of(
    videos: Mapping[str, Path], truth: Truth | str | Path | None, fps: Fraction | float | None
) -> dict[str, Fraction]:
    """The rate of each video that does not state its own, as annotations say it, or else as is given."""
    from jostle.io.files.annotations import read_truth
    from jostle.io.video.source import kind_of

    frames = [name for name, path in videos.items() if not kind_of(path).is_coded]
    if not frames:
        return {}
    requested = None if fps is None else check_rate(fps)
    known = truth
    if isinstance(truth, str | Path):
        try:
            known = read_truth(truth)
        except JostleError:  # a table of one video's actions; its reader reports what is wrong with it
            known = None
    recorded = {name: known.fps_of(name) for name in frames} if isinstance(known, Truth) else {}
    rates = {name: recorded.get(name) or requested for name in frames}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _actions(
    videos: Mapping[str, Path],
    segments: Segments | None,
    truth: Truth | str | Path | None,
    subset: str | None,
    *,
    alone: bool,
) -> tuple[dict[str, Segments], str | None]:
    """The actions of each video, and a fingerprint of where they come from."""
    from jostle.core.formatting import join_names
    from jostle.io.files.annotations import read_truth, segments_of
    from jostle.io.video.source import file_fingerprint

    if truth is None:
        if segments is None:
            return {}, None
        own = dict.fromkeys(videos, segments)
        return own, Truth.from_segments(own).fingerprint
    fingerprint = truth.fingerprint if isinstance(truth, Truth) else None
    if alone and not isinstance(truth, Truth):
        own = {name: segments_of(truth, name, subset=subset) for name in videos}
    else:
        known = truth if isinstance(truth, Truth) else read_truth(truth, subset=subset)
        own = {name: actions for name, actions in known.actions.items() if name in videos}
        if not own:
            raise DataError(
                f"none of the videos ({join_names(videos)}) is in the truth ({join_names(known.videos)}); check ids",
                fault="F21",
            )
    if fingerprint is None:
        file = Path(str(truth))
        fingerprint = file_fingerprint(file) if file.is_file() else Truth.from_segments(own).fingerprint
    return own, fingerprint
