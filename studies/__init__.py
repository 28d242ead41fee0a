"""Studies behind docs/results/ and the shipped weights.

`harness.py` runs them; the rest of jostle does not import this folder.
"""
