"""The verb on collections of videos: how damaged each of them is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.formatting import percent
from jostle.core.progress import Progress
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.inspection import describe_decoder
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import refuse_output_in, write_text
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from jostle.mending.collection import InspectedFile

LOOKAHEAD = 15  # the most that the stream inspector has, as a collection does not hurry
LISTS = (".txt", ".lst")
WORST = 20  # videos in the table


@dataclass(frozen=True)
class Collection(Result):
    """Result of inspecting a collection.

    Attributes:
        files: one result for each video.
        csv: the table that was written.
        page: the HTML page that was written, or None.
        false_alarms: how many of the events may be false, in words.
        warnings: what was named like a video and left out.
    """

    files: tuple[InspectedFile, ...]
    csv: Path
    page: Path | None
    false_alarms: str
    warnings: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return the most damaged videos."""
        columns = (Column("video"), Column("damaged", "percent"), Column("events", "count"), Column("mostly"))
        rows = [(one.video, one.share, one.events, one.main_kind) for one in self._ranked()[:WORST]]
        return (Table("", columns, tuple(rows)),)

    def notes(self) -> tuple[str, ...]:
        """Return what could not be read, how much is damaged, and how many events may be false."""
        summary, more = self.to_dict(), len(self._ranked()) - WORST
        found = (
            f"{summary['damaged_videos']} of {summary['videos']} videos have damaged frames, "
            f"{percent(summary['share_damaged'])} % of {summary['frames']} frames"
            f"{describe_decoder(summary['concealed'], 0)}. {self.false_alarms}"
        )
        unread = (f"{one.video}: {one.error}" for one in self.files if one.error)
        return (*self.warnings, *unread, *((f"and {more} more",) if more > 0 else ()), found)

    def written(self) -> tuple[Path, ...]:
        """Return the paths of the table and the page."""
        return (self.csv, *(() if self.page is None else (self.page,)))

    def _ranked(self) -> list[InspectedFile]:
        return sorted((one for one in self.files if one.damaged), key=lambda one: -one.share)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        read = [one for one in self.files if not one.error]
        frames = sum(one.frames for one in read)
        kinds: dict[str, int] = {}
        for one in read:
            for kind, count in (one.kinds or {}).items():
                kinds[kind] = kinds.get(kind, 0) + count
        damaged = sum(one.damaged for one in read)
        return {
            "format": 1,
            "videos": len(self.files),
            "unread": len(self.files) - len(read),
            "damaged_videos": sum(one.damaged > 0 for one in read),
            "frames": frames,
            "damaged": damaged,
            "share_damaged": damaged / frames if frames else None,
            "seconds": sum(one.seconds for one in read),
            "events": sum(one.events for one in read),
            "kinds": kinds,
            "concealed": sum(one.concealed for one in read),
            "cut_off": sum(one.cut_off for one in read),
            "false_alarms": self.false_alarms,
            "csv": str(self.csv),
            "page": None if self.page is None else str(self.page),
            "warnings": list(self.warnings),
        }


def inspect_collection(
    source: str | Path,
    table: str | Path,
    *,
    page: str | Path | None = None,
    inspector: str | Path = "jostle",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Collection:
    """Inspect every video of a folder or a list, and write how damaged each is.

    It can be stopped at any time, and goes on where it was: results are kept in a journal beside the table, whose name
    ends in `.journal`. A video that has changed is inspected again.

    Args:
        source: a folder, searched with those in it, or a .txt file with a path on each line.
        table: the CSV file to write.
        page: an HTML page with the worst stretches as pictures.
        inspector: `jostle`, or weights of your own.
        jobs: processes; by default one for each core.
        progress: called with (videos done, videos in all).
    """
    from jostle.mending.collection import inspect_files
    from jostle.mending.false_alarms import describe_false_alarms

    source, table = Path(source), Path(table)
    for out in (table, page):
        if out is not None and source.is_dir():
            refuse_output_in(source, Path(out))
    if page is not None and Path(page).suffix.lower() not in (".html", ".htm"):
        raise BadValue(f"{page}: the page on a collection is HTML; name it .html")
    videos, warnings = _videos(source)
    journal = table.with_name(table.name + ".journal")
    files = inspect_files(
        videos,
        journal,
        inspector=inspector,
        lookahead=LOOKAHEAD,
        jobs=jobs or available_cpus(),
        progress=progress,
    )
    read = [one for one in files if not one.error]
    seconds, events = sum(one.seconds for one in read), sum(one.events for one in read)
    false_alarms = describe_false_alarms(seconds, events, LOOKAHEAD)
    write_text(table, [table_of_files(files)])
    if page is not None:
        from jostle.reporting.html.collection import collection_page

        write_text(Path(page), [collection_page(files, f"Damage in {source.name}", false_alarms)])
    if not read:
        raise DataError(f"{source}: none of {len(files)} videos could be read; {table} has the reasons")
    return Collection(tuple(files), table, None if page is None else Path(page), false_alarms, warnings)


def _videos(source: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Return the videos of a folder or a list, and warnings of what was left out."""
    from jostle.datasets.videos import VideoFiles, every_video

    warnings: tuple[str, ...] = ()
    if source.is_dir():
        found, skipped = every_video(source)
        warnings = VideoFiles({}, skipped).warnings
        videos = sorted(path for paths in found.values() for path in paths)
    elif source.suffix.lower() in LISTS:
        try:
            lines = source.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{source}: the list cannot be read ({error}); check the path") from None
        videos = [source.parent / line.strip() for line in lines if line.strip() and not line.startswith("#")]
    else:
        raise BadValue(
            f"{source}: --csv is for a folder of videos, or for a .txt file with a path on each line; leave it out for "
            "a single video"
        )
    if not videos:
        raise DataError(f"{source}: holds no videos; name another folder or list")
    return list(dict.fromkeys(videos)), warnings


def table_of_files(files: Sequence[InspectedFile]) -> str:
    """Return the CSV of results: counts, the share of each kind, and the longest damaged stretch."""
    from jostle.mending.verdicts import KINDS, UNDECODABLE

    kinds = (*KINDS[1:], UNDECODABLE)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["video", "frames", "seconds", "damaged_frames", "damaged_share", "events", "main_kind"]
    longest = ["longest_kind", "longest_first", "longest_last", "longest_start_s", "longest_end_s"]
    writer.writerow([*head, *(f"{kind}_share" for kind in kinds), *longest, "concealed_frames", "cut_off", "error"])
    for one in files:
        counts = one.kinds or {}
        shares = [f"{counts.get(kind, 0) / one.frames:.6f}" if one.frames else "" for kind in kinds]
        stretch = one.worst[0] if one.worst else None
        where: list[Any] = [""] * len(longest)
        if stretch is not None:
            times = [f"{stretch.start_s:.3f}", f"{stretch.end_s:.3f}"]
            where = [stretch.kind, stretch.first, stretch.stop - 1, *times]
        facts = [one.video, one.frames, f"{one.seconds:.3f}", one.damaged, f"{one.share:.6f}", one.events]
        main = "" if one.error else one.main_kind
        decoded = [one.concealed, int(one.cut_off)]
        writer.writerow([*facts, main, *shares, *where, *decoded, " ".join(one.error.split())])
    return out.getvalue()
