"""Statistics of clean videos that adaptation methods need: measured once, stored in the run folder, and reused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.random import rng_for
from jostle.errors import BadValue, JostleError
from jostle.evaluation.inference.adaptation import AdaptedFeaturePredictor, AdaptedRecognitionPredictor
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL

if TYPE_CHECKING:
    from jostle.models.adaptation.method import AdaptationOptions

FILE = "source_statistics.npz"
AdaptedPredictor = AdaptedRecognitionPredictor | AdaptedFeaturePredictor


@dataclass(frozen=True)
class CleanVideos:
    """Clean videos that statistics of the source are measured on."""

    origin: str  # where they are from, for run.json
    load: Callable[[], Mapping[str, Path]]  # returns their paths by name


@dataclass(frozen=True)
class SourceStatistics:
    """Statistics of clean videos, with what identifies them."""

    tensors: Mapping[str, Any]
    content: bytes  # of their file
    about: Mapping[str, Any]  # method, network, origin and number of videos

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the statistics, for run.json."""
        return {**self.about, "fingerprint": f"sha256:{hashlib.sha256(self.content).hexdigest()}"}


def read_statistics(path: Path, method: str, network: str) -> SourceStatistics | None:
    """Read the statistics of a file or of a run folder; None if there is none.

    Args:
        network: name and fingerprint of the network that they have to be of.

    Raises:
        BadValue: F189 if the file is damaged, or of another method or network.
    """
    from jostle.models.adaptation.state_files import read_state

    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        return None
    stored = read_state(file)
    about = None if stored is None else _parse(stored[0])
    if stored is None or about is None or (about.get("method"), about.get("network")) != (method, network):
        whose = "damaged" if about is None else f"for {about.get('method')} of {about.get('network')}"
        raise BadValue(
            f"{file}: statistics of clean videos for {method} of {network} are wanted, and these are {whose}; give "
            f"those that such a run wrote, or a folder of clean videos",
            fault="F189",
        )
    return SourceStatistics(stored[1], file.read_bytes(), about)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def find_statistics(
    predictor: AdaptedPredictor,
    options: AdaptationOptions,
    network: str,
    *,
    seed: int,
    source_path: str | Path | None,
    out: Path | None,
    clean: CleanVideos | None,
) -> SourceStatistics:
    """Return the statistics that are given, those of a run that goes on, or else measure them.

    Args:
        network: name and fingerprint of the network.
        source_path: a file of statistics or a run folder with one; anything else is left to `clean`.
        out: the run folder.
        clean: clean videos to measure them on.

    Raises:
        BadValue: if there are neither statistics nor clean videos.
    """
    for path in (source_path, out):
        statistics = None if path is None else read_statistics(Path(path), options.method, network)
        # A run that goes on has to be given the same clean videos as before.
        if statistics is not None and (
            path is source_path or clean is None or statistics.about["origin"] == clean.origin
        ):
            return statistics
    if clean is None:
        raise BadValue(
            f"adaptation by {options.method} needs {options.kind.needs_source} on clean videos; give a folder of such "
            "videos, or a run folder that has their statistics: --adapt-source"
        )
    return measure_statistics(predictor, options, network, clean, seed)


def measure_statistics(
    predictor: AdaptedPredictor,
    options: AdaptationOptions,
    network: str,
    clean: CleanVideos,
    seed: int,
) -> SourceStatistics:
    """Measure what a method needs to know of clean videos, on as many as its settings say, drawn by the seed.

    Raises:
        BadValue: if none of the videos can be used.
    """
    from jostle.models.adaptation.state_files import pack_state

    paths = clean.load()
    names = sorted(paths)
    order = rng_for(seed, "adaptation", "source").permutation(len(names))
    sample = [names[i] for i in order.tolist()[: options.settings.source_videos]]
    if not sample:
        raise BadValue(f"{clean.origin}: no clean videos there, and {options.method} needs some; give --adapt-source")
    jobs = [VideoJob(name, Path(paths[name]), (CLEAN_CELL,), seed) for name in sample]
    try:
        tensors = predictor.measure_source(jobs)
    except JostleError as error:
        error.add_note("while statistics of clean videos were measured")
        raise
    about = {"method": options.method, "network": network, "origin": clean.origin, "videos": len(sample)}
    return SourceStatistics(tensors, pack_state(json.dumps(about), tensors), about)
