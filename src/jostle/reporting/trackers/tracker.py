"""Registry of trackers; whatever a tracker raises becomes one error, and the run is untouched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jostle.core.registry import Registry
from jostle.errors import JostleError, MissingExtra, ResourceError
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.trackers.payload import TrackerPayload, tracker_payload

# Gets a run and a folder for what it keeps, which need not be there, and says where the run can be seen.
Tracker = Callable[[TrackerPayload, Path], str]

trackers: Registry[Tracker] = Registry("tracker", "jostle.reporting.trackers")


def tracker(name: str) -> Callable[[Tracker], Tracker]:
    """Register the decorated function, which stays as it is."""

    def register(function: Tracker) -> Tracker:
        trackers.add(name, function)
        return function

    return register


def track_run(record: RunRecord, to: str, folder: Path) -> str:
    """Log a finished run to a tracker.

    Args:
        to: the name of a tracker.
        folder: for what it keeps on this machine; made by the tracker.

    Returns:
        Where the run can be seen.

    Raises:
        MissingExtra: if the tracker is not installed.
        ResourceError: if it fails; the run folder is as it was.
    """
    log = trackers[to]
    payload = tracker_payload(record)
    try:
        return log(payload, folder)
    except JostleError:
        raise
    except ImportError as error:
        raise MissingExtra(f"tracking with {to} ({error})", to) from error
    except Exception as error:  # whatever a foreign library raises; the run itself is complete
        raise ResourceError(
            f"{to} did not take the run ({type(error).__name__}: {error}); {record.folder} is complete, "
            "and can be given to it again",
            fault="F88",
        ) from error


@contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Environment variables for a while; those that the user has set stay."""
    added = [name for name in defaults if name not in os.environ]
    os.environ.update({name: defaults[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
