"""From the bytes of a PNG or JPEG to what the network takes: decode, resize, normalise.

Pillow does the first two and is imported when it is needed; the measuring process of a model alone never carries it.
"""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, MissingDependencyError
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models.data import IMAGE_SHAPE
from deep_learning_cases.serving.image_files import Damaged, Excessive, Plain, plain
from deep_learning_cases.serving.reasons import reason

__all__ = ["FORMATS", "MAX_PIXELS", "decode", "decode_plain", "examine", "import_pillow", "photo", "to_input"]

FORMATS = ("png", "jpeg")
"""The formats that :func:`decode` takes; every other one that Pillow knows stays closed."""

MAX_PIXELS = 16_000_000
"""A small file can claim billions of pixels, which would take gigabytes to decode."""

_WITH_ALPHA = ("LA", "PA", "RGBA")
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N", "I")
"""Grey of a PNG with 16 bits; older versions of Pillow call it I."""

MODES = ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr", *_WITH_ALPHA, *_SIXTEEN_BITS)
"""Pillow's modes that :func:`to_input` takes: what a PNG or JPEG can be."""

JPEG_QUALITY = 85


def import_pillow() -> Any:
    """The ``PIL.Image`` module; MissingDependencyError with the command that installs it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "Pillow is not installed: decoding images needs it; install it with: "
            "pip install 'deep_learning_cases[service]'"
        ) from error
    return Image


def decode(content: bytes, max_pixels: int = MAX_PIXELS) -> Any:
    """A PNG or JPEG as a decoded Pillow image.

    InputError for anything else, for a damaged file, for more than ``max_pixels``, which the header tells before a
    pixel is decoded, and for a file that is more work than a picture (:mod:`image_files`).
    """
    return decode_plain(examine(content, max_pixels))


def examine(content: bytes, max_pixels: int = MAX_PIXELS) -> Plain:
    """What :func:`decode` decodes, and how much work that is; the same errors, before any of the work."""
    try:
        found = plain(content)
    except Damaged as error:
        raise _not_an_image(content, str(error)) from error
    except Excessive as error:
        raise InputError(f"{error}: expected an ordinary picture; save it again") from error
    if found.width * found.height > max_pixels:
        raise InputError(
            f"the image has {found.width} x {found.height} pixels: expected at most {max_pixels} in all; send a smaller"
            " one"
        )
    return found


def decode_plain(found: Plain) -> Any:
    """The pixels of an examined file; InputError where they are damaged."""
    pillow = import_pillow()
    try:
        image = pillow.open(io.BytesIO(found.content), formats=FORMATS)
        if image.size != (found.width, found.height):
            raise ValueError("its size is not what its header says")
        image.load()
        if found.grey_bits in (2, 4) and "transparency" in image.info:  # Pillow scales the pixels, not this one value
            image.info["transparency"] *= 255 // (2**found.grey_bits - 1)
    except Exception as error:  # a damaged file raises one of a dozen classes, SyntaxError and struct.error among them
        raise _not_an_image(found.content, reason(error, 120)) from error
    return image


def _not_an_image(content: bytes, why: str) -> InputError:
    return InputError(
        f"{len(content)} bytes are not an image that can be decoded ({why}): expected a whole PNG or JPEG"
    )


def to_input(image: Any) -> NDArray[np.float32]:
    """A Pillow image as the network takes it: grey, resized to 8 x 8, float32 (1, 8, 8) of 0 to 1.

    Every pixel of the result is the mean of the pixels it covers (a box filter), as the digits themselves were made.
    InputError for a picture with transparent pixels, whose grey depends on what lies behind them, and for numbers
    without a known white.
    """
    pillow = import_pillow()
    if image.mode not in MODES:
        raise InputError(f"the image's pixels are of mode {image.mode}: expected grey or colour; save it as 8-bit PNG")
    _check_opaque(image)
    white = 255
    if image.mode in _SIXTEEN_BITS:  # convert("L") would cut off everything above 255
        image, white = pillow.fromarray(np.asarray(image).astype(np.float32)), 65535
    else:
        if "transparency" in image.info and image.mode == "P":  # which Pillow warns of, on its way to grey alone
            image = image.convert("RGBA")
        image = image.convert("L")
    small = image.resize((IMAGE_SHAPE[2], IMAGE_SHAPE[1]), pillow.Resampling.BOX)
    pixels = np.asarray(small, dtype=np.float32) / np.float32(white)
    return pixels.reshape(IMAGE_SHAPE)


def _check_opaque(image: Any) -> None:
    alpha = None
    if image.mode in _WITH_ALPHA:
        alpha = image.getchannel("A")
    elif "transparency" in image.info:
        key = image.info["transparency"]
        if image.mode in ("1", "L", *_SIXTEEN_BITS):
            if not bool((np.asarray(image) == (bool(key) if image.mode == "1" else key)).any()):
                return
            raise _transparent()
        alpha = image.convert("RGBA").getchannel("A")
    if alpha is not None and alpha.getextrema()[0] < 255:
        raise _transparent()


def _transparent() -> InputError:
    return InputError(
        "the image has transparent pixels, and what lies behind them is not known: expected an opaque picture;"
        " save it without transparency"
    )


def photo(width: int, format: str, seed: int) -> bytes:  # noqa: A002 - what Pillow calls it
    """A square colour image ``width`` pixels wide, encoded: soft shapes under the grain of a sensor.

    Flat colour would compress to nothing and pure noise to nothing less than itself; both decode unlike a photograph.
    InputError for a width outside 8 to 4000 or another format.
    """
    width, seed = whole(width, "the image width in pixels", 8, 4000), whole(seed, "the seed", 0)
    if format not in FORMATS:
        raise InputError(f"the image format is {format!r}: expected one of {', '.join(FORMATS)}; choose one of them")
    pillow = import_pillow()
    rng = np.random.default_rng((seed, width))
    coarse = pillow.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8))
    shapes = np.asarray(coarse.resize((width, width), pillow.Resampling.BICUBIC), np.float32)
    grain = rng.normal(0.0, 4.0, shapes.shape).astype(np.float32)
    pixels = np.clip(shapes + grain, 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    options = {"quality": JPEG_QUALITY} if format == "jpeg" else {}
    pillow.fromarray(pixels).save(buffer, format=format.upper(), **options)
    return buffer.getvalue()
