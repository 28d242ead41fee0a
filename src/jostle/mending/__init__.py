"""Struck frames taken out: the frames before and after them stand in."""
