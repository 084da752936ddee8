"""Small files that ask a decoder for much work, and what the service says to each."""

import io
import struct
import zlib

import numpy as np
from PIL import Image


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(*before: bytes, after: bytes = b"", pixels: list[bytes] | None = None, side: int = 8, depth: int = 8,
        colour: int = 0, interlace: int = 0, value: int = 0xB3) -> bytes:  # fmt: skip
    """A PNG of one value: ``before`` and ``after`` are chunks around the pixels, ``pixels`` the parts they come in."""
    row = b"\0" + bytes([value]) * (side * depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] // 8)
    header = struct.pack(">IIBBBBB", side, side, depth, colour, 0, 0, interlace)
    parts = pixels if pixels is not None else [zlib.compress(row * side)]
    return b"".join((b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", header), *before, *(chunk(b"IDAT", part) for part in parts),
                     after, chunk(b"IEND", b"")))  # fmt: skip


def jpeg(side: int = 64, **options) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (side, side), 0xB3).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def scans(side: int, count: int) -> bytes:
    """A progressive JPEG whose last scan is repeated ``count`` times: each goes over every pixel and says nothing."""
    whole = jpeg(side, progressive=True)
    last = whole.rindex(b"\xff\xda")
    return whole[:-2] + whole[last:-2] * count + whole[-2:]


def _interlaced() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (8, 8), 0xB3).save(buffer, "PNG")
    passes = b"".join((b"\0" + b"\xb3" * width) * height for width, height in
                      ((1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)))  # fmt: skip
    return png(pixels=[zlib.compress(passes)], interlace=1)


def _exif() -> bytes:
    entries = b"".join(struct.pack("<HHII", tag, 2, 60_000, 8) for tag in range(5000))
    tiff = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 5000) + entries
    return b"Exif\0\0" + tiff


def _segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


PICTURE, REFUSED = (200,), (400,)

_TEXT = zlib.compress(bytes(1 << 20), 9)
_STREAM = zlib.compress((b"\0" + b"\xb3" * 8) * 8)
_J = jpeg()

IMAGES: dict[str, tuple[bytes, tuple[int, ...]]] = {
    "4,000 empty scans": (scans(4000, 4000), REFUSED),
    "as many scans as allowed": (scans(64, 50), PICTURE),
    "compressed texts": (png(*[chunk(b"zTXt", b"k\0\0" + _TEXT)] * 200), PICTURE),
    "international texts": (png(*[chunk(b"iTXt", b"k\0\1\0\0\0" + _TEXT)] * 200), PICTURE),
    "colour profile bomb": (png(chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(1 << 26), 9))), PICTURE),
    "200,000 chunks": (png(*[chunk(b"tEXt", b"a\0")] * 200_000), REFUSED),
    "200,000 empty pixel chunks": (png(pixels=[b""] * 200_000), REFUSED),
    "pixels byte by byte": (png(pixels=[bytes([one]) for one in _STREAM]), PICTURE),
    "thousands of pixel chunks": (png(pixels=[_STREAM, *[b""] * 5000]), PICTURE),
    "pixels without end": (png(pixels=[zlib.compress((b"\0" + b"\xb3" * 8) * 7_000_000, 1)]), PICTURE),
    "interlaced": (_interlaced(), PICTURE),
    "animated": (png(chunk(b"acTL", struct.pack(">II", 10**6, 0)),
                     after=chunk(b"fdAT", b"\0\0\0\1" + _STREAM) * 2000), PICTURE),
    "wrong checksum": (png()[:-20] + b"\0" + png()[-19:], REFUSED),
    "two headers": (png(chunk(b"IHDR", bytes(13))), REFUSED),
    "no width": (png(side=0), REFUSED),
    "a length beyond the file": (png()[:8] + b"\xff\xff\xff\xff" + png()[12:], REFUSED),
    "arithmetic coding": (_J.replace(b"\xff\xc0", b"\xff\xc9"), REFUSED),
    "several frames": (_J[: _J.index(b"\xff\xda")] + _J[_J.index(b"\xff\xc0") :], REFUSED),
    "huge tables": (_J[:2] + _segment(0xDB, (b"\0" + b"\1" * 64) * 1000) * 40 + _J[2:], REFUSED),
    "huge Huffman tables": (_J[:2] + _segment(0xC4, (b"\0" + b"\0" * 16) * 3500) * 40 + _J[2:], REFUSED),
    "a million restart markers": (_J[:-2] + b"\xff\xd0" * 10**6 + b"\xff\xd9", PICTURE),
    "restarts everywhere": (_J[:2] + _segment(0xDD, b"\0\1") + _J[2:], (200, 400)),
    "200,000 comments": (_J[:2] + b"\xff\xfe\0\2" * 200_000 + _J[2:], REFUSED),
    "a million fill bytes": (_J[:2] + b"\xff" * 10**6 + _J[2:], PICTURE),
    "camera data bomb": (_J[:2] + _segment(0xE1, _exif()) * 20 + _J[2:], PICTURE),
    "several pictures in one file": (_J[:2] + _segment(0xE2, b"MPF\0" + bytes(100)) + _J[2:] + _J, PICTURE),
    "end cut off": (_J[:-200], REFUSED),
    "header alone": (b"\xff\xd8\xff", REFUSED),
    "noise after the start": (b"\xff\xd8\xff" + np.random.default_rng(0).bytes(100_000), REFUSED),
}  # fmt: skip
