"""Video input and output through PyAV/FFmpeg: probing, decoding, encoding, in-memory codecs."""
