"""Scripts are consistent: no gaps, no impossible states, and labels only for actions that happen."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

from jostle.datasets.puppets.actions import APPROACH, CLASSES, after
from jostle.datasets.puppets.film import Film, untrimmed
from jostle.datasets.puppets.parameters import Difficulty
from jostle.datasets.puppets.rig import EMPTY

CAST = range(12)


@lru_cache
def films(count: int = 60) -> list[Film]:
    return [untrimmed(0, f"film {number}", cast=CAST) for number in range(count)]


def test_events_are_contiguous_in_time_state_and_position() -> None:
    for film in films():
        for part in film.stage.parts:
            assert part.events[0].start == 0
            assert part.events[-1].stop == film.frames
            for one, two in zip(part.events, part.events[1:], strict=False):
                assert one.start < one.stop == two.start
                assert two.x == one.end_x
                acts = one.kind == "act"
                assert two.rest == (after(one.label, one.rest, one.prop) if acts else one.rest)


def test_actions_are_possible_in_their_state() -> None:
    for film in films():
        for part in film.stage.parts:
            for event in part.events:
                rest = event.rest
                if event.kind == "walk":
                    assert not rest.seated
                    assert not rest.raised
                if event.kind not in ("act", "miss"):
                    continue
                assert event.label in CLASSES
                assert rest.seated == (event.label == "stand_up") or event.label in ("wave", "salute", "raise", "lower")
                assert rest.raised == (event.label == "lower")
                if event.label in ("pick_up", "catch", "push", "pull"):
                    assert rest.prop == EMPTY
                if event.label in ("put_down", "throw", "raise", "lower"):
                    assert rest.prop != EMPTY
                if event.label in ("throw", "catch"):
                    assert film.stage.props[event.prop].kind == "ball"
                if rest.prop != EMPTY and event.label in ("wave", "salute"):
                    assert event.style.arm != part.hand


def test_labels_include_actions_but_no_near_misses() -> None:
    for film in films():
        acts = [(e.start, e.stop, e.label) for part in film.stage.parts for e in part.events if e.kind == "act"]
        assert len(film.actions) == len(acts)
        for action in film.actions:
            assert 0 <= action.start < action.end <= film.frames / 24
            assert any(
                abs(action.start * 24 - start) <= 2 and abs(action.end * 24 - stop) <= 2 and action.label == label
                for start, stop, label in acts
            )
        for part in film.stage.parts:
            for event in part.events:
                assert event.kind != "miss" or 0.4 * APPROACH[event.label] <= event.reach <= APPROACH[event.label]


def test_statistics_are_similar_to_thumos14() -> None:
    lengths = np.array([action.end - action.start for film in films() for action in film.actions])
    assert 2.7 < np.median(lengths) < 3.7
    assert 3.5 < lengths.mean() < 4.6
    assert lengths.min() > 0.8
    assert lengths.max() < 10.3
    free, minutes = [], 0.0
    for film in films():
        assert 40 <= film.frames / 24 <= 90
        minutes += film.frames / 24 / 60
        busy = np.zeros(film.frames, bool)
        for action in film.actions:
            busy[round(action.start * 24) : round(action.end * 24)] = True
        free.append(1 - busy.mean())
    assert 0.58 < np.mean(free) < 0.75
    assert 4 < len(lengths) / minutes < 9


def test_every_class_occurs_about_equally_often() -> None:
    counts = Counter(action.label for film in films() for action in film.actions)
    assert set(counts) == set(CLASSES)
    assert max(counts.values()) < 5 * min(counts.values())


def test_near_misses_occur_at_their_rate() -> None:
    def misses(difficulty: Difficulty) -> float:
        plans = [untrimmed(0, f"film {number}", cast=CAST, difficulty=difficulty) for number in range(30)]
        events = [event for film in plans for event in film.stage.parts[0].events]
        return sum(e.kind == "miss" for e in events) / sum(e.kind == "act" for e in events)

    assert misses(Difficulty(near_miss_rate=0)) == 0
    assert misses(Difficulty()) == pytest.approx(0.6, abs=0.25)


def test_others_act_rarely_at_the_same_time() -> None:
    both = total = 0
    for film in films():
        count = np.zeros(film.frames, int)
        for action in film.actions:
            count[round(action.start * 24) : round(action.end * 24)] += 1
        both += int((count > 1).sum())
        total += film.frames
    assert 0 < both / total < 0.05
    assert any(len({action.puppet for action in film.actions}) > 1 for film in films())
