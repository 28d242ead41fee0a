"""From what a caller calls a model to the model: its weights are found, read and put in."""
