"""Resolution of the videos a verb works on, and of the corruptions applied to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.video import SegmentsLike, as_segments
from jostle.core.types.clip import check_rate
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError

if TYPE_CHECKING:
    from jostle.corruptions.engine.spec import Spec
    from jostle.features.folder import CorruptionOptions


def videos_and_corruptions(
    source: str | Path,
    spec: str | Spec | Sequence[str | Spec],
    placement: str | None,
    *,
    segments: SegmentsLike,
    truth: Truth | str | Path | None,
    subset: str | None,
    video_id: str | None,
    seed: int,
) -> tuple[Mapping[str, Path], CorruptionOptions]:
    """Resolve the videos, and the corruptions to apply to each."""
    from jostle.corruptions.engine.placement import parse_placement
    from jostle.corruptions.engine.spec import Spec
    from jostle.datasets.videos import find_videos, id_at
    from jostle.features.folder import CorruptionOptions

    specs = tuple(str(Spec.parse(one)) for one in ([spec] if isinstance(spec, str | Spec) else spec))
    if placement is not None:
        parse_placement(placement)
        if not specs:
            raise BadValue("a placement says where a corruption strikes: name one as well, with -c SPEC")
    if segments is not None and truth is not None:
        raise BadValue("give the actions as segments or as a truth file, not both")
    path = Path(source)
    found = find_videos(path) if path.is_dir() else None
    alone = found is None or list(found.values()) == [path]
    if found is not None and not alone:
        if video_id is not None or segments is not None:
            raise BadValue(f"{path} is a folder of them; an id or actions belong to a single video")
        if not found:
            raise DataError(f"{path}: no videos there; give a video, a folder of images, or a folder that holds some")
        videos: Mapping[str, Path] = found
    else:
        videos = {video_id if video_id is not None else id_at(path): path}
    actions, print_of = _actions(videos, as_segments(segments), truth, subset, alone=alone)
    if truth is not None:
        videos = {name: videos[name] for name in actions}
    return videos, CorruptionOptions(specs, placement, seed, actions if specs else {}, print_of if specs else None)


def rates_of(
    videos: Mapping[str, Path], truth: Truth | str | Path | None, fps: Fraction | float | None
) -> dict[str, Fraction]:
    """The rate of each folder of images, as annotations say it, or else as is given."""
    from jostle.errors import JostleError
    from jostle.io.files.annotations import read_truth

    frames = [name for name, path in videos.items() if path.is_dir()]
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
    from jostle.io.files.annotations import read_truth, segments_of
    from jostle.io.files.fingerprint import file_fingerprint
    from jostle.io.files.video_ids import join_names

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
