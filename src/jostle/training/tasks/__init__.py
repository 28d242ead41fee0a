"""The training tasks: their declarations, which import torch only when a run begins."""
