"""Questions and sentences about the untrimmed films, derived from their scripts: no annotator, no ambiguity.

There is a question only where its answer is certain: a label that a question names occurs as often as the question
needs, near-misses of an action are never offered as an option, and events that overlap in time have no order. Of a
question of order all options show what happens in the film, so that no single frame decides between them.
"""

from __future__ import annotations

import colorsys
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from jostle.core.random import rng_for
from jostle.core.types.language import MomentItem, MomentSet, QuestionItem, QuestionSet
from jostle.datasets.dataset import Dataset, FileCounts, Request, dataset
from jostle.datasets.generated_files import fill
from jostle.datasets.puppets.actions import REVERSED
from jostle.datasets.puppets.film import CLASSES, FPS, SIZE, Action, Film, Keyed
from jostle.datasets.puppets.parameters import VIDEOS, folder_name
from jostle.datasets.puppets.untrimmed import puppets, videos_of
from jostle.io.files.atomic import write_text
from jostle.io.formats.moments import read_moments
from jostle.io.formats.questions import read_questions

VERSION = 1  # of the questions: raise it when the same films give others
# Each action as a sentence about one puppet says it, and as options do.
PHRASES = {
    "bow": ("bows", "bowing"), "catch": ("catches a ball", "catching a ball"), "jump": ("jumps", "jumping"),
    "kick": ("kicks", "kicking"), "lower": ("lowers what it holds", "lowering what it holds"),
    "pick_up": ("picks something up", "picking something up"), "pull": ("pulls the crate", "pulling the crate"),
    "push": ("pushes the crate", "pushing the crate"), "put_down": ("puts something down", "putting something down"),
    "raise": ("raises what it holds", "raising what it holds"), "salute": ("salutes", "saluting"),
    "sit_down": ("sits down", "sitting down"), "squat": ("squats", "squatting"),
    "stand_up": ("stands up", "standing up"), "throw": ("throws a ball", "throwing a ball"),
    "wave": ("waves", "waving"),
}  # fmt: skip
OPTIONS = 4
CLEAR_S = 0.5  # between two actions whose order a question is about
SIDES = ("on the left", "on the right")
SIDE_EDGES = (0.46, 0.54)  # of the width, between which it is unclear
ONCE = 0.8  # share of films where nothing is done twice with a question how often, so that few answers are "once"
# The first part of the hue circle that a colour's name ends at.
HUES = ((0.04, "red"), (0.11, "orange"), (0.19, "yellow"), (0.46, "green"), (0.56, "cyan"), (0.72, "blue"),
        (0.83, "purple"), (0.94, "pink"), (1.01, "red"))  # fmt: skip
ORDINALS = ("first", "second", "third", "fourth")
Draft = tuple[str, str, str, tuple[str, ...], bool]  # type, text, right option, wrong options, whether it needs order


def ask_about(film: Film, seed: int) -> tuple[QuestionItem, ...]:
    """Return the questions about a film; the right option is at a drawn place."""
    items = []
    for make in (_what, _count, _first, _neighbour, _who, _where):
        rng = rng_for(seed, film.name, "questions", VERSION, make.__name__)
        for number, (kind, text, right, wrong, needs_order) in enumerate(make(film, rng)):
            options = [right, *wrong]
            order = rng.permutation(len(options)).tolist()
            shuffled = tuple(options[i] for i in order)
            name = f"{film.name}/{kind}/{number}"
            items.append(QuestionItem(name, film.name, text, shuffled, order.index(0), kind, needs_order=needs_order))
    return tuple(items)


def describe_moments(film: Film) -> tuple[MomentItem, ...]:
    """Return sentences about a film, each with all windows that it describes."""
    duration = film.frames / float(FPS)
    items = []
    for label, actions in sorted(_by_label(film).items()):
        windows = tuple((action.start, action.end) for action in actions)
        phrase = PHRASES[label][0]
        items.append(MomentItem(f"{film.name}/{label}", film.name, f"A puppet {phrase}.", windows, duration))
        if len(actions) > 1 and _apart(actions):
            for ordinal, window in zip(ORDINALS, windows, strict=False):
                text = f"A puppet {phrase} for the {ordinal} time."
                items.append(MomentItem(f"{film.name}/{label}/{ordinal}", film.name, text, (window,), duration))
    return tuple(items)


def _by_label(film: Film) -> dict[str, list[Action]]:
    groups: dict[str, list[Action]] = {}
    for action in film.actions:
        groups.setdefault(action.label, []).append(action)
    return groups


def _apart(actions: Sequence[Action]) -> bool:
    return all(a.end + CLEAR_S <= b.start for a, b in itertools.pairwise(actions))


def _absent(film: Film) -> list[str]:
    """Return labels that are neither done nor begun in a film, nor the reverse of one that is."""
    touched = {event.label for part in film.stage.parts for event in part.events if event.label}
    backwards = {REVERSED.get(label, "") for label in touched} | {a for a, b in REVERSED.items() if b in touched}
    return [label for label in CLASSES if label not in touched | backwards]


def _draw(rng: np.random.Generator, pool: Sequence[str], count: int) -> list[str]:
    return [pool[i] for i in rng.permutation(len(pool))[:count].tolist()]


def _what(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask which of four actions is done at all; any frame of it will do."""
    done, absent = sorted(_by_label(film)), _absent(film)
    for label in _draw(rng, done, 2):
        if len(absent) >= OPTIONS - 1:
            wrong = tuple(PHRASES[one][1] for one in _draw(rng, absent, OPTIONS - 1))
            yield "what", "What does a puppet do in the video?", PHRASES[label][1], wrong, False


def _count(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask how often something is done; what is done several times comes first."""
    by_label = {label: actions for label, actions in _by_label(film).items() if _apart(actions)}
    for label in sorted(by_label, key=lambda one: (-len(by_label[one]), rng.random()))[:1]:
        numbers = ("once", "twice", "three times")
        right = len(by_label[label])
        if right <= len(numbers) and (right > 1 or rng.random() < ONCE):
            wrong = tuple(word for i, word in enumerate(numbers, 1) if i != right)
            yield "count", f"How often can one see a puppet that {PHRASES[label][0]}?", numbers[right - 1], wrong, False


def _first(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask in which order three things are done; every option has the same three."""
    once = [actions[0] for actions in _by_label(film).values() if len(actions) == 1]
    triples = [three for three in itertools.combinations(once, 3) if _apart(three)]
    for index in rng.permutation(len(triples))[:2].tolist():
        names = [PHRASES[action.label][1] for action in triples[index]]
        orders = [", then ".join(order) for order in itertools.permutations(names)]
        wrong = tuple(_draw(rng, orders[1:], OPTIONS - 1))
        yield "order", "In which order do these happen?", orders[0], wrong, True


def _neighbour(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask what is done right before or right after something; the wrong options happen in the film as well."""
    by_label = _by_label(film)
    if not _apart(film.actions):
        return
    pairs = [(a, b) for a, b in itertools.pairwise(film.actions) if a.label != b.label]
    drafts = []
    for before, after in pairs:
        for anchor, other, word in ((before, after, "after"), (after, before, "before")):
            others = [label for label in sorted(by_label) if label not in (anchor.label, other.label)]
            if len(by_label[anchor.label]) == 1 and len(others) >= 2:
                wrong = tuple(PHRASES[label][1] for label in _draw(rng, others, OPTIONS - 1))
                text = f"What is done right {word} a puppet {PHRASES[anchor.label][0]}?"
                drafts.append((word, text, PHRASES[other.label][1], wrong, True))
    for index in rng.permutation(len(drafts))[:2].tolist():
        yield drafts[index]


def _who(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask which puppet does something, by the colour of its shirt."""
    shirts = {part.puppet: colour_name(part.look.shirt) for part in film.stage.parts}
    if len(shirts) < 2 or len(set(shirts.values())) < len(shirts):
        return
    by_label = _by_label(film)
    sure = [label for label, actions in sorted(by_label.items()) if len({action.puppet for action in actions}) == 1]
    for label in _draw(rng, sure, 1):
        own = shirts[by_label[label][0].puppet]
        wrong = tuple(f"the one in {colour}" for colour in shirts.values() if colour != own)
        yield "who", f"Who {PHRASES[label][0]}?", f"the one in {own}", wrong, False


def _where(film: Film, rng: np.random.Generator) -> Iterator[Draft]:
    """Ask on which side of the picture something is done, where the puppet is clearly on one the whole time."""
    by_label = _by_label(film)
    once = [label for label, actions in sorted(by_label.items()) if len(actions) == 1]
    number = {part.puppet: i for i, part in enumerate(film.stage.parts)}
    for label in _draw(rng, once, len(once)):
        action = by_label[label][0]
        side = _side(film, number[action.puppet], action)
        if side is not None:
            wrong = tuple(one for one in SIDES if one != side)
            yield "where", f"Where in the picture is the puppet that {PHRASES[label][0]}?", side, wrong, False
            return


def _side(film: Film, puppet: int, action: Action) -> str | None:
    sides = set()
    for share in (0.1, 0.5, 0.9):
        frame = min(round((action.start + share * (action.end - action.start)) * float(FPS)), film.frames - 1)
        things = film.things(frame, frame + 1)
        if not things.area[0, puppet]:
            return None
        left, _, right, _ = things.box[0, puppet].tolist()
        place = (left + right) / 2 / SIZE[1]
        if SIDE_EDGES[0] <= place <= SIDE_EDGES[1]:
            return None
        sides.add(SIDES[place > 0.5])
    return sides.pop() if len(sides) == 1 else None


def colour_name(colour: Sequence[int]) -> str:
    """Return the name of a colour's hue.

    >>> colour_name((200, 30, 30)), colour_name((30, 60, 200))
    ('red', 'blue')
    """
    hue, _, _ = colorsys.rgb_to_hsv(*(value / 255 for value in colour))
    return next(name for end, name in HUES if hue < end)


@dataclass(frozen=True)
class LanguageFile(Keyed):
    """The recipe of a file of questions or sentences about the films of a subset."""

    seed: int
    subset: str
    count: int
    what: str  # `questions` or `moments`
    version: int = VERSION

    @property
    def name(self) -> str:
        return f"{self.what}-{self.subset}.jsonl"

    def write(self, path: Path) -> None:
        """Plan every film and write the questions about it."""
        write_text(path, [json.dumps(row) + "\n" for row in self._rows()])

    def _rows(self) -> Iterator[dict[str, object]]:
        for video in videos_of(self.seed, self.subset, self.count):
            film = video.film()
            if self.what == "questions":
                for question in ask_about(film, self.seed):
                    keys = ("id", "video", "options", "answer", "needs_order")
                    row = {key: value for key, value in asdict(question).items() if key in keys}
                    yield row | {"question": question.text, "type": question.kind}
            else:
                for moment in describe_moments(film):
                    windows = [list(window) for window in moment.windows]
                    yield {"id": moment.id, "video": film.name, "sentence": moment.text, "windows": windows,
                           "duration": moment.duration}  # fmt: skip


@dataset("puppets-questions", subsets=tuple(VIDEOS), task="questions")
def puppets_questions(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Questions about the untrimmed films of puppets: what, how often, in which order, before and after, who, where."""
    return _with_language(request, counts, "questions", read_questions, "puppets-questions")


@dataset("puppets-moments", subsets=tuple(VIDEOS), task="moments")
def puppets_moments(request: Request, *, counts: Mapping[str, int] = VIDEOS) -> Dataset:
    """Sentences about the untrimmed films of puppets, with the windows that each describes."""
    return _with_language(request, counts, "moments", read_moments, "puppets-moments")


def _with_language(
    request: Request,
    counts: Mapping[str, int],
    what: str,
    read: Callable[[Path], QuestionSet | MomentSet],
    name: str,
) -> Dataset:
    films = puppets(request, counts=counts)
    folder = request.root / folder_name(request.seed)
    recipe = LanguageFile(request.seed, request.subset, counts[request.subset], what)
    done: FileCounts = films.files + fill(folder, [recipe], verify=request.verify)
    items = read(folder / recipe.name)
    videos = {video: path for video, path in films.videos.items() if video in items.videos}
    missing = tuple(video for video in items.videos if video not in videos)
    annotations = (items, films.truth) if isinstance(items, QuestionSet) else (items,)
    return Dataset(name, request.subset, folder, annotations, videos, done, missing=missing)
