"""Compare annotations: lengths of actions, gaps between them, and the number of frames that THUMOS14-C corrupts.

    python docs/compare_puppets.py ~/.cache/jostle/datasets/puppets-v1-seed0/annotations.json thumos14.json

prints the table of `docs/how-to/use-the-puppets.md`, with a column for each subset of each file.
"""

from __future__ import annotations

import sys

import numpy as np

import jostle
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.placement import Timeline, parse_placement

SHARES = (1, 5, 10)  # of each action, corrupted at severities 1 to 3


def describe(truth: Truth) -> dict[str, str]:
    """Return the statistics of annotations, formatted, by name."""
    lengths = truth.end - truth.start
    action_s = 0.0
    hits: dict[int, list[int]] = {share: [] for share in SHARES}
    for video in range(len(truth.videos)):
        rows = np.flatnonzero(truth.video == video)
        fps, frames = float(truth.fps[video]), round(float(truth.duration[video] * truth.fps[video]))
        spans = np.stack([truth.start[rows], truth.end[rows]], 1) * fps
        inside = np.zeros(frames, bool)
        for start, end in spans:
            inside[round(start) : round(end)] = True
            timeline = Timeline(frames, np.array([[start, end]]))
            for share in SHARES:
                hits[share].append(int(parse_placement(f"centre:{share}%").mask(timeline).sum()))
        action_s += inside.sum() / fps
    seconds = float(truth.duration.sum())
    low, high = np.quantile(lengths, [0.1, 0.9])
    return {
        "videos": f"{len(truth.videos)}",
        "hours": f"{seconds / 3600:.2f}",
        "instances": f"{len(truth)}",
        "instances a video": f"{len(truth) / len(truth.videos):.1f}",
        "instances a minute": f"{60 * len(truth) / seconds:.1f}",
        "length of an action: mean": f"{lengths.mean():.2f} s",
        "length of an action: median": f"{np.median(lengths):.2f} s",
        "length of an action: 10 to 90 % of them": f"{low:.1f} to {high:.1f} s",
        "background": f"{100 * (1 - action_s / seconds):.0f} %",
        **{f"frames corrupted in an action at {share} %": f"{np.mean(hits[share]):.2f}" for share in SHARES},
    }


def format_table(truths: dict[str, Truth]) -> list[str]:
    """Return the statistics of several annotations as a table in Markdown."""
    columns = [describe(truth) for truth in truths.values()]
    lines = ["| | " + " | ".join(truths) + " |", "| --- |" + " ---: |" * len(columns)]
    lines += [f"| {name} | " + " | ".join(column[name] for column in columns) + " |" for name in columns[0]]
    return lines


def main(*paths: str) -> None:
    """Print the table for annotation files, a column for each of their subsets."""
    truths = {}
    for path in paths:
        whole = jostle.load_truth(path)
        name = "THUMOS14" if "BaseballPitch" in whole.classes else "puppets"
        for subset in dict.fromkeys(whole.subsets):
            truths[f"{name} {subset.lower()}"] = jostle.load_truth(path, subset=subset)
    sys.stdout.write("\n".join(format_table(truths)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
