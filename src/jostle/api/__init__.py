"""The verbs: what a script calls, and what the command line calls in turn.

Rooms that load compiled or foreign code are imported inside the verbs, so that `import jostle` stays light.
"""

from jostle.api.corrupting import corrupt, corrupt_file, corrupt_frame, read, sheet
from jostle.api.listing import demo, doctor, names

__all__ = ["corrupt", "corrupt_file", "corrupt_frame", "demo", "doctor", "names", "read", "sheet"]
