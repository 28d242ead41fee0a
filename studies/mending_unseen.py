"""Inspectors that never met one of THUMOS14-C's kinds, and one that met all, each trained for as many steps.

    python -m studies.mending_unseen WORK [--without black_frame] [--steps-of-training 2500] [--minutes 5] [--jobs 2]

WORK holds `films.bank`, which `studies.inspector WORK films` makes, and the weights come beside it, into
`inspectors`. What a kind is left out with: every entry of every table that the same function makes, and the mixes,
which hold all five. Of its kin, others stay: a film may still be unsharp out of focus, or bright by another curve.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.thumos14_c import MIXES, PROFILE
from jostle.training.descriptor_bank import FilmBank, read_bank
from studies.harness import parse_arguments
from studies.inspector import choose, train
from studies.mending_cells import EVERYTHING, inspector_file, without

SIDE = "both"  # the one that mends


def bank_without(bank: FilmBank, kind: str) -> FilmBank:
    """The same films, none of them struck by a kind."""
    left_out = {Spec.parse(f"{PROFILE}/{name}:1").entry.corruption for name in (kind, *MIXES)}

    def stays(written: str) -> bool:
        return Spec.parse(written).entry.corruption not in left_out

    return bank.only(
        replace(film, spans=tuple(strike for strike in film.spans if stays(strike.kind))) for film in bank.films
    )


def main() -> None:
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
