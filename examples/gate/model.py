"""The model whose releases are gated."""

NAME = "puppet_x3d"
WEIGHTS = "robust"
