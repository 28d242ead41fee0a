"""Calibration of the stream inspector's confidence: the share of verdicts that are right, on clips for choosing.

    python -m studies.watching_calibration --clips FOLDER ... --count 20

Watches all clips as they are, and `--count` of them with each kind of `studies.world_damage`, with a look-ahead of 5
frames, and prints the tables of `jostle.mending.confidence`: the share by kind for damage, and for what a decoder
reports, and by the network's probability of damage for clean verdicts, made monotone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from jostle.mending.confidence import DOUBTS
from studies.harness import choose_evenly, parse_arguments
from studies.watching import OPENED, find_clips, load_network, open_clip, watch
from studies.world_damage import KINDS

LOOKAHEAD = 5
SEED = 1000  # of the first clip; other seeds than those of the clips to judge by
MOST = 0.99  # confidence, whatever the share: frames of one clip are not independent

Answer = tuple[str, float, bool]  # kind of a verdict or `decoder`, the network's probability, whether it is damaged


def main() -> None:
    """Print the tables of confidences."""
    arguments = parse_arguments(__doc__, folder=False, clips=[Path()], count=20)
    print(fit_tables(watch_clips(sorted(find_clips(arguments.clips)), arguments.count)))


def watch_clips(paths: list[Path], count: int) -> Iterator[Answer]:
    """Yield the answers for all frames of clean and of damaged clips."""
    names, every = {str(path): path for path in paths}, (*KINDS, *OPENED)
    runs = [(path, "clean", 0) for path in paths]
    runs += [
        (names[name], kind, SEED + n) for n, name in enumerate(choose_evenly(list(names), count)) for kind in every
    ]
    for path, kind, seed in runs:
        with open_clip(path, kind, seed) as clip:
            _, kinds, _ = watch(clip, {}, lookahead=LOOKAHEAD, use_network=True)
            if clip.concealed is not None:
                kinds = np.where(clip.concealed, "decoder", kinds).tolist()
            probabilities = load_network().inspect(clip.frames, causal=True)
            yield from zip(kinds, probabilities, clip.damaged.tolist(), strict=True)


def fit_tables(answers: Iterable[Answer]) -> dict[str, object]:
    """Return the share of right verdicts: by kind for damage, by the network's probability for clean ones."""
    total: Counter[str | int] = Counter()
    right: Counter[str | int] = Counter()
    for kind, probability, damaged in answers:
        key = kind if kind != "clean" else int(np.searchsorted(DOUBTS, probability, side="right"))
        total[key] += 1
        right[key] += damaged == (kind != "clean")
    shares = {key: min(right[key] / total[key], MOST) for key in total}
    clean = [shares.get(number, float("nan")) for number in range(len(DOUBTS) + 1)]
    kinds = sorted(key for key in total if isinstance(key, str))
    return {
        "clean": [round(float(value), 2) for value in np.fmin.accumulate(clean)],
        "kinds": {kind: round(shares[kind], 2) for kind in kinds},
        "verdicts": {str(key): total[key] for key in total},
    }


if __name__ == "__main__":
    main()
