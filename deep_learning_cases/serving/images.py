"""From the bytes of a PNG or JPEG to what the network takes: decode, resize, normalise.

Pillow does the first two and is imported when it is needed; the measuring process of a model alone never carries it.
"""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import InputError, MissingDependencyError, one_line
from deep_learning_cases.ground.arguments import whole
from deep_learning_cases.models.data import IMAGE_SHAPE

__all__ = ["FORMATS", "MAX_PIXELS", "decode", "import_pillow", "photo", "to_input"]

FORMATS = ("png", "jpeg")
"""The formats that :func:`decode` takes; every other one that Pillow knows stays closed."""

MAX_PIXELS = 16_000_000
"""A small file can claim billions of pixels, which would take gigabytes to decode."""

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

    InputError for anything else, for a damaged file, and for more than ``max_pixels``, which the header tells before
    a pixel is decoded.
    """
    pillow = import_pillow()
    try:
        image = pillow.open(io.BytesIO(content), formats=FORMATS)
        width, height = image.size
        if width * height > max_pixels:
            raise InputError(
                f"the image has {width} x {height} pixels: expected at most {max_pixels} in all; send a smaller one"
            )
        image.load()
    except InputError:
        raise
    except Exception as error:  # a damaged file raises one of a dozen classes, SyntaxError and struct.error among them
        raise InputError(
            f"{len(content)} bytes are not an image that can be decoded ({one_line(error)}): expected a whole PNG or"
            " JPEG"
        ) from error
    return image


def to_input(image: Any) -> NDArray[np.float32]:
    """A Pillow image as the network takes it: grey, resized to 8 x 8, float32 (1, 8, 8) of 0 to 1.

    Every pixel of the result is the mean of the pixels it covers (a box filter), as the digits themselves were made.
    """
    small = image.convert("L").resize((IMAGE_SHAPE[2], IMAGE_SHAPE[1]), import_pillow().Resampling.BOX)
    pixels = np.asarray(small, dtype=np.float32) / np.float32(255)
    return pixels.reshape(IMAGE_SHAPE)


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
