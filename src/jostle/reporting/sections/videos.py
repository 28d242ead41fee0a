"""The videos that are hit hardest: what was lost, and pictures of how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jostle.core.tables import Column, Table
from jostle.errors import JostleError
from jostle.evaluation.results.run_analysis import Drop, RunAnalysis, losing, video_drops
from jostle.evaluation.tasks.views import AnsweredItem, ClassScoresView, ItemTableView, TimelineView, VideoView
from jostle.reporting.analysis.cell_tables import drops_table
from jostle.reporting.charts.timelines import draw_timeline
from jostle.reporting.html.blocks import Article, Bare, Block, Figure, Film, FilmStrip, Fold, Heading, Strong, Text
from jostle.reporting.html.pictures import Span, Strip, strip_of
from jostle.reporting.html.section import Report, ReportedRun, Section, section

LISTED = 50  # rows of the table of videos
BUDGET = 2_800_000  # letters of pictures in a page
MOST_QUESTIONS = 8  # of a video, whose answers are listed
ROOM = 0.25  # margin before and after an action, as a share of it


def count_worst(runs: int) -> int:
    """Return how many videos of each run are displayed, by the number of runs."""
    return {1: 6, 2: 4}.get(runs, 2)


@section("videos", after="errors", title="The most affected videos", short="Videos")
def videos(report: Report) -> Section | None:
    """Show the videos of each run that lose most, each under the corruption that hurts it most."""
    album = Album()
    shown = [one for run in report.runs for one in _worst_of(report, run, album)]
    tables = [_table(run) for run in report.runs if run.analysis.counted]
    if not shown and not tables:
        return None
    remark = album.remark([view for view, _ in shown])
    return Section(
        Text(remark, "lead") if remark else None,
        *(group for _, group in shown),
        Fold("Videos as a table", *tables),
    )


class Album:
    """Takes pictures until the page is heavy enough.

    Attributes:
        left_out: clips and strips that did not fit.
        exact: whether a strip has only frames that the model received, where it did not receive all.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget
        self.left_out = 0
        self.exact = False

    def strip(self, analysis: RunAnalysis, drop: Drop, stretch: Span | None) -> tuple[Strip | None, str]:
        """Pictures of a video, or why there are none."""
        if self._left <= 0:
            self.left_out += 1
            return None, "No pictures: the page has as many as it can carry."
        try:
            strip = strip_of(analysis.record, drop.name, drop.worst_cell, stretch)
        except JostleError as error:
            return None, f"No pictures: {error}"
        if strip.weight > self._left:
            self.left_out += 1
            strip = strip.without_clip()
        self._left -= strip.weight
        self.exact |= strip.exact_input
        return strip, ""

    def remark(self, views: Sequence[VideoView | None]) -> str:
        """Return what explains the pictures and the timelines beside them."""
        parts = []
        timelines = [view for view in views if isinstance(view, TimelineView)]
        if any(view.by_sentence for view in timelines):
            parts.append(
                "The first window of each sentence is drawn: full where it overlaps a true one by half, else open; "
                "shaded stretches are corrupted."
            )
        elif timelines:
            parts.append(
                "The most confident detections are drawn, on clean video as many as there are actions. A full bar is "
                "right, an open one wrong; shaded stretches are corrupted."
            )
        if self.exact:
            parts.append("Strips consist of frames that the model received.")
        if self.left_out:
            parts.append(f"{self.left_out} clips or strips were left out to keep the page small.")
        return " ".join(parts)


def _worst_of(report: Report, run: ReportedRun, album: Album) -> Iterator[tuple[VideoView | None, Article]]:
    for number, drop in enumerate(video_drops(run.analysis)[: count_worst(len(report.runs))]):
        if drop.loss <= 0:
            break
        found = run.record.view(drop.name, drop.worst_cell, brief=True)
        aside = f"under {drop.worst_cell}{'' if report.alone else f', {run.name}'}"
        pictures = _pictures(run, drop, found, f"video-{run.number}-{number}", album)
        yield found, Article("video", Heading(drop.name, aside), *_words(found, drop), *pictures)
        report.advance()


def _words(view: VideoView | None, drop: Drop) -> Iterator[Block]:
    """Yield what a video loses, in words."""
    falls = f"falls from {100 * drop.clean:.1f} to {100 * drop.worst:.1f}."
    match view:
        case ClassScoresView():
            clean = max(view.scores, key=lambda one: one.clean).label
            corrupted = max(view.scores, key=lambda one: one.corrupted).label
            true = Strong(", ".join(one.label for one in view.scores if one.true))
            guesses = (Strong(clean), " on clean video and ", Strong(corrupted), " on corrupted video.")
            yield Text(("The true class is ", true, "; the predicted class is ", *guesses))
        case TimelineView():
            score, joint = ("score", "; ") if view.by_sentence else ("mAP", ", ")
            yield f"Its own {score} {falls} {_lost(view, joint)}".strip()
        case ItemTableView():
            yield (
                f"Of its questions {100 * drop.clean:.0f} % are answered right on clean video, "
                f"{100 * drop.worst:.0f} % here."
            )
            yield Bare(_changed_answers(view.items))
        case _:
            yield f"Its score {falls}"


def _lost(timeline: TimelineView, joint: str) -> str:
    lost = [action.label.strip(".") for action in timeline.actions if action.lost]
    return f"Lost: {joint.join(lost)}." if lost else ""


def _changed_answers(questions: Sequence[AnsweredItem]) -> Table:
    """Return the questions that are answered otherwise under the corruption; all if none is."""
    changed = [one for one in questions if one.clean.text != one.corrupted.text] or list(questions)
    columns = (Column("question"), Column("right"), Column("clean"), Column("corrupted"))
    rows = [(one.text, one.options[one.answer], one.clean.text, one.corrupted.text) for one in changed[:MOST_QUESTIONS]]
    return Table("Answers that changed", columns, tuple(rows))


def _pictures(run: ReportedRun, drop: Drop, view: VideoView | None, file: str, album: Album) -> Iterator[Block]:
    """Yield a strip of frames, the timeline where there is one, and a short clip."""
    timeline = view if isinstance(view, TimelineView) else None
    strip, why = album.strip(run.analysis, drop, None if timeline is None else _stretch(timeline))
    yield Text(why, "pale") if strip is None else FilmStrip(drop.name, strip.shots, strip.size)
    if timeline is not None:
        stretches, end = (None, 0.0) if strip is None else (strip.affected, strip.end_s)
        yield Bare(Figure(file, "", draw_timeline(timeline, stretches, end)))
    if strip is not None and strip.clip:
        height, width = strip.size
        yield Fold("Play: clean left, corrupted right", Film(drop.name, strip.clip, (height, 2 * width)))


def _stretch(timeline: TimelineView) -> Span | None:
    """Return the longest missed action with some margin, or else the longest action."""
    chosen = [action for action in timeline.actions if action.lost] or list(timeline.actions)
    if not chosen:
        return None
    longest = max(chosen, key=lambda action: action.end - action.start)
    room = ROOM * (longest.end - longest.start)
    return max(longest.start - room, 0.0), longest.end + room


def _table(run: ReportedRun) -> Table:
    drops = losing(video_drops(run.analysis))
    more = f", the {LISTED} of {len(drops)} that lose most" if len(drops) > LISTED else ""
    return drops_table(f"Videos, {run.name}{more}", "video", drops[:LISTED], worst=True)
