"""Rules on whole videos: states are judged like separate videos, and rules and network give one verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jostle
import jostle.api
from helpers.moving_film import moving_film
from jostle import Clip
from jostle.core.types.clip import Frames
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.stages import MADE
from jostle.mending import inspected_frames
from jostle.mending.descriptor import describe_frame
from jostle.mending.frame_facts import FrameFacts, frame_facts
from jostle.mending.inspected_frames import InspectorFinder
from jostle.mending.rule_set import RuleSet
from jostle.mending.stream_rules import Finding
from jostle.mending.video_rules import FindingLog, VideoRules, join_kinds

FPS = 25
FIRST, STOP = 60, 76


def black(frames: Frames) -> Frames:
    return np.zeros_like(frames)


def half_grey(frames: Frames) -> Frames:
    half = frames.copy()
    half[:, frames.shape[1] // 2 :] = 128
    return half


def noisy(frames: Frames) -> Frames:
    noise = np.random.default_rng(0).normal(0, 45, frames.shape)
    return np.clip(frames + noise, 0, 255).astype(np.uint8)


def frozen(frames: Frames) -> Frames:
    return np.repeat(frames[:1], len(frames), 0)


DAMAGES: dict[str, Callable[[Frames], Frames]] = {
    "black": black,
    "missing_part": half_grey,
    "noisy": noisy,
    "frozen": frozen,
}


def facts_of(frames: Frames) -> list[FrameFacts]:
    return [frame_facts(frame, describe_frame(frame)) for frame in frames]


def damage(film: Frames, kind: str) -> Frames:
    damaged = film.copy()
    damaged[FIRST:STOP] = DAMAGES[kind](film[FIRST:STOP])
    return damaged


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_state_is_judged_like_a_separate_video_with_bounded_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    film, times = moving_film(300), np.arange(300) / FPS
    clean, new = facts_of(film), facts_of(damage(film, kind)[FIRST:STOP])
    video = VideoRules(clean, times)
    assert (video.kinds == "clean").all()
    came_from = np.arange(300)
    came_from[FIRST:STOP] = MADE
    expected = VideoRules([*clean[:FIRST], *new, *clean[STOP:]], times).kinds
    indices, push = [], RuleSet.push
    monkeypatch.setattr(RuleSet, "push", lambda rules, index, *rest: indices.append(index) or push(rules, index, *rest))
    kinds = video.kinds_for(came_from, new)
    assert np.array_equal(kinds, expected)
    assert (kinds[FIRST + 1 : STOP] == kind).all()
    assert (kinds[:FIRST] == "clean").all()
    assert (kinds[STOP:] == "clean").all()
    assert FIRST - 16 < min(indices) <= FIRST
    assert max(indices) < 200
    assert video.kinds_for(np.arange(300), []) is video.kinds


def test_frames_moved_within_the_video_are_judged_too() -> None:
    film, times = moving_film(200), np.arange(200) / FPS
    facts = facts_of(film)
    came_from = np.arange(200)
    came_from[80:100] = 80
    kinds = VideoRules(facts, times).kinds_for(came_from, [])
    assert (kinds[81:100] == "frozen").all()
    assert np.array_equal(kinds, VideoRules([facts[origin] for origin in came_from], times).kinds)


def test_the_strongest_finding_wins_and_revoked_ones_are_clean() -> None:
    log = FindingLog()
    log.add([(0, Finding(2, 4, "black", 0.98)), (4, Finding(3, 6, "noisy", 0.9))])
    log.add([(0, Finding(2, 5, "black", 0.98))])
    assert log.kinds(8).tolist() == ["clean", "clean", "black", "black", "black", "black", "noisy", "clean"]
    log.add([(0, Finding(2, 5, "clean", 0.8))])
    assert log.kinds(8).tolist() == ["clean"] * 3 + ["noisy"] * 4 + ["clean"]


def test_rules_and_network_give_one_kind_a_frame() -> None:
    by_rules = np.array(["clean", "black", "black", "clean", "clean", "covered", "covered", "clean", "out_of_order"])
    by_network = np.array([False, False, True, False, True, False, False, True, False])
    kinds = join_kinds(by_rules, by_network)
    # The cover begins where damage found by the network alone ends, so it is the restored picture.
    assert kinds.tolist() == ["clean", "black", "black", "clean", "unknown", "clean", "clean", "unknown", "clean"]
    begun_before = join_kinds(
        np.array(["clean", "covered", "covered", "covered"]), np.array([False, True, True, False])
    )
    assert begun_before.tolist() == ["clean", "covered", "covered", "covered"]
    assert join_kinds(by_rules[:0], by_network[:0]).tolist() == []


@pytest.mark.parametrize("kind", DAMAGES)
def test_inspection_and_mending_agree_with_the_rules(kind: str) -> None:
    pytest.importorskip("torch")
    film = moving_film(160)
    damaged = damage(film, kind)
    inspection = jostle.api.inspection(damaged, fps=FPS)
    assert inspection.damaged[FIRST + 1 : STOP].all()
    assert not inspection.damaged[:FIRST].any()
    assert not inspection.damaged[STOP:].any()
    assert set(inspection.kinds[FIRST + 1 : STOP]) == {kind}
    (stretch,) = inspection.to_dict()["stretches"]
    assert (stretch["kind"], stretch["stop"]) == (kind, STOP)
    finder = InspectorFinder(jostle.load_inspector()).finder_for(ClipSource(Clip.at_rate(film, FPS)))
    came_from = np.arange(160)
    came_from[FIRST:STOP] = MADE
    damaged_frames = finder.find_damaged(ClipSource(Clip.at_rate(damaged, FPS)), came_from)
    assert np.array_equal(damaged_frames, inspection.damaged)
    mended = jostle.mend(Clip.at_rate(damaged, FPS)).frames
    assert np.array_equal(mended[~damaged_frames], damaged[~damaged_frames])
    assert all((mended[t] != damaged[t]).any() for t in np.flatnonzero(damaged_frames))


def test_an_inspector_without_rules_uses_its_network_alone() -> None:
    pytest.importorskip("torch")
    inspector = jostle.load_inspector()
    film = moving_film(120)
    damaged = damage(film, "frozen")
    assert jostle.api.inspection(damaged, inspector=inspector, fps=FPS).damaged[FIRST + 1 : STOP].all()
    inspector.rules = False
    by_network = jostle.api.inspection(damaged, inspector=inspector, fps=FPS)
    assert by_network.probabilities.tolist() == list(inspector.inspect(damaged))
    assert set(by_network.kinds) <= {"clean", "unknown"}
    source = ClipSource(Clip.at_rate(damaged, FPS))
    finder = InspectorFinder(inspector).finder_for(source)
    assert np.array_equal(finder.find_damaged(source, np.arange(120)), by_network.damaged)


def test_samples_of_a_long_video_are_stored_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    source = ClipSource(Clip.at_rate(damage(moving_film(100), "frozen"), FPS))
    mending = InspectorFinder(jostle.load_inspector())
    in_memory = mending.finder_for(source).find_damaged(source, np.arange(100))
    monkeypatch.setattr(inspected_frames, "IN_MEMORY", 8)
    assert np.array_equal(mending.finder_for(source).find_damaged(source, np.arange(100)), in_memory)
    assert in_memory[FIRST + 1 : STOP].all()
