"""Plain transcriptions of published corruptions that no installable package offers.

Each function follows the formula of the work it names, the way that work computes it: float64, a loop over
frames, no shortcut. They are yardsticks for speed and for pixels, written from the definitions and not from
anybody's source, and nothing in `src/` uses them. Random ones draw from the generators the originals use
(NumPy's legacy one, Python's `random`), handed in instead of global.
"""
