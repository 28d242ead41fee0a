"""Watch a GStreamer pipeline for damage with a pad probe, and drop what is damaged before it reaches a model.

    python3 watch_pipeline.py 'videotestsrc ! video/x-raw,format=RGB ! identity name=watch ! fakesink'

The element called `watch` must see RGB. With a look-ahead of 0 a verdict comes with its buffer, so that the probe can
decide on it; with a look-ahead, as needs fewer false alarms, the verdicts are about earlier buffers and only reported.
It runs on the Python that GStreamer's bindings are built for (Debian: python3-gst-1.0), with jostle on its path.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402

import jostle  # noqa: E402


def frame_of(buffer: Any, caps: Any) -> np.ndarray:
    """Return a buffer's picture; GStreamer pads the rows of RGB to multiples of four bytes."""
    info = GstVideo.VideoInfo.new_from_caps(caps)
    stride, offset, height, width = info.stride[0], info.offset[0], info.height, info.width
    mapped, memory = buffer.map(Gst.MapFlags.READ)
    if not mapped:
        raise RuntimeError("a buffer cannot be mapped")
    try:
        rows = np.frombuffer(memory.data, np.uint8, (height - 1) * stride + 3 * width, offset)
        return np.lib.stride_tricks.as_strided(rows, (height, width, 3), (stride, 3, 1)).copy()
    finally:
        buffer.unmap(memory)


def main(description: str, lookahead: int = 0) -> int:
    """Run a pipeline to its end, print a line of JSON for each damaged frame, and return how many there were."""
    Gst.init(None)
    pipeline = Gst.parse_launch(description)
    watcher = jostle.Watcher(lookahead=lookahead)
    damaged = 0

    def report(verdicts: list[Any]) -> bool:
        nonlocal damaged
        for one in verdicts:
            if one.damaged:
                damaged += 1
                print(json.dumps({"frame": one.index, "time": one.time, "kind": one.kind}), flush=True)
        return any(one.damaged for one in verdicts)

    def probe(pad: Any, info: Any) -> Any:
        buffer = info.get_buffer()
        time = None if buffer.pts == Gst.CLOCK_TIME_NONE else buffer.pts / Gst.SECOND
        bad = report(watcher.push(frame_of(buffer, pad.get_current_caps()), time))
        return Gst.PadProbeReturn.DROP if bad and lookahead == 0 else Gst.PadProbeReturn.OK

    pipeline.get_by_name("watch").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, probe)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        raise RuntimeError(message.parse_error()[0].message)
    report(watcher.flush())
    return damaged


if __name__ == "__main__":
    print(f"{main(sys.argv[1])} frames damaged", file=sys.stderr)
