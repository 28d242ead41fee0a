"""Every format round-trips exactly, and no bytes crash a reader."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import CHARACTERISTICS, Spans, Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import DataError, JostleError
from jostle.io.files.annotations import (
    read_predictions,
    read_truth,
    read_video_labels,
    write_predictions,
    write_truth,
    write_video_labels,
)
from jostle.io.files.class_numbers import name_official_classes
from jostle.io.files.format import formats
from jostle.io.files.video_ids import normalize_id

finite = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(0, 1e6)
ids = st.text(min_size=1, max_size=12).map(normalize_id).filter(lambda name: not set(name) & set("\0\r"))
words = st.from_regex(r"[A-Za-z0-9_\-]{1,12}", fullmatch=True)
labels = st.text(min_size=1, max_size=12).filter(
    lambda name: name.strip() and not name.isdigit() and not set(name) & set("\0\r")
)
anything = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@st.composite
def truths(
    draw: st.DrawFn, names: st.SearchStrategy[str] = ids, kinds: st.SearchStrategy[str] = labels, rich: bool = True
) -> Truth:
    """Draw truth with rows grouped by video and classes in the order of the rows."""
    videos = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    classes = draw(st.lists(kinds, min_size=1, max_size=3, unique=True))
    counts = [draw(st.integers(0, 3)) for _ in videos]
    assume(sum(counts))
    used = [draw(st.sampled_from(classes)) for _ in range(sum(counts))]
    order = list(dict.fromkeys(used))
    start = np.array([draw(times) for _ in used])
    video = np.repeat(np.arange(len(videos)), counts)
    maybe = st.one_of(st.just(math.nan), st.floats(0.01, 1e5))
    extra = draw(st.sets(st.sampled_from(CHARACTERISTICS))) if rich else set()
    characteristics = {
        name: values
        for name in CHARACTERISTICS
        if name in extra and not np.isnan(values := np.array([draw(maybe) for _ in used])).all()
    }
    several = [np.sort(np.array([[draw(times), draw(times)] for _ in range(draw(st.integers(0, 2)))])) for _ in used]
    spans = [(draw(st.integers(0, len(videos) - 1)), draw(times)) for _ in range(draw(st.integers(0, 2)))]
    spans.sort(key=lambda span: span[0])
    return Truth(
        videos=tuple(videos),
        classes=tuple(order),
        video=video,
        start=start,
        end=start + np.array([draw(times) for _ in used]),
        label=[order.index(name) for name in used],
        subsets=tuple(draw(st.sampled_from(["", "Test", "validation"])) for _ in videos) if rich else (),
        duration=np.array([draw(maybe) for _ in videos]) if rich else np.zeros(0),
        fps=np.array([draw(maybe) for _ in videos]) if rich else np.zeros(0),
        label_ids=tuple(draw(st.permutations(range(len(order))))) if rich and draw(st.booleans()) else None,
        characteristics=characteristics,
        all_segments=tuple(s.reshape(-1, 2) for s in several) if rich and any(map(len, several)) else None,
        ambiguous=Spans([v for v, _ in spans], [t for _, t in spans], [t + 1 for _, t in spans])
        if rich
        else Spans.none(),
    )


@st.composite
def detections(
    draw: st.DrawFn, names: st.SearchStrategy[str] = ids, *, numbered: bool = False, grouped: bool = True
) -> Predictions:
    """Draw predictions with classes in the order of the rows; unless `grouped`, every video has a row."""
    videos = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    kinds = st.integers(0, 10**9).map(str) if numbered else labels
    classes = draw(st.lists(kinds, min_size=1, max_size=3, unique=True))
    video = draw(st.lists(st.integers(0, len(videos) - 1), min_size=1, max_size=8))
    if grouped:
        video.sort()
    else:
        used_videos = list(dict.fromkeys(video))
        videos, video = [videos[v] for v in used_videos], [used_videos.index(v) for v in video]
    used = [draw(st.sampled_from(classes)) for _ in video]
    order = list(dict.fromkeys(used))
    columns = [np.array([draw(finite) for _ in video]) for _ in range(3)]
    return Predictions(
        tuple(videos), tuple(order), video, columns[0], columns[1], [order.index(u) for u in used], columns[2], numbered
    )


def assert_same(actual: object, expected: object) -> None:
    """Assert that all fields are equal, bit by bit."""
    assert type(actual) is type(expected)
    for name in type(expected).__dataclass_fields__:  # type: ignore[attr-defined]
        if name == "left_out":
            continue
        value, expected_value = getattr(actual, name), getattr(expected, name)
        if isinstance(expected_value, Spans):
            assert_same(value, expected_value)
        elif isinstance(expected_value, np.ndarray):
            assert value.dtype == expected_value.dtype
            np.testing.assert_array_equal(value, expected_value, err_msg=name)
            if expected_value.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(value), np.signbit(expected_value), err_msg=name)
        elif name == "all_segments" and expected_value is not None:
            for a, b in zip(value, expected_value, strict=True):
                np.testing.assert_array_equal(a, b)
        elif name == "characteristics":
            assert list(value) == list(expected_value)
            for key in expected_value:
                np.testing.assert_array_equal(value[key], expected_value[key])
        else:
            assert value == expected_value, name


@pytest.mark.parametrize("ending", ["json", "json.gz"])
@anything
@given(truth=truths())
def test_truth_as_activitynet_json(tmp_path: Path, ending: str, truth: Truth) -> None:
    path = tmp_path / f"truth.{ending}"
    write_truth(truth, path)
    restored = read_truth(path)
    assert_same(restored, truth)
    assert restored.fingerprint == truth.fingerprint


@anything
@given(truth=truths())
def test_truth_as_thumos14_json(tmp_path: Path, truth: Truth) -> None:
    write_truth(truth, tmp_path / "truth.json", format="thumos14")
    restored = read_truth(tmp_path / "truth.json")
    assert restored.label_ids is not None
    if truth.label_ids is None:
        assert [truth.classes[i] for i in np.argsort(restored.label_ids)] == sorted(truth.classes)
        restored = Truth(**{**vars(restored), "label_ids": None})
    assert_same(Truth(**{k: v for k, v in vars(restored).items() if k != "fingerprint"}), truth)


@anything
@given(truth=truths(rich=False))
def test_truth_as_fiftyone(tmp_path: Path, truth: Truth) -> None:
    write_truth(truth, tmp_path / "labels.json", format="fiftyone")
    assert_same(read_truth(tmp_path / "labels.json"), truth)


@anything
@given(truth=truths(), data=st.data())
def test_truth_as_csv_in_any_order(tmp_path: Path, truth: Truth, data: st.DataObject) -> None:
    rows = np.array(data.draw(st.permutations(range(len(truth)))))
    videos = list(dict.fromkeys(truth.video[rows].tolist()))
    classes = list(dict.fromkeys(truth.label[rows].tolist()))
    shuffled = Truth(
        videos=tuple(truth.videos[v] for v in videos),
        classes=tuple(truth.classes[c] for c in classes),
        video=[videos.index(v) for v in truth.video[rows]],
        start=truth.start[rows],
        end=truth.end[rows],
        label=[classes.index(c) for c in truth.label[rows]],
        subsets=tuple(truth.subsets[v] for v in videos),
        duration=truth.duration[videos],
        fps=truth.fps[videos],
        label_ids=truth.label_ids and tuple(truth.label_ids[c] for c in classes),
        characteristics={name: values[rows] for name, values in truth.characteristics.items()},
    )
    write_truth(shuffled, tmp_path / "truth.csv")
    assert_same(read_truth(tmp_path / "truth.csv"), shuffled)


@anything
@given(truth=truths(words, st.from_regex(r"C[a-z0-9_]{0,8}", fullmatch=True), rich=False))
def test_truth_as_thumos14_text(tmp_path: Path, truth: Truth) -> None:
    folder = tmp_path / f"truth{len(list(tmp_path.iterdir()))}"
    write_truth(truth, folder)
    restored = read_truth(folder)
    assert restored.fingerprint == truth.fingerprint
    assert restored.subset == "all"


@pytest.mark.parametrize("format", ["activitynet-results", "opentad"])
@anything
@given(predictions=st.one_of(detections(), detections(numbered=True)))
def test_predictions_as_json(tmp_path: Path, format: str, predictions: Predictions) -> None:
    write_predictions(predictions, tmp_path / "found.json", format=format)
    assert_same(read_predictions(tmp_path / "found.json"), predictions)


@anything
@given(predictions=detections())
def test_predictions_as_fiftyone(tmp_path: Path, predictions: Predictions) -> None:
    write_predictions(predictions, tmp_path / "found.json", format="fiftyone")
    assert_same(read_predictions(tmp_path / "found.json"), predictions)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@anything
@given(predictions=st.one_of(detections(grouped=False), detections(grouped=False, numbered=True)))
def test_predictions_as_csv(tmp_path: Path, ending: str, predictions: Predictions) -> None:
    write_predictions(predictions, tmp_path / f"found.{ending}")
    assert_same(read_predictions(tmp_path / f"found.{ending}"), predictions)


@anything
@given(predictions=detections(grouped=False, numbered=True))
def test_predictions_as_pickle(tmp_path: Path, predictions: Predictions) -> None:
    write_predictions(predictions, tmp_path / "found.pkl")
    assert_same(read_predictions(tmp_path / "found.pkl"), predictions)


@anything
@given(predictions=detections(words, grouped=False, numbered=True))
def test_predictions_as_thumos14_text(tmp_path: Path, predictions: Predictions) -> None:
    write_predictions(predictions, tmp_path / "found.txt")
    assert_same(read_predictions(tmp_path / "found.txt"), name_official_classes(predictions))


@anything
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, unique=True),
    names=st.lists(words, min_size=4, max_size=4, unique=True),
    scores=st.lists(finite, min_size=12, max_size=12),
)
def test_labels_as_json_and_as_list(
    tmp_path: Path, rows: list[tuple[int, int]], names: list[str], scores: list[float]
) -> None:
    rows.sort(key=lambda row: row[0])
    videos, classes = (list(dict.fromkeys(row[i] for row in rows)) for i in (0, 1))
    video, label = [videos.index(v) for v, _ in rows], [classes.index(c) for _, c in rows]
    scored = VideoLabels(
        tuple(names[v] for v in videos), tuple("abc"[c] for c in classes), video, label, scores[: len(rows)]
    )
    write_video_labels(scored, tmp_path / "labels.json")
    assert_same(read_video_labels(tmp_path / "labels.json"), scored)
    paths = tuple(f"some folder/{names[v]}.mp4" for v in videos)
    listed = VideoLabels(scored.videos, tuple(map(str, classes)), video, label, numbered=True, paths=paths)
    write_video_labels(listed, tmp_path / "labels.txt")
    assert_same(read_video_labels(tmp_path / "labels.txt"), listed)


@anything
@given(table=st.one_of(detections(), truths()), format=st.sampled_from(sorted(formats)))
def test_writing_in_any_format_preserves_rows_or_is_refused(
    tmp_path: Path, table: Predictions | Truth, format: str
) -> None:
    path = tmp_path / f"f{len(list(tmp_path.iterdir()))}"
    try:
        if isinstance(table, Truth):
            write_truth(table, path, format=format)
            restored: Truth | Predictions = read_truth(path)
        else:
            write_predictions(table, path, format=format)
            restored = read_predictions(path)
    except JostleError:
        return
    assert len(restored) == len(table)
    assert set(restored.videos) <= {unicodedata.normalize("NFC", name) for name in table.videos}


@anything
@given(
    data=st.one_of(
        st.binary(max_size=60),
        st.text(alphabet='{}[]",: \n019.eE-nulabdtsr', max_size=80).map(str.encode),
        st.tuples(
            st.sampled_from(
                [
                    b'{"results": ',
                    b'{"database": ',
                    b'{"labels": ',
                    b"video,start,end,label,score\n",
                    b"video,start,end,label\n",
                    b"label,youtube_id,time_start,time_end,split\n",
                    b"action,start,end,tmin,tmax\n",
                    b"v 0 1 7 0.5\n",
                    b"a/b.mp4 3\n",
                    b"\x80\x04",
                ]
            ),
            st.one_of(st.binary(max_size=30), st.text(alphabet='{}[]",:ab1 \n.', max_size=40).map(str.encode)),
        ).map(b"".join),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    refusals = [refusal(lambda read=read: read(path)) for read in (read_truth, read_predictions, read_video_labels)]
    refusals += [refusal(lambda read=read: read(path, fix=True)) for read in (read_truth, read_predictions)]
    assert all(message.startswith(f"{path}: ") for message in refusals if message)


def refusal(read: Callable[[], object]) -> str:
    try:
        read()
    except DataError as error:
        return str(error)
    return ""
