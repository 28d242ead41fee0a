"""Diagnosis against the public program of DETAD: edge cases, generated sets and real detections."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import CHARACTERISTICS, Truth
from jostle.errors import DataError
from jostle.metrics.diagnosis import Diagnosis, diagnose
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS

HERE = Path(__file__).resolve().parents[1] / "golden" / "diagnosis"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden" / "diagnosis"
needs_shared_golden = pytest.mark.skipif(
    not BESIDE.is_dir(), reason="real annotations are their owners': none at ../shared/golden"
)

NAMES = {
    "True Positive": "true_positive",
    "Double Detection Err": "double_detection",
    "Wrong Label Err": "wrong_label",
    "Localization Err": "localization",
    "Confusion Err": "confusion",
    "Background Err": "background",
}
close = {"rel": 0, "abs": 1e-9}


def load(path: Path) -> Any:
    if not path.exists():
        path = path.with_name(path.name + ".gz")
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


def truth_in(path: Path, subset: str) -> Truth:
    entries = {name: entry for name, entry in load(path)["database"].items() if entry["subset"] == subset}
    rows = [(v, a) for v, entry in enumerate(entries.values()) for a in entry["annotations"]]
    classes = {name: i for i, name in enumerate(dict.fromkeys(a["label"] for _, a in rows))}
    several = [a.get("all-segments") for _, a in rows]
    return Truth(
        videos=tuple(entries),
        classes=tuple(classes),
        video=[v for v, _ in rows],
        start=[a["segment"][0] for _, a in rows],
        end=[a["segment"][1] for _, a in rows],
        label=[classes[a["label"]] for _, a in rows],
        duration=[entry.get("duration", np.nan) for entry in entries.values()],
        characteristics={
            name: [np.nan if a.get(name) is None else a[name] for _, a in rows] for name in CHARACTERISTICS
        },
        all_segments=tuple(np.array(s, float) for s in several) if all(several) else None,
    )


def predictions_in(path: Path) -> Predictions:
    results = load(path)["results"]
    rows = [(v, detection) for v, entries in enumerate(results.values()) for detection in entries]
    classes = {name: i for i, name in enumerate(dict.fromkeys(detection["label"] for _, detection in rows))}
    return Predictions(
        videos=tuple(results),
        classes=tuple(classes),
        video=[v for v, _ in rows],
        start=[detection["segment"][0] for _, detection in rows],
        end=[detection["segment"][1] for _, detection in rows],
        label=[classes[detection["label"]] for _, detection in rows],
        score=[detection["score"] for _, detection in rows],
    )


def nan_for_none(values: Any) -> list[float]:
    return [np.nan if value is None else value for value in values]


def assert_close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.array(actual, float), np.array(expected, float), rtol=0, atol=1e-9, equal_nan=True)


# Edge cases, in the repository.

CASES = sorted(path.name.removesuffix(".gt.json") for path in HERE.glob("*.gt.json"))  # generated sets are compressed
# Correct values of the parts that the public program computes wrongly or cannot compute.
BACKGROUND_TWICE: dict[str, Any] = {
    "types": ["true_positive", "background", "background", "true_positive"],
    "impact": dict.fromkeys(ERROR_KINDS[1:], 0.0),
}
CORRECT: dict[str, dict[str, Any]] = {
    "class_without_predictions": {
        "sens_coverage": {"XS": 0.0, "S": 1.0, "M": 0.0, "L": 0.0, "XL": 0.0},
        "sens_length": {"XS": 0.0, "S": 0.0, "M": 0.75, "L": None, "XL": 0.0},
        "sens_num-instances": {"XS": 0.0, "S": 5 / 12, "M": None, "L": None},
    },
    "no_gt_video_sorted_last": {
        "fp": BACKGROUND_TWICE | {"types": [*BACKGROUND_TWICE["types"], "background"]},
    },
    "no_gt_video_sorted_first_two_preds": {"fp": BACKGROUND_TWICE},
    "class_all_gt_filtered": {name: {"average": 5 / 12} for name in ("map_all", "map_n_all", "map_n_top10g")},
    "zero_length_and_reversed_predictions": {
        "map_all": {"average": 0.25},
        "map_n_all": {"average": 0.25},
        "map_n_top10g": {"average": 0.25},
        "fp": {
            "types": ["background", "background", "true_positive", "background"],
            "impact": dict.fromkeys(ERROR_KINDS[1:], 0.0),
        },
        "sens_coverage": {"XS": 0.0, "S": 0.5, "M": None, "L": 0.0, "XL": 0.0},
        "sens_length": {"XS": 0.0, "S": None, "M": 0.5, "L": None, "XL": 0.0},
        "sens_num-instances": {"XS": None, "S": 0.25, "M": None, "L": None},
        "fn_coverage": {"L": [0.2, 1.0], "S": [0.4, 0.5], "XL": [0.2, 1.0], "XS": [0.2, 1.0]},
        "fn_length": {"M": [0.6, 2 / 3], "XL": [0.2, 1.0], "XS": [0.2, 1.0]},
        "fn_num-instances": {"S": [1.0, 0.8]},
    },
}


def test_number_of_edge_cases() -> None:
    assert len(CASES) == 13 == len(load(HERE / "expected.json"))


@pytest.mark.parametrize("case", [case for case in CASES if case != "unknown_label"])
def test_edge_case(case: str) -> None:
    expected, right = load(HERE / "expected.json")[case], CORRECT.get(case, {})
    truth = truth_in(HERE / f"{case}.gt.json", "testing")
    predictions = predictions_in(HERE / f"{case}.pred.json")
    diagnosis = diagnose(predictions, truth)
    assert diagnosis.normaliser == expected["map_all"]["N"]
    assert len(diagnosis.instances.rows) == expected["map_all"]["num_gt"]
    for part, precision in (
        ("map_all", diagnosis.precision.average_map),
        ("map_n_all", diagnosis.precision.average_map_n),
        ("map_n_top10g", diagnosis.top_10g.average_map_n),
    ):
        assert precision == pytest.approx(right.get(part, expected[part])["average"], **close)
    ranked = expected["map_n_top10g"]["pred"]
    rows = diagnosis.false_positives.rows
    assert predictions.score[rows].tolist() == [row[2] for row in ranked]
    assert predictions.start[rows].tolist() == [row[3] for row in ranked]
    if "map_all" not in right or case == "class_all_gt_filtered":
        matched = [None if row < 0 else row for row in diagnosis.false_positives.matched[0].tolist()]
        assert matched == [row[5] for row in ranked]
    errors = right.get("fp", expected["fp"])
    assert [ERROR_KINDS[i] for i in diagnosis.false_positives.kind[0]] == [
        NAMES.get(kind, kind) for kind in errors["types"]
    ]
    assert diagnosis.false_positives.impact == pytest.approx(
        {NAMES.get(kind, kind): value for kind, value in errors["impact"].items()}, **close
    )
    for name, characteristic in diagnosis.instances.characteristics.items():
        assert [characteristic.labels[i] for i in characteristic.bucket] == expected["buckets"][name]
        values = right.get(f"sens_{name}", expected[f"sens_{name}"])
        assert list(diagnosis.sensitivity.buckets[name]) == list(values)
        assert_close(nan_for_none(diagnosis.sensitivity.buckets[name].values()), nan_for_none(values.values()))
        misses = diagnosis.false_negatives
        for label, (share, rate) in right.get(f"fn_{name}", expected[f"fn_{name}"]).items():
            assert misses.share[name][label] == pytest.approx(share, **close)
            assert misses.buckets[name][label] == pytest.approx(rate, **close)
        filled = {label for label, rate in misses.buckets[name].items() if rate is not None}
        assert filled == set(expected[f"fn_{name}"])
    json.dumps(diagnosis.to_dict(), allow_nan=False)


def test_unknown_label() -> None:
    """The public program fails for any unknown label; here it is refused only because there is no other prediction."""
    truth = truth_in(HERE / "unknown_label.gt.json", "testing")
    with pytest.raises(DataError, match="1 of 1 predictions have a class that the ground truth lacks: Z;"):
        diagnose(predictions_in(HERE / "unknown_label.pred.json"), truth)


# Complete sets: generated ones in the repository; real annotations with real and synthetic detections outside it.

GENERATED = ("made_thumos14", "made_activitynet")
SETS = {
    "nogtvideos_thumos14": ".ref",
    "real_autoloc_thumos14": ".ref",
    "synth_ties_thumos14": ".ref",
    "real_upc_lstm09_anet13": ".ref",
    "synth_sixchar": "",
    "synth_sixchar_dirty": "",
}
DIRTY = "synth_sixchar_dirty"  # contains faults 1 (emptied videos) and 3 (an emptied class), as shipped


class Golden:
    """Results of the public program for one set, and our diagnosis of the same files."""

    output_segments: Any
    top: Any  # the top 10G predictions in order, with their match and their kind of error for each tIoU
    matched: Any  # the match of every prediction, in the order of the file
    truth: Truth
    predictions: Predictions

    def __init__(self, name: str) -> None:
        self.name = name
        if name in GENERATED:
            self._read_generated(name)
        else:
            self._read_shared(name)
        self.style = "thumos14" if self.output_segments["meta"]["mode"] == "thumos" else "activitynet"
        self.diagnosis: Diagnosis = diagnose(self.predictions, self.truth, style=self.style)

    def _read_generated(self, name: str) -> None:
        self.output_segments = load(HERE / f"{name}.json")
        self.truth = truth_in(HERE / f"{name}.gt.json", self.output_segments["meta"]["subset"])
        detections = self.predictions = predictions_in(HERE / f"{name}.pred.json")
        top, numbers = self.output_segments["top_10g"], range(len(self.output_segments["matches"]))
        columns = {column: getattr(detections, column)[top["rows"]] for column in ("score", "start", "end")}
        columns["video"] = np.array(detections.videos)[detections.video[top["rows"]]]
        columns["label"] = np.array(detections.classes)[detections.label[top["rows"]]]
        self.top = columns | {f"{kind}_{t}": np.array(top[kind][t]) for kind in ("gt", "err") for t in numbers}
        self.matched = {f"gt_{t}": np.array(self.output_segments["matches"][t]) for t in numbers}

    def _read_shared(self, name: str) -> None:
        stem = BESIDE / "out" / f"detad.{name}{SETS[name]}"
        self.output_segments = load(stem.with_name(stem.name + ".json"))
        self.top = np.load(stem.with_name(stem.name + ".fp.npz"))
        self.matched = np.load(stem.with_name(stem.name + ".match.npz"))
        meta = self.output_segments["meta"]
        self.truth = truth_in(BESIDE / "inputs" / meta["gt"], meta["subset"])
        self.predictions = predictions_in(BESIDE / "inputs" / meta["pred"])


@pytest.fixture(scope="module", params=[*GENERATED, *(pytest.param(name, marks=needs_shared_golden) for name in SETS)])
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.param)


def test_metadata_and_bucket_counts(golden: Golden) -> None:
    meta, diagnosis = golden.output_segments["meta"], golden.diagnosis
    assert diagnosis.tious.tolist() == meta["tiou"]
    assert diagnosis.normaliser == meta["N"]
    assert diagnosis.classes == tuple(meta["class_index"])
    assert len(diagnosis.instances.rows) == meta["num_gt"]
    assert diagnosis.precision.count == meta["num_pred"]
    for name, counts in golden.output_segments["gt_buckets"].items():
        characteristic = diagnosis.instances.characteristics[name]
        own_counts = dict(zip(characteristic.labels, characteristic.counts.tolist(), strict=True))
        assert {label: count for label, count in own_counts.items() if count} == {k: v for k, v in counts.items() if v}
    assert set(diagnosis.instances.characteristics) == set(golden.output_segments["gt_buckets"])


def test_average_precision(golden: Golden) -> None:
    diagnosis, emptied = (
        golden.diagnosis,
        golden.truth.keep(np.isin(np.arange(len(golden.truth)), golden.diagnosis.instances.rows)),
    )
    has_instances = emptied.counts > 0
    for part, table, mean, average in (
        ("map_all", diagnosis.precision.ap, diagnosis.precision.map, diagnosis.precision.average_map),
        ("map_n_all", diagnosis.precision.ap_n, diagnosis.precision.map_n, diagnosis.precision.average_map_n),
        ("map_top10g", diagnosis.top_10g.ap, diagnosis.top_10g.map, diagnosis.top_10g.average_map),
        ("map_n_top10g", diagnosis.top_10g.ap_n, diagnosis.top_10g.map_n, diagnosis.top_10g.average_map_n),
    ):
        expected = golden.output_segments[part]
        ap = np.array([expected["ap"][name] for name in diagnosis.classes])
        assert_close(table[has_instances], ap[has_instances])
        assert np.isnan(table[~has_instances]).all()
        assert_close(mean, ap[has_instances].mean(axis=0))
        assert average == pytest.approx(ap[has_instances].mean(), **close)
        if has_instances.all():
            assert_close(mean, expected["mAP"])
            assert average == pytest.approx(expected["average"], **close)
    floored = np.array([golden.output_segments["map_n_all_thr05"]["ap"][name] for name in diagnosis.classes])[
        has_instances
    ]
    assert diagnosis.false_negatives.average_map_n == pytest.approx(floored.mean(), **close)
    assert (golden.name == DIRTY) == (not has_instances.all())


def test_rows_and_matches_of_the_top_10g(golden: Golden) -> None:
    errors, top, predictions = golden.diagnosis.false_positives, golden.top, golden.predictions
    assert len(errors.rows) == golden.output_segments["fp"]["num_predictions_top10g"] == golden.diagnosis.top_10g.count
    np.testing.assert_array_equal(predictions.score[errors.rows], top["score"])
    np.testing.assert_array_equal(predictions.start[errors.rows], top["start"])
    np.testing.assert_array_equal(predictions.end[errors.rows], top["end"])
    np.testing.assert_array_equal(np.array(predictions.videos)[predictions.video[errors.rows]], top["video"])
    np.testing.assert_array_equal(np.array(predictions.classes)[predictions.label[errors.rows]], top["label"])
    for t in range(len(golden.diagnosis.tious)):
        np.testing.assert_array_equal(errors.matched[t], np.nan_to_num(top[f"gt_{t}"], nan=-1))


def test_kinds_of_error(golden: Golden) -> None:
    errors, predictions = golden.diagnosis.false_positives, golden.predictions
    with_truth = {golden.truth.videos[v] for v in golden.truth.video[golden.diagnosis.instances.rows]}
    bare = np.array([name not in with_truth for name in predictions.videos])[predictions.video[errors.rows]]
    for t in range(len(golden.diagnosis.tious)):
        expected = golden.top[f"err_{t}"]
        np.testing.assert_array_equal(errors.kind[t][~bare], expected[~bare])
        assert (errors.kind[t][bare] == ERROR_KINDS.index("background")).all()
        assert golden.name == DIRTY or (expected[bare] == ERROR_KINDS.index("background")).all()
        assert golden.name != DIRTY or (expected[bare] != ERROR_KINDS.index("background")).any()


def test_counts_profile_and_impact(golden: Golden) -> None:
    errors, expected = golden.diagnosis.false_positives, golden.output_segments["fp"]
    assert [split["count"] for split in errors.profile] == [split["num"] for split in expected["profile"]]
    right = ["True Positive", "Double Detection Err"]  # not affected by fault 1
    for kind in right if golden.name == DIRTY else NAMES:
        counts, name = expected["counts"][kind], NAMES[kind]
        assert errors.counts[:, ERROR_KINDS.index(name)].tolist() == list(counts.values())[:-1]
        assert errors.totals[name] == pytest.approx(counts["avg"], **close)
        for own_split, split in zip(errors.profile, expected["profile"], strict=True):
            part = split["avg_fraction"].get(kind, 0.0)
            assert_close(nan_for_none([own_split[name]]), [part])
        if kind == "True Positive":
            continue
        after = np.array([expected["ap_after_removal"][kind][label] for label in golden.diagnosis.classes])
        defined = ~np.isnan(errors.ap_after_removal[name][:, 0])
        assert_close(errors.ap_after_removal[name][defined], after[defined])
        # A class without remaining instances counts as 0 in the program's mean and is left out of ours.
        assert errors.impact[name] * defined.mean() == pytest.approx(expected["impact"][kind], **close)


def test_sensitivity(golden: Golden) -> None:
    sensitivity, expected = golden.diagnosis.sensitivity, golden.output_segments["sensitivity"]
    assert sensitivity.base == golden.diagnosis.precision.average_map_n
    for name, buckets in expected["buckets"].items():
        if "error" in buckets:  # fault 2: a class without a prediction
            assert golden.name == "real_upc_lstm09_anet13"
            assert all(value is not None for value in sensitivity.buckets[name].values())
            continue
        assert list(sensitivity.buckets[name]) == list(buckets)
        assert_close(nan_for_none(sensitivity.buckets[name].values()), list(buckets.values()))
        extent, profile = sensitivity.profile[name], expected["profile"][name]
        assert_close([extent.min, extent.max], [profile["min"], profile["max"]])
        if golden.name != DIRTY:
            assert_close(
                [extent.relative_min, extent.relative_max], [profile["min_over_base"], profile["max_over_base"]]
            )


def test_false_negatives(golden: Golden) -> None:
    misses, expected = golden.diagnosis.false_negatives, golden.output_segments["false_negative"]
    assert misses.missed.sum(axis=1).tolist() == expected["num_unmatched"]
    assert misses.overall == pytest.approx(
        np.mean(expected["num_unmatched"]) / golden.output_segments["meta"]["num_gt"], **close
    )
    for name, rates_by_label in expected["by_characteristic"].items():
        filled = {label: rate for label, rate in misses.buckets[name].items() if rate is not None}
        assert filled == pytest.approx(
            {label: rate["unmatched"] for label, rate in rates_by_label["avg"].items()}, **close
        )
        shares = {label: share for label, share in misses.share[name].items() if share}
        assert shares == pytest.approx({label: rate["all"] for label, rate in rates_by_label["avg"].items()}, **close)
    assert set(misses.pairs) == {name.replace("|", ",") for name in expected["by_pair"]}
    for name, rates_by_label in expected["by_pair"].items():
        both = name.replace("|", ",")
        for part, values in (("unmatched", misses.pairs[both]), ("all", misses.pair_share[both])):
            rates = {labels.replace("|", ","): rate[part] for labels, rate in rates_by_label["avg"].items()}
            assert values == pytest.approx(rates, **close)


def test_matches_of_all_predictions(golden: Golden) -> None:
    """A diagnosis does not store these matches, so they are computed here in the same way."""
    from jostle.metrics.alignment import align
    from jostle.metrics.matching import match
    from jostle.metrics.protocol import protocols

    instances = golden.diagnosis.instances
    aligned = align(golden.predictions, instances.truth)
    matches = match(aligned, instances.truth, protocols["activitynet"], golden.diagnosis.tious)
    for t in range(len(matches.tious)):
        by_row = np.empty(len(aligned))
        by_row[matches.ranking.order] = np.append(instances.rows, -1)[matches.matched(t)]
        np.testing.assert_array_equal(by_row, np.nan_to_num(golden.matched[f"gt_{t}"], nan=-1))


@pytest.mark.parametrize(
    "name", ["made_activitynet", *(pytest.param(name, marks=needs_shared_golden) for name in ("synth_sixchar", DIRTY))]
)
def test_four_annotators(name: str) -> None:
    golden = Golden(name)
    expected = golden.output_segments["multi_segment"]
    diagnosis = diagnose(golden.predictions, golden.truth, style=golden.style, annotators=expected["k"])
    ap = np.array([expected["ap"][label] for label in diagnosis.classes])
    defined = ~np.isnan(diagnosis.precision.ap_n[:, 0])
    assert diagnosis.normaliser == pytest.approx(expected["N"], **close)
    assert_close(diagnosis.precision.ap_n[defined], ap[defined])
    assert diagnosis.precision.average_map_n == pytest.approx(ap[defined].mean(), **close)
    json.dumps(diagnosis.to_dict(), allow_nan=False)


def test_to_dict_is_plain_json(golden: Golden) -> None:
    content = golden.diagnosis.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
