"""Films struck in stretches, and glanced at: the examples that an inspector learns from, made without any label."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jostle.corrupting.corruption import corruptions
from jostle.corrupting.profile import profiles
from jostle.corrupting.scene import Mask
from jostle.corrupting.spec import Spec
from jostle.corrupting.stages import ClipSource, chain
from jostle.errors import BadValue
from jostle.models.glance import glances
from jostle.seeds import key_for, rng_for
from jostle.training.film_bank import Struck
from jostle.types.clip import Clip, Frames

MARGIN = 32  # frames around a stretch that a corruption may look at
Finish = Callable[[Frames], Frames]


def every_picture() -> tuple[str, ...]:
    """All corruptions that change pictures, of jostle's own table and of the papers'; those of time change none."""
    own = [name for name in corruptions if corruptions[name].level != "time"]
    papers = [
        f"{profile}/{name}"
        for profile in profiles
        for name, entry in profiles[profile].entries.items()
        if corruptions[entry.corruption].level != "time"
    ]
    return tuple(sorted([*own, *papers]))


def strike_film(
    clip: Clip,
    specs: Sequence[str],
    *,
    name: str,
    kind: str,
    strikes: int,
    lengths: tuple[int, int],
    seed: int,
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    finish: Finish | None = None,
) -> Struck:
    """Glances of a film, and of stretches of it that are struck.

    Args:
        specs: drawn from, one for each stretch; of those without a severity it is drawn, too.
        strikes: stretches.
        lengths: of a stretch in frames, the least and the greatest; short ones are as likely as long ones.
        finish: done to struck frames afterwards, such as another coding.
    """
    made = []
    for number in range(strikes):
        rng = rng_for(seed, "strike", name, number)
        spec = drawn_spec(specs, severities, rng)
        low, high = lengths[0], min(lengths[1], len(clip))
        many = min(round(float(np.exp(rng.uniform(np.log(low), np.log(max(high, low) + 0.49))))), len(clip))
        at = int(rng.integers(len(clip) - many + 1))
        struck = struck_frames(clip, spec, at, at + many, seed=key_for(seed, name, number), video_id=name)
        made.append((str(spec), at, glances(struck if finish is None else finish(struck))))
    return Struck(name, kind, glances(clip.frames), tuple(made))


def drawn_spec(specs: Sequence[str], severities: Sequence[int], rng: np.random.Generator) -> Spec:
    """One of the specs; its severity is drawn from those that it has, where it names none."""
    text = specs[int(rng.integers(len(specs)))]
    if ":" in text:
        return Spec.parse(text)
    most = len(Spec.parse(f"{text}:1").entry.values)
    known = [severity for severity in severities if severity <= most]
    if not known:
        raise BadValue(f"{text} has severities 1 to {most}, and none of {list(severities)}")
    return Spec.parse(f"{text}:{known[int(rng.integers(len(known)))]}")


def struck_frames(clip: Clip, spec: Spec, lo: int, hi: int, *, seed: int, video_id: str) -> Frames:
    """Frames `lo` up to `hi` of a clip with exactly these struck."""
    first, stop = max(lo - MARGIN, 0), min(hi + MARGIN, len(clip))
    part = clip[first:stop]
    mask: Mask = np.zeros(len(part), np.bool_)
    mask[lo - first : hi - first] = True
    return chain(ClipSource(part), [spec], [mask], seed=seed, video_id=video_id).block(lo - first, hi - first)
