"""Parts that the detectors share, one idea a file. Tensors are (batch, channels, time) unless a comment says other."""
