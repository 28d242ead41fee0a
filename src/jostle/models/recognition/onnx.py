"""Recognisers in ONNX files, run by ONNX Runtime; size, length and layout follow from the input shape."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from jostle.errors import BadValue, CheckpointError, MissingExtra
from jostle.models.input_spec import InputSpec, Layout
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, changed, recogniser

SOURCE = "an .onnx file whose one input is a clip and whose first output are logits"
TYPES: dict[str, type[np.floating[Any]]] = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
PICTURE_AXES = 4  # a batch of pictures, where clips have five
COLOURS_AT: dict[int, Layout] = {1: "CTHW", 2: "TCHW", 4: "THWC"}


@recogniser("onnx", source=SOURCE)
def onnx(weights: Weights, changes: Changes) -> Recogniser:
    """Any network in an ONNX file, which does not say the scale of its input: give `mean` and `std` for [0, 1]."""
    if isinstance(weights, Mapping) or weights == "random":
        raise BadValue(f"onnx: weights are {SOURCE}")
    path = Path(weights)
    if "mean" not in changes or "std" not in changes:
        raise BadValue(
            f"{path}: the file does not say on which scale it wants its values; give mean and std, for values in [0, 1]"
        )
    network = OnnxNetwork(path)
    return Recogniser(network, spec_of(network.shape, changes, str(path)), outputs="logits", name=path.name)


class OnnxNetwork:
    """ONNX Runtime session on the CPU that takes tensors, in batches of the file's batch size.

    Attributes:
        shape: of the input; None where the file leaves a length open.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError:
            raise MissingExtra("a model in an ONNX file", "onnx") from None
        if not Path(path).is_file():
            raise CheckpointError(f"{path}: no such file; give the path of {SOURCE}")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # another number gives other bits
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's own exceptions have no common base but this
            raise CheckpointError(f"{path}: ONNX Runtime cannot load it: {error}", fault="F53") from None
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in TYPES:
            described = ", ".join(f"{one.name} {one.type}" for one in inputs)
            raise BadValue(f"{path}: there must be one input of floating-point numbers, not {described or 'none'}")
        self._name, self._type = inputs[0].name, TYPES[inputs[0].type]
        self._output = self._session.get_outputs()[0].name
        self.shape = tuple(n if isinstance(n, int) and n > 0 else None for n in inputs[0].shape)

    def __call__(self, clips: Tensor) -> npt.NDArray[Any]:
        """Return the first output for (B, ...), for any B."""
        inputs = clips.cpu().numpy().astype(self._type)
        if len(self.shape) == PICTURE_AXES:
            inputs = inputs.squeeze(2 if self.shape[1] == 3 else 1)  # time, which has one frame
        size = self.shape[0] or len(inputs)
        outputs = []
        for lo in range(0, len(inputs), size):
            batch = inputs[lo : lo + size]
            here = len(batch)
            if here < size:
                batch = np.concatenate([batch, np.zeros((size - here, *batch.shape[1:]), batch.dtype)])
            outputs.append(self._session.run([self._output], {self._name: batch})[0][:here])
        return np.concatenate(outputs)


def spec_of(shape: Sequence[int | None], changes: Changes, name: str) -> InputSpec:
    """Return the input spec of an input shape; what the shape leaves open must be among the changes.

    >>> spec = spec_of((None, 3, 16, 112, 112), {}, "net.onnx")
    >>> spec.layout, spec.frames, spec.size
    ('CTHW', 16, 112)
    >>> spec_of((None, 3, 224, 224), {}, "pictures.onnx").frames
    1
    """
    if len(shape) == PICTURE_AXES:  # it sees frames one by one: a clip of one frame
        shape = (*shape[:2], 1, *shape[2:]) if shape[1] == 3 else (shape[0], 1, *shape[1:])
    places = [i for i in COLOURS_AT if len(shape) == 5 and shape[i] == 3]
    if len(places) > 1 and changes.get("layout") in COLOURS_AT.values():
        places = [i for i in places if COLOURS_AT[i] == changes["layout"]]
    if len(places) != 1:
        text = " x ".join("?" if n is None else str(n) for n in shape)
        raise BadValue(
            f"{name}: an input of {text} is not a batch of CTHW, TCHW or THWC with 3 colours, or could be two of "
            "them; export it with such a shape, or say which by layout"
        )
    layout = COLOURS_AT[places[0]]
    length = dict(zip(layout, shape[1:], strict=True))
    if length["H"] != length["W"]:
        raise BadValue(f"{name}: crops must be square, not {length['W']}x{length['H']}")
    settings: dict[str, Any] = {}
    for field, axis in (("frames", "T"), ("size", "H")):
        fixed, requested = length[axis], changes.get(field)
        if fixed is not None and requested is not None and fixed != requested:
            raise BadValue(f"{name}: its input has {field} {fixed}, and cannot be given {requested}")
        if fixed is None and requested is None:
            raise BadValue(f"{name}: its input leaves {field} open; say how many, {field}=...")
        settings[field] = fixed or requested
    spec = InputSpec(settings["frames"], settings["frames"], settings["size"], settings["size"], layout=layout)
    return changed(name, spec, changes)
