"""Realistic damage by code that shares nothing with jostle's corruptions: NumPy, OpenCV and PyAV alone.

It judges the inspector of a stream, so nothing here may be trained on, and no threshold may be chosen by it on footage
that is kept for judging. Every kind is a function of the frames of one stretch and a generator; `damage_clip` puts a
stretch into a clip and says which frames it changed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import av
import cv2
import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB
Mask = npt.NDArray[np.bool_]
Rng = np.random.Generator
Damage = Callable[[Frames, Rng], Frames]

LENGTH = 25  # frames of a stretch
BEFORE = 12  # clean frames before a stretch, at least; after it at least half as many
FPS = Fraction(25)  # of damaged streams
KEY_INTERVAL = 25  # frames between key frames of damaged streams
PADDING = bytes(64)  # zeros after a packet, which decoders read: PyAV leaves there what was in memory
VISIBLE = 2.0  # mean difference in grey levels from which a frame counts as damaged, where a decoder decides


def noise(frames: Frames, rng: Rng) -> Frames:
    """Add Gaussian noise, or replace pixels by black and white ones."""
    if rng.random() < 0.3:
        share = rng.uniform(0.03, 0.12)
        where = rng.random(frames.shape[:3])
        out = frames.copy()
        out[where < share / 2], out[where > 1 - share / 2] = 0, 255
        return out
    sigma = rng.uniform(18, 50)
    return _to_bytes(frames + rng.normal(0, sigma, frames.shape))


def black(frames: Frames, rng: Rng) -> Frames:
    """Replace frames by black, full range or studio range."""
    return np.full_like(frames, int(rng.choice([0, 16])))


def blur(frames: Frames, rng: Rng) -> Frames:
    """Blur as a lens out of focus does, or a Gaussian one."""
    height = frames.shape[1]
    if rng.random() < 0.5:
        return np.stack([cv2.GaussianBlur(frame, (0, 0), rng.uniform(0.012, 0.03) * height) for frame in frames])
    radius = max(2, int(rng.uniform(0.015, 0.04) * height))
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disc = (x * x + y * y <= radius * radius).astype(np.float32)
    return np.stack([cv2.filter2D(frame, -1, disc / disc.sum()) for frame in frames])


def displaced_blocks(frames: Frames, rng: Rng) -> Frames:
    """Move some blocks of each frame elsewhere in it, as wrong motion vectors do."""
    out, side = frames.copy(), int(rng.choice([16, 32]))
    rows, columns = frames.shape[1] // side, frames.shape[2] // side
    share = rng.uniform(0.25, 0.6)
    for source, frame in zip(frames, out, strict=True):
        for y, x in np.argwhere(rng.random((rows, columns)) < share):
            v, u = int(rng.integers(rows)), int(rng.integers(columns))
            block = source[v * side : (v + 1) * side, u * side : (u + 1) * side]
            frame[y * side : (y + 1) * side, x * side : (x + 1) * side] = block
    return out


def overexposed(frames: Frames, rng: Rng) -> Frames:
    """Multiply the light until much of the picture is white."""
    return _to_bytes(frames.astype(np.float32) * rng.uniform(1.9, 3.2) + rng.uniform(10, 50))


def underexposed(frames: Frames, rng: Rng) -> Frames:
    """Take most of the light away."""
    return _to_bytes(frames.astype(np.float32) * rng.uniform(0.12, 0.3))


def green(frames: Frames, rng: Rng) -> Frames:
    """Replace frames by the green that a decoder shows where all of YUV is zero, or by another green."""
    colour = (0, 135, 0) if rng.random() < 0.6 else (0, int(rng.integers(150, 256)), int(rng.integers(0, 40)))
    return np.broadcast_to(np.array(colour, np.uint8), frames.shape).copy()


def lower_half_grey(frames: Frames, rng: Rng) -> Frames:
    """Fill the lower half, more or less, with a decoder's grey."""
    out, height = frames.copy(), frames.shape[1]
    cut = int(height * rng.uniform(0.4, 0.65)) // 16 * 16
    out[:, cut:] = int(rng.choice([127, 128, 130]))
    return out


def lost_band(frames: Frames, rng: Rng) -> Frames:
    """Fill a band at any height with grey, green or black."""
    out, height = frames.copy(), frames.shape[1]
    tall = int(height * rng.uniform(0.2, 0.4))
    top = int(rng.integers(0, height - tall + 1))
    colours = ((128, 128, 128), (0, 135, 0), (0, 0, 0))
    out[:, top : top + tall] = colours[int(rng.integers(3))]
    return out


def covered(frames: Frames, rng: Rng) -> Frames:
    """Cover much of the picture by a dark soft ellipse, a hand, a finger or a board, still or moving a little."""
    shape = str(rng.choice(["ellipse", "hand", "finger", "board"]))
    count, height, width = frames.shape[:3]
    cover = {"ellipse": _ellipse, "hand": _hand, "finger": _finger, "board": _board}[shape](height, width, rng)
    colour = {
        "ellipse": rng.uniform(0, 40, 3),
        "hand": np.array([0.95, 0.68, 0.55]) * rng.uniform(50, 190),
        "finger": np.array([0.9, 0.55, 0.45]) * rng.uniform(30, 140),
        "board": rng.uniform(10, 200, 3),
    }[shape]
    texture = cv2.GaussianBlur(rng.normal(0, 1, (height, width)).astype(np.float32), (0, 0), height / 40)
    look = np.clip(colour + 6 * (texture / (texture.std() + 1e-6))[..., None], 0, 255)
    sway = np.cumsum(rng.normal(0, 0.004 * height, (count, 2)), 0) if rng.random() < 0.6 else np.zeros((count, 2))
    arrival = int(rng.choice([0, 0, 4]))  # frames in which it comes in from below
    out = np.empty_like(frames)
    for t in range(count):
        below = height * max(0.0, 1 - (t + 1) / (arrival + 1)) if arrival else 0.0
        shift = np.array([[1, 0, sway[t, 0]], [0, 1, sway[t, 1] + below]], np.float32)
        share = cv2.warpAffine(cover, shift, (width, height), borderMode=cv2.BORDER_CONSTANT)[..., None]
        out[t] = _to_bytes(frames[t] * (1 - share) + look * share)
    return out


def frozen(frames: Frames, rng: Rng) -> Frames:
    """Repeat the first frame, at times with a clock that goes on or with a codec's trace of noise."""
    out = np.repeat(frames[:1], len(frames), axis=0)
    how = rng.random()
    height, width = frames.shape[1:3]
    if how < 0.3:
        for t, frame in enumerate(out):
            cv2.rectangle(frame, (width // 40, height // 40), (width // 4, height // 9), (0, 0, 0), -1)
            text = f"{12 + t // 25:02d}:{t % 25:02d}"
            cv2.putText(
                frame, text, (width // 30, height // 11), cv2.FONT_HERSHEY_SIMPLEX, height / 450, (255, 255, 255), 1
            )
    elif how < 0.5:
        out = _coded(out, 24)
    return out


def colour_cast(frames: Frames, rng: Rng) -> Frames:
    """Weight the channels wrongly, or exchange two of them."""
    if rng.random() < 0.25:
        return np.ascontiguousarray(frames[..., ::-1])
    gains = np.ones(3)
    gains[int(rng.integers(3))] = rng.choice([rng.uniform(0.2, 0.5), rng.uniform(1.6, 2.2)])
    return _to_bytes(frames * gains)


def reordered(frames: Frames, rng: Rng) -> Frames:
    """Show the frames of every group of four to eight in another order."""
    out, first = frames.copy(), 0
    while first < len(frames) - 1:
        size = min(int(rng.integers(4, 9)), len(frames) - first)
        order = rng.permutation(size)
        while size > 1 and (order == np.arange(size)).all():
            order = rng.permutation(size)
        out[first : first + size] = frames[first : first + size][order]
        first += size
    return out


DAMAGES: dict[str, Damage] = {
    "noise": noise,
    "black": black,
    "black to the end": black,
    "blur": blur,
    "displaced blocks": displaced_blocks,
    "overexposed": overexposed,
    "green": green,
    "lower half grey": lower_half_grey,
    "covered": covered,
    "frozen": frozen,
    "lost band": lost_band,
    "underexposed": underexposed,
    "colour cast": colour_cast,
    "reordered": reordered,
}
CODECS = {"damaged H.264": "libx264", "damaged MPEG-4": "mpeg4"}
TABLE = tuple(DAMAGES)[:10]  # the ten kinds that the aims are set for
KINDS = (*DAMAGES, *CODECS)
WORDS = {  # of `jostle.mending.verdicts.KINDS`: those that are right
    "noise": ("noisy",),
    "black": ("black",),
    "black to the end": ("black",),
    "blur": ("blurred",),
    "displaced blocks": ("blocky",),
    "overexposed": ("overexposed",),
    "green": ("one_colour",),
    "lower half grey": ("missing_part",),
    "covered": ("covered",),
    "frozen": ("frozen",),
    "lost band": ("missing_part",),
    "underexposed": ("underexposed",),
    "colour cast": ("colour_cast",),
    "reordered": ("out_of_order",),
    "damaged H.264": ("blocky", "missing_part"),
    "damaged MPEG-4": ("blocky", "missing_part"),
}


def damage_clip(frames: Frames, kind: str, seed: int) -> tuple[Frames, Mask]:
    """Damage one stretch of a clip; return the frames and which of them count as damaged.

    Frames that a damage leaves as they were, such as the first of a freeze, are not counted. A clip too short for a
    stretch of `LENGTH` with some clean frames before it has a shorter one.
    """
    if kind in CODECS:
        return _damage_packets(frames, kind, seed)
    first, length, rng = _choose_stretch(frames, kind, seed)
    if kind == "black to the end":
        length = len(frames) - first
    out = frames.copy()
    out[first : first + length] = DAMAGES[kind](frames[first : first + length], rng)
    changed = np.zeros(len(frames), np.bool_)
    for t in range(first, first + length):
        changed[t] = bool((out[t] != frames[t]).any())
    if kind == "frozen":  # a clock or a codec changes the frame that is held, which is no freeze yet
        changed[first] = False
    return out, changed


def damage_stream(frames: Frames, kind: str, seed: int) -> tuple[list[bytes], list[bytes], bytes]:
    """Encode a clip and overwrite bytes of some packets, one a frame.

    Returns:
        The packets as they were, the damaged ones, and the decoder's extra data.
    """
    first, _, rng = _choose_stretch(frames, kind, seed)
    packets, extradata = _encode(_even(frames), CODECS[kind], 24)
    broken = list(packets)
    for t in range(first, min(first + LENGTH // 2, len(packets))):
        if t > first and rng.random() < 0.6:
            continue
        data = bytearray(packets[t])
        header = len(data) // 10 + 12
        if header + 4 >= len(data):
            continue
        for _ in range(int(rng.integers(3, 12))):
            data[int(rng.integers(header, len(data)))] ^= int(rng.integers(1, 256))
        if rng.random() < 0.3:
            lo = int(rng.integers(header, len(data)))
            data = data[:lo]
        broken[t] = bytes(data)
    return packets, broken, extradata


def write_stream(path: str, packets: list[bytes], kind: str, size: tuple[int, int]) -> None:
    """Write the packets of a stream of (height, width) to an AVI file, whatever they hold."""
    with av.open(path, "w", format="avi") as container:
        stream = container.add_stream(CODECS[kind], rate=FPS)
        stream.height, stream.width, stream.pix_fmt = size[0] // 2 * 2, size[1] // 2 * 2, "yuv420p"
        for number, data in enumerate(packets):
            packet = av.Packet(data)
            packet.pts = packet.dts = number
            packet.time_base, packet.stream = 1 / FPS, stream
            packet.is_keyframe = number % KEY_INTERVAL == 0
            container.mux(packet)


def _choose_stretch(frames: Frames, kind: str, seed: int) -> tuple[int, int, Rng]:
    """Return the first frame and the length of a damaged stretch, and the generator for what is done to it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    length = min(LENGTH, len(frames) - BEFORE - BEFORE // 2)
    if length < 5:
        raise ValueError(f"a clip of {len(frames)} frames is too short for a damaged stretch")
    return int(rng.integers(BEFORE, len(frames) - length - BEFORE // 2 + 1)), length, rng


def _even(frames: Frames) -> Frames:
    return frames[:, : frames.shape[1] // 2 * 2, : frames.shape[2] // 2 * 2]


def _to_bytes(values: npt.NDArray[np.float32] | npt.NDArray[np.float64]) -> Frames:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def _ellipse(height: int, width: int, rng: Rng) -> npt.NDArray[np.float32]:
    cover = np.zeros((height, width), np.float32)
    centre = int(width * rng.uniform(0.35, 0.65)), int(height * rng.uniform(0.35, 0.65))
    axes = int(width * rng.uniform(0.25, 0.45)), int(height * rng.uniform(0.25, 0.45))
    cv2.ellipse(cover, centre, axes, rng.uniform(0, 180), 0, 360, 1.0, -1)
    return np.asarray(cv2.GaussianBlur(cover, (0, 0), height * rng.uniform(0.02, 0.06)), np.float32)


def _hand(height: int, width: int, rng: Rng) -> npt.NDArray[np.float32]:
    cover = np.zeros((height, width), np.float32)
    x, y = width * rng.uniform(0.35, 0.65), height * rng.uniform(0.6, 0.8)
    size = height * rng.uniform(0.22, 0.32)
    cv2.ellipse(cover, (int(x), int(y)), (int(size), int(size * 1.2)), 0, 0, 360, 1.0, -1)
    for finger in range(5):
        angle = np.pi * (0.2 + 0.15 * finger) + rng.uniform(-0.05, 0.05)
        tip = int(x + 2.2 * size * np.cos(angle)), int(y - 2.2 * size * np.sin(angle))
        cv2.line(cover, (int(x), int(y)), tip, 1.0, int(size * 0.45))
    return np.asarray(cv2.GaussianBlur(cover, (0, 0), height * rng.uniform(0.005, 0.03)), np.float32)


def _finger(height: int, width: int, rng: Rng) -> npt.NDArray[np.float32]:
    cover = np.zeros((height, width), np.float32)
    side = -0.1 if rng.random() < 0.5 else 1.1
    begin = int(width * side), int(height * rng.uniform(0.2, 0.9))
    end = int(width * rng.uniform(0.4, 0.7)), int(height * rng.uniform(0.3, 0.7))
    cv2.line(cover, begin, end, 1.0, int(height * rng.uniform(0.3, 0.5)))
    return np.asarray(cv2.GaussianBlur(cover, (0, 0), height * rng.uniform(0.02, 0.06)), np.float32)


def _board(height: int, width: int, rng: Rng) -> npt.NDArray[np.float32]:
    cover = np.zeros((height, width), np.float32)
    box = (
        (width * rng.uniform(0.3, 0.7), height * rng.uniform(0.3, 0.7)),
        (width * rng.uniform(0.5, 0.9), height * rng.uniform(0.5, 0.9)),
        rng.uniform(-20, 20),
    )
    cv2.fillConvexPoly(cover, np.int32(cv2.boxPoints(box)), 1.0, cv2.LINE_AA)
    return cover


def _encode(frames: Frames, codec: str, quality: int) -> tuple[list[bytes], bytes]:
    """Encode frames of even size without B-frames; return one packet a frame and the decoder's extra data."""
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
    encoder.time_base, encoder.framerate, encoder.gop_size = 1 / FPS, FPS, KEY_INTERVAL
    encoder.thread_count = 1
    if codec == "libx264":
        encoder.options = {"crf": str(quality), "preset": "veryfast", "tune": "zerolatency", "slices": "4"}
    else:
        encoder.bit_rate, encoder.options = 2_000_000, {"ps": "600"}  # video packets, between which it resynchronises
    packets: list[bytes] = []
    for t, frame in enumerate(frames):
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
        picture.pts = t
        packets += [bytes(packet) for packet in encoder.encode(picture)]
    packets += [bytes(packet) for packet in encoder.encode(None)]
    return packets, bytes(encoder.extradata or b"")


def _decode(packets: list[bytes], codec: str, extradata: bytes) -> list[npt.NDArray[np.uint8] | None]:
    """Decode packet by packet; None where the decoder gave no picture."""
    decoder = av.CodecContext.create("h264" if codec == "libx264" else "mpeg4", "r")
    decoder.extradata = extradata or None
    decoder.thread_count = 1
    decoder.options = {"flags": "+output_corrupt", "err_detect": "ignore_err", "ec": "guess_mvs+deblock"}
    pictures: list[npt.NDArray[np.uint8] | None] = [None] * len(packets)
    for number, data in [*enumerate(packets), (-1, b"")]:
        packet = av.Packet(data + PADDING) if data else None
        if packet is not None:
            packet.pts = number
        try:
            decoded = decoder.decode(packet)
        except av.error.FFmpegError:
            continue
        for picture in decoded:
            if picture.pts is not None and 0 <= picture.pts < len(pictures):
                pictures[picture.pts] = picture.to_ndarray(format="rgb24")
    return pictures


def _coded(frames: Frames, quality: int) -> Frames:
    """Encode and decode, with the frames' size kept."""
    out = frames.copy()
    packets, extradata = _encode(_even(frames), "libx264", quality)
    for t, picture in enumerate(_decode(packets, "libx264", extradata)):
        if picture is not None:
            out[t, : picture.shape[0], : picture.shape[1]] = picture
    return out


def _damage_packets(frames: Frames, kind: str, seed: int) -> tuple[Frames, Mask]:
    """Encode the clip, overwrite bytes of some packets, and let a real decoder conceal what is lost.

    The whole clip goes through the codec, so that what differs from the same clip without errors is the damage alone.
    It smears on until the next key frame. Frames for which no picture comes show the one before.
    """
    packets, broken, extradata = damage_stream(frames, kind, seed)
    even, codec = _even(frames), CODECS[kind]
    sound = _decode(packets, codec, extradata)
    pictures, last = [], even[0]
    for picture in _decode(broken, codec, extradata):
        last = last if picture is None or picture.shape != even[0].shape else picture
        pictures.append(last)
    whole = [even[t] if picture is None else picture for t, picture in enumerate(sound)]
    return np.stack(pictures), np.array([is_visible(a, b) for a, b in zip(pictures, whole, strict=True)])


def is_visible(frame: Frames, sound: Frames) -> bool:
    """Return whether a frame differs from the sound one by so much that it counts as damaged."""
    return float(cv2.absdiff(frame, sound).mean()) >= VISIBLE
