"""What looks at a video: a detector, a recogniser or a classifier of frames, on footage that is decoded once."""
