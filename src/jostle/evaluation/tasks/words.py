"""Words of a task: what readers call things in its runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """What readers call things in runs of a task.

    Attributes:
        title: the task, for headings and cards.
        tag: the task as model hubs write it.
        has_pipeline: whether the hub has a pipeline of that name.
        predictions: what a predictions file has.
        unit: what lacks a file where annotations have more than a copy of the data set.
        group: that by which scores are broken down.
        long_group: the same, where nothing around it says of what.
        group_score: the score of a group; None for the metric of the run.
        groups_note: which groups there are; empty where their names say it.
        video_note: what the score of a single video is; empty where it is the metric.
        interval_note: what is special about intervals of a single cell; empty where nothing is.
        loss_rule: when a model loses an item; empty for a task without items.
    """

    title: str
    tag: str
    predictions: str
    has_pipeline: bool = True
    unit: str = "videos"
    group: str = "class"
    long_group: str = "class"
    group_score: str | None = None
    groups_note: str = ""
    video_note: str = ""
    interval_note: str = ""
    loss_rule: str = ""
