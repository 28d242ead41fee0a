"""The diagnosis against DETAD's public program: hand-made edge cases, made sets, and real detections."""

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
beside = pytest.mark.skipif(not BESIDE.is_dir(), reason="real annotations are their owners': none at ../shared/golden")

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
    rows = [(v, found) for v, entries in enumerate(results.values()) for found in entries]
    classes = {name: i for i, name in enumerate(dict.fromkeys(found["label"] for _, found in rows))}
    return Predictions(
        videos=tuple(results),
        classes=tuple(classes),
        video=[v for v, _ in rows],
        start=[found["segment"][0] for _, found in rows],
        end=[found["segment"][1] for _, found in rows],
        label=[classes[found["label"]] for _, found in rows],
        score=[found["score"] for _, found in rows],
    )


def nan_for_none(values: Any) -> list[float]:
    return [np.nan if value is None else value for value in values]


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.array(found, float), np.array(wanted, float), rtol=0, atol=1e-9, equal_nan=True)


# Edge cases, in the repository.

CASES = sorted(path.name.removesuffix(".gt.json") for path in HERE.glob("*.gt.json"))  # made sets are compressed
# Where the public program has a fault: the parts it gets wrong or fails at, and what is right.
BACKGROUND_TWICE: dict[str, Any] = {
    "types": ["true_positive", "background", "background", "true_positive"],
    "impact": dict.fromkeys(ERROR_KINDS[1:], 0.0),
}
RIGHT: dict[str, dict[str, Any]] = {
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


def test_there_are_thirteen_edge_cases() -> None:
    assert len(CASES) == 13 == len(load(HERE / "expected.json"))


@pytest.mark.parametrize("case", [case for case in CASES if case != "unknown_label"])
def test_edge_case(case: str) -> None:
    wanted, right = load(HERE / "expected.json")[case], RIGHT.get(case, {})
    truth = truth_in(HERE / f"{case}.gt.json", "testing")
    found = predictions_in(HERE / f"{case}.pred.json")
    made = diagnose(found, truth)
    assert made.normaliser == wanted["map_all"]["N"]
    assert len(made.instances.rows) == wanted["map_all"]["num_gt"]
    for part, precision in (
        ("map_all", made.precision.average_map),
        ("map_n_all", made.precision.average_map_n),
        ("map_n_top10g", made.top_10g.average_map_n),
    ):
        assert precision == pytest.approx(right.get(part, wanted[part])["average"], **close)
    ranked = wanted["map_n_top10g"]["pred"]
    rows = made.false_positives.rows
    assert found.score[rows].tolist() == [row[2] for row in ranked]
    assert found.start[rows].tolist() == [row[3] for row in ranked]
    if "map_all" not in right or case == "class_all_gt_filtered":
        taken = [None if row < 0 else row for row in made.false_positives.matched[0].tolist()]
        assert taken == [row[5] for row in ranked]
    errors = right.get("fp", wanted["fp"])
    assert [ERROR_KINDS[i] for i in made.false_positives.kind[0]] == [NAMES.get(kind, kind) for kind in errors["types"]]
    assert made.false_positives.impact == pytest.approx(
        {NAMES.get(kind, kind): value for kind, value in errors["impact"].items()}, **close
    )
    for name, characteristic in made.instances.characteristics.items():
        assert [characteristic.labels[i] for i in characteristic.bucket] == wanted["buckets"][name]
        values = right.get(f"sens_{name}", wanted[f"sens_{name}"])
        assert list(made.sensitivity.buckets[name]) == list(values)
        same(nan_for_none(made.sensitivity.buckets[name].values()), nan_for_none(values.values()))
        misses = made.false_negatives
        for label, (share, rate) in right.get(f"fn_{name}", wanted[f"fn_{name}"]).items():
            assert misses.share[name][label] == pytest.approx(share, **close)
            assert misses.buckets[name][label] == pytest.approx(rate, **close)
        filled = {label for label, rate in misses.buckets[name].items() if rate is not None}
        assert filled == set(wanted[f"fn_{name}"])
    json.dumps(made.to_dict(), allow_nan=False)


def test_unknown_label() -> None:
    """The public program stops at any; here it is counted, and refused only because there is nothing else."""
    truth = truth_in(HERE / "unknown_label.gt.json", "testing")
    with pytest.raises(DataError, match="1 of 1 predictions have a class that the ground truth lacks: Z;"):
        diagnose(predictions_in(HERE / "unknown_label.pred.json"), truth)


# Whole sets: made ones in the repository, and real annotations with real and synthetic detections beside it.

MADE = ("made_thumos14", "made_activitynet")
SETS = {
    "nogtvideos_thumos14": ".ref",
    "real_autoloc_thumos14": ".ref",
    "synth_ties_thumos14": ".ref",
    "real_upc_lstm09_anet13": ".ref",
    "synth_sixchar": "",
    "synth_sixchar_dirty": "",
}
DIRTY = "synth_sixchar_dirty"  # as shipped: faults 1 (videos emptied) and 3 (a class emptied) are in its numbers


class Golden:
    """One set: what the public program said, and our diagnosis of the same files."""

    output_segments: Any
    top: Any  # the top 10G predictions in order, with their match and their kind of error for each tIoU
    matched: Any  # the match of every prediction, in the order of the file
    truth: Truth
    predictions: Predictions

    def __init__(self, name: str) -> None:
        self.name = name
        if name in MADE:
            self._read_made(name)
        else:
            self._read_beside(name)
        self.style = "thumos14" if self.output_segments["meta"]["mode"] == "thumos" else "activitynet"
        self.made: Diagnosis = diagnose(self.predictions, self.truth, style=self.style)

    def _read_made(self, name: str) -> None:
        self.output_segments = load(HERE / f"{name}.json")
        self.truth = truth_in(HERE / f"{name}.gt.json", self.output_segments["meta"]["subset"])
        found = self.predictions = predictions_in(HERE / f"{name}.pred.json")
        top, numbers = self.output_segments["top_10g"], range(len(self.output_segments["matches"]))
        columns = {column: getattr(found, column)[top["rows"]] for column in ("score", "start", "end")}
        columns["video"] = np.array(found.videos)[found.video[top["rows"]]]
        columns["label"] = np.array(found.classes)[found.label[top["rows"]]]
        self.top = columns | {f"{kind}_{t}": np.array(top[kind][t]) for kind in ("gt", "err") for t in numbers}
        self.matched = {f"gt_{t}": np.array(self.output_segments["matches"][t]) for t in numbers}

    def _read_beside(self, name: str) -> None:
        stem = BESIDE / "out" / f"detad.{name}{SETS[name]}"
        self.output_segments = load(stem.with_name(stem.name + ".json"))
        self.top = np.load(stem.with_name(stem.name + ".fp.npz"))
        self.matched = np.load(stem.with_name(stem.name + ".match.npz"))
        meta = self.output_segments["meta"]
        self.truth = truth_in(BESIDE / "inputs" / meta["gt"], meta["subset"])
        self.predictions = predictions_in(BESIDE / "inputs" / meta["pred"])


@pytest.fixture(scope="module", params=[*MADE, *(pytest.param(name, marks=beside) for name in SETS)])
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.param)


def test_facts(golden: Golden) -> None:
    meta, made = golden.output_segments["meta"], golden.made
    assert made.tious.tolist() == meta["tiou"]
    assert made.normaliser == meta["N"]
    assert made.classes == tuple(meta["class_index"])
    assert len(made.instances.rows) == meta["num_gt"]
    assert made.precision.count == meta["num_pred"]
    for name, counts in golden.output_segments["gt_buckets"].items():
        characteristic = made.instances.characteristics[name]
        found = dict(zip(characteristic.labels, characteristic.counts.tolist(), strict=True))
        assert {label: count for label, count in found.items() if count} == {k: v for k, v in counts.items() if v}
    assert set(made.instances.characteristics) == set(golden.output_segments["gt_buckets"])


def test_average_precision(golden: Golden) -> None:
    made, emptied = golden.made, golden.truth.keep(np.isin(np.arange(len(golden.truth)), golden.made.instances.rows))
    kept = emptied.counts > 0
    for part, table, mean, average in (
        ("map_all", made.precision.ap, made.precision.map, made.precision.average_map),
        ("map_n_all", made.precision.ap_n, made.precision.map_n, made.precision.average_map_n),
        ("map_top10g", made.top_10g.ap, made.top_10g.map, made.top_10g.average_map),
        ("map_n_top10g", made.top_10g.ap_n, made.top_10g.map_n, made.top_10g.average_map_n),
    ):
        wanted = golden.output_segments[part]
        ap = np.array([wanted["ap"][name] for name in made.classes])
        same(table[kept], ap[kept])
        assert np.isnan(table[~kept]).all()
        same(mean, ap[kept].mean(axis=0))
        assert average == pytest.approx(ap[kept].mean(), **close)
        if kept.all():
            same(mean, wanted["mAP"])
            assert average == pytest.approx(wanted["average"], **close)
    floored = np.array([golden.output_segments["map_n_all_thr05"]["ap"][name] for name in made.classes])[kept]
    assert made.false_negatives.average_map_n == pytest.approx(floored.mean(), **close)
    assert (golden.name == DIRTY) == (not kept.all())


def test_rows_and_matches_of_the_top_10g(golden: Golden) -> None:
    wrong, top, found = golden.made.false_positives, golden.top, golden.predictions
    assert len(wrong.rows) == golden.output_segments["fp"]["num_predictions_top10g"] == golden.made.top_10g.count
    np.testing.assert_array_equal(found.score[wrong.rows], top["score"])
    np.testing.assert_array_equal(found.start[wrong.rows], top["start"])
    np.testing.assert_array_equal(found.end[wrong.rows], top["end"])
    np.testing.assert_array_equal(np.array(found.videos)[found.video[wrong.rows]], top["video"])
    np.testing.assert_array_equal(np.array(found.classes)[found.label[wrong.rows]], top["label"])
    for t in range(len(golden.made.tious)):
        np.testing.assert_array_equal(wrong.matched[t], np.nan_to_num(top[f"gt_{t}"], nan=-1))


def test_kinds_of_error(golden: Golden) -> None:
    wrong, found = golden.made.false_positives, golden.predictions
    with_truth = {golden.truth.videos[v] for v in golden.truth.video[golden.made.instances.rows]}
    bare = np.array([name not in with_truth for name in found.videos])[found.video[wrong.rows]]
    for t in range(len(golden.made.tious)):
        wanted = golden.top[f"err_{t}"]
        np.testing.assert_array_equal(wrong.kind[t][~bare], wanted[~bare])
        assert (wrong.kind[t][bare] == ERROR_KINDS.index("background")).all()
        assert golden.name == DIRTY or (wanted[bare] == ERROR_KINDS.index("background")).all()
        assert golden.name != DIRTY or (wanted[bare] != ERROR_KINDS.index("background")).any()


def test_counts_profile_and_impact(golden: Golden) -> None:
    wrong, wanted = golden.made.false_positives, golden.output_segments["fp"]
    assert [split["count"] for split in wrong.profile] == [split["num"] for split in wanted["profile"]]
    right = ["True Positive", "Double Detection Err"]  # what fault 1 leaves alone
    for kind in right if golden.name == DIRTY else NAMES:
        counts, name = wanted["counts"][kind], NAMES[kind]
        assert wrong.counts[:, ERROR_KINDS.index(name)].tolist() == list(counts.values())[:-1]
        assert wrong.totals[name] == pytest.approx(counts["avg"], **close)
        for found, split in zip(wrong.profile, wanted["profile"], strict=True):
            part = split["avg_fraction"].get(kind, 0.0)
            same(nan_for_none([found[name]]), [part])
        if kind == "True Positive":
            continue
        after = np.array([wanted["ap_after_removal"][kind][label] for label in golden.made.classes])
        kept = ~np.isnan(wrong.ap_after_removal[name][:, 0])
        same(wrong.ap_after_removal[name][kept], after[kept])
        # A class that lost its instances counts 0 in the program's mean, and nothing in ours.
        assert wrong.impact[name] * kept.mean() == pytest.approx(wanted["impact"][kind], **close)


def test_sensitivity(golden: Golden) -> None:
    found, wanted = golden.made.sensitivity, golden.output_segments["sensitivity"]
    assert found.base == golden.made.precision.average_map_n
    for name, buckets in wanted["buckets"].items():
        if "error" in buckets:  # fault 2: a class without a prediction
            assert golden.name == "real_upc_lstm09_anet13"
            assert all(value is not None for value in found.buckets[name].values())
            continue
        assert list(found.buckets[name]) == list(buckets)
        same(nan_for_none(found.buckets[name].values()), list(buckets.values()))
        extent, profile = found.profile[name], wanted["profile"][name]
        same([extent.min, extent.max], [profile["min"], profile["max"]])
        if golden.name != DIRTY:
            same([extent.relative_min, extent.relative_max], [profile["min_over_base"], profile["max_over_base"]])


def test_false_negatives(golden: Golden) -> None:
    found, wanted = golden.made.false_negatives, golden.output_segments["false_negative"]
    assert found.missed.sum(axis=1).tolist() == wanted["num_unmatched"]
    assert found.overall == pytest.approx(
        np.mean(wanted["num_unmatched"]) / golden.output_segments["meta"]["num_gt"], **close
    )
    for name, said in wanted["by_characteristic"].items():
        filled = {label: rate for label, rate in found.buckets[name].items() if rate is not None}
        assert filled == pytest.approx({label: rate["unmatched"] for label, rate in said["avg"].items()}, **close)
        shares = {label: share for label, share in found.share[name].items() if share}
        assert shares == pytest.approx({label: rate["all"] for label, rate in said["avg"].items()}, **close)
    assert set(found.pairs) == {name.replace("|", ",") for name in wanted["by_pair"]}
    for name, said in wanted["by_pair"].items():
        both = name.replace("|", ",")
        for part, values in (("unmatched", found.pairs[both]), ("all", found.pair_share[both])):
            rates = {labels.replace("|", ","): rate[part] for labels, rate in said["avg"].items()}
            assert values == pytest.approx(rates, **close)


def test_matches_of_all_predictions(golden: Golden) -> None:
    """Not kept by a diagnosis, so matched here as it does."""
    from jostle.metrics.alignment import align
    from jostle.metrics.matching import match
    from jostle.metrics.protocol import protocols

    instances = golden.made.instances
    aligned = align(golden.predictions, instances.truth)
    matches = match(aligned, instances.truth, protocols["activitynet"], golden.made.tious)
    for t in range(len(matches.tious)):
        by_row = np.empty(len(aligned))
        by_row[matches.ranking.order] = np.append(instances.rows, -1)[matches.matched(t)]
        np.testing.assert_array_equal(by_row, np.nan_to_num(golden.matched[f"gt_{t}"], nan=-1))


@pytest.mark.parametrize(
    "name", ["made_activitynet", *(pytest.param(name, marks=beside) for name in ("synth_sixchar", DIRTY))]
)
def test_four_annotators(name: str) -> None:
    golden = Golden(name)
    wanted = golden.output_segments["multi_segment"]
    made = diagnose(golden.predictions, golden.truth, style=golden.style, annotators=wanted["k"])
    ap = np.array([wanted["ap"][label] for label in made.classes])
    kept = ~np.isnan(made.precision.ap_n[:, 0])
    assert made.normaliser == pytest.approx(wanted["N"], **close)
    same(made.precision.ap_n[kept], ap[kept])
    assert made.precision.average_map_n == pytest.approx(ap[kept].mean(), **close)
    json.dumps(made.to_dict(), allow_nan=False)


def test_every_json_is_plain(golden: Golden) -> None:
    said = golden.made.to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
