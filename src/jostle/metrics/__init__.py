"""Metrics from predictions and ground truth; needs neither torch nor video."""
