"""Train `puppet_language` on drawn films: features of frames once a film, then questions about them.

Beside the right option it learns when in the film each phrase happens, which the scripts know; from right options alone
it takes far more films before it finds the actions at all.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.core.types.language import QuestionItem
from jostle.datasets.puppets.film import CLASSES, FPS, Film
from jostle.datasets.puppets.questions import PHRASES, ask_about
from jostle.datasets.puppets.untrimmed import videos_of
from jostle.models.checkpoints import write_weights
from jostle.models.language.puppet_language import (
    FRAMES,
    NAME,
    PARTS,
    FrameFeatures,
    PuppetLanguageNet,
    number_words,
    read_question,
    split_option,
    split_words,
)
from studies.fitting import Descent, as_shipped, follow, report
from studies.harness import load_settings, map_in_processes

SCHEDULE = SimpleNamespace(**load_settings("questions")["schedule"])
OPTIONS = 4
DRAWS = 6  # of questions about each film, under seeds of their own
SENTENCES = tuple(f"A puppet {phrase}." for phrase, _ in PHRASES.values())


@dataclass(frozen=True, eq=False)
class Lessons:
    """Films with their questions, as tensors.

    Attributes:
        features: (N, FRAMES, dim) float16 of frames.
        thumbnails: (N, FRAMES, 3, THUMBNAIL, THUMBNAIL) uint8.
        step_s: (N,) seconds from one frame to the next.
        happens: (N, classes, FRAMES) whether an action is done.
        film: (Q,) which film each question is about.
        question: (Q, WORDS).
        options: (Q, OPTIONS, PARTS, WORDS); words are 0 where there is none.
        labels: (Q, 1 + OPTIONS * PARTS) the action that question and parts name, -1 for none.
        right: (Q,).
        kinds: of the questions.
    """

    features: Tensor
    thumbnails: Tensor
    step_s: Tensor
    happens: Tensor
    film: Tensor
    question: Tensor
    options: Tensor
    labels: Tensor
    right: Tensor
    kinds: npt.NDArray[np.str_]


def vocabulary_of(items: Sequence[QuestionItem]) -> dict[str, int]:
    """Return the numbers of all words in questions, options and sentences, from 1."""
    texts = [*SENTENCES, *(text for item in items for text in (item.text, *item.options))]
    return {word: i for i, word in enumerate(sorted({word for text in texts for word in split_words(text)}), 1)}


def extract_features(seed: int, subset: str, count: int, folder: Path, *, jobs: int) -> None:
    """Draw the sampled frames of the first films of a subset, and write their features, if they are missing."""
    path = _features_path(folder, seed, subset)
    if path.exists():
        return
    begin = time.monotonic()
    rows = map_in_processes(partial(_film_features, seed, subset), range(count), jobs, chunk=4)
    features, thumbnails = (np.stack(column) for column in zip(*rows, strict=True))
    np.savez(path, features=features, thumbnails=thumbnails)
    print(f"features of {count} films, seed {seed}, {subset}: {time.monotonic() - begin:.0f} s", flush=True)


def _features_path(folder: Path, seed: int, subset: str) -> Path:
    return folder / f"features-seed{seed}-{subset}.npz"


@cache
def _extractor() -> FrameFeatures:
    return FrameFeatures()


def _film_features(seed: int, subset: str, number: int) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.uint8]]:
    film = videos_of(seed, subset, number + 1)[number].film()
    rows = ((np.arange(FRAMES) + 0.5) / FRAMES * film.frames).astype(np.int64).tolist()
    features, thumbnails = _extractor()(np.concatenate([film.draw(row, row + 1) for row in rows]))
    return features.half().numpy(), thumbnails.numpy()


def read_lessons(
    folder: Path, sources: Sequence[tuple[int, str, int]], vocabulary: dict[str, int] | None = None, draws: int = DRAWS
) -> tuple[Lessons, dict[str, int]]:
    """Return the films of (seed, subset, count) with their questions, and the vocabulary.

    Args:
        vocabulary: that of another part; None for the words of these questions.
        draws: of questions about each film; 1 for those of the data set.
    """
    features, thumbnails, steps, happens = [], [], [], []
    items: list[tuple[int, QuestionItem]] = []
    for seed, subset, count in sources:
        with np.load(_features_path(folder, seed, subset)) as arrays:
            features.append(torch.from_numpy(arrays["features"]))
            thumbnails.append(torch.from_numpy(arrays["thumbnails"]))
        for video in videos_of(seed, subset, count):
            film = video.film()
            for draw in range(draws):
                items += [(len(steps), item) for item in ask_about(film, seed if draw == 0 else 1000 * draw + seed)]
            steps.append(film.frames / float(FPS) / FRAMES)
            happens.append(_happens(film))
    words = vocabulary or vocabulary_of([item for _, item in items])
    options = [read_question(item.text, item.options, words)[1] for _, item in items]
    lessons = Lessons(
        torch.cat(features),
        torch.cat(thumbnails),
        torch.tensor(steps),
        torch.stack(happens),
        torch.tensor([film for film, _ in items]),
        torch.tensor([number_words(item.text, words) for _, item in items]),
        torch.stack([F.pad(one, (0, 0, 0, 0, 0, OPTIONS - len(one))) for one in options]),
        torch.tensor([_labels(item) for _, item in items]),
        torch.tensor([item.answer for _, item in items]),
        np.array([item.kind for _, item in items]),
    )
    return lessons, words


def _happens(film: Film) -> Tensor:
    times = (np.arange(FRAMES) + 0.5) / FRAMES * film.frames / float(FPS)
    table = np.zeros((len(CLASSES), FRAMES), np.bool_)
    for action in film.actions:
        table[CLASSES.index(action.label)] |= (times >= action.start) & (times < action.end)
    return torch.from_numpy(table)


def _labels(item: QuestionItem) -> list[int]:
    """Return the actions that a question and the parts of its options name; -1 for none."""
    verbs = {PHRASES[label][0]: i for i, label in enumerate(CLASSES)}
    nouns = {PHRASES[label][1]: i for i, label in enumerate(CLASSES)}
    rows = [next((i for verb, i in verbs.items() if item.text.endswith(f" {verb}?")), -1)]
    for option in item.options:
        parts = [nouns.get(part, -1) for part in split_option(option)]
        rows += parts + [-1] * (PARTS - len(parts))
    return rows + [-1] * (1 + OPTIONS * PARTS - len(rows))


def train_language(
    lessons: Lessons, held_out: Lessons, vocabulary: dict[str, int], out: Path, *, treatment: str, seed: int
) -> dict[str, float]:
    """Train, write the weights, and return the accuracy on the held-out films by type."""
    torch.manual_seed(key_for(seed, NAME, treatment) % 2**63)
    rng = rng_for(seed, NAME, treatment)
    network = PuppetLanguageNet(len(vocabulary) + 1)
    average = PuppetLanguageNet(len(vocabulary) + 1)
    average.load_state_dict(network.state_dict())
    films = len(lessons.step_s)
    steps = SCHEDULE.epochs * math.ceil(films / SCHEDULE.batch)
    step_down = Descent(network.parameters(), SCHEDULE.lr, steps=steps, decay=SCHEDULE.decay)
    by_film = _by_film(lessons)
    sentences = torch.tensor([number_words(text, vocabulary) for text in SENTENCES])
    phrase_of = torch.tensor([CLASSES.index(label) for label in PHRASES])
    black = _extractor()(np.zeros((1, 112, 112, 3), np.uint8))[0][0]
    begin, step = time.monotonic(), 0
    measured: dict[str, float] = {}
    for epoch in range(SCHEDULE.epochs):
        order = rng.permutation(films)
        losses = []
        for start in range(0, films, SCHEDULE.batch):
            chosen = order[start : start + SCHEDULE.batch]
            loss = _loss(network.train(), lessons, chosen, by_film, sentences, phrase_of, black, treatment, rng)
            step_down(loss)
            step += 1
            follow(average.state_dict(), network, step, SCHEDULE.average)
            losses.append(float(loss.detach()))
        if (epoch + 1) % 4 == 0 or epoch + 1 == SCHEDULE.epochs:
            measured = accuracy_by_kind(average.eval(), held_out)
            report(treatment, epoch + 1, {"loss": np.mean(losses), **measured}, begin)
    metadata = {"model": NAME, "treatment": treatment, "seed": str(seed), "words": json.dumps(list(vocabulary))}
    write_weights(as_shipped(average.state_dict()), out, metadata=metadata)
    return measured


def _by_film(lessons: Lessons) -> list[npt.NDArray[np.int64]]:
    rows = lessons.film.numpy()
    return [np.flatnonzero(rows == film) for film in range(len(lessons.step_s))]


def _loss(
    network: PuppetLanguageNet,
    lessons: Lessons,
    chosen: npt.NDArray[np.int64],
    by_film: Sequence[npt.NDArray[np.int64]],
    sentences: Tensor,
    phrase_of: Tensor,
    black: Tensor,
    treatment: str,
    rng: np.random.Generator,
) -> Tensor:
    features, thumbnails = lessons.features[chosen].float(), lessons.thumbnails[chosen].float() / 255
    happens = lessons.happens[chosen].float()
    if treatment == "shuffled":
        places = torch.from_numpy(np.stack([rng.permutation(FRAMES) for _ in chosen]))
        index = torch.arange(len(chosen))[:, None]
        features, thumbnails = features[index, places], thumbnails[index, places]
        happens = happens.transpose(1, 2)[index, places].transpose(1, 2)
    elif treatment == "robust":
        dropped = torch.from_numpy(np.stack([_dropped(SCHEDULE.dropped, rng) for _ in chosen]))
        features[dropped], thumbnails[dropped] = black, 0.0
    keys, values = network.watch(features, thumbnails, lessons.step_s[chosen])
    happens = happens.unflatten(2, (-1, 2)).amax(3)  # two frames are one moment
    logits = network.compare(network.read(sentences)[None].expand(len(chosen), -1, -1), keys)
    placed = F.binary_cross_entropy_with_logits(logits, happens[:, phrase_of])
    sighted = rng.random(len(chosen)) >= SCHEDULE.blind
    chosen_loss = keys.new_zeros(())
    count = 0
    for sees in (True, False):
        rows, films = [], []
        for number, film in enumerate(chosen.tolist()):
            if sighted[number] == sees and len(by_film[film]):
                some = rng.permutation(by_film[film])[: SCHEDULE.per_film]
                rows += some.tolist()
                films += [number] * len(some)
        if not rows:
            continue
        visible = slice(None) if sees else slice(0)
        scores, named = network.choose(
            lessons.question[rows], lessons.options[rows], keys[films][:, visible], values[films][:, visible]
        )
        chosen_loss = chosen_loss + F.cross_entropy(scores, lessons.right[rows], reduction="sum")
        count += len(rows)
        if sees:
            labels = lessons.labels[rows]  # (Q, 1 + OPTIONS * PARTS)
            query, which = torch.nonzero(labels >= 0, as_tuple=True)
            target = happens[torch.tensor(films)[query], labels[query, which]]
            placed = placed + F.binary_cross_entropy_with_logits(named[query, which], target)
    return chosen_loss / max(count, 1) + SCHEDULE.places * placed


def _dropped(most: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which frames FrameDrop makes black: runs of 1 to 8, up to a drawn share; none for a quarter of films."""
    mask = np.zeros(FRAMES, np.bool_)
    count = max(rng.uniform(-most / 3, most), 0.0) * FRAMES
    while mask.sum() < count:
        first = int(rng.integers(FRAMES))
        mask[first : first + int(rng.integers(1, 9))] = True
    return mask


@torch.inference_mode()
def accuracy_by_kind(network: PuppetLanguageNet, lessons: Lessons) -> dict[str, float]:
    """Return the share of right answers over all, without the video, and by type."""
    right, blind = (np.zeros(len(lessons.film), np.bool_) for _ in range(2))
    for film, rows in enumerate(_by_film(lessons)):
        if not len(rows):
            continue
        one = slice(film, film + 1)
        keys, values = network.watch(
            lessons.features[one].float(), lessons.thumbnails[one].float() / 255, lessons.step_s[one]
        )
        for out, visible in ((right, slice(None)), (blind, slice(0))):
            both = (part[:, visible].expand(len(rows), -1, -1) for part in (keys, values))
            scores, _ = network.choose(lessons.question[rows], lessons.options[rows], *both)
            out[rows] = (scores.argmax(1) == lessons.right[rows]).numpy()
    by_kind = {str(kind): round(float(right[lessons.kinds == kind].mean()), 4) for kind in np.unique(lessons.kinds)}
    return {"all": round(float(right.mean()), 4), "blind": round(float(blind.mean()), 4)} | by_kind
