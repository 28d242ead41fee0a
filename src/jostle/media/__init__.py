"""The only room that knows the video library: probing, decoding, encoding, and codecs held in memory.

Import the module you need (`jostle.media.decode`, `.encode`, `.codec`, `.probe`, `.guard`): this face stays
empty so that a plain import loads no decoder.
"""
