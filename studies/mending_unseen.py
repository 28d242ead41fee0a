"""Inspectors trained without one of THUMOS14-C's kinds, and one trained with all, each for as many steps.

    python -m studies.mending_unseen WORK [--without black_frame] [--steps-of-training 2500] [--minutes 5] [--jobs 2]

WORK holds `films.bank`, which `studies.inspector WORK films` makes, and the weights come beside it, into
`inspectors`. A kind is left out with every entry of every table that the same function applies, and with the mixes,
which hold all five. Similar ones stay: a film may still be unsharp out of focus, or bright by another curve.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.thumos14_c import MIXES, PROFILE
from jostle.training.descriptor_bank import FilmBank, read_bank
from studies.harness import parse_arguments
from studies.inspector import choose, train
from studies.mending import EVERYTHING, inspector_file, without

SIDE = "both"  # the one that mends


def bank_without(bank: FilmBank, kind: str) -> FilmBank:
    """Return the same films without the spans that a kind corrupts."""
    left_out = {Spec.parse(f"{PROFILE}/{name}:1").entry.corruption for name in (kind, *MIXES)}

    return bank.only(
        replace(
            film, spans=tuple(span for span in film.spans if Spec.parse(span.kind).entry.corruption not in left_out)
        )
        for film in bank.films
    )


def main() -> None:
    """Train one inspector, unless it is there."""
    arguments = parse_arguments(__doc__, without=str, steps_of_training=2500, minutes=5.0, jobs=2)
    name = EVERYTHING if arguments.without is None else without(arguments.without)
    out = inspector_file(arguments.work / "inspectors", name)
    if out.exists():
        return
    bank = read_bank(arguments.work / "films.bank")
    if arguments.without is not None:
        bank = bank_without(bank, arguments.without)
    out.parent.mkdir(exist_ok=True)
    part = out.with_name(f"part-{out.name}")
    train(bank, part, arguments.steps_of_training, arguments.minutes, arguments.jobs, sides=(SIDE,))
    choose(bank, part)
    part.rename(out)


if __name__ == "__main__":
    main()
