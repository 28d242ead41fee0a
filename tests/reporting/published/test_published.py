"""Published tables as data: completeness, models assembled from them, and known misprints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jostle
from helpers.published_slips import slips
from jostle.corruptions.engine.spec import profiles
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.reporting.published.table import cells_of, published, published_models, read_paper

BIB = Path(__file__).resolve().parents[3] / "docs" / "references.bib"

# Every figure that others of the same paper contradict: table, row, column, printed value, recomputed value.
SLIPS = """
mini-kinetics-c/table-1 | ssv2-c S3D | mpc 47.0 45.25
mini-kinetics-c/table-1 | ssv2-c S3D | rpc 81.8 77.75
mini-kinetics-c/table-1 | ssv2-c I3D | mpc 47.8 46.14
mini-kinetics-c/table-1 | ssv2-c I3D | rpc 81.7 78.87
mini-kinetics-c/table-1 | ssv2-c 3D ResNet-18 | mpc 42.6 40.77
mini-kinetics-c/table-1 | ssv2-c 3D ResNet-18 | rpc 80.3 76.93
mini-kinetics-c/table-1 | ssv2-c 3D ResNet-50 | mpc 46.6 44.06
mini-kinetics-c/table-1 | ssv2-c 3D ResNet-50 | rpc 81.2 76.76
mini-kinetics-c/table-1 | ssv2-c SlowFast 8x4 | mpc 38.4 36.19
mini-kinetics-c/table-1 | ssv2-c SlowFast 8x4 | rpc 78.8 74.32
mini-kinetics-c/table-1 | ssv2-c X3D-M | mpc 40.7 39.26
mini-kinetics-c/table-1 | ssv2-c X3D-M | rpc 81.6 78.67
mini-kinetics-c/table-3 | ssv2-c 3D ResNet-18 | mpc 40.8 42.6
mini-kinetics-c/table-3 | ssv2-c 3D ResNet-18 | rpc 77.0 80.3
pm-k/table-2 | imagenet-vid-robust ResNeXt-101, ILSVRC, robust to small attacks | drop 12.4 13.5
pm-k/table-2 | imagenet-vid-robust ResNeXt-101, ILSVRC, robust to small attacks | pm_k.low 39.0 37.85
pm-k/table-2 | imagenet-vid-robust ResNet-50, fine-tuned to detect on ImageNet-Vid | accuracy.high 80.0 80.06
pm-k/table-2 | imagenet-vid-robust ResNet-50, fine-tuned to detect on ImageNet-Vid | pm_k.high 68.1 68.18
pm-k/table-2 | imagenet-vid-robust CLIP, zero-shot | accuracy.low 93.8 93.9
pm-k/table-2 | imagenet-vid-robust CLIP, zero-shot | accuracy.high 96.4 96.48
pm-k/table-2 | imagenet-vid-robust CLIP, zero-shot | pm_k.high 91.0 90.95
pm-k/table-2 | ytbb-robust CLIP, zero-shot | accuracy.low 93.9 94.2
pm-k/table-2 | ytbb-robust CLIP, zero-shot | accuracy.high 95.8 96.11
pm-k/table-4 | imagenet-vid-robust ResNet-152, fine-tuned on ImageNet-Vid | drop 14.4 14.6
pm-k/table-4 | ytbb-robust ResNet-152, fine-tuned on YouTube-BB | drop 8.9 8.2
thumos14-c/table-3 | thumos14-c TriDet, VideoMAEv2, FrameDrop + TRC | relative 90.32 90.31
thumos14-c/table-4 | activitynet-c TriDet, TSP | relative 41.42 41.41
thumos14-c/table-5 | thumos14-c TriDet, I3D, FrameDrop + TRC | relative 86.33 86.32
ucf101-p/table-3 | ssv2-p I3D | absolute 0.78 0.728
ucf101-p/table-3 | ssv2-p I3D | relative 0.64 0.564
ucf101-p/table-3 | ssv2-p SlowFast | absolute 0.75 0.69
ucf101-p/table-3 | ssv2-p SlowFast | relative 0.58 0.506
ucf101-p/table-3 | ssv2-p X3D | absolute 0.85 0.826
ucf101-p/table-3 | ssv2-p X3D | relative 0.76 0.68
ucf101-p/table-3 | ssv2-p TimeSformer | absolute 0.87 0.85
ucf101-p/table-3 | ssv2-p TimeSformer | relative 0.77 0.724
"""


def test_all_tables_are_listed() -> None:
    listed = jostle.names("published")
    papers = {name.partition("/")[0]: [] for name in listed}
    for name in listed:
        papers[name.partition("/")[0]].append(name.rpartition("-")[2])
    assert papers == {
        "detad": ["1"],
        "mini-kinetics-c": ["1", "2", "3", "4"],
        "pm-k": ["1", "2", "3", "4", "5"],
        "thumos14-c": [*"123456", *"abcdefgh"],
        "ucf101-p": ["1", "2", "3"],
    }
    cited = set(re.findall(r"@\w+\{(\w+),", BIB.read_text(encoding="utf-8")))
    for table in published.values():
        assert table.cites in cited
        assert set(table.benchmarks) <= set(benchmarks)
        assert {column for row in table.rows for column in row.values} == set(table.columns)
        assert len({tuple(row.labels.values()) for row in table.rows}) == len(table.rows)


def test_corruption_columns_exist_in_the_benchmark() -> None:
    for table in published.values():
        cells = cells_of(table)
        if "training" in table.labels and not table.benchmarks:
            continue  # of 40 classes
        for name in {cell.partition(":")[0] for cell in (*cells, *table.beside)}:
            for benchmark in table.benchmarks:
                profile = {"activitynet-c": "thumos14-c"}.get(benchmark, benchmark)
                assert name in profiles[profile].entries, (table.name, name)


def test_model_is_assembled_from_all_its_tables() -> None:
    models = {model.name: model for model in published_models("thumos14-c")}
    tridet = models["TriDet, VideoMAEv2"]
    assert tridet.source == "Zeng et al. 2024, tables 1, 3, 5, C"
    assert (tridet.clean, tridet.corrupted, tridet.relative) == (0.7516, 0.611, 0.8129)
    assert tridet.by_corruption["black_frame"] == pytest.approx((0.6439 + 0.4242 + 0.236) / 3)
    assert list(tridet.by_corruption) == ["black_frame", "packet_loss", "overexposure", "motion_blur", "occlusion"]
    assert models["TriDet, VideoMAEv2, FrameDrop + TRC"].relative == 0.9031  # table 3 prints 90.32
    assert len(models) == 15
    ssv2_models = {m.name: m for m in published_models("ssv2-p")}
    assert (ssv2_models["I3D"].clean, ssv2_models["I3D"].absolute, ssv2_models["I3D"].by_family["noise"]) == (
        None,
        0.78,
        0.4,
    )
    clip = published_models("imagenet-vid-robust")[-1]
    assert (clip.name, clip.corrupted, clip.intervals["corrupted"]) == ("CLIP, zero-shot", 0.892, (0.872, 0.91))
    assert published_models("puppets-c") == ()


def test_known_misprints_are_found() -> None:
    """The list is exact, so that a mistyped figure or a rule that became too lax is noticed."""
    misprints = [
        f"{one.table.name} | {one.row.labels['benchmark']} {one.row.label} | {one.column} {one.printed} {one.found}"
        for one in slips()
    ]
    assert misprints == SLIPS.strip().splitlines()


def test_wrong_figure_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 52.50 instead of 52.56 the printed ratio no longer fits."""
    source = Path(str(jostle.__file__)).parent / "reporting" / "published" / "thumos14-c.toml"
    text = source.read_text(encoding="utf-8")
    assert text.count("62.37, 52.56") == 1
    (tmp_path / "thumos14-c.toml").write_text(text.replace("62.37, 52.56", "62.37, 52.50"), encoding="utf-8")
    table = next(one for one in read_paper(tmp_path / "thumos14-c.toml") if one.number == "5")
    monkeypatch.setitem(published._entries, "thumos14-c/table-5", table)
    new_slips = [slip for slip in slips() if slip.table is table and slip.row.labels["training"] == "FrameDrop"]
    assert [(slip.column, slip.printed, slip.found) for slip in new_slips] == [("relative", 84.27, 84.175)]


def test_unknown_names_and_malformed_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"did you mean thumos14-c/table-1"):
        jostle.published("thumos14-c/table1")
    head = 'title = "t"\nauthors = "a"\nyear = 2020\ncites = "b"\n[[tables]]\nnumber = "1"\nabout = "x"\nmetric = "m"\n'
    body = 'labels = ["model"]\ncolumns = ["clean"]\nrows = [["one", 1.0, 2.0]]\n'
    (tmp_path / "short.toml").write_text(head + body, encoding="utf-8")
    with pytest.raises(BadValue, match="is not 1 texts and 1 figures"):
        read_paper(tmp_path / "short.toml")


def test_figures_are_formatted_as_printed() -> None:
    table = jostle.published("ucf101-p/table-1")
    assert [table.format_value(c, table.rows[3].values[c]) for c in table.columns] == ["3.8", "5.15", "16", "5"]
    assert jostle.published("thumos14-c/table-1").format_value("clean", 61.1) == "61.10"
    plain = jostle.published("pm-k/table-1").to_dict()
    assert plain["rows"][2] == {"what": "anchors whose labels were updated", "values": {"ytbb-robust": 834.0}}
