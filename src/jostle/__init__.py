"""jostle shows how badly a video model takes a knock, why, and how to train one that does not flinch."""

from jostle.api import corrupt, corrupt_file, corrupt_frame, names, read, sheet
from jostle.errors import JostleError
from jostle.types import Clip, Segments

__version__ = "0.1.0"

__all__ = ["Clip", "JostleError", "Segments", "corrupt", "corrupt_file", "corrupt_frame", "names", "read", "sheet"]
