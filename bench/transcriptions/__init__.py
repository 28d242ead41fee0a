"""Plain transcriptions of published corruptions that no installable package offers.

Each function follows the formula of the paper it names, computed as in the paper's program: float64, a loop over
frames, no shortcuts. They are references for speed and for pixels, written from the definitions and not from
published source code, and nothing in `src/` uses them. Random ones draw from the generators of the originals
(NumPy's legacy one, Python's `random`), which are arguments instead of global.
"""
