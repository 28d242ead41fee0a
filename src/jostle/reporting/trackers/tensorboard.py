"""TensorBoard: an event file, written by the tensorboard package alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

from jostle.reporting.trackers.payload import TrackerPayload
from jostle.reporting.trackers.tracker import tracker

_STRING = 7  # the type of text in a tensor


@tracker("tensorboard")
def log_to_tensorboard(run: TrackerPayload, folder: Path) -> str:
    """Write `folder/<run>`; look at it by `tensorboard --logdir folder`."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in {**run.scalars, **run.summary}.items()]
    config = f"```json\n{json.dumps(run.config, indent=2)}\n```"
    text = TensorProto(dtype=_STRING, string_val=[config.encode()], tensor_shape=TensorShapeProto())
    about = create_summary_metadata(display_name="config", description="What ran.")
    values.append(Summary.Value(tag="config", tensor=text, metadata=about))
    writer = EventFileWriter(str(folder / run.name))
    try:
        writer.add_event(Event(wall_time=time.time(), step=0, summary=Summary(value=values)))
    finally:
        writer.close()
    return f"tensorboard --logdir {folder}"
