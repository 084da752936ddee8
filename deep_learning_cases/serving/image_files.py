"""The structure of a PNG or JPEG, read before a decoder sees it: how much work it is, and only what a picture needs.

A decoder bounds pixels and little else.  A JPEG of 187 kB can make it go 4,000 times over 16 million pixels, and a
decoder that parses texts, profiles or camera data does it for whatever is in there, a hundred thousand times if need
be.  So the file is walked through here once, in time that its length bounds, and comes out without all that.

Sources: ITU-T T.81 (JPEG), annex B; W3C, "Portable Network Graphics (PNG) Specification".
"""

import re
import struct
import zlib
from typing import NamedTuple

__all__ = ["Damaged", "Excessive", "Plain", "plain"]

MAX_PARTS = 10_000
"""Chunks of a PNG, segments of a JPEG; encoders need one for every 8 kB or so."""

MAX_SCANS = 64
"""A progressive JPEG goes over the whole picture once for each scan; encoders use about ten."""

MAX_TABLE_BYTES = 256 * 1024
"""Huffman and quantisation tables of a JPEG; a scan needs at most about 1.5 kB."""


class Damaged(Exception):
    """No PNG or JPEG, or one that ends too early."""


class Excessive(Exception):
    """A file that may well be a picture, but asks for more work than any picture does, or for a decoder of its own."""


class Plain(NamedTuple):
    """A file reduced to what its pixels need; ``work`` is pixels times how often a decoder goes over them.

    ``grey_bits`` is the depth of a grey PNG, 0 for every other file.
    """

    content: bytes
    width: int
    height: int
    scans: int
    grey_bits: int = 0

    @property
    def work(self) -> int:
        """Pixels that have to be gone over: every scan goes over all of them."""
        return self.width * self.height * self.scans


def plain(content: bytes) -> Plain:
    """The file without what no pixel needs; Damaged or Excessive, with the reason, for one that is not decoded."""
    if content.startswith(_PNG):
        return _png(content)
    if content.startswith(b"\xff\xd8\xff"):
        return _jpeg(content)
    raise Damaged("neither PNG nor JPEG")


# PNG: chunks of length, name, content, checksum

_PNG = b"\x89PNG\r\n\x1a\n"
_CHUNKS = (b"IHDR", b"PLTE", b"tRNS")


def _png(content: bytes) -> Plain:
    kept: dict[bytes, bytes] = {}
    pixels: list[memoryview] = []
    view, place, kind, parts = memoryview(content), len(_PNG), b"", 0
    while kind != b"IEND":
        if place + 12 > len(content):
            raise Damaged("the PNG is cut off")
        (length,) = struct.unpack_from(">I", content, place)
        kind, begin, end = content[place + 4 : place + 8], place + 8, place + 8 + length
        place = end + 4
        if place > len(content):
            raise Damaged("the PNG is cut off")
        parts += 1
        if parts > MAX_PARTS:
            raise Excessive(f"the PNG has more than {MAX_PARTS} chunks")
        if kind not in (*_CHUNKS, b"IDAT"):
            continue
        if zlib.crc32(view[begin - 4 : end]) != struct.unpack_from(">I", content, end)[0]:
            raise Damaged(f"a checksum of the PNG is wrong ({kind.decode()})")
        if kind == b"IDAT":
            pixels.append(view[begin:end])
        elif kind in kept:
            raise Damaged(f"the PNG has two chunks {kind.decode()}")
        else:
            kept[kind] = content[begin:end]
    if len(kept.get(b"IHDR", b"")) != 13 or not pixels:
        raise Damaged("the PNG has no header or no pixels")
    width, height = struct.unpack_from(">II", kept[b"IHDR"])
    chunks = [_chunk(name, kept[name]) for name in _CHUNKS if name in kept]
    plainly = b"".join((_PNG, *chunks, _chunk(b"IDAT", b"".join(pixels)), _chunk(b"IEND", b"")))
    depth, colour = kept[b"IHDR"][8:10]
    return Plain(plainly, width, height, 1, depth if colour == 0 else 0)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(content, zlib.crc32(kind)))


# JPEG: segments that begin with 0xFF and a marker; after a start of scan its coded pixels, in which 0xFF is followed
# by 0 or by a restart marker

_SOF, _DHT, _EOI, _SOS, _DQT, _DRI = range(0xC0, 0xD0), 0xC4, 0xD9, 0xDA, 0xDB, 0xDD
_FRAMES = (0xC0, 0xC1, 0xC2)
_TABLES = (_DHT, _DQT)
_KEPT = (*_FRAMES, *_TABLES, _SOS, _DRI, 0xE0, 0xEE)
"""JFIF (E0) and Adobe (EE) segments tell how colours are coded."""

_MARKER = re.compile(rb"\xff+[^\x00\xff]")
_END_OF_SCAN = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")

_STRETCH = 1 << 18
"""A search holds the interpreter's lock; between two stretches others get their turn."""


def _end_of_scan(content: bytes, place: int) -> int:
    while place < len(content):
        found = _END_OF_SCAN.search(content, place, place + _STRETCH)
        if found:
            return found.start()
        place += _STRETCH - 1  # a marker may lie across the border
    return len(content)


def _jpeg(content: bytes) -> Plain:
    kept = [b"\xff\xd8"]
    size: tuple[int, int] | None = None
    place, parts, scans, tables = 2, 0, 0, 0
    while found := _MARKER.match(content, place):
        marker = content[found.end() - 1]
        if marker == _EOI:
            break
        length = int.from_bytes(content[found.end() : found.end() + 2], "big")
        end = found.end() + length
        if length < 2 or end > len(content):
            raise Damaged("the JPEG is cut off")
        parts += 1
        if parts > MAX_PARTS:
            raise Excessive(f"the JPEG has more than {MAX_PARTS} segments")
        if marker in _SOF and marker not in (_DHT, *_FRAMES):
            raise Excessive(f"the JPEG is of a rare kind ({marker:02X}: arithmetic, lossless or hierarchical coding)")
        if marker in _FRAMES:
            if size is not None:
                raise Excessive("the JPEG has several frames")
            if length < 8:
                raise Damaged("the JPEG has no size")
            height, width = struct.unpack_from(">HH", content, found.end() + 3)
            size = width, height
        if marker in _TABLES:
            tables += length
            if tables > MAX_TABLE_BYTES:
                raise Excessive(f"the JPEG has more than {MAX_TABLE_BYTES} bytes of tables")
        segment = found.end() - 1
        if marker == _SOS:
            scans += 1
            if scans > MAX_SCANS:
                raise Excessive(f"the JPEG has more than {MAX_SCANS} scans")
            if size is None:
                raise Damaged("the JPEG has no size")
            end = _end_of_scan(content, end)
        if marker in _KEPT:
            kept.append(b"\xff" + content[segment:end])
        place = end
    else:
        if place < len(content):
            raise Damaged("the JPEG has bytes between its segments")
    if size is None or not scans:
        raise Damaged("the JPEG has no pixels")
    if found is not None:
        kept.append(b"\xff\xd9")
    return Plain(b"".join(kept), *size, scans)
