"""Frames that a decoder reports as concealed are damaged, in streams, files, collections and benchmark states."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.damaged_streams import KEY_INTERVAL, write_stream
from helpers.moving_film import moving_film, verdicts_on
from jostle import api
from jostle.corruptions.engine.stages import MADE
from jostle.features.caches import CachedFrames
from jostle.io.video.decode import Reader
from jostle.mending.confidence import DECODER_REPORT
from jostle.mending.inspected_frames import InspectorFinder
from jostle.mending.stream import VideoStream
from jostle.mending.video_rules import join_kinds

COUNT, FIRST = 60, 46
STOP = 60  # the next key frame


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert STOP % KEY_INTERVAL == 0
    film = moving_film(COUNT + 30)
    return write_stream(tmp_path_factory.mktemp("streams") / "damaged.avi", film, "h264", damaged=range(FIRST, STOP, 4))


@pytest.mark.parametrize("lookahead", [0, 5])
def test_a_stream_reports_concealed_frames_as_blocky(lookahead: int) -> None:
    film = moving_film(COUNT)
    verdicts = verdicts_on(VideoStream(lookahead=lookahead, use_network=False), film, range(20, 30))
    assert [verdict.index for verdict in verdicts if verdict.damaged] == list(range(20, 30))
    assert {(verdict.kind, verdict.confidence) for verdict in verdicts if verdict.damaged} == {
        ("blocky", DECODER_REPORT)
    }


def test_a_more_specific_rule_determines_the_kind() -> None:
    film = moving_film(COUNT)
    film[20:30] = 0
    verdicts = verdicts_on(VideoStream(lookahead=5, use_network=False), film, range(18, 32))
    kinds = [verdict.kind for verdict in verdicts]
    assert kinds[18:32] == ["blocky"] * 2 + ["black"] * 10 + ["blocky"] * 2
    assert set(kinds[:18] + kinds[32:]) == {"clean"}


def test_a_watcher_holds_the_frame_before_concealed_ones() -> None:
    pytest.importorskip("torch")
    film = moving_film(40)
    watcher = jostle.Watcher(lookahead=2, mend=True, fps=25)
    verdicts = [one for t, frame in enumerate(film) for one in watcher.push(frame, concealed=20 <= t < 24)]
    verdicts += watcher.flush()
    for t, verdict in enumerate(verdicts):
        assert verdict.frame is not None
        assert np.array_equal(verdict.frame, film[19 if 20 <= t < 24 else t])


@pytest.mark.fault("F146")
def test_a_watched_file_has_one_event_for_concealed_frames(damaged: Path) -> None:
    pytest.importorskip("torch")
    events: list[dict[str, object]] = []
    state = api.watch(str(damaged), on_event=events.append)
    assert state.kinds == Counter(blocky=STOP - FIRST)
    assert [(one["event"], one["kind"], one["frame"]) for one in events] == [
        ("start", "blocky", FIRST),
        ("end", "blocky", STOP),
    ]


@pytest.mark.fault("F146")
def test_a_file_with_concealed_frames_is_inspected_and_mended(damaged: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    inspection = api.inspection(damaged)
    assert np.flatnonzero(inspection.damaged).tolist() == list(range(FIRST, STOP))
    assert set(inspection.kinds[FIRST:STOP]) == {"blocky"}
    assert (inspection.probabilities[FIRST:STOP] == 1).all()
    api.mend_file(damaged, tmp_path / "mended.mkv", how="hold", lossless=True)
    before, after = jostle.read(damaged).frames, jostle.read(tmp_path / "mended.mkv").frames
    intact = np.r_[0:FIRST, STOP : len(before)]
    assert np.array_equal(after[intact], before[intact])
    assert (after[FIRST:STOP] == before[FIRST - 1]).all()


def test_the_network_alone_ignores_the_report_of_the_decoder(damaged: Path) -> None:
    pytest.importorskip("torch")
    inspector = jostle.load_inspector()
    inspector.rules = False
    assert not (api.inspection(damaged, inspector=inspector).kinds == "blocky").any()


def test_a_collection_counts_concealed_frames(damaged: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (file,) = api.inspect_collection(damaged.parent, tmp_path / "table.csv", jobs=1).files
    assert file.kinds == {"blocky": STOP - FIRST}
    assert file.concealed == STOP - FIRST
    assert [(stretch.kind, stretch.first, stretch.stop) for stretch in file.worst] == [("blocky", FIRST, STOP)]


def test_in_a_state_the_report_applies_to_frames_with_their_origin(damaged: Path) -> None:
    pytest.importorskip("torch")
    with Reader(damaged) as reader:
        clean = CachedFrames(reader)
        finder = InspectorFinder(jostle.load_inspector()).finder_for(clean)
        count = len(clean)
        assert np.flatnonzero(finder.find_damaged(clean, np.arange(count))).tolist() == list(range(FIRST, STOP))

        class PatchedSource:
            """Source with one concealed frame replaced and another moved forward."""

            size, pts, fps = clean.size, clean.pts, clean.fps

            def __len__(self) -> int:
                return count

            def block(self, lo: int, hi: int) -> np.ndarray:
                return np.stack([reader.frame(FIRST - 1) for _ in range(lo, hi)])

        came_from = np.arange(count)
        came_from[FIRST : FIRST + 2], came_from[20] = MADE, FIRST + 5
        damaged_frames = finder.find_damaged(PatchedSource(), came_from)
    assert not damaged_frames[FIRST : FIRST + 2].any()
    assert damaged_frames[[20, *range(FIRST + 2, STOP)]].all()


def test_other_rules_do_not_override_the_report_of_the_decoder() -> None:
    by_rules = np.array(["clean", "clean", "blocky", "out_of_order", "blocky", "clean"])
    by_network = np.array([False, True, False, False, False, False])
    concealed = np.array([False, False, True, True, True, False])
    assert join_kinds(by_rules, by_network).tolist() == ["clean", "unknown", "clean", "clean", "blocky", "clean"]
    joined = join_kinds(by_rules, by_network, concealed)
    assert joined.tolist() == ["clean", "unknown", "blocky", "blocky", "blocky", "clean"]
