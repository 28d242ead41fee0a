"""Data sets as they lie on disk: by name, in the layouts they are met in, and what of them is there."""
