"""Training detectors, clean and robust: one plain loop, keyed draws, and checkpoints that survive a kill."""
