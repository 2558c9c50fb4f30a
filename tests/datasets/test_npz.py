import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from clml.datasets.npz import read_arrays

ARRAYS = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "flags": np.array([True, False]),
    "words": np.array(["a", "bcd"]),
    "nothing": np.empty((0, 3), dtype=np.uint8),
    "scalar": np.asarray(7, dtype=">i2"),
}


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=(1, 0))
    return file.getvalue()


def archive(*members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, content in members:
            target.NameToInfo.clear()  # no warning of names that are there twice
            target.writestr(zipfile.ZipInfo(name), content, method)
    return file


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_wrote(write, tmp_path):
    path = tmp_path / "arrays.npz"
    write(path, **ARRAYS)
    found = read_arrays(path, 10_000)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def lying(shape, descr="<f8"):
    """An array of 8 bytes that says something else."""
    before = npy(np.zeros(1))
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return before[:10] + header.ljust(117).encode() + b"\n" + before[-8:]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (archive(("a.npy", lying("(10**12,)"))), "."),
        (archive(("a.npy", lying("(1000000000000,)"))), "no array of shape"),
        (archive(("a.npy", lying("(-1,)"))), "no array of shape"),
        (archive(("a.npy", lying("(99999999999999999999, 0)"))), "."),
        (archive(("a.npy", lying("(2"))), "."),
        (archive(("a.npy", lying("(1,)", "|O"))), "no array of shape"),
        (archive(("a.npy", lying("(1,)", "<c8"))), "no array of shape"),
        (archive(("a.npy", lying("(8,)", "|b1")[:-1] + b"\2")), "no truth value"),
        (archive(("a.npy", lying("(2,)", "<U1")[:-1] + b"\xff")), "no character"),
        (archive(("a.npy", b"no array")), "magic"),
        (archive(("a.npy", npy([1])), ("a.npy", npy([2]))), "one name"),
        (archive(("a.npy", npy([1])), method=zipfile.ZIP_LZMA), "stored or deflated"),
        (archive(("a.npy", npy(np.zeros(5000)))), "bytes of arrays are more than"),
        (io.BytesIO(b"no archive"), "BadZipFile"),
        (io.BytesIO(b""), "BadZipFile"),
    ],
    ids=range(15),
)
def test_unsound_files(file, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            read_arrays(file, 10_000)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bit", [0x1, 0x20, 0x40], ids=hex)
def test_encrypted_and_patched_members(bit):
    content = bytearray(archive(("a.npy", npy([1]))).getvalue())
    content[content.index(b"PK\x01\x02") + 8] |= bit
    with pytest.raises(ValueError):
        read_arrays(io.BytesIO(content), 10_000)


def test_a_missing_file_is_no_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none.npz", 10_000)
