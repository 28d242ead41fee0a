"""The adaptation study: frames shared by several methods are computed once unless the network changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.io.video.encode import Writer

torch = pytest.importorskip("torch")

from studies.adaptation import FEW, RecallingExtractor, copy_films, study_runs, ways

from jostle.extend import InputSpec
from jostle.models.extractors.extractor import ExtractorKind


class MeanColour(torch.nn.Module):
    """Network whose feature is the mean colour of a clip."""

    calls = 0

    def features(self, clips: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return clips.mean((2, 3, 4))


def test_a_frame_is_encoded_once_unless_the_network_changes() -> None:
    network = MeanColour()
    kind = ExtractorKind("mean", MeanColour, InputSpec(frames=1, stride=16, resize=None, size=4), 3, 1, "nowhere")
    extractor = RecallingExtractor(kind, network)
    clips = np.random.default_rng(0).integers(0, 256, (3, 1, 4, 4, 3), np.uint8)
    first = extractor(clips)
    np.testing.assert_array_equal(extractor(clips[::-1]), first[::-1])
    assert network.calls == 3
    extractor.recalls = False
    np.testing.assert_array_equal(extractor(clips), first)
    assert network.calls == 6


def test_films_are_copied_with_their_annotations(tmp_path: Path) -> None:
    for label in ("jump", "run", "sit"):
        for number in range(2):
            path = tmp_path / "clips" / "test" / label / f"{label}-{number}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            with Writer(path, size=(16, 16), fps=25) as writer:
                for _ in range(5):
                    writer.write(np.zeros((16, 16, 3), np.uint8))
    videos = sorted((tmp_path / "clips").rglob("*.mp4"))
    truth = tmp_path / "clips" / "truth.json"
    database = {
        path.stem: {"subset": "test", "duration": 0.2, "annotations": [{"segment": [0.0, 0.1], "label": "jump"}]}
        for path in videos
    }
    truth.write_text(json.dumps({"database": database}))
    data = jostle.load_dataset("folder", "test", root=tmp_path / "clips", annotations=truth)
    names = list(data.videos)[:2]
    copy_films(data, names, tmp_path / "copies")
    copied = jostle.load_dataset("folder", "test", root=tmp_path / "copies")
    assert sorted(copied.videos) == sorted(names)
    assert sorted(copied.truth.videos) == sorted(names)


def test_extractors_skip_methods_that_need_classes() -> None:
    assert {way for _, way in ways("film_detection")} < {way for _, way in ways("film_recognition")}
    assert not any("tent" in way for _, way in ways("puppet_detection"))
    assert [run.way for run in study_runs("film_detection") if run.treatment == "mix"] == list(FEW)
