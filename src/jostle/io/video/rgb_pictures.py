"""What decoders have in common whose pictures are RGB arrays already: images, and sources of plugins."""

from __future__ import annotations

from jostle.core.types.clip import Frame


class RgbPictures:
    """Base of decoders that can begin at any frame and give RGB arrays."""

    def seek_point(self, number: int) -> int:
        """Return the frame itself: nothing before it has to be decoded."""
        return number

    @staticmethod
    def rgb(picture: Frame) -> Frame:
        """Return the (H, W, 3) RGB picture itself, which is cached and must not be modified."""
        return picture

    @staticmethod
    def weight(picture: Frame) -> int:
        """Return the bytes that caching this picture takes."""
        return int(picture.nbytes)
