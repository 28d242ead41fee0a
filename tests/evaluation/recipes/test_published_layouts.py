"""Copies in layouts of other programs, checked with the reader of each program where it is installed."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.small_builds import NAMES, RECIPE, build, write_film, write_films
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes import published_layouts
from jostle.io.video.encode import Writer


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metadata.jsonl").read_text().splitlines()]


def test_metadata_rows_describe_every_copy_of_all_cells(video_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(video_root, out, cells=["kinetics-c/contrast:3"])
    done = build(video_root, out, cells=["kinetics-c/contrast:1"], layouts=["hub"])
    assert done.layouts == ("metadata.jsonl", "README.md")
    rows = rows_of(out)
    assert [row["file_name"] for row in rows] == [
        f"contrast/{severity}/test/{name}.mp4" for severity in (1, 3) for name in NAMES
    ]
    assert rows[0] == {
        "file_name": "contrast/1/test/nod/two.mp4",
        "video_id": "two",
        "cell": "kinetics-c/contrast:1",
        "corruption": "contrast",
        "severity": 1,
        "sha256": json.loads((out / "jostle.json").read_text())["files"]["contrast/1/test/nod/two.mp4"],
        "label": "nod",
    }
    (out / "README.md").write_text("mine")
    build(video_root, out, layouts=["hub"])
    assert (out / "README.md").read_text() == "mine"


def test_shards_are_reproducible_and_damaged_ones_are_replaced(
    video_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_layouts, "SHARD_BYTES", 1)  # one video per shard
    one, two = tmp_path / "one", tmp_path / "two"
    done = build(video_root, one, layouts=["webdataset"])
    shards = [name for name in done.layouts if name.endswith(".tar")]
    assert len(shards) == 4
    with tarfile.open(one / shards[0]) as shard:
        names = shard.getnames()
        assert len(names) == 2
        row = json.loads(shard.extractfile(names[1]).read())  # type: ignore[union-attr]
        assert shard.extractfile(names[0]).read() == (one / row["file_name"]).read_bytes()  # type: ignore[union-attr]
    build(video_root, two, layouts=["webdataset"])
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in shards)
    stamps = [(one / name).stat().st_ino for name in shards[1:]]
    (one / shards[0]).write_bytes(b"cut off")
    build(video_root, one, layouts=["webdataset"])
    assert (one / shards[0]).read_bytes() == (two / shards[0]).read_bytes()
    assert [(one / name).stat().st_ino for name in shards[1:]] == stamps  # intact shards are kept
    monkeypatch.setattr(published_layouts, "SHARD_BYTES", 1 << 30)
    build(video_root, one, layouts=["webdataset"])
    assert len(list((one / "webdataset").glob("*.tar"))) == 2


def test_segments_are_among_the_metadata(tmp_path: Path) -> None:
    write_film(tmp_path / "films" / "v.mp4", 0)
    actions = [{"label": "jump", "segment": [0.02, 0.1]}, {"label": "run", "segment": [0.05, 0.16]}]
    truth = {"database": {"v": {"subset": "test", "duration": 1 / 6, "annotations": actions}}}
    (tmp_path / "films" / "truth.json").write_text(json.dumps(truth))
    recipe = RECIPE.replace('task = "recognition"', 'task = "detection"').replace(
        'metric = "top_k_accuracy"\nk = 1', 'metric = "mean_ap"\nprotocol = "thumos14"'
    )
    (tmp_path / "small.toml").write_text(recipe)
    build(tmp_path / "films", tmp_path / "out", layouts=["croissant"])
    assert rows_of(tmp_path / "out")[0]["segments"] == [
        {"start": 0.02, "end": 0.1, "label": "jump"},
        {"start": 0.05, "end": 0.16, "label": "run"},
    ]


@pytest.mark.fault("F186")
def test_unknown_layouts_and_folders_of_images_are_refused(video_root: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no layout is called 'hubb': did you mean hub"):
        build(video_root, tmp_path / "out", layouts=["hubb"])
    for path in video_root.rglob("*.mp4"):
        clip = jostle.read(path)
        path.unlink()
        with Writer(path.with_suffix(""), size=clip.size, fps=clip.fps, codec="images") as writer:
            for frame in clip.frames:
                writer.write(frame)
    with pytest.raises(BadValue, match="is a folder of images") as caught:
        build(video_root, tmp_path / "out", layouts=["hub"])
    assert caught.value.fault == "F186"
    assert not (tmp_path / "out").exists()


def test_croissant_has_the_fields_of_responsible_ai(video_root: Path, tmp_path: Path) -> None:
    build(video_root, tmp_path / "out", layouts=["croissant"], lossless=True)
    metadata = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert "http://mlcommons.org/croissant/1.1" in metadata["conformsTo"]
    assert metadata["version"] == "2.0.0"
    fields = {key for key in metadata if key.startswith("rai:")}
    assert {"rai:dataCollection", "rai:dataBiases", "rai:dataLimitations", "rai:personalSensitiveInformation"} <= fields
    assert metadata["distribution"][1]["includes"] == ["contrast/**/*.mkv"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build in every layout."""
    folder = tmp_path_factory.mktemp("published")
    build(write_films(folder), folder / "out", layouts=["hub", "webdataset", "croissant"])
    return folder / "out"


def read_by(package: str, code: str, *arguments: str) -> Any:
    """Run a reader in its own process: a folder of tests shares the name of one, and others emit warnings."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    command = [sys.executable, "-I", "-c", f"import json, sys\n{code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_datasets_reads_the_hub_layout(published: Path, tmp_path: Path) -> None:
    code = """
import datasets
loaded = datasets.load_dataset(sys.argv[1], split="test", cache_dir=sys.argv[2])
loaded = loaded.cast_column("video", datasets.Video(decode=False))
print(json.dumps([row | {"video": row["video"]["path"]} for row in loaded]))
"""
    rows = {row["file_name"]: row for row in rows_of(published)}
    samples = read_by("datasets", code, str(published), str(tmp_path / "cache"))
    assert len(samples) == len(rows) == 4
    for sample in samples:
        name = str(Path(sample.pop("video")).relative_to(published))
        assert {"file_name": name} | sample == rows.pop(name)


def test_webdataset_reads_the_shards(published: Path) -> None:
    code = """
import hashlib, webdataset
samples = webdataset.WebDataset(sys.argv[1:], shardshuffle=False).decode()
print(json.dumps([sample["json"] | {"sha256": hashlib.sha256(sample["mp4"]).hexdigest()} for sample in samples]))
"""
    shards = sorted(str(path) for path in (published / "webdataset").glob("*.tar"))
    assert read_by("webdataset", code, *shards) == rows_of(published)


def test_mlcroissant_reads_the_metadata(published: Path) -> None:
    code = """
import mlcroissant
data = mlcroissant.Dataset(sys.argv[1])
assert not data.metadata.issues.errors, data.metadata.issues.report()
assert data.metadata.data_limitations and data.metadata.data_biases
rows = [{key.partition("/")[2]: value for key, value in row.items()} for row in data.records("videos")]
print(json.dumps([{k: v.decode() if isinstance(v, bytes) else int(v) for k, v in row.items()} for row in rows]))
"""
    assert read_by("mlcroissant", code, str(published / "croissant.json")) == rows_of(published)
