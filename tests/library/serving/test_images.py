"""Pictures of every kind that a PNG or JPEG can be: the right one comes out, or a refusal in one line."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from deep_learning_cases.errors import InputError
from deep_learning_cases.serving import images
from tests.library.serving import hostile_images

GREY = np.kron(np.random.default_rng(8).integers(0, 16, (8, 8)) * 17, np.ones((4, 4), int)).astype(np.uint8)
"""32 x 32 pixels in squares of 4 x 4, each of 16 greys: after a box filter exactly the squares are left."""

EXPECTED = (GREY[::4, ::4] / np.float32(255)).astype(np.float32)[None]

PILLOWS_MODES = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "I",
                 "I;16", "I;16B", "F")  # fmt: skip
WRITTEN = {("1", "PNG"), ("L", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("RGB", "PNG"), ("RGBA", "PNG"), ("I;16", "PNG"),
           ("I;16B", "PNG"), ("1", "JPEG"), ("L", "JPEG"), ("RGB", "JPEG"), ("RGBX", "JPEG"), ("CMYK", "JPEG"),
           ("YCbCr", "JPEG")}  # fmt: skip
"""What every version of Pillow that is supported can write."""


def of_mode(mode: str) -> Image.Image:
    grey = Image.fromarray(GREY)
    deep = GREY.astype(np.uint16) * 257
    if mode == "1":
        return Image.fromarray(GREY > 127)
    if mode in ("I;16", "I;16B"):
        return Image.frombytes(mode, (32, 32), deep.astype("<u2" if mode == "I;16" else ">u2").tobytes())
    if mode == "I":
        return Image.fromarray(deep.astype(np.int32))
    if mode in ("La", "PA"):
        return grey.convert("LA").convert(mode)
    if mode == "LAB":
        return Image.merge("LAB", [grey, *[Image.new("L", (32, 32), 128)] * 2])
    return grey.convert("RGB").convert(mode) if mode in ("RGBX", "YCbCr", "HSV", "CMYK") else (
        grey.convert("RGBA").convert("RGBa") if mode == "RGBa" else grey.convert(mode)
    )  # fmt: skip


def encoded(picture: Image.Image, kind: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def seen(content: bytes):
    return images.to_input(images.decode(content))


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("mode", PILLOWS_MODES)
def test_every_mode_is_the_right_picture_or_refused(mode, kind):
    options = {"quality": 95} if kind == "JPEG" else {}
    try:
        content = encoded(of_mode(mode), kind, **options)
    except (OSError, KeyError):
        assert (mode, kind) not in WRITTEN
        return
    expected = (EXPECTED > 0.5).astype(np.float32) if mode == "1" else EXPECTED
    np.testing.assert_allclose(seen(content), expected, atol=0.005 if kind == "PNG" else 0.03)


@pytest.mark.parametrize("mode", ["HSV", "LAB", "F", "La", "RGBa"])
def test_a_picture_that_no_file_holds_is_refused(mode):
    with pytest.raises(InputError, match=f"of mode {mode}: expected grey or colour"):
        images.to_input(of_mode(mode))


def test_a_16_bit_picture_is_the_8_bit_one():
    """Digits of 17 greys, as those of the lab: cut off at 255 instead of scaled, all but the background is white."""
    digits = np.random.default_rng(2).integers(0, 17, (50, 8, 8))
    for digit in digits:
        eight = seen(encoded(Image.fromarray(np.rint(digit * (255 / 16)).astype(np.uint8))))
        sixteen = seen(encoded(Image.fromarray(np.rint(digit * (65535 / 16)).astype(np.uint16))))
        np.testing.assert_allclose(sixteen, eight, atol=0.003)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_grey_of_few_bits_is_scaled(depth):
    side, most = 8, 2**depth - 1
    values = np.arange(64).reshape(8, 8) % (most + 1)
    bits = ((values[..., None] >> np.arange(depth)[::-1]) & 1).astype(np.uint8).reshape(side, -1)
    rows = b"".join(b"\0" + np.packbits(row).tobytes() for row in bits)
    content = hostile_images.png(pixels=[zlib.compress(rows)], depth=depth)
    np.testing.assert_allclose(seen(content)[0], values / most, atol=0.002)
    for key in range(most + 1):  # every value occurs, so whichever is transparent, some of the picture is missing
        transparent = hostile_images.chunk(b"tRNS", struct.pack(">H", key))
        with pytest.raises(InputError, match="transparent pixels"):
            seen(hostile_images.png(transparent, pixels=[zlib.compress(rows)], depth=depth))


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P", "L", "RGB", "I;16"])
def test_transparency_that_hides_nothing_is_let_pass_and_any_other_refused(mode):
    opaque, clear = of_mode(mode), of_mode(mode)
    if mode in ("LA", "RGBA"):
        pixel = clear.getpixel((5, 5))
        clear.putpixel((5, 5), (*pixel[:-1], 254))
        contents = encoded(opaque), encoded(clear)
    elif mode == "P":
        contents = encoded(opaque, transparency=b"\xff" * 256), encoded(clear, transparency=bytes([0] * 256))
    else:
        used = opaque.getpixel((0, 0))
        unused = {"L": 1, "RGB": (1, 2, 3), "I;16": 1}[mode]
        contents = encoded(opaque, transparency=unused), encoded(clear, transparency=used)
    np.testing.assert_allclose(seen(contents[0]), EXPECTED, atol=0.005)
    with pytest.raises(InputError, match="transparent pixels") as refused:
        seen(contents[1])
    assert "\n" not in str(refused.value)


def test_what_the_decoder_is_given_has_no_texts_and_no_camera_data():
    secret = b"taken at home"
    jpeg = hostile_images.jpeg(comment=secret, exif=b"Exif\0\0" + secret)
    assert secret in jpeg
    assert secret not in images.examine(jpeg).content
    png = hostile_images.png(hostile_images.chunk(b"tEXt", b"k\0" + secret))
    assert secret not in images.examine(png).content
    np.testing.assert_array_equal(seen(png), seen(hostile_images.png()))


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 0.99])
def test_whatever_is_damaged_is_refused_or_decoded_but_in_one_line(kind, place):
    whole = encoded(of_mode("RGB"), kind)
    rng = np.random.default_rng(int(100 * place))
    for content in [whole[: int(place * len(whole))]] + [
        bytes(np.where(rng.random(len(whole)) < 0.01, rng.integers(0, 256, len(whole)), np.frombuffer(whole, np.uint8))
              .astype(np.uint8)) for _ in range(20)
    ]:  # fmt: skip
        told = ""
        try:
            assert seen(content).shape == (1, 8, 8)
        except InputError as error:
            told = str(error)
        assert "\n" not in told
        assert " at 0x" not in told
