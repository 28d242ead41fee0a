"""Detectors of frames over a video: looked at once, and anew where something changed, with the same bits."""

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
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, chain, origins
from jostle.errors import BadValue
from jostle.evaluation.inference.clip_detection import CACHED, VideoClips
from jostle.evaluation.inference.detection import ClipDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.io.video.encode import Writer
from jostle.mending.damage_finders import Mending
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
    made = jostle.load_detector(name, **DETECTORS[name])
    for parameter in made.parameters():
        if parameter.ndim > 1 and parameter.std() < 0.03:  # which would have every clip say the same
            torch.nn.init.normal_(parameter, std=0.3)
    return made


def film(count: int, seed: int = 0) -> Clip:
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
    made: dict[str, Any] = {"clean": source}
    for name, (spec, placement) in specs.items():
        parsed = [Spec.parse(one) for one in spec.split("+")]
        made[name] = chain(source, parsed, masks_for(parsed, placement, timeline), seed=3, video_id="v")
    return made


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
def test_struck_videos_are_looked_at_where_they_changed_with_the_same_bits(name: str) -> None:
    detector, clip = detector_of(name), film(150)
    states = states_of(clip, SPECS)
    found = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    for state, source in states.items():
        whole = detector.detect(np.array(source.block(0, 150)), fps=20.0, duration=7.5)
        for one, other in zip(
            (whole.start, whole.end, whole.label, whole.score),
            (getattr(found.segments[state], column) for column in ("start", "end", "label", "score")),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other, err_msg=state)
        assert len(whole), state
    assert (found.segments["frame"].score[:5] != found.segments["clean"].score[:5]).any()


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_only_struck_frames_and_clips_cost_anything(name: str) -> None:
    detector, clip = detector_of(name), film(150)
    taken, _ = detector.sample_indices(150, 20.0)
    states = states_of(
        clip, {"one": ("thumos14-c/overexposure:3", f"frame:{taken[20]}"), "none": ("gaussian_noise:0", None)}
    )
    found = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    firsts = detector.clips(len(taken))
    assert (found.clean.seen, found.clean.joined) == (len(taken), len(firsts))
    touched = [first for first in firsts if first <= 20 < first + 32]
    assert (found.others.seen, found.others.joined) == (1, len(touched))
    assert len(touched) < len(firsts)


def around(place: int, layers: int) -> list[int]:
    """Steps that each layer computes again for one frame of 32, where it looks one further than the one before."""
    return [min(place + far, 31) - (place - far) + 1 for far in range(1, 1 + layers)]


# Of I3D: 7 frames every second, three blocks of 3 in 16 steps, a pool of 3 every second, five blocks in 8 steps, a pool
# of 2, and two blocks in 4 steps.
REACHED = {"basictad": around(20, 9), "e2e_tad": around(20, 8), "afsd": [4, 6, 8, 10, 6, 7, 8, 8, 8, 8, 4, 4, 4]}


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_layers_are_computed_anew_around_struck_frames_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = detector_of(name)
    seen = [*detector.encode_frames(film(30).frames)]  # two fewer than fill a clip
    whole = detector.encode_clip(seen)
    assert (len(detector.layers) + 1, len(whole[0])) == (len(whole), 32)
    struck = list(seen)
    struck[20] = detector.encode_frames(film(40, seed=5).frames[33:34])[0]
    counted: list[int] = []
    plain = type(detector)._layer

    def counting(self: Any, number: int, rows: Any, places: Any) -> Any:
        counted.append(len(places))
        return plain(self, number, rows, places)

    monkeypatch.setattr(type(detector), "_layer", counting)
    part = detector.encode_clip(struck, whole)
    assert counted == REACHED[name]
    monkeypatch.undo()
    for one, other, clean in zip(part, detector.encode_clip(struck), whole, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
        assert not all(torch.equal(a, b) for a, b in zip(one, clean, strict=True))
    assert all(a is b for a, b in zip(detector.encode_clip(seen, whole)[-1], whole[-1], strict=True))


STRETCHES = {
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
    """AFSD with clips of 128 frames, the encodings of 117 and what its layers make of them."""
    torch.manual_seed(1)
    settings = AFSD | {"max_length": 128, "clip_stride": 64, "precision": precision}
    detector: Any = jostle.load_detector("afsd", **settings)
    seen = [*detector.encode_frames(film(117).frames)]
    return detector, seen, detector.encode_clip(seen)


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
def test_i3d_keeps_what_the_damage_does_not_reach(stretch: str, precision: str) -> None:
    """Steps that changed have the bits of a clip computed whole, and those beyond reach are the clean ones."""
    detector, seen, clean = long_clip(precision)
    places = STRETCHES[stretch]
    count = 128 if 127 in places else 117
    struck = [*seen, *clean[0][117:count]]
    for place, row in zip(places, detector.encode_frames(film(len(places), seed=5).frames), strict=True):
        struck[place] = row
    part, whole = detector.encode_clip(struck, clean), detector.encode_clip(struck)
    assert [len(rows) for rows in part] == [len(rows) for rows in clean]
    for one, other in zip(part, whole, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    answers = [detector.clip_outputs(deep) for deep in (part, whole, clean)]
    for key in vars(answers[0]):
        assert torch.equal(getattr(answers[0], key), getattr(answers[1], key)), key
    assert not torch.equal(answers[0].logits, answers[2].logits)
    # Behind the last block a step sees 99 frames: its 8, 44 before them and 47 after.
    for step, (one, kept) in enumerate(zip(part[-1], clean[-1], strict=True)):
        reached = any(8 * step - 44 <= place <= 8 * step + 54 for place in places)
        assert (one is kept) == (not reached), step


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_a_step_of_a_layer_does_not_depend_on_its_company(name: str) -> None:
    detector = detector_of(name).eval()
    deep = detector.encode_clip([*detector.encode_frames(film(32).frames)])
    for number, rows in enumerate(deep[1:]):
        for place in (0, len(rows) // 2, len(rows) - 1):
            with torch.inference_mode():
                (alone,) = detector._layer(number, deep[number], [place])
            assert torch.equal(alone, rows[place]), (number, place)


def test_a_copy_of_the_detector_has_layers_of_its_own() -> None:
    detector, frames = detector_of("afsd"), film(32).frames
    other = deepcopy(detector)
    wanted = other.raw(frames)
    with torch.no_grad():
        for parameter in detector.parameters():
            parameter.zero_()
    assert all(np.array_equal(value, wanted[key]) for key, value in other.raw(frames).items())
    assert not np.array_equal(detector.raw(frames)["logits"], wanted["logits"])


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_layer_by_layer_is_the_network(name: str) -> None:
    """What is computed frame by frame is what the network computes of whole clips, but for rounding."""
    detector = detector_of(name).eval()
    frames = film(32).frames
    with torch.inference_mode():
        wanted = detector(detector.clip(detector.prepare(frames), 0))
    found = detector.clip_outputs(detector.encode_clip([*detector.encode_frames(frames)]))
    for key, value in vars(wanted).items():
        torch.testing.assert_close(
            getattr(found, key), value, atol=1e-3, rtol=1e-3, msg=lambda said, key=key: f"{key}: {said}"
        )


def test_a_gpu_computes_i3d_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network elsewhere says that it is on a GPU: nothing is computed step by step, and clips come out whole."""
    detector = detector_of("afsd").eval()
    clip = torch.rand(1, 32, 3, 32, 32)
    with torch.inference_mode():
        expected = detector.join(clip)
        monkeypatch.setattr(type(detector), "device", torch.device("cuda"))
        assert list(detector.layers) == []
        assert list(detector.finished) == [0]
        found = detector.finish([clip])
    assert torch.equal(found.logits, expected.logits)


def test_a_black_frame_is_looked_at_once() -> None:
    detector, clip = detector_of("basictad"), film(150)
    taken, _ = detector.sample_indices(150, 20.0)
    states = states_of(
        clip, {"a": ("thumos14-c/black_frame:3", f"frame:{taken[9]}"), "b": ("black_frame:1", "centre:50%")}
    )
    found = VideoClips(states["clean"], detector, duration=7.5).detect(states)
    assert found.others.seen == 1
    assert CACHED > 1


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_what_is_seen_of_a_frame_does_not_depend_on_its_company(name: str) -> None:
    detector, frames = detector_of(name), film(FRAMES_AT_ONCE["cpu"] + 5).frames
    together = detector.encode_frames(frames)
    for i in (0, 3, len(frames) - 1):
        assert torch.equal(detector.encode_frames(frames[i : i + 1])[0], together[i])
    turned = detector.encode_frames(frames[::-1].copy())
    assert torch.equal(turned.flip(0), together)


def test_no_more_than_a_clip_is_held() -> None:
    detector, count = detector_of("basictad"), 900
    clip = film(count)

    class Counted(ClipSource):
        most = 0

        def block(self, lo: int, hi: int) -> Any:
            self.most = max(self.most, hi - lo)
            return super().block(lo, hi)

    source = Counted(clip)
    held = []

    def record(done: int, total: int) -> None:
        held.append(len(video._clean.encodings))

    video = VideoClips(source, detector, duration=count / 20, progress=record)
    found = video.detect({"clean": source})
    assert len(found.segments["clean"])
    assert len(held) == len(detector.clips(len(detector.sample_indices(count, 20.0)[0]))) > 10
    assert max(held) <= 32
    assert source.most <= 64


def test_orders_of_a_run(tmp_path: Path) -> None:
    clip = film(60)
    write(clip, tmp_path / "v.mkv")
    cells = (CLEAN_CELL, Cell("black", ("thumos14-c/black_frame:3",), "frame:11", "x", True))
    looked = ClipDetectionPredictor(detector_of("afsd"))(VideoJob("v", tmp_path / "v.mkv", cells, 0))
    assert set(looked.outputs) == {"clean", "black"}
    assert (looked.clean.decoded, looked.cells.decoded) == (30, 0)  # every second frame, each once
    assert looked.clean.joined == looked.cells.joined == 1


def test_detect_takes_a_video_for_a_detector_of_frames(tmp_path: Path) -> None:
    clip = film(60)
    write(clip, tmp_path / "v.mkv")
    detector = detector_of("basictad")
    write_weights(detector.state_dict(), tmp_path / "w.safetensors")
    again = jostle.load_detector("basictad", weights=tmp_path / "w.safetensors", **BASIC)
    found = jostle.detect(tmp_path / "v.mkv", again)
    with one_thread():  # as videos are looked at: with more of them a sum may be divided otherwise
        wanted = detector.detect(clip.frames, fps=20.0, duration=3.0)
    np.testing.assert_array_equal(np.sort(found.score), np.sort(wanted.score))
    struck = jostle.detect(tmp_path / "v.mkv", again, spec="black_frame:1")
    assert (np.sort(struck.score) != np.sort(found.score)).any()
    with pytest.raises(BadValue, match="BasicTAD processes frames itself; leave the extractor out"):
        jostle.detect(tmp_path / "v.mkv", again, extractor=object())  # type: ignore[arg-type]


class Known:
    """Counts the frames that a detector looks at."""

    def __init__(self, detector: Any) -> None:
        self._detector, self.seen = detector, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._detector, name)

    def encode_frames(self, frames: Any) -> Any:
        self.seen += len(frames)
        return self._detector.encode_frames(frames)


def mended_by_hand(detector: Any, frames: np.ndarray, struck: np.ndarray) -> Segments:
    """Every frame seen, then in each clip those that were struck replaced by a line between the sound ones."""
    taken, rate = detector.sample_indices(len(frames), 20.0)
    seen, lost, length = detector.encode_frames(frames[taken]), struck[taken], detector.config.max_length
    parts = []
    for first in detector.clips(len(taken)):
        rows, gone = list(seen[first : first + length]), lost[first : first + length]
        sound = np.flatnonzero(~gone)
        for i in np.flatnonzero(gone) if len(sound) else ():
            before, after = sound[sound < i][-1:], sound[sound > i][:1]
            a, b = (before if len(before) else after)[0], (after if len(after) else before)[0]
            rows[i] = rows[a] + (rows[b] - rows[a]) * float(np.float32((i - a) / max(b - a, 1)))
        parts.append((first, detector.detect_clip(detector.encode_clip(rows))))
    return detector.to_seconds(detector.merge_clips(parts, len(taken)), rate, 7.5)


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_struck_frames_are_mended_inside_their_clips(name: str) -> None:
    detector, clip = Known(detector_of(name)), film(150)
    states = states_of(clip, {key: SPECS[key] for key in ("frame", "time", "codec", "all")})
    struck = {key: origins(source) != np.arange(150) for key, source in states.items()}
    struck["clean"][31:34] = True  # a false alarm
    struck["codec"][70:74] = False  # and some that were missed
    made = VideoClips(states["clean"], detector, duration=7.5).detect(states, struck)
    assert "all" in made.left <= {"all", "time"}  # of jumbled clips, some have every frame in another's place
    for state, source in states.items():
        whole = mended_by_hand(detector, np.array(source.block(0, 150)), struck[state])
        for part in ("start", "end", "score"):
            assert getattr(whole, part).tobytes() == getattr(made.segments[state], part).tobytes(), state
    assert made.segments["frame"].score.tobytes() != made.segments["clean"].score.tobytes()


def test_frames_that_are_known_to_be_struck_are_not_looked_at(tmp_path: Path) -> None:
    detector, clip = Known(detector_of("e2e_tad")), film(150)
    states = states_of(clip, {"frame": SPECS["frame"]})
    struck = {key: origins(source) != np.arange(150) for key, source in states.items()}
    VideoClips(states["clean"], detector, duration=7.5).detect({"clean": states["clean"]})
    clean, detector.seen = detector.seen, 0
    made = VideoClips(states["clean"], detector, duration=7.5).detect(states, struck)
    assert made.others.seen == 0
    assert detector.seen == clean
    write(clip, tmp_path / "a.mkv")
    cell = Cell("black_frame:3", ("thumos14-c/black_frame:3",), "centre:10%", "", True)
    order = VideoJob("v", tmp_path / "a.mkv", (CLEAN_CELL, cell), 3, Segments([2.0], [5.0], [0], None, ("jump",)))
    looked = ClipDetectionPredictor(detector, mending=Mending())(order)
    assert looked.mended is not None
    assert np.array_equal(looked.mended["black_frame:3"].damaged, struck["frame"])
    assert looked.outputs["black_frame:3"].score.tobytes() == made.segments["frame"].score.tobytes()
