"""Folders of images as videos: every verb gives the same as for a lossless video of the same images."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

import jostle
from helpers.benchmark_files import SAMPLING, write_benchmark
from helpers.own_models import SPEC, Small
from helpers.refusals import refused
from jostle import api
from jostle.api.config import VideoFeatureOptions
from jostle.api.features import videos_and_corruptions
from jostle.datasets.videos import duplicates, find_videos, holds_frames
from jostle.errors import BadValue, DataError, SourceChanged
from jostle.evaluation.results.record import RunRecord
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer

SIZE, FRAMES = (24, 32), 30


def random_images(seed: int = 0) -> np.ndarray:
    rough = np.random.default_rng(seed).integers(0, 256, (FRAMES, 6, 8, 3), np.uint8)
    return np.stack([cv2.resize(frame, SIZE[::-1], interpolation=cv2.INTER_CUBIC) for frame in rough])


def write_frames(folder: Path, seed: int = 0, pattern: str = "img_{:05d}.png") -> Path:
    folder.mkdir(parents=True)
    for number, frame in enumerate(random_images(seed), 1):
        cv2.imwrite(str(folder / pattern.format(number)), frame[..., ::-1])
    return folder


def write_video(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, size=SIZE, fps=25, codec="ffv1") as writer:
        for frame in random_images(seed):
            writer.write(frame)
    return path


def frames_of(path: Path, **options: Any) -> np.ndarray:
    with Reader(path, **options) as reader:
        return reader.block(0, len(reader))


@pytest.mark.parametrize("spec", ["fog:3", "freeze:3", "motion_blur:2", "bit_error:3", "packet_loss:3", "h264_crf:3"])
def test_folder_is_corrupted_like_arrays_and_lossless_video(spec: str, tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "v")
    result = api.corrupt_file(folder, spec, tmp_path / "a.mkv", lossless=True, fps=25, seed=3)
    clip = jostle.read(folder, fps=25)
    assert (jostle.corrupt(clip, spec, seed=3, video_id="v").frames == frames_of(result.path)).all()
    if spec not in ("bit_error:3", "packet_loss:3"):  # these damage the coded stream, which images do not have
        from_video = api.corrupt_file(write_video(tmp_path / "v.mkv"), spec, tmp_path / "b.mkv", lossless=True, seed=3)
        assert result.path.read_bytes() == from_video.path.read_bytes()


def test_images_keep_names_and_formats(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "v", pattern="frame_{:010d}.jpg")
    api.corrupt_file(folder, "fog:3", tmp_path / "jpeg", fps=25)
    assert sorted(path.name for path in (tmp_path / "jpeg").iterdir()) == [
        *(f"frame_{number:010d}.jpg" for number in range(1, FRAMES + 1)),
        "times.json",
    ]
    api.corrupt_file(folder, "fog:3", tmp_path / "png", fps=25, lossless=True)
    exact = jostle.corrupt(jostle.read(folder, fps=25), "fog:3", video_id="v").frames
    assert (frames_of(tmp_path / "png") == exact).all()
    assert np.abs(frames_of(tmp_path / "jpeg").astype(int) - exact).mean() < 2
    assert jostle.read(tmp_path / "jpeg").fps == 25


def test_folder_without_images_only_is_refused(tmp_path: Path) -> None:
    write_video(tmp_path / "clips" / "a.mkv")
    with pytest.raises(DataError, match=r"no images in this folder, so it is not one video; it holds a\.mkv"):
        api.corrupt_file(tmp_path / "clips", "fog:3", tmp_path / "out.mkv")
    cv2.imwrite(str(tmp_path / "clips" / "1.png"), random_images()[0])
    with pytest.raises(DataError, match=r"holds both images and video files \(a\.mkv\)"):
        api.corrupt_file(tmp_path / "clips", "fog:3", tmp_path / "out.mkv")


def test_find_videos_in_folders_of_images(tmp_path: Path) -> None:
    one = write_frames(tmp_path / "set" / "walk" / "v1.0")
    write_frames(tmp_path / "set" / "walk" / "flow_x")
    two = write_frames(tmp_path / "set" / "v2", seed=1)
    (tmp_path / "set" / "logo.png").write_bytes((two / "img_00001.png").read_bytes())
    videos = find_videos(tmp_path / "set")
    assert dict(videos) == {"v1.0": one, "v2": two}
    assert videos.warnings == (f"1 skipped, optical flow: {tmp_path / 'set' / 'walk' / 'flow_x'}",)
    assert dict(find_videos(two)) == {"v2": two}
    assert holds_frames(two)
    write_video(tmp_path / "set" / "v3.mkv")
    videos = find_videos(tmp_path / "set")
    assert list(videos) == ["v3"]
    assert "2 skipped, folder of images beside video files" in videos.warnings[0]


def test_images_linked_from_outside_are_skipped(tmp_path: Path) -> None:
    outside = write_frames(tmp_path / "away")
    (tmp_path / "set" / "v").mkdir(parents=True)
    (tmp_path / "set" / "v" / "1.png").symlink_to(outside / "img_00001.png")
    videos = find_videos(tmp_path / "set")
    assert not videos
    assert "images that are links to files outside the root" in videos.warnings[0]


def test_duplicate_folders_are_found(tmp_path: Path) -> None:
    folders = {name: write_frames(tmp_path / name, seed) for name, seed in (("a", 0), ("b", 1), ("c", 0))}
    assert duplicates(folders) == [("a", "c")]


def test_single_folder_of_images_is_one_video(tmp_path: Path) -> None:
    folder = write_frames(tmp_path / "v")
    options = VideoFeatureOptions(video_id="mine")
    videos, _ = videos_and_corruptions(options, folder, None)
    assert videos == {"mine": folder}
    write_frames(tmp_path / "w", seed=1)
    with pytest.raises(BadValue, match="is a folder of them"):
        videos_and_corruptions(options, tmp_path, None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    cells = ("gaussian_noise:3", "freeze:3", "h264_crf:3")
    write_benchmark(tmp_path, "recognition", *cells, subset=None, sampling=SAMPLING)
    for seed, name in enumerate(("jump/a", "jump/b", "walk/c")):
        write_frames(tmp_path / "frames" / name, seed)
        write_video(tmp_path / "files" / f"{name}.mkv", seed)
    return tmp_path


def run(data: Path, kind: str, **options: Any) -> Any:
    return jostle.run(
        data / "tiny-p.toml",
        model=Small(),
        spec=SPEC,
        data=data / kind,
        out=data / f"run-{kind}",
        device="cpu",
        **options,
    )


def test_image_folders_score_like_video_files(data: Path) -> None:
    result = run(data, "frames", fps=25)
    assert not result.failures
    files = run(data, "files")
    assert result.scores["cells"] == files.scores["cells"]
    for name in ("clean", "gaussian_noise-3", "freeze-3"):
        from_images, from_files = (
            np.load(data / f"run-{kind}" / "predictions" / f"{name}.npz")["scores"] for kind in ("frames", "files")
        )
        assert (from_images == from_files).all()
    lines = (data / "run-frames" / "journal.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["event"] == "video"]
    assert [event["fps"] for event in events] == ["25"] * 3
    assert all(event["source"].startswith("sha256:") for event in events)


def test_run_on_images_resumes_and_detects_changes(data: Path) -> None:
    run(data, "frames", fps=25, cells=["clean"])
    with pytest.raises(SourceChanged, match=r"was read at 25 frames a second .* and now at its own"):
        run(data, "frames")
    run(data, "frames", fps=25, cells=["freeze:3"])
    record = RunRecord.read(data / "run-frames")
    assert {str(rate) for rate in record.rates.values()} == {"25"}
    path = data / "frames" / "jump" / "a" / "img_00003.png"
    cv2.imwrite(str(path), np.zeros((*SIZE, 3), np.uint8))
    with pytest.raises(SourceChanged, match="has changed since this run processed it"):
        run(data, "frames", fps=25)


def test_corrupted_copies_of_images_are_images(data: Path) -> None:
    options: dict[str, Any] = {"data": data / "frames", "cells": ["freeze:3"], "fps": 25, "jobs": 1, "lossless": True}
    result = jostle.build(data / "tiny-p.toml", out=data / "copies", **options)
    assert (result.files.made, dict(result.failures)) == (3, {})
    copy = next((data / "copies").rglob("jump/a"))
    clean = jostle.read(data / "frames" / "jump" / "a", fps=25)
    assert (jostle.read(copy).frames == jostle.corrupt(clean, "freeze:3", video_id="a").frames).all()
    assert jostle.build(data / "tiny-p.toml", out=data / "copies", **options).files.kept == 3
    (copy / "img_00002.png").unlink()
    again = jostle.build(data / "tiny-p.toml", out=data / "copies", **options)
    assert (again.files.kept, again.files.rebuilt) == (2, 1)
    assert len(list(copy.iterdir())) == FRAMES + 1


def test_annotated_frame_rate_takes_precedence(tmp_path: Path) -> None:
    write_frames(tmp_path / "v")
    actions = [{"label": "jump", "segment": [0.2, 0.6]}]
    (tmp_path / "truth.json").write_text(json.dumps({"database": {"v": {"fps": 12.5, "annotations": actions}}}))
    assert jostle.load_dataset("folder", root=tmp_path, fps=30).rate_of("v") == 12.5
    (tmp_path / "truth.json").write_text(json.dumps({"database": {"v": {"annotations": actions}}}))
    assert jostle.load_dataset("folder", root=tmp_path, fps=30).rate_of("v") == 30
    assert jostle.load_dataset("folder", root=tmp_path).rate_of("v") is None


class Decoder:
    """Fake of torchcodec's `VideoDecoder`: channels first, times in seconds."""

    def __init__(self, path: Path) -> None:
        self._clip = jostle.read(path)
        self.metadata = SimpleNamespace(average_fps=float(self._clip.fps))

    def __len__(self) -> int:
        return len(self._clip)

    def get_frames_in_range(self, start: int, stop: int) -> Any:
        frames = self._clip.frames[start:stop].transpose(0, 3, 1, 2)
        return SimpleNamespace(data=frames, pts_seconds=self._clip.pts[start:stop] + 0.25)


@pytest.mark.fault("F185")
def test_decoders_score_like_their_files_and_resume(data: Path) -> None:
    files = run(data, "files")
    decoders = {name: Decoder(data / "files" / kind / f"{name}.mkv") for kind, name in (("jump", "a"), ("walk", "c"))}
    options: dict[str, Any] = {"model": Small(), "spec": SPEC, "data": data / "files", "device": "cpu"}
    result = jostle.run(data / "tiny-p.toml", out=data / "run", videos=decoders, **options)
    assert not result.failures
    assert result.scores["cells"] == files.scores["cells"]
    journal = data / "run" / "journal.jsonl"
    sources = {
        event["video"]: event["source"]
        for event in map(json.loads, journal.read_text().splitlines())
        if event["event"] == "video"
    }
    assert sources["a"] != sources["b"]
    before = journal.read_text()
    jostle.run(data / "tiny-p.toml", out=data / "run", videos=decoders, **options)
    assert journal.read_text() == before  # nothing was repeated
    with refused("F185", DataError, match="no annotations of zebra"):
        jostle.run(data / "tiny-p.toml", out=data / "other", videos={"zebra": decoders["a"]}, **options)


def test_decoder_is_inspected_and_extracted_like_its_file(data: Path) -> None:
    path = data / "files" / "jump" / "a.mkv"
    decoder = Decoder(path)
    from_file, from_decoder = api.inspection(path), api.inspection(decoder)
    assert from_file.probabilities.tolist() == from_decoder.probabilities.tolist()
    assert from_file.pts.tolist() == from_decoder.pts.tolist()
    assert from_file.fps == from_decoder.fps
    for source, out in ((path, "by-file"), (decoder, "by-decoder")):
        for spec in ((), ("gaussian_noise:3",)):
            jostle.extract(
                source, "puppet_net", data / f"{out}{len(spec)}", spec=spec, video_id="a", device="cpu", stride=4
            )
    for number in (0, 1):
        file_features, decoder_features = (
            np.load(data / f"{out}{number}" / "a.npy") for out in ("by-file", "by-decoder")
        )
        assert np.array_equal(file_features, decoder_features)
    again = jostle.extract(decoder, "puppet_net", data / "by-decoder0", video_id="a", device="cpu", stride=4)
    assert again.kept == ("a",)
