"""The digits data: 8x8 images of handwritten digits, a seeded split, and the archive ``data.npz``.

Reading an archive treats it as untrusted: it may have been handed in by anybody.
"""

import io
import math
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import EvidenceError, InputError, one_line
from deep_learning_cases.ground import files
from deep_learning_cases.ground.arguments import whole

__all__ = [
    "CALIBRATION_IMAGES",
    "CLASSES",
    "IMAGE_SHAPE",
    "TEST_IMAGES",
    "TRAIN_IMAGES",
    "Dataset",
    "Split",
    "archive_bytes",
    "check_not_empty",
    "check_seed",
    "data_bytes",
    "load_digits",
    "normalise",
    "parse_archive",
    "parse_data",
    "read_archive",
    "read_data",
]

TRAIN_IMAGES, TEST_IMAGES, CALIBRATION_IMAGES = 1297, 500, 320
IMAGE_SHAPE = (1, 8, 8)
CLASSES = 10

LARGEST_PIXEL = 16
"""The digits count ink in 4x4 blocks of a scan, so that a pixel is 0 to 16."""

MAX_ARCHIVE_BYTES = 16 * 1024 * 1024
MAX_MEMBERS = 64
_MEMBER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\.npy")
_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Split:
    """Images as uint8 of shape (n, 1, 8, 8) with values 0 to 16, labels as uint8 of shape (n,) with values 0 to 9."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


@dataclass(frozen=True)
class Dataset:
    """One data set cut by a seed; ``calibration`` is a part of ``train``, ``test`` shares no image with either."""

    name: str
    train: Split
    calibration: Split
    test: Split


def check_seed(seed: object) -> int:
    """``seed`` as an int; InputError unless it is one from 0 to 2**32 - 1, which every generator used here takes."""
    return whole(seed, "the seed", 0, 2**32 - 1)


def load_digits(seed: int = 1729) -> Dataset:
    """scikit-learn's copy of the UCI digits (1,797 images), cut by ``seed`` into 1,297 for training and 500 for test.

    320 of the training images serve for calibration.  The permutation comes from NumPy's legacy generator, whose stream
    is frozen, so that a seed gives the same split with every NumPy.  InputError for a seed outside 0 to 2**32 - 1.
    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
    1998, https://doi.org/10.24432/C50P49 (scikit-learn carries its test part).
    """
    from sklearn.datasets import load_digits as sklearn_digits

    seed = check_seed(seed)
    source = sklearn_digits()
    images = source.images.astype(np.uint8).reshape(-1, *IMAGE_SHAPE)
    labels = source.target.astype(np.uint8)
    order = np.random.RandomState(seed).permutation(len(images))
    train, test = order[:TRAIN_IMAGES], order[TRAIN_IMAGES : TRAIN_IMAGES + TEST_IMAGES]
    calibration = train[:CALIBRATION_IMAGES]
    cut = {
        name: Split(images[rows], labels[rows])
        for name, rows in (("train", train), ("calibration", calibration), ("test", test))
    }
    return Dataset("digits", **cut)


def normalise(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """uint8 images (n, 1, 8, 8) of 0 to 16 as float32 of 0 to 1, same shape, in C order: what every engine takes."""
    return np.ascontiguousarray(images, dtype=np.float32) / np.float32(LARGEST_PIXEL)


def data_bytes(dataset: Dataset) -> bytes:
    """``data.npz``: the calibration and test splits.  The training images can be made again from the seed."""
    return archive_bytes(
        calibration_images=dataset.calibration.images,
        calibration_labels=dataset.calibration.labels,
        test_images=dataset.test.images,
        test_labels=dataset.test.labels,
    )


def archive_bytes(**arrays: NDArray[np.generic]) -> bytes:
    """An uncompressed ``.npz`` whose bytes depend on nothing but names and values.

    ``np.savez`` stamps the time into each member; here the stamp is the ZIP epoch and the members are sorted by name.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(arrays[name]), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # the default depends on the operating system
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue())
    return buffer.getvalue()


def read_archive(path: str | Path, max_bytes: int = MAX_ARCHIVE_BYTES) -> dict[str, NDArray[np.generic]]:
    """All arrays of an ``.npz`` by name, without ever unpickling.

    ``max_bytes`` bounds both the file and what it unpacks to.  Only plain boolean, integer and floating arrays of at
    most 8 dimensions are accepted.  FileError if the file cannot be read; EvidenceError if it is too large or not such
    an archive: pickled objects, a path for a name, a name twice, an encrypted, truncated or damaged member.
    """
    return parse_archive(files.read_bytes(path, max_bytes), path, max_bytes)


def parse_archive(
    content: bytes, name: str | Path, max_bytes: int = MAX_ARCHIVE_BYTES
) -> dict[str, NDArray[np.generic]]:
    """As :func:`read_archive`, from bytes; ``name`` stands in the message."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, max_bytes)
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}
    except EvidenceError as error:
        raise EvidenceError(f"{name}: {error}; make it again") from error
    except Exception as error:  # a dozen classes: zipfile, zlib, NumPy's header parser and the tokenizer under it
        raise EvidenceError(
            f"{name} is not a readable .npz archive ({one_line(error)}): expected plain arrays; make it again"
        ) from error


def _check_members(members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    names = [info.filename for info in members]
    if not 1 <= len(names) <= MAX_MEMBERS:
        raise EvidenceError(f"the archive has {len(names)} members: expected 1 to {MAX_MEMBERS}")
    for info in members:
        # Older zip files hide what follows a NUL byte in a name, so the name as it was written counts.
        if info.orig_filename != info.filename or not _MEMBER.fullmatch(info.filename):
            raise EvidenceError(
                f"the archive has a member {info.orig_filename[:80]!r}: expected plain names like test_images.npy"
            )
        if info.flag_bits & 0x1:
            raise EvidenceError(f"the member {info.filename!r} is encrypted: expected a plain archive")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise EvidenceError(
                f"the member {info.filename!r} is packed by method {info.compress_type}: expected stored or deflated"
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EvidenceError(f"the member {twice[0]!r} stands twice: expected each name once")
    unpacked = sum(info.file_size for info in members)
    if unpacked > max_bytes:
        raise EvidenceError(f"the archive unpacks to {unpacked} bytes: expected at most {max_bytes}")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[np.generic]:
    with archive.open(info) as stream:
        # The size was bounded above; a member that lies about it ends early or fails its checksum.
        member = io.BytesIO(stream.read(info.file_size + 1))
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(member, max_header_size=_HEADER_BYTES)
    elif version == (2, 0):
        header = np.lib.format.read_array_header_2_0(member, max_header_size=_HEADER_BYTES)
    else:
        raise EvidenceError(f"the member {info.filename!r} has format version {version}: expected (1, 0)")
    shape, fortran_order, dtype = header
    if dtype.hasobject:
        raise EvidenceError(
            f"the member {info.filename!r} holds pickled objects: expected numbers; pickles are never loaded"
        )
    if dtype.kind not in "biuf" or len(shape) > 8:
        raise EvidenceError(
            f"the member {info.filename!r} is {dtype} with shape {shape}: expected a plain array of numbers"
        )
    values = member.read()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(values):
        raise EvidenceError(
            f"the member {info.filename!r} says shape {shape} of {dtype} and holds {len(values)} bytes: "
            "expected the two to agree"
        )
    return np.frombuffer(values, dtype=dtype).reshape(shape, order="F" if fortran_order else "C").copy()


def read_data(path: str | Path) -> dict[str, Split]:
    """The splits of a ``data.npz``: ``{"calibration": Split, "test": Split}``.

    FileError if it cannot be read; EvidenceError unless it holds exactly the four arrays with matching lengths, the
    dtypes and value ranges of :class:`Split`, and at least one image per split.
    """
    return parse_data(files.read_bytes(path, MAX_ARCHIVE_BYTES), path)


def parse_data(content: bytes, name: str | Path) -> dict[str, Split]:
    """As :func:`read_data`, from bytes; ``name`` stands in the message."""
    arrays = parse_archive(content, name)
    expected = {f"{split}_{part}" for split in ("calibration", "test") for part in ("images", "labels")}
    if set(arrays) != expected:
        raise EvidenceError(f"{name} holds {_names(arrays)}: expected exactly {_names(expected)}; make it again")
    return {
        split: _split(name, split, arrays[f"{split}_images"], arrays[f"{split}_labels"])
        for split in ("calibration", "test")
    }


def _split(name: str | Path, split: str, images: NDArray[np.generic], labels: NDArray[np.generic]) -> Split:
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != IMAGE_SHAPE or len(images) == 0:
        raise EvidenceError(
            f"{name}: {split}_images is {images.dtype} of shape {images.shape}: "
            "expected uint8 of shape (n, 1, 8, 8) with n >= 1; make it again"
        )
    if labels.dtype != np.uint8 or labels.shape != (len(images),):
        raise EvidenceError(
            f"{name}: {split}_labels is {labels.dtype} of shape {labels.shape}: "
            f"expected uint8 of shape ({len(images)},); make it again"
        )
    cut = Split(images.astype(np.uint8), labels.astype(np.uint8))
    pixel, label = int(cut.images.max()), int(cut.labels.max())
    if pixel > LARGEST_PIXEL:
        raise EvidenceError(
            f"{name}: {split}_images holds a pixel of {pixel}: expected 0 to {LARGEST_PIXEL}; make it again"
        )
    if label >= CLASSES:
        raise EvidenceError(f"{name}: {split}_labels holds {label}: expected 0 to {CLASSES - 1}; make it again")
    return cut


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def check_not_empty(images: NDArray[Any]) -> None:
    """InputError for a batch of no images: every engine refuses it in the same words."""
    if isinstance(images, np.ndarray) and images.ndim and not len(images):
        raise InputError(f"the batch holds no image (shape {images.shape}): expected at least one; leave the call out")
