"""Layouts with the real published annotation files, without videos."""

from __future__ import annotations

from pathlib import Path

import pytest

import jostle

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ANNOTATIONS = DATA / "annotations"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the published annotation files are not on this machine")


@pytest.mark.parametrize(
    ("root", "chosen", "variant"),
    [
        ("annotations", None, "212 videos, 3332 instances"),
        ("annotations", "thumos14_test_extra_characteristics.json.gz", "212 videos, 3358 instances (26 after"),
        ("thumos14-text", None, "official: 213 videos, 3358 instances"),
    ],
)
def test_variants_of_thumos14_are_identified(root: str, chosen: str | None, variant: str) -> None:
    annotations = None if chosen is None else ANNOTATIONS / chosen
    dataset = jostle.load_dataset("thumos14", root=DATA / root, annotations=annotations)
    assert variant in (dataset.variant or "")
    assert len(dataset.missing) == len(dataset.truth.videos)
    assert dataset.videos == {}


@pytest.mark.parametrize(
    ("name", "subset", "videos", "rows", "classes"),
    [
        ("thumos14", "validation", 200, 3003, 20),
        ("multithumos", "test", 213, 20208, 65),
        ("multithumos", "training", 200, 18482, 65),
        ("activitynet", None, 4926, 7654, 200),
        ("mini-kinetics200", None, 9918, 9918, 200),
        ("mini-ssv2", None, 13157, 13157, 87),
        ("imagenet-vid-robust", None, 1109, 1109, None),
    ],
)
def test_published_annotations_have_the_published_counts(
    name: str, subset: str | None, videos: int, rows: int, classes: int | None
) -> None:
    dataset = jostle.load_dataset(name, subset, root=ANNOTATIONS)
    annotations = dataset.annotations[0]
    assert (len(annotations.videos), len(annotations)) == (videos, rows)
    assert classes is None or len(getattr(annotations, "classes", ())) == classes


def test_real_clips_are_found_by_name() -> None:
    media = DATA.parent / "media"
    dataset = jostle.load_dataset("ucf101", "training", root=media)
    assert list(dataset.videos) == ["v_SoccerJuggling_g23_c01"]
    assert dataset.labels.classes == ("SoccerJuggling",)
