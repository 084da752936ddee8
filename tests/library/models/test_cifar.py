"""CIFAR-10: the official structure is read, everything else is refused, and nothing is ever unpickled or unpacked."""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from deep_learning_cases.errors import EvidenceError, FileError
from deep_learning_cases.models import cifar, cifar_network, cifar_pickle
from tests.library import cifar_archive as tiny


@pytest.fixture
def archive(tmp_path) -> Path:
    return tiny.write_archive(tmp_path / "tiny.tar.gz", tiny.contents())


def one_line(error: pytest.ExceptionInfo) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert ":" in text
    return text


def test_images_and_labels_arrive_as_they_were_written(archive):
    dataset, names = cifar.load(archive, tiny.TINY)
    assert names == tiny.CLASSES
    assert dataset.train.images.shape == (5 * tiny.IMAGES, 3, 32, 32)
    assert dataset.test.images.shape == (tiny.IMAGES, 3, 32, 32)
    assert dataset.test.images.dtype == dataset.test.labels.dtype == np.uint8
    rng = np.random.default_rng(5)
    first = rng.integers(0, 256, (tiny.IMAGES, 3072), dtype=np.uint8)
    # Red, green and blue planes of 1,024 bytes each, row by row.
    assert dataset.train.images[3, 1, 2, 5] == first[3, 1024 + 2 * 32 + 5]
    assert dataset.train.labels[:11].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert np.array_equal(dataset.calibration.images, dataset.train.images[: cifar.CALIBRATION_IMAGES])


@pytest.mark.parametrize("inner", [True, False])
def test_the_unpacked_folder_serves_as_well(tmp_path, archive, inner):
    folder = tmp_path / "data" / tiny.FOLDER
    folder.mkdir(parents=True)
    for name, content in tiny.contents().items():
        (folder / name).write_bytes(content)
    from_folder, _ = cifar.load(folder if inner else folder.parent, tiny.TINY)
    from_archive, _ = cifar.load(archive, tiny.TINY)
    assert np.array_equal(from_folder.test.images, from_archive.test.images)


def test_python_3_pickles_of_the_same_structure_are_read():
    values = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for protocol in (3, 4):
        content = pickle.dumps({b"data": values, b"labels": [1, 2, 3], "batch_label": b"x"}, protocol=protocol)
        found = cifar_pickle.read(content, "batch")
        assert np.array_equal(found["data"], values)
        assert found["labels"] == [1, 2, 3]
        assert found["batch_label"] == "x"


def test_the_default_is_the_official_archive(archive, tmp_path):
    assert cifar.OFFICIAL.archive_md5 == "c58f30108f718f92721af3b95e74349a"
    assert len(cifar.OFFICIAL.file_md5) == 7
    with pytest.raises(EvidenceError) as error:
        cifar.load(archive)
    assert hashlib.md5(archive.read_bytes()).hexdigest() in one_line(error)
    folder = tmp_path / tiny.FOLDER
    folder.mkdir()
    for name, content in tiny.contents().items():
        (folder / name).write_bytes(content)
    with pytest.raises(EvidenceError, match="c99cafc152244af753f735de768cd75f"):
        cifar.load(folder)


def test_an_absent_archive_is_answered_with_how_to_get_it(tmp_path):
    with pytest.raises(FileError) as error:
        cifar.load(tmp_path / "nowhere.tar.gz")
    assert "https://www.cs.toronto.edu/~kriz/cifar.html" in one_line(error)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="data_batch_1"):
        cifar.load(tmp_path / "empty")


class Runs:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused_and_calls_nothing(tmp_path, protocol):
    mark = tmp_path / "called"
    content = pickle.dumps({b"data": Runs(mark), b"labels": [0]}, protocol=protocol)
    with pytest.raises(EvidenceError) as error:
        cifar_pickle.read(content, "data_batch_1")
    one_line(error)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1, 2], protocol=2),
        b"\x80\x02}(" + tiny.text("labels") + b"cbuiltins\neval\n" + tiny.text("1+1") + b"\x85Ru.",
        b"\x80\x02}(" + tiny.text("labels") + b"cnumpy\nload\n" + tiny.text("x") + b"\x85Ru.",
        b"\x80\x02}r\xff\xff\xff\x7f(u.",  # numbers a value two thousand million: a table of 16 GB
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",  # says it holds a terabyte
        b"\x80\x02}(" + tiny.text("data") + b"cnumpy\ndtype\n" + tiny.text("O8") + b"\x85Ru.",
        b"\x80\x02}(" + tiny.text("labels") + b"G" + struct.pack(">d", 1.0) + b"u.",
        pickle.dumps({b"data": np.zeros((2, 2))}, protocol=2),
        pickle.dumps({b"data": np.array([[Runs(Path("x"))]], dtype=object)}, protocol=4),
        pickle.dumps({b"labels": [[1]]}, protocol=3),
        pickle.dumps({b"labels": (1,)}, protocol=3),
        pickle.dumps({1: 2}, protocol=3),
    ],
)
def test_any_other_pickle_is_refused_in_one_line(content):
    with pytest.raises(EvidenceError) as error:
        cifar_pickle.read(content, "data_batch_1")
    assert "data_batch_1" in one_line(error)


def test_an_array_whose_shape_and_bytes_disagree_is_refused():
    content = tiny.batch(np.zeros((2, 3072), np.uint8), [0, 1], "x").replace(
        b"M\x02\x00M\x00\x0c", b"M\x03\x00M\x00\x0c"
    )
    with pytest.raises(EvidenceError, match="disagree"):
        cifar_pickle.read(content, "x")


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "info",
    [
        member("../outside"),
        member("/etc/outside"),
        member(f"{tiny.FOLDER}/../../outside"),
        member(f"{tiny.FOLDER}/sub/data_batch_1"),
        member(f"{tiny.FOLDER}/data_batch_9"),
        member("data_batch_1"),
        member(f"{tiny.FOLDER}/data_batch_1", tarfile.SYMTYPE, "/etc/passwd"),
        member(f"{tiny.FOLDER}/data_batch_1", tarfile.LNKTYPE, f"{tiny.FOLDER}/test_batch"),
        member(f"{tiny.FOLDER}/data_batch_1", tarfile.FIFOTYPE),
        member(f"{tiny.FOLDER}/data_batch_1", tarfile.CHRTYPE),
        member(f"{tiny.FOLDER}/data_batch_1"),  # a second time
    ],
    ids=lambda info: f"{info.name}-{info.type!r}",
)
def test_any_other_member_is_refused_and_nothing_is_unpacked(tmp_path, info):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = tiny.write_archive(inside / "hostile.tar.gz", tiny.contents(), [(info, b"")])
    with pytest.raises(EvidenceError) as error:
        cifar.load(path, tiny.TINY)
    one_line(error)
    assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]
    assert [entry.name for entry in inside.iterdir()] == ["hostile.tar.gz"]


def test_a_member_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    info = member(f"{tiny.FOLDER}/readme.html")
    info.size = 60_000_000
    packed = io.BytesIO()
    with gzip.open(packed, "wb", compresslevel=1) as stream:
        stream.write(info.tobuf() + bytes(1024))
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(packed.getvalue())
    with pytest.raises(EvidenceError, match="60000000"):
        cifar.load(path, tiny.TINY)


def test_an_archive_that_unpacks_to_far_more_is_stopped(tmp_path):
    form = cifar.Form(archive_md5=None, file_md5={}, images_per_file=tiny.IMAGES, max_file_bytes=200_000)
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30  # a header of 1 GB, of which zeros follow
    packed = io.BytesIO()
    with gzip.open(packed, "wb", compresslevel=1) as stream:
        stream.write(header.tobuf())
        for _ in range(40):
            stream.write(bytes(100_000))
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(packed.getvalue())
    with pytest.raises(EvidenceError) as error:
        cifar.load(path, form)
    assert "unpacks to more" in one_line(error)


@pytest.mark.parametrize(
    "damage", [lambda content: content[: len(content) // 2], lambda _: b"plain text", lambda _: b""]
)
def test_a_damaged_archive_is_named(archive, damage):
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(EvidenceError) as error:
        cifar.load(archive, tiny.TINY)
    one_line(error)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data_batch_2", tiny.batch(np.zeros((3, 3072), np.uint8), [0, 1, 2], "x")),
        ("data_batch_2", tiny.batch(np.zeros((tiny.IMAGES, 10), np.uint8), [0] * tiny.IMAGES, "x")),
        ("data_batch_2", tiny.batch(np.zeros((tiny.IMAGES, 3072), np.uint8), [10] * tiny.IMAGES, "x")),
        ("data_batch_2", tiny.batch(np.zeros((tiny.IMAGES, 3072), np.uint8), [0], "x")),
        ("batches.meta", tiny.meta(["one"] * 10)),
        ("batches.meta", tiny.meta(["one"])),
    ],
)
def test_other_sizes_labels_or_names_are_refused(tmp_path, name, content):
    path = tiny.write_archive(tmp_path / "other.tar.gz", tiny.contents() | {name: content})
    with pytest.raises(EvidenceError, match=name):
        cifar.load(path, tiny.TINY)


def test_a_missing_member_is_named(tmp_path):
    files = tiny.contents()
    del files["test_batch"]
    with pytest.raises(EvidenceError, match="lacks test_batch"):
        cifar.load(tiny.write_archive(tmp_path / "short.tar.gz", files), tiny.TINY)


def test_the_evaluation_transform_is_fixed_and_by_channel():
    images = np.zeros((1, 3, 32, 32), np.uint8)
    images[0, 1] = 255
    found = cifar_network.normalise(images)
    assert found.dtype == np.float32
    assert found[0, 0, 0, 0] == pytest.approx(-0.4914 / 0.2470, rel=1e-5)
    assert found[0, 1, 4, 4] == pytest.approx((1 - 0.4822) / 0.2435, rel=1e-5)


def test_the_network_has_the_size_of_a_small_resnet():
    torch = pytest.importorskip("torch")
    model = cifar_network.make().eval()
    assert sum(parameter.numel() for parameter in model.parameters()) == 551_018
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_augmentation_keeps_the_shape_and_follows_the_seed():
    torch = pytest.importorskip("torch")
    batch = torch.rand(4, 3, 32, 32)
    torch.manual_seed(1)
    first = cifar_network.augment(batch)
    torch.manual_seed(1)
    assert torch.equal(first, cifar_network.augment(batch))
    assert first.shape == batch.shape
    assert not torch.equal(first, batch)
