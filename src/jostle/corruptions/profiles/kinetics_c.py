"""Mini Kinetics-C and Mini SSv2-C (Yi et al., 2021): twelve corruptions, and two more that their program has."""

from __future__ import annotations

from jostle.corruptions.engine.spec import Entry, profile, strength


def _table(exposure: tuple[int, ...], rates: tuple[float, ...]) -> dict[str, Entry]:
    return {
        "shot_noise": strength("shot_noise", 60, 25, 12, 5, 3),
        "rain": strength(
            "rain",
            *((770, 10, 0.8), (770, 30, 0.8), (770, 60, 0.7), (500, 60, 0.6), (400, 80, 0.5)),
            over_time="redrawn",
            note="a frame lower than a streak is rained on as well; the original fails on it",
        ),
        "fog": strength(
            "fog",
            *((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
            over_time="still",
            side=256,
            note="a frame of any size is fogged whole; the original cuts out its central 224 pixels",
        ),
        "contrast": strength("contrast", 0.5, 0.4, 0.3, 0.2, 0.1),
        "brightness": strength("brightness", 0.1, 0.2, 0.3, 0.4, 0.5),
        "saturate": strength("saturate", (0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2)),
        "motion_blur": strength(
            "frame_average",
            *exposure,
            note="the clip keeps its length; the original drops the frames whose window leaves it",
        ),
        "frame_rate": strength(
            "frame_rate",
            *rates,
            note="frames are held, so count and timing stay, and not encoded again; the published command names an "
            "option FFmpeg lacks",
        ),
        "h265_abr": strength("h265_abr", 2, 4, 8, 16, 32, note="one encoder thread: with more, runs differ"),
        "h265_crf": strength("h265_crf", 27, 33, 39, 45, 51),
        "h264_abr": strength("h264_abr", 2, 4, 8, 16, 32),
        "h264_crf": strength("h264_crf", 23, 30, 37, 44, 51),
        "bit_error": strength(
            "bit_error",
            *(100_000, 50_000, 30_000, 20_000, 10_000),
            rule="bytes",
            note="a lost frame is the last good one again; frames without a file are sent as H.264 first",
        ),
        "packet_loss": strength(
            "packet_loss",
            *(0.01, 0.02, 0.03, 0.04, 0.06),
            encodings=2,
            note="the network is simulated and keyed; the published program sends over a lossy link and cannot run",
        ),
    }


@profile("kinetics-c", cites="yi2021")
def kinetics_c() -> dict[str, Entry]:
    """Mini Kinetics-C: six corruptions in space, six in time, and H.264 beside H.265."""
    return _table(exposure=(3, 5, 7, 9, 11), rates=(20.0, 16.0, 12.0, 9.0, 6.0))


@profile("ssv2-c", cites="yi2021")
def ssv2_c() -> dict[str, Entry]:
    """Mini SSv2-C: the same with milder motion blur and lower frame rates, for shorter and slower video."""
    return _table(exposure=(1, 2, 3, 4, 6), rates=(10.0, 8.0, 6.0, 4.0, 2.0))
