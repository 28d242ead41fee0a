"""Building blocks that detectors share. Tensors are (batch, channels, time) unless a comment says otherwise."""
