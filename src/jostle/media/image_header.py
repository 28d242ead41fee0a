"""How large an image says it is, read from its first bytes: no decoder has to make room for it to be known."""

from __future__ import annotations

from collections.abc import Callable

# Start of a frame in JPEG, of any coding; 0xC4, 0xC8 and 0xCC among them are tables.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_PIECES = 1 << 20
_JPEG_BARE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers that no length follows
_TIFF_WIDTHS, _TIFF_HEIGHTS = (256, 322), (257, 323)  # of the image, and of its tiles


def claimed_size(data: bytes) -> tuple[int, int] | None:
    """(height, width) that a JPEG, PNG, BMP, WebP or TIFF image claims; None if the bytes are no such image.

    A PNG image is followed to its end, so all of it has to be there.

    >>> claimed_size(b"BM" + bytes(12) + bytes((40, 0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0)))
    (6, 8)
    """
    if data.startswith(_PNG) and not _png_is_whole(data):
        return None
    return header_size(data)


def header_size(data: bytes) -> tuple[int, int] | None:
    """The same from the beginning of an image alone: what is behind is not looked at."""
    for magic, size in _KINDS:
        if data.startswith(magic):
            try:
                height, width = size(data)
            except IndexError:
                return None
            return (height, width) if height > 0 and width > 0 else None
    return None


def _number(data: bytes, at: int, count: int, big: bool = False) -> int:
    if at < 0 or at + count > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + count], "big" if big else "little")


def _png_is_whole(data: bytes) -> bool:
    # Decoders make room for a piece before they look whether it is there, so each is followed to the next.
    at = 8
    for _ in range(_PNG_PIECES):
        if data[at + 4 : at + 8] == b"IEND":
            return True
        if at + 4 > len(data):
            return False
        at += 12 + _number(data, at, 4, big=True)
    return False


def _png(data: bytes) -> tuple[int, int]:
    return _number(data, 20, 4, big=True), _number(data, 16, 4, big=True)


def _bmp(data: bytes) -> tuple[int, int]:
    if _number(data, 14, 4) == 12:  # as OS/2 wrote them
        return _number(data, 20, 2), _number(data, 18, 2)
    height = _number(data, 22, 4)
    return min(height, 2**32 - height), _number(data, 18, 4)  # the height is negative where the top row comes first


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if _number(data, at, 1) != 0xFF:
            raise IndexError
        marker = _number(data, at + 1, 1)
        if marker in _JPEG_FRAMES:
            return _number(data, at + 5, 2, big=True), _number(data, at + 7, 2, big=True)
        if marker == 0xFF:  # a byte that fills
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + max(_number(data, at + 2, 2, big=True), 2)


def _webp(data: bytes) -> tuple[int, int]:
    if data[8:12] != b"WEBP":
        raise IndexError
    kind = data[12:16]
    if kind == b"VP8 ":
        return _number(data, 28, 2) & 0x3FFF, _number(data, 26, 2) & 0x3FFF
    if kind == b"VP8L":
        bits = _number(data, 21, 4)
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8X":
        return _number(data, 27, 3) + 1, _number(data, 24, 3) + 1
    raise IndexError


def _tiff(data: bytes) -> tuple[int, int]:
    big = data.startswith(b"MM")
    start = _number(data, 4, 4, big)
    found: dict[int, int] = {}
    for entry in range(_number(data, start, 2, big)):
        at = start + 2 + 12 * entry
        wide = _number(data, at + 2, 2, big) == 4  # a long; otherwise a short
        found[_number(data, at, 2, big)] = _number(data, at + 8, 4 if wide else 2, big)
    height, width = (max(found.get(tag, 0) for tag in tags) for tags in (_TIFF_HEIGHTS, _TIFF_WIDTHS))
    return height, width


_KINDS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int]]], ...] = (
    (b"\xff\xd8\xff", _jpeg),
    (_PNG, _png),
    (b"BM", _bmp),
    (b"RIFF", _webp),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
)
