"""The split is what the docs say; the archive's bytes repeat; a hostile archive is refused without running anything."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from deep_learning_cases.errors import EvidenceError, FileError, InputError
from deep_learning_cases.ground import files
from deep_learning_cases.models import data


@pytest.fixture(scope="module")
def digits():
    return data.load_digits()


def rows(split):
    return {image.tobytes() for image in split.images}


def test_the_split_has_the_documented_sizes_types_and_ranges(digits):
    assert len(digits.train.labels) == 1297
    assert len(digits.test.labels) == 500
    assert len(digits.calibration.labels) == 320
    for split in (digits.train, digits.calibration, digits.test):
        assert split.images.dtype == split.labels.dtype == np.uint8
        assert split.images.shape[1:] == (1, 8, 8)
        assert split.images.max() == 16
        assert set(split.labels.tolist()) == set(range(10))


def test_calibration_is_part_of_training_and_the_test_split_is_not(digits):
    assert rows(digits.calibration) <= rows(digits.train)
    assert not rows(digits.test) & rows(digits.train)


def test_the_split_holds_each_image_of_the_source_once_with_its_label(digits):
    from sklearn.datasets import load_digits

    source = load_digits()
    expected = sorted(zip(source.images.astype(np.uint8).reshape(-1, 64).tolist(), source.target.tolist(), strict=True))
    images = np.concatenate([digits.train.images, digits.test.images]).reshape(-1, 64)
    labels = np.concatenate([digits.train.labels, digits.test.labels])
    assert sorted(zip(images.tolist(), labels.tolist(), strict=True)) == expected


def test_another_seed_gives_another_split_and_a_bad_one_is_refused(digits):
    assert not np.array_equal(data.load_digits(1).test.labels, digits.test.labels)
    for seed in (-1, 2**32, 1.5, True, "1729"):
        with pytest.raises(InputError, match="expected a whole number from 0"):
            data.load_digits(seed)


def test_normalise_maps_0_to_16_onto_0_to_1_in_float32():
    images = np.array([0, 4, 16], np.uint8).reshape(3, 1, 1, 1)
    result = data.normalise(images)
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    assert result.ravel().tolist() == [0.0, 0.25, 1.0]


@pytest.mark.slow
def test_the_archive_has_the_same_bytes_in_another_process(digits):
    code = "from deep_learning_cases import data, files; print(files.sha256_bytes(data.data_bytes(data.load_digits())))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert printed == files.sha256_bytes(data.data_bytes(digits))


def test_no_clock_and_no_operating_system_gets_into_the_archive():
    members = zipfile.ZipFile(io.BytesIO(data.archive_bytes(b=np.zeros(1), a=np.zeros(2)))).infolist()
    assert [(member.filename, member.date_time, member.create_system) for member in members] == [
        ("a.npy", (1980, 1, 1, 0, 0, 0), 3),
        ("b.npy", (1980, 1, 1, 0, 0, 0), 3),
    ]


def test_numpy_reads_the_archive_without_pickle(digits):
    with np.load(io.BytesIO(data.data_bytes(digits)), allow_pickle=False) as archive:
        assert sorted(archive.files) == ["calibration_images", "calibration_labels", "test_images", "test_labels"]
        assert np.array_equal(archive["test_images"], digits.test.images)


def test_read_data_returns_what_was_written(digits, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(data.data_bytes(digits))
    splits = data.read_data(path)
    assert list(splits) == ["calibration", "test"]
    assert np.array_equal(splits["test"].images, digits.test.images)
    assert np.array_equal(splits["calibration"].labels, digits.calibration.labels)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_written_by_numpy_is_read_as_well(tmp_path, save):
    arrays = {
        "a": np.arange(6.0).reshape(2, 3).T,
        "b": np.array(True),
        "c": np.zeros((0, 3), ">i2"),
        "d": np.float32([1]),
    }
    save(tmp_path / "x.npz", **arrays)
    again = data.read_archive(tmp_path / "x.npz")
    assert set(again) == set(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        assert np.array_equal(again[name], array)


# --- hostile archives ---------------------------------------------------------------------------------------------


class Planted:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def npy(array, **settings) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **settings)
    return buffer.getvalue()


def write_zip(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def npy_with_header(header: bytes, values: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


GOOD = npy(np.zeros(3, np.uint8))


def test_a_pickle_is_refused_and_not_run(tmp_path):
    planted = tmp_path / "PLANTED"
    np.savez(tmp_path / "x.npz", images=np.array([Planted(planted)], dtype=object), labels=np.array([0]))
    with pytest.raises(EvidenceError, match=r"'images.npy' holds pickled objects.*never loaded"):
        data.read_archive(tmp_path / "x.npz")
    assert not planted.exists()


def test_a_bare_pickle_is_not_an_archive(tmp_path):
    import pickle

    planted = tmp_path / "PLANTED"
    (tmp_path / "x.npz").write_bytes(pickle.dumps(Planted(planted)))
    with pytest.raises(EvidenceError, match=r"not a readable .npz archive"):
        data.read_archive(tmp_path / "x.npz")
    assert not planted.exists()


def test_a_zip_bomb_is_refused_by_what_it_says_it_unpacks_to(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("a.npy", npy(np.zeros(2**25, np.uint8)))], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(EvidenceError, match=r"unpacks to 335545.. bytes: expected at most 16777216"):
        data.read_archive(path)


def test_a_zip_bomb_that_lies_about_its_size_is_not_unpacked(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("a.npy", npy(np.zeros(2**25, np.uint8)))], zipfile.ZIP_DEFLATED)
    size = len(npy(np.zeros(2**25, np.uint8))).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (200).to_bytes(4, "little")))
    with pytest.raises(EvidenceError, match=r"not a readable|holds .* bytes"):
        data.read_archive(path)


def test_too_large_a_file_is_not_read(tmp_path):
    write_zip(tmp_path / "x.npz", [("a.npy", GOOD)])
    with pytest.raises(EvidenceError, match="larger than 50 bytes"):
        data.read_archive(tmp_path / "x.npz", max_bytes=50)


@pytest.mark.parametrize(
    "name", ["../a.npy", "/etc/a.npy", "a/b.npy", "a\\b.npy", "a.txt", ".npy", "a b.npy", "\u00e4.npy"]
)
def test_only_plain_member_names_are_accepted(tmp_path, name):
    write_zip(tmp_path / "x.npz", [(name, GOOD)])
    with pytest.raises(EvidenceError, match="expected plain names"):
        data.read_archive(tmp_path / "x.npz")


def test_a_name_cut_by_a_nul_byte_is_refused(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("a.npyXb", GOOD)])
    path.write_bytes(path.read_bytes().replace(b"a.npyXb", b"a.npy\0b"))
    with pytest.raises(EvidenceError, match=r"expected plain names|not a readable"):
        data.read_archive(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_stands_twice_is_refused(tmp_path):
    write_zip(tmp_path / "x.npz", [("a.npy", GOOD), ("a.npy", GOOD)])
    with pytest.raises(EvidenceError, match=r"'a.npy' stands twice"):
        data.read_archive(tmp_path / "x.npz")


def test_too_many_members_none_at_all_and_odd_packing_are_refused(tmp_path):
    write_zip(tmp_path / "many.npz", [(f"a{i}.npy", GOOD) for i in range(65)])
    write_zip(tmp_path / "none.npz", [])
    write_zip(tmp_path / "lzma.npz", [("a.npy", GOOD)], zipfile.ZIP_LZMA)
    for name, message in (("many", "65 members"), ("none", "0 members"), ("lzma", "packed by method 14")):
        with pytest.raises(EvidenceError, match=message):
            data.read_archive(tmp_path / f"{name}.npz")


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"", "not a readable"),
        (b"no array at all", "not a readable"),
        (GOOD[:-1], "holds 2 bytes"),
        (GOOD + b"!", "holds 4 bytes"),
        (npy(np.zeros(2, "U3")), "expected a plain array"),
        (npy(np.zeros(2, [("a", "i4")])), "expected a plain array"),
        (npy(np.zeros(2, complex)), "expected a plain array"),
        (npy(np.zeros((1,) * 9)), "expected a plain array"),
        (npy(np.zeros(3), version=(3, 0)), "format version"),
        (npy_with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}\n"), "holds 0 bytes"),
        (npy_with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (2**99,)}\n"), "not a readable"),
        (npy_with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999999999,)}\n"), "holds 0 by"),
        (
            npy_with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 99999999999999999999)}\n"),
            "readable",
        ),
        (npy_with_header(b"(" * 3000), "not a readable"),
        (npy_with_header(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}" + b" " * 60_000), "not a readable"),
    ],
)
def test_a_damaged_member_is_one_clear_error(tmp_path, member, message):
    write_zip(tmp_path / "x.npz", [("a.npy", member)])
    with pytest.raises(EvidenceError, match=message) as caught:
        data.read_archive(tmp_path / "x.npz")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("make it again")


def test_an_encrypted_member_is_refused(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("a.npy", GOOD)])
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(content))
    with pytest.raises(EvidenceError, match="encrypted"):
        data.read_archive(path)


def test_any_flipped_byte_of_an_archive_is_an_error_of_ours_or_changes_nothing_unsafe(tmp_path):
    """A byte may fall into a part that nobody reads (a time stamp); never may another exception come out."""
    path = write_zip(tmp_path / "x.npz", [("a.npy", GOOD)])
    content = path.read_bytes()
    refused = 0
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        path.write_bytes(bytes(changed))
        try:
            data.read_archive(path)
        except EvidenceError:
            refused += 1
    assert refused > len(content) / 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*nothing.npz"):
        data.read_archive(tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_images": np.zeros((500, 1, 8, 8), np.float32)}, "float32 of shape"),
        ({"test_images": np.zeros((500, 3, 32, 32), np.uint8)}, r"\(500, 3, 32, 32\)"),
        ({"test_images": np.zeros((0, 1, 8, 8), np.uint8), "test_labels": np.zeros(0, np.uint8)}, "n >= 1"),
        ({"test_images": np.full((500, 1, 8, 8), 17, np.uint8)}, "a pixel of 17"),
        ({"test_labels": np.full(500, 10, np.uint8)}, "holds 10: expected 0 to 9"),
        ({"test_labels": np.zeros(499, np.uint8)}, r"expected uint8 of shape \(500,\)"),
        ({"test_labels": np.zeros(500, np.int64)}, "int64"),
        ({"more": np.zeros(1)}, "expected exactly calibration_images"),
    ],
)
def test_read_data_names_what_does_not_fit(digits, tmp_path, change, message):
    arrays = {
        "calibration_images": digits.calibration.images,
        "calibration_labels": digits.calibration.labels,
        "test_images": digits.test.images,
        "test_labels": digits.test.labels,
    }
    (tmp_path / "data.npz").write_bytes(data.archive_bytes(**{**arrays, **change}))
    with pytest.raises(EvidenceError, match=message):
        data.read_data(tmp_path / "data.npz")
