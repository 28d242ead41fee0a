"""Training crops of features: grid, crops, splits and validation of inputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.small_world import make_config
from jostle.errors import DataError
from jostle.io.files.annotations import read_truth
from jostle.training.feature_crops import FeatureVideo, crop, load_videos
from jostle.training.selection import class_numbers, split_videos

NUMBERS = {"Jump": 0, "Run": 1}


def video(steps: int = 40, segments=((4.0, 10.0), (30.0, 36.0))) -> FeatureVideo:
    rows = np.arange(steps, dtype=np.float32)[:, None]
    return FeatureVideo("v", rows, rows + 0.5, np.array(segments, np.float32), np.arange(len(segments)), 25.0, 10.0)


def test_seconds_are_converted_to_grid_steps(world: Path) -> None:
    config = make_config(world).data
    videos, truth = load_videos(config, "validation", NUMBERS, channels=8)
    assert len(videos) == 10
    assert videos[0].segments[0, 0] == pytest.approx(6, abs=1e-4)  # the first action starts at step 6
    assert len(truth) == 20


def test_resizing_keeps_the_actions_where_they_are(world: Path) -> None:
    config = make_config(world).data
    plain, _ = load_videos(config, "validation", NUMBERS, channels=8)
    wide, _ = load_videos(config, "validation", NUMBERS, channels=8, resize=128)
    assert wide[0].features.shape == (128, 8)
    middle = wide[0].segments[0].mean()
    label = wide[0].labels[0]
    assert wide[0].features[round(middle), label] > 1
    assert plain[0].features[round(plain[0].segments[0].mean()), label] > 1


def test_crop_depends_on_name_and_epoch(world: Path) -> None:
    config = make_config(world).data

    def drawn(**changes):
        facts = {"longest": 64, "config": config, "slack": 2.0, "seed": 0, "epoch": 0} | changes
        return crop(video(), **facts)

    assert drawn().features.tobytes() == drawn().features.tobytes()
    lengths = {len(drawn(epoch=e).features) for e in range(40)}
    assert lengths <= set(range(36, 41))
    assert len(lengths) > 2
    sample = drawn()
    assert (sample.corrupted - sample.features == 0.5).all()  # both are cropped alike


def test_long_video_is_cropped_and_mostly_hidden_actions_are_dropped(world: Path) -> None:
    config = make_config(world).data
    for epoch in range(60):
        sample = crop(video(), longest=12, config=config, slack=2.0, seed=0, epoch=epoch)
        assert len(sample.features) == 12
        start = sample.features[0, 0]
        for (a, b), label in zip(sample.segments, sample.labels, strict=True):
            action = video().segments[label]
            assert -2 <= a <= b <= 14
            assert (b - a) / (action[1] - action[0]) >= 0.5
            assert a == pytest.approx(max(action[0] - start, -2), abs=1e-5)


def test_held_out_videos_depend_only_on_the_seed(world: Path) -> None:
    sizes = type("Sizes", (), {"classes": 2, "input_dim": 8, "max_length": 64, "resize": False, "stretches": False})()
    splits = []
    for seed in (0, 0, 1):
        config = make_config(world, data={"select": 0.3}, seed=seed)
        names, learn, held = split_videos(config, sizes)
        assert names == ("Jump", "Run")
        assert not {v.name for v in learn} & {v.name for v in held[0]}
        assert (len(learn), len(held[0])) == (7, 3)
        assert set(held[1].videos) == {v.name for v in held[0]}
        splits.append({v.name for v in held[0]})
    assert splits[0] == splits[1] != splits[2]


def test_validation_subset_by_name(world: Path, tmp_path: Path) -> None:
    content = json.loads((world / "truth.json").read_text())
    for name in ("video08", "video09"):
        content["database"][name]["subset"] = "Choose"
    (tmp_path / "truth.json").write_text(json.dumps(content))
    config = make_config(world, data={"truth": str(tmp_path / "truth.json"), "select": "choose"})
    sizes = type("Sizes", (), {"classes": 2, "input_dim": 8, "max_length": 64, "resize": False, "stretches": False})()
    _, learn, held = split_videos(config, sizes)
    assert (len(learn), len(held[0])) == (8, 2)


def test_more_classes_than_the_detector_has_are_refused(world: Path) -> None:
    truth = read_truth(world / "truth.json")
    assert class_numbers(truth, 4, "truth.json")[0] == ("Jump", "Run", "class 2", "class 3")
    assert class_numbers(truth, 1, "truth.json") == (("action",), {"Jump": 0, "Run": 0})
    content = json.loads((world / "truth.json").read_text())
    for annotation in content["database"]["video00"]["annotations"]:
        annotation |= {"label": "Throw", "label_id": 7}
    path = world / "more.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="numbered up to 7, but the detector has 2 classes") as caught:
        class_numbers(read_truth(path), 2, str(path))
    assert caught.value.fault == "F36"


@pytest.mark.fault("F50", "F51")
def test_F50_F51_mismatched_features_are_refused(world: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected .*9") as caught:
        load_videos(make_config(world).data, "validation", NUMBERS, channels=9)
    assert caught.value.fault == "F50"
    for variant, rows in (("clean", 64), ("rough", 63)):
        (tmp_path / variant).mkdir()
        for path in (world / variant).iterdir():
            np.save(tmp_path / variant / path.name, np.load(path)[:rows])
    config = make_config(world, data={"features": str(tmp_path / "clean"), "corrupted": str(tmp_path / "rough")}).data
    with pytest.raises(DataError, match=r"corrupted features are \(63, 8\), clean ones \(64, 8\)") as caught:
        load_videos(config, "validation", NUMBERS, channels=8)
    assert caught.value.fault == "F51"
    config = make_config(world, data={"stride": 8}).data
    with pytest.raises(DataError) as caught:
        load_videos(config, "validation", NUMBERS, channels=8)
    assert caught.value.fault == "F51"


@pytest.mark.fault("F34")
def test_F34_missing_frame_rate_is_refused(world: Path, tmp_path: Path) -> None:
    content = json.loads((world / "truth.json").read_text())
    for entry in content["database"].values():
        del entry["fps"]
    (tmp_path / "truth.json").write_text(json.dumps(content))
    data = {"truth": str(tmp_path / "truth.json")}
    with pytest.raises(DataError, match="has no rate; add 'fps' to it"):
        load_videos(make_config(world, data=data).data, "validation", NUMBERS, channels=8)
    videos, _ = load_videos(make_config(world, data=data | {"fps": 25.0}).data, "validation", NUMBERS, channels=8)
    assert len(videos) == 10
