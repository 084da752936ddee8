"""A tiny archive in CIFAR-10's own format: the pickles are written opcode by opcode as Python 2 wrote them."""

import gzip
import io
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deep_learning_cases.models import cifar

FOLDER = "cifar-10-batches-py"
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
IMAGES = 40
TINY = cifar.Form(archive_md5=None, file_md5={}, images_per_file=IMAGES)


def text(value: str) -> bytes:
    encoded = value.encode("ascii")
    return b"U" + bytes([len(encoded)]) + encoded


def number(value: int) -> bytes:
    return b"K" + bytes([value])


def array(values: np.ndarray) -> bytes:
    rows, columns = values.shape
    shape = b"M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", columns) + b"\x86"
    content = values.tobytes()
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\n" + number(0) + b"\x85" + text("b") + b"\x87R("
        + number(1) + shape
        + b"cnumpy\ndtype\n" + text("u1") + number(0) + number(1) + b"\x87R("
        + number(3) + text("|") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + number(0) + b"tb\x89"
        + b"T" + struct.pack("<i", len(content)) + content + b"tb"
    )  # fmt: skip


def batch(images: np.ndarray, labels: list[int], title: str) -> bytes:
    labelled = b"](" + b"".join(map(number, labels)) + b"e"
    names = b"](" + b"".join(text(f"image_{index}.png") for index in range(len(labels))) + b"e"
    return (
        b"\x80\x02}(" + text("batch_label") + text(title) + text("labels") + labelled
        + text("data") + array(images) + text("filenames") + names + b"u."
    )  # fmt: skip


def meta(names: list[str] = CLASSES) -> bytes:
    listed = b"](" + b"".join(map(text, names)) + b"e"
    return b"\x80\x02}(" + text("num_cases_per_batch") + number(IMAGES) + text("label_names") + listed + b"u."


def contents(seed: int = 5) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    files = {cifar.META: meta()}
    for name in (*cifar.TRAIN, cifar.TEST):
        images = rng.integers(0, 256, (IMAGES, 3072), dtype=np.uint8)
        files[name] = batch(images, [index % 10 for index in range(IMAGES)], name)
    return files


def write_archive(path: Path, files: dict[str, bytes], extra: Sequence[tuple[tarfile.TarInfo, bytes]] = ()) -> Path:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        folder = tarfile.TarInfo(FOLDER)
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in files.items():
            info = tarfile.TarInfo(f"{FOLDER}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info, content in extra:
            archive.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), 1))
    return path
