"""Frame detectors on videos: only what a corruption changed is computed again, with identical results."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jostle
from jostle.core.types import Clip, Segments
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain, origins
from jostle.errors import BadValue
from jostle.evaluation.inference.clip_detection import CACHED, VideoClips
from jostle.evaluation.inference.detection import ClipDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.io.video.encode import Writer
from jostle.mending.finders.known import KnownDamage
from jostle.models.checkpoints import write_weights
from jostle.models.detection.frame_detector import FRAMES_AT_ONCE
from jostle.models.devices import one_thread

AFSD = {"dim": 64, "classes": 2, "max_length": 32, "levels": 3, "frame_size": 40, "crop": 32, "clip_stride": 16}
AFSD |= {"backbone_width": 0.06, "min_probability": 0.0, "fps": 10.0}
BASIC = {"dim": 32, "classes": 2, "max_length": 32, "levels": 2, "frame_size": 40, "crop": 32, "clip_stride": 24}
BASIC |= {"backbone_width": 0.06, "neck_dim": 32, "min_probability": 0.0, "max_segments": 50, "fps": 10.0}
E2E = {"dim": 32, "classes": 2, "max_length": 32, "frame_size": 40, "crop": 32, "clip_stride": 24, "fps": 10.0}
E2E |= {"backbone": "tsm18", "backbone_width": 0.125, "encoder_layers": 1, "decoder_layers": 2, "queries": 8}
E2E |= {"mlp_dim": 32, "heads": 4}
DETECTORS = {"afsd": AFSD, "basictad": BASIC, "e2e_tad": E2E}


def detector_of(name: str) -> Any:
    torch.manual_seed(1)
    detector = jostle.load_detector(name, **DETECTORS[name])
    for parameter in detector.parameters():
        if parameter.ndim > 1 and parameter.std() < 0.03:  # otherwise every clip would have the same scores
            torch.nn.init.normal_(parameter, std=0.3)
    return detector


def make_clip(count: int, seed: int = 0) -> Clip:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, (64, 72, 3))
    frames = np.stack([np.roll(base, 2 * t, 1) for t in range(count)]) + rng.integers(0, 20, (count, 1, 1, 3))
    return Clip(frames.clip(0, 255).astype(np.uint8), np.arange(count) / 20, Fraction(20))


def write(clip: Clip, path: Path) -> None:
    with Writer(path, size=(64, 72), fps=20, codec="ffv1") as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)


def states_of(clip: Clip, specs: dict[str, tuple[str, str | None]]) -> dict[str, Any]:
    source = ClipSource(clip)
    actions = Segments([2.0], [5.0], [0], None, ("jump",))
    timeline = Timeline.of(clip.pts, clip.fps, actions, seed=3, video_id="v")
    states: dict[str, Any] = {"clean": source}
    for name, (spec, placement) in specs.items():
        parsed = [Spec.parse(one) for one in spec.split("+")]
        states[name] = chain(source, parsed, masks_for(parsed, placement, timeline), seed=3, video_id="v")
    return states


SPECS = {
    "frame": ("thumos14-c/black_frame:3", "centre:10%"),
    "light": ("thumos14-c/overexposure:3", "frame:70"),
    "clip": ("thumos14-c/motion_blur:3", "centre:10%"),
    "time": ("ucf101-p/jumble:3", None),
    "codec": ("thumos14-c/packet_loss:3", "centre:10%"),
    "both": ("ucf101-p/freeze:3+gaussian_noise:2", None),
    "all": ("gaussian_noise:2", None),
}


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_incremental_detection_equals_full_detection(name: str) -> None:
    detector, clip = detector_of(name), make_clip(150)
    states = states_of(clip, SPECS)
    result = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    for state, source in states.items():
        expected = detector.detect(np.array(source.block(0, 150)), fps=20.0, duration=7.5)
        for column in ("start", "end", "label", "score"):
            found = getattr(result.segments[state], column)
            np.testing.assert_array_equal(getattr(expected, column), found, err_msg=state)
        assert len(expected), state
    assert (result.segments["frame"].score[:5] != result.segments["clean"].score[:5]).any()


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_only_corrupted_frames_and_clips_are_computed_again(name: str) -> None:
    detector, clip = detector_of(name), make_clip(150)
    indices, _ = detector.sample_indices(150, 20.0)
    states = states_of(
        clip, {"one": ("thumos14-c/overexposure:3", f"frame:{indices[20]}"), "none": ("gaussian_noise:0", None)}
    )
    result = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    firsts = detector.clips(len(indices))
    assert (result.clean.seen, result.clean.joined) == (len(indices), len(firsts))
    affected = [first for first in firsts if first <= 20 < first + 32]
    assert (result.others.seen, result.others.joined) == (1, len(affected))
    assert len(affected) < len(firsts)


def steps_around(index: int, layers: int) -> list[int]:
    """Count the steps that each layer computes again for one frame of 32, one step further per layer."""
    return [min(index + distance, 31) - (index - distance) + 1 for distance in range(1, 1 + layers)]


# I3D: 7 frames every second, three blocks of 3 in 16 steps, a pool of 3 every second, five blocks in 8 steps, a pool
# of 2, and two blocks in 4 steps.
RECOMPUTED = {
    "basictad": steps_around(20, 9),
    "e2e_tad": steps_around(20, 8),
    "afsd": [4, 6, 8, 10, 6, 7, 8, 8, 8, 8, 4, 4, 4],
}


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_layers_are_recomputed_around_corrupted_frames_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = detector_of(name)
    encodings = [*detector.encode_frames(make_clip(30).frames)]  # two fewer than fill a clip
    clean_layers = detector.encode_clip(encodings)
    assert (len(detector.layers) + 1, len(clean_layers[0])) == (len(clean_layers), 32)
    corrupted = list(encodings)
    corrupted[20] = detector.encode_frames(make_clip(40, seed=5).frames[33:34])[0]
    counts: list[int] = []
    original = type(detector)._layer

    def counting_layer(self: Any, number: int, rows: Any, indices: Any) -> Any:
        counts.append(len(indices))
        return original(self, number, rows, indices)

    monkeypatch.setattr(type(detector), "_layer", counting_layer)
    updated = detector.encode_clip(corrupted, clean_layers)
    assert counts == RECOMPUTED[name]
    monkeypatch.undo()
    for rows, expected, clean_rows in zip(updated, detector.encode_clip(corrupted), clean_layers, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(rows, expected, strict=True))
        assert not all(torch.equal(a, b) for a, b in zip(rows, clean_rows, strict=True))
    assert all(a is b for a, b in zip(detector.encode_clip(encodings, clean_layers)[-1], clean_layers[-1], strict=True))


DAMAGED_INDICES = {
    "first": [0],
    "last": [127],
    "both ends": [0, 127],
    "last before the filling": [116],
    "middle": [60],
    "two near each other": [40, 47],
    "tenth": list(range(70, 83)),
    "odd and even": list(range(1, 117, 13)),
    "every second": list(range(0, 117, 2)),
    "everywhere": list(range(117)),
}


@cache
def long_clip(precision: str) -> tuple[Any, list[torch.Tensor], Any]:
    """Return AFSD with clips of 128 frames, the encodings of 117 frames and the outputs of its layers for them."""
    torch.manual_seed(1)
    settings = AFSD | {"max_length": 128, "clip_stride": 64, "precision": precision}
    detector: Any = jostle.load_detector("afsd", **settings)
    encodings = [*detector.encode_frames(make_clip(117).frames)]
    return detector, encodings, detector.encode_clip(encodings)


@pytest.mark.parametrize(
    ("stretch", "precision"),
    [
        *((key, "float32") for key in ("both ends", "last before the filling", "two near each other", "every second")),
        ("tenth", "bfloat16"),
        *(
            pytest.param(key, "float32", marks=pytest.mark.slow)
            for key in ("first", "last", "middle", "tenth", "odd and even", "everywhere")
        ),
        pytest.param("both ends", "bfloat16", marks=pytest.mark.slow),
    ],
)
def test_i3d_reuses_steps_out_of_reach_of_the_damage(stretch: str, precision: str) -> None:
    """Steps that changed equal those of a full computation; steps out of reach are the clean ones themselves."""
    detector, encodings, clean = long_clip(precision)
    indices = DAMAGED_INDICES[stretch]
    count = 128 if 127 in indices else 117
    corrupted = [*encodings, *clean[0][117:count]]
    for index, row in zip(indices, detector.encode_frames(make_clip(len(indices), seed=5).frames), strict=True):
        corrupted[index] = row
    updated, expected = detector.encode_clip(corrupted, clean), detector.encode_clip(corrupted)
    assert [len(rows) for rows in updated] == [len(rows) for rows in clean]
    for row, expected_rows in zip(updated, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(row, expected_rows, strict=True))
    outputs = [detector.clip_outputs(layers) for layers in (updated, expected, clean)]
    for key in vars(outputs[0]):
        assert torch.equal(getattr(outputs[0], key), getattr(outputs[1], key)), key
    assert not torch.equal(outputs[0].logits, outputs[2].logits)
    # Behind the last block a step sees 99 frames: its 8, 44 before them and 47 after.
    for step, (row, clean_row) in enumerate(zip(updated[-1], clean[-1], strict=True)):
        reached = any(8 * step - 44 <= index <= 8 * step + 54 for index in indices)
        assert (row is clean_row) == (not reached), step


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_a_step_of_a_layer_does_not_depend_on_its_batch(name: str) -> None:
    detector = detector_of(name).eval()
    layers = detector.encode_clip([*detector.encode_frames(make_clip(32).frames)])
    for number, rows in enumerate(layers[1:]):
        for index in (0, len(rows) // 2, len(rows) - 1):
            with torch.inference_mode():
                (alone,) = detector._layer(number, layers[number], [index])
            assert torch.equal(alone, rows[index]), (number, index)


def test_a_copy_of_the_detector_has_layers_of_its_own() -> None:
    detector, frames = detector_of("afsd"), make_clip(32).frames
    other = deepcopy(detector)
    expected = other.raw(frames)
    with torch.no_grad():
        for parameter in detector.parameters():
            parameter.zero_()
    assert all(np.array_equal(value, expected[key]) for key, value in other.raw(frames).items())
    assert not np.array_equal(detector.raw(frames)["logits"], expected["logits"])


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_layers_one_by_one_equal_the_network(name: str) -> None:
    """Computing frame by frame gives what the network computes from whole clips, up to rounding."""
    detector = detector_of(name).eval()
    frames = make_clip(32).frames
    with torch.inference_mode():
        expected = detector(detector.clip(detector.prepare(frames), 0))
    outputs = detector.clip_outputs(detector.encode_clip([*detector.encode_frames(frames)]))
    for key, value in vars(expected).items():
        torch.testing.assert_close(
            getattr(outputs, key), value, atol=1e-3, rtol=1e-3, msg=lambda message, key=key: f"{key}: {message}"
        )


def test_i3d_is_not_computed_step_by_step_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU (here only claimed) nothing is computed step by step: clips are computed whole."""
    detector = detector_of("afsd").eval()
    clip = torch.rand(1, 32, 3, 32, 32)
    with torch.inference_mode():
        expected = detector.join(clip)
        monkeypatch.setattr(type(detector), "device", torch.device("cuda"))
        assert list(detector.layers) == []
        assert list(detector.finished) == [0]
        result = detector.finish([clip])
    assert torch.equal(result.logits, expected.logits)


def test_identical_black_frames_are_encoded_once() -> None:
    detector, clip = detector_of("basictad"), make_clip(150)
    indices, _ = detector.sample_indices(150, 20.0)
    states = states_of(
        clip, {"a": ("thumos14-c/black_frame:3", f"frame:{indices[9]}"), "b": ("black_frame:1", "centre:50%")}
    )
    result = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    assert result.others.seen == 1
    assert CACHED > 1


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_the_encoding_of_a_frame_does_not_depend_on_its_batch(name: str) -> None:
    detector, frames = detector_of(name), make_clip(FRAMES_AT_ONCE["cpu"] + 5).frames
    together = detector.encode_frames(frames)
    for i in (0, 3, len(frames) - 1):
        assert torch.equal(detector.encode_frames(frames[i : i + 1])[0], together[i])
    reversed_order = detector.encode_frames(frames[::-1].copy())
    assert torch.equal(reversed_order.flip(0), together)


def test_no_more_than_a_clip_is_held_in_memory() -> None:
    detector, count = detector_of("basictad"), 900
    clip = make_clip(count)

    class CountingSource(ClipSource):
        most = 0

        def block(self, lo: int, hi: int) -> Any:
            self.most = max(self.most, hi - lo)
            return super().block(lo, hi)

    source = CountingSource(clip)
    counts = []

    def record(done: int, total: int) -> None:
        counts.append(len(video._clean.encodings))

    video = VideoClips(source, detector, duration=count / 20, progress=record)
    result = video.detect({"clean": source})
    assert len(result.segments["clean"])
    assert len(counts) == len(detector.clips(len(detector.sample_indices(count, 20.0)[0]))) > 10
    assert max(counts) <= 32
    assert source.most <= 64


def test_predictor_reports_outputs_and_costs_of_a_job(tmp_path: Path) -> None:
    clip = make_clip(60)
    write(clip, tmp_path / "v.mkv")
    cells = (CLEAN_CELL, Cell("black", ("thumos14-c/black_frame:3",), "frame:11", "x", True))
    result = ClipDetectionPredictor(detector_of("afsd"))(VideoJob("v", tmp_path / "v.mkv", cells, 0))
    assert set(result.outputs) == {"clean", "black"}
    assert (result.clean.decoded, result.cells.decoded) == (30, 0)  # every second frame, each once
    assert result.clean.joined == result.cells.joined == 1


def test_detect_accepts_a_video_file_for_a_frame_detector(tmp_path: Path) -> None:
    clip = make_clip(60)
    write(clip, tmp_path / "v.mkv")
    detector = detector_of("basictad")
    write_weights(detector.state_dict(), tmp_path / "w.safetensors")
    reloaded = jostle.load_detector("basictad", weights=tmp_path / "w.safetensors", **BASIC)
    segments = jostle.detect(tmp_path / "v.mkv", reloaded)
    with one_thread():  # as in prediction: more threads may split a sum in another way
        expected = detector.detect(clip.frames, fps=20.0, duration=3.0)
    np.testing.assert_array_equal(np.sort(segments.score), np.sort(expected.score))
    corrupted = jostle.detect(tmp_path / "v.mkv", reloaded, spec="black_frame:1")
    assert (np.sort(corrupted.score) != np.sort(segments.score)).any()
    with pytest.raises(BadValue, match="BasicTAD processes frames itself; leave the extractor out"):
        jostle.detect(tmp_path / "v.mkv", reloaded, extractor=object())  # type: ignore[arg-type]


class FrameCounter:
    """Detector wrapper that counts the frames that are encoded."""

    def __init__(self, detector: Any) -> None:
        self._detector, self.seen = detector, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._detector, name)

    def encode_frames(self, frames: Any) -> Any:
        self.seen += len(frames)
        return self._detector.encode_frames(frames)


def mend_reference(detector: Any, frames: np.ndarray, damaged: np.ndarray) -> Segments:
    """Encode every frame, then interpolate the damaged ones of each clip between its undamaged neighbours."""
    indices, rate = detector.sample_indices(len(frames), 20.0)
    encodings, sampled_damage, length = (
        detector.encode_frames(frames[indices]),
        damaged[indices],
        detector.config.max_length,
    )
    parts = []
    for first in detector.clips(len(indices)):
        rows, missing = list(encodings[first : first + length]), sampled_damage[first : first + length]
        intact = np.flatnonzero(~missing)
        for i in np.flatnonzero(missing) if len(intact) else ():
            before, after = intact[intact < i][-1:], intact[intact > i][:1]
            a, b = (before if len(before) else after)[0], (after if len(after) else before)[0]
            rows[i] = rows[a] + (rows[b] - rows[a]) * float(np.float32((i - a) / max(b - a, 1)))
        parts.append((first, detector.detect_clip(detector.encode_clip(rows))))
    return detector.to_seconds(detector.merge_clips(parts, len(indices)), rate, 7.5)


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_damaged_frames_are_mended_inside_their_clips(name: str) -> None:
    detector, clip = FrameCounter(detector_of(name)), make_clip(150)
    states = states_of(clip, {key: SPECS[key] for key in ("frame", "time", "codec", "all")})
    damaged = {key: origins(source) != np.arange(150) for key, source in states.items()}
    damaged["clean"][31:34] = True  # a false alarm
    damaged["codec"][70:74] = False  # and a few missed frames
    result = VideoClips(states["clean"], detector, duration=7.5).detect(states, damaged)
    assert "all" in result.left <= {"all", "time"}  # some jumbled clips have no frame where it belongs
    for state, source in states.items():
        expected = mend_reference(detector, np.array(source.block(0, 150)), damaged[state])
        for column in ("start", "end", "score"):
            assert getattr(expected, column).tobytes() == getattr(result.segments[state], column).tobytes(), state
    assert result.segments["frame"].score.tobytes() != result.segments["clean"].score.tobytes()


def test_frames_known_to_be_damaged_are_not_encoded(tmp_path: Path) -> None:
    detector, clip = FrameCounter(detector_of("e2e_tad")), make_clip(150)
    states = states_of(clip, {"frame": SPECS["frame"]})
    damaged = {key: origins(source) != np.arange(150) for key, source in states.items()}
    VideoClips(states["clean"], detector, duration=7.5).detect({"clean": states["clean"]})
    clean, detector.seen = detector.seen, 0
    expected = VideoClips(states["clean"], detector, duration=7.5).detect(states, damaged)
    assert expected.others.seen == 0
    assert detector.seen == clean
    write(clip, tmp_path / "a.mkv")
    cell = Cell("black_frame:3", ("thumos14-c/black_frame:3",), "centre:10%", "", True)
    job = VideoJob("v", tmp_path / "a.mkv", (CLEAN_CELL, cell), 3, Segments([2.0], [5.0], [0], None, ("jump",)))
    result = ClipDetectionPredictor(detector, mending=KnownDamage())(job)
    assert np.array_equal(result.mended["black_frame:3"].damaged, damaged["frame"])
    assert result.outputs["black_frame:3"].score.tobytes() == expected.segments["frame"].score.tobytes()
