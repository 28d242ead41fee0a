"""Studies behind docs/results/ and the shipped weights.

`harness.py` runs them, with the settings in `settings/`; the rest of jostle does not import this folder.
"""
