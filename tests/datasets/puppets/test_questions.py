"""Questions and sentences about films agree with their scripts and mark those that need the order."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from jostle.core.types.language import QuestionItem
from jostle.datasets.dataset import Request
from jostle.datasets.puppets.film import Film
from jostle.datasets.puppets.questions import (
    PHRASES,
    ask_about,
    describe_moments,
    puppets_moments,
    puppets_questions,
)
from jostle.datasets.puppets.untrimmed import videos_of

DOING = {phrases[1]: label for label, phrases in PHRASES.items()}


@pytest.fixture(scope="module")
def films_and_questions() -> list[tuple[Film, tuple[QuestionItem, ...]]]:
    films = [video.film() for video in videos_of(0, "validation", 12)]
    return [(film, ask_about(film, 0)) for film in films]


def right(question: QuestionItem) -> str:
    assert question.answer is not None
    return question.options[question.answer]


def test_every_question_type_occurs_with_its_order_flag(films_and_questions: list) -> None:  # type: ignore[type-arg]
    needs = {(question.kind, question.needs_order) for _, questions in films_and_questions for question in questions}
    assert needs == {
        ("what", False), ("count", False), ("who", False), ("where", False),
        ("order", True), ("before", True), ("after", True),
    }  # fmt: skip


def test_only_right_options_occur_in_the_film(films_and_questions: list) -> None:  # type: ignore[type-arg]
    for film, questions in films_and_questions:
        done = {action.label for action in film.actions}
        started = {event.label for part in film.stage.parts for event in part.events}
        for question in (item for item in questions if item.kind == "what"):
            assert DOING[right(question)] in done
            assert not {DOING[option] for option in question.options if option != right(question)} & (done | started)


def test_counts_and_orders_agree_with_the_script(films_and_questions: list) -> None:  # type: ignore[type-arg]
    for film, questions in films_and_questions:
        counts = Counter(action.label for action in film.actions)
        for question in questions:
            if question.kind == "count":
                label = next(name for name, words in PHRASES.items() if question.text.endswith(f"that {words[0]}?"))
                assert ("", "once", "twice", "three times")[counts[label]] == right(question)
            if question.kind == "order":
                labels = [DOING[words] for words in right(question).split(", then ")]
                starts = [next(one.start for one in film.actions if one.label == label) for label in labels]
                assert starts == sorted(starts)
                assert len({frozenset(option.split(", then ")) for option in question.options}) == 1


def test_neighbours_are_adjacent_and_wrong_options_occur_too(films_and_questions: list) -> None:  # type: ignore[type-arg]
    for film, questions in films_and_questions:
        pairs = {(a.label, b.label) for a, b in itertools.pairwise(film.actions)}
        for question in (one for one in questions if one.kind in ("before", "after")):
            anchor = next(name for name, words in PHRASES.items() if question.text.endswith(f"a puppet {words[0]}?"))
            own = DOING[right(question)]
            assert ((anchor, own) if question.kind == "after" else (own, anchor)) in pairs
            assert {DOING[option] for option in question.options} <= {action.label for action in film.actions}


def test_the_same_film_gives_the_same_questions() -> None:
    film = next(iter(videos_of(0, "validation", 1))).film()
    assert ask_about(film, 0) == ask_about(film, 0)
    positions = Counter(
        question.answer for video in videos_of(0, "training", 40) for question in ask_about(video.film(), 0)
    )
    assert max(positions.values()) < 2 * min(positions[i] for i in range(3))  # the right option is at every position


def test_moments_have_all_windows_of_their_action(films_and_questions: list) -> None:  # type: ignore[type-arg]
    film = films_and_questions[0][0]
    for moment in describe_moments(film):
        label = moment.id.split("/")[1]
        actions = [(action.start, action.end) for action in film.actions if action.label == label]
        if moment.text.endswith("time."):
            assert moment.windows[0] in actions
        else:
            assert list(moment.windows) == actions
        assert moment.duration == film.frames / 24


def test_data_sets_use_the_films_of_puppets(tmp_path: Path) -> None:
    request = Request("validation", tmp_path, first=1)
    counts = {"validation": 2}
    questions = puppets_questions(request, counts=counts)
    assert questions.task == "questions"
    assert list(questions.videos) == ["puppet_validation_0001"]
    assert questions.missing == ("puppet_validation_0002",)
    assert questions.truth.videos == ("puppet_validation_0001", "puppet_validation_0002")  # for placements
    moments = puppets_moments(request, counts=counts)
    assert moments.task == "moments"
    assert moments.videos["puppet_validation_0001"] == questions.videos["puppet_validation_0001"]
