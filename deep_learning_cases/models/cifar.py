"""CIFAR-10 from its official local archive: checked against the published MD5, read without unpickling anything.

Nothing is downloaded and nothing is unpacked to disk.
Source: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009,
https://www.cs.toronto.edu/~kriz/cifar.html.
"""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep_learning_cases.errors import EvidenceError, FileError, one_line
from deep_learning_cases.ground import files
from deep_learning_cases.models import cifar_pickle
from deep_learning_cases.models.data import Dataset, Split

__all__ = ["CALIBRATION_IMAGES", "CLASSES", "IMAGE_SHAPE", "OFFICIAL", "Form", "class_names", "load"]

IMAGE_SHAPE, CLASSES = (3, 32, 32), 10
CALIBRATION_IMAGES = 1024
"""The first of the training images, in the order of the files."""

FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST, META = "test_batch", "batches.meta"
_IGNORED = "readme.html"

HOW_TO_GET = (
    "download cifar-10-python.tar.gz (170,498,071 bytes) from https://www.cs.toronto.edu/~kriz/cifar.html and name it "
    "with --archive, or use --data digits, which needs no download"
)


@dataclass(frozen=True)
class Form:
    """What the archive should be; the default is the official one.

    ``archive_md5`` None and an empty ``file_md5`` skip the checksums, never the checks of the structure.
    """

    archive_md5: str | None = "c58f30108f718f92721af3b95e74349a"
    file_md5: Mapping[str, str] = field(
        default_factory=lambda: {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
            "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
        }
    )
    images_per_file: int = 10_000
    max_archive_bytes: int = 200_000_000
    max_file_bytes: int = 40_000_000


OFFICIAL = Form()


def load(path: str | Path, form: Form | None = None) -> tuple[Dataset, list[str]]:
    """The data set and the names of its ten classes, from ``cifar-10-python.tar.gz`` or the folder inside it.

    Images are uint8 (n, 3, 32, 32), channels red, green, blue; the test split is the official 10,000 images, the
    calibration split the first :data:`CALIBRATION_IMAGES` training images.  ``form`` None means :data:`OFFICIAL`.

    FileError if there is nothing at ``path``; EvidenceError for another checksum, other or repeated members, links,
    paths that leave the folder, members or archives that are too large, and pickles that hold anything else.
    """
    form = OFFICIAL if form is None else form
    path = Path(path)
    if path.is_dir():
        contents = _from_folder(path, form)
    elif path.exists():
        contents = _from_archive(path, form)
    else:
        raise FileError(f"there is no {path}: expected CIFAR-10's archive or folder; {HOW_TO_GET}")
    names = class_names(cifar_pickle.read(contents[META], META))
    batches = {name: _batch(contents.pop(name), name, form.images_per_file) for name in (*TRAIN, TEST)}
    train = Split(
        np.concatenate([batches[name].images for name in TRAIN]),
        np.concatenate([batches[name].labels for name in TRAIN]),
    )
    calibration = Split(train.images[:CALIBRATION_IMAGES], train.labels[:CALIBRATION_IMAGES])
    return Dataset("cifar10", train, calibration, batches[TEST]), names


def class_names(meta: Mapping[str, Any]) -> list[str]:
    """The ten names of ``batches.meta``; EvidenceError unless they are ten different words."""
    names = meta.get("label_names")
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise EvidenceError(f"{META} has no label_names: expected ten words; download the archive again")
    if len(names) != CLASSES or len(set(names)) != CLASSES:
        raise EvidenceError(
            f"{META} names {len(names)} classes: expected ten different ones; download the archive again"
        )
    return names


def _batch(content: bytes, name: str, images: int) -> Split:
    value = cifar_pickle.read(content, name)
    pixels, labels = value.get("data"), value.get("labels")
    flat = int(np.prod(IMAGE_SHAPE))
    if not isinstance(pixels, np.ndarray) or pixels.shape != (images, flat):
        found = getattr(pixels, "shape", type(pixels).__name__)
        raise EvidenceError(f"{name} holds images {found}: expected ({images}, {flat}); download the archive again")
    if (
        not isinstance(labels, list)
        or len(labels) != images
        or not all(type(label) is int and 0 <= label < CLASSES for label in labels)
    ):
        raise EvidenceError(f"{name} has no {images} labels from 0 to 9: download the archive again")
    shaped: NDArray[np.uint8] = pixels.reshape(-1, *IMAGE_SHAPE)
    return Split(shaped, np.array(labels, dtype=np.uint8))


def _from_folder(path: Path, form: Form) -> dict[str, bytes]:
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    contents = {}
    for name in (*TRAIN, TEST, META):
        if not (folder / name).exists():
            raise FileError(f"there is no {folder / name}: expected the folder {FOLDER}; {HOW_TO_GET}")
        contents[name] = files.read_bytes(folder / name, form.max_file_bytes)
        expected = form.file_md5.get(name)
        if expected is not None:
            _check_md5(str(folder / name), hashlib.md5(contents[name], usedforsecurity=False).hexdigest(), expected)
    return contents


def _from_archive(path: Path, form: Form) -> dict[str, bytes]:
    packed = files.read_bytes(path, form.max_archive_bytes)
    if form.archive_md5 is not None:
        _check_md5(str(path), hashlib.md5(packed, usedforsecurity=False).hexdigest(), form.archive_md5)
    contents: dict[str, bytes] = {}
    try:
        # As a stream, so that a member is judged before the next one is looked for.
        with (
            gzip.open(io.BytesIO(packed)) as unpacked,
            tarfile.open(fileobj=_Bounded(unpacked, form, path), mode="r|") as archive,  # type: ignore[call-overload]
        ):
            for member in archive:
                name = _member_name(member, path, form)
                if name in contents:
                    raise EvidenceError(f"{path} holds {name} twice: expected each file once; {HOW_TO_GET}")
                stream = archive.extractfile(member) if name else None
                if name and stream is not None:
                    contents[name] = stream.read(form.max_file_bytes + 1)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        raise EvidenceError(
            f"{path} is not a sound tar.gz ({one_line(error)}): expected CIFAR-10's; {HOW_TO_GET}"
        ) from error
    missing = sorted({*TRAIN, TEST, META} - set(contents))
    if missing:
        raise EvidenceError(f"{path} lacks {', '.join(missing)}: expected CIFAR-10's archive; {HOW_TO_GET}")
    return contents


def _member_name(member: tarfile.TarInfo, path: Path, form: Form) -> str | None:
    """The file's name inside the folder; None for what is allowed and not needed."""
    if member.isdir() and member.name.rstrip("/") == FOLDER:
        return None
    place = PurePosixPath(member.name)
    known = {*TRAIN, TEST, META, _IGNORED}
    if not member.isreg() or member.name != f"{FOLDER}/{place.name}" or place.name not in known:
        kind = "a link" if member.issym() or member.islnk() else "a member"
        raise EvidenceError(f"{path} holds {kind} {member.name[:80]!r}: expected CIFAR-10's eight files; {HOW_TO_GET}")
    if not 0 <= member.size <= form.max_file_bytes:
        raise EvidenceError(
            f"{path} holds {place.name} of {member.size} bytes: expected at most {form.max_file_bytes}; {HOW_TO_GET}"
        )
    return None if place.name == _IGNORED else place.name


class _Bounded:
    """The unpacked bytes, up to what eight files can hold: beyond it the archive is a bomb."""

    def __init__(self, stream: gzip.GzipFile, form: Form, path: Path) -> None:
        self._stream, self._left = stream, 8 * form.max_file_bytes
        self._path = path

    def read(self, size: int) -> bytes:
        content = self._stream.read(min(size, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise EvidenceError(f"{self._path} unpacks to more than CIFAR-10 holds: {HOW_TO_GET}")
        return content


def _check_md5(name: str, found: str, expected: str) -> None:
    if found != expected:
        raise EvidenceError(
            f"{name} has the MD5 {found}: expected {expected}, as published; it is damaged: {HOW_TO_GET}"
        )
