"""Arrays as .npy bytes."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clml.persistence._npy import is_plain, read_array, write_array

MAGIC = b"\x93NUMPY\x01\x00"


def written(array):
    file = io.BytesIO()
    write_array(file, array)
    return file.getvalue()


def read(content):
    return read_array(io.BytesIO(content), len(content))


def made(header, body=b""):
    text = header.encode("latin-1") + b"\n"
    return MAGIC + len(text).to_bytes(2, "little") + text + body


def plain_header(descr="'<f8'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def test_worked_example():
    body = np.array([1.0, 2.0], dtype="<f8").tobytes()
    found = read(made(plain_header(), body))
    assert found.tolist() == [1.0, 2.0]
    assert found.flags.writeable


@given(
    hnp.arrays(
        st.one_of(
            hnp.boolean_dtypes(),
            hnp.integer_dtypes(endianness="?"),
            hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
            hnp.unicode_string_dtypes(endianness="?", max_len=3),
        ),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
    ),
    st.booleans(),
)
def test_reads_what_numpy_reads(array, fortran):
    array = np.asfortranarray(array) if fortran else array
    content = written(array)
    found, expected = read(content), np.load(io.BytesIO(content), allow_pickle=False)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.flags.f_contiguous == expected.flags.f_contiguous
    assert found.tobytes() == array.tobytes()


def test_array_larger_than_a_piece():
    array = np.arange(300_000, dtype=np.float64).reshape(3, -1)
    np.testing.assert_array_equal(read(written(array)), array)


def test_strided_array():
    array = np.arange(12.0).reshape(3, 4)[::2, 1::2]
    np.testing.assert_array_equal(read(written(array)), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin"),
        (MAGIC, "does not begin"),
        (b"\x93NUMPY\x02\x00" + b"\x00" * 8, "does not begin"),
        (MAGIC + b"\xff\xff" + b"{}", "header"),
        (made("{}"), "header"),
        (made("(" * 3000), "header"),
        (made("1" * 60000), "header"),
        (made(plain_header(shape=f"({'9' * 60000},)")), "header"),
        (made(plain_header(shape="(" + "1, " * 5000 + "1)"), b"\0" * 8), "header"),
        (made(plain_header(descr="'|O'"), b"\0" * 16), "not a type"),
        (made(plain_header(descr="'|V8'"), b"\0" * 16), "not a type"),
        (made(plain_header(descr="'<U0'")), "not a type"),
        (made(plain_header(descr="'<M8[s]'"), b"\0" * 16), "not a type"),
        (made(plain_header(descr="[('a', '<f8')]"), b"\0" * 16), "header"),
        (made(plain_header(descr="__import__('os')"), b"\0" * 16), "header"),
        (made(plain_header(), b"\0" * 15), "15 bytes"),
        (made(plain_header(), b"\0" * 17), "17 bytes"),
        (made(plain_header(shape="(-2,)"), b"\0" * 16), "header"),
        (made(plain_header(shape=f"({10**18},)"), b"\0" * 16), "16 bytes"),
        (made(plain_header(shape=f"({10**18}, {10**18}, 0)")), "cannot reshape"),
        (made(plain_header(shape=f"({2**63}, 0)")), "dimension exceeded"),
        (made(plain_header(shape=f"({'1, ' * 99}2)"), b"\0" * 16), "dim"),
        (made(plain_header("'|b1'"), b"\1\2"), "other than 0 and 1"),
        (made(plain_header("'<U1'"), b"\xff" * 8), "no character"),
    ],
    ids=range(24),
)
def test_bad_arrays(content, message):
    with pytest.raises(ValueError, match=message):
        read(content)


def test_member_that_ends_too_early():
    content = written(np.zeros(100))
    with pytest.raises(ValueError, match="too early"):
        read_array(io.BytesIO(content[:-1]), len(content))


@pytest.mark.parametrize("dtype", ["O", "V4", "S3", "c8", "M8[s]", "g", "i4,f4"])
def test_types_that_are_not_plain(dtype):
    assert not is_plain(np.dtype(dtype))
