"""What stands in docs/results/, made again: the shipped weights, and the study of robust training on puppets.

`python -m studies.detection` needs a CUDA GPU; the rest of jostle does not import this folder.
"""
