import bz2
import gzip
import io
import lzma
import time
import zipfile

import pytest

from clml.datasets.files import decompressed, read_file, read_raw

CONTENT = b"some text, " * 1000


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


COMPRESSED = {
    "xz": lzma.compress(CONTENT),
    "bz2": bz2.compress(CONTENT),
    "gz": gzip.compress(CONTENT),
    "zip": zipped({"a.arff": CONTENT}),
}


@pytest.mark.parametrize("kind", COMPRESSED)
def test_the_content_tells_the_compression_not_the_name(tmp_path, kind):
    path = tmp_path / "data.arff"
    path.write_bytes(COMPRESSED[kind])
    assert read_file(path) == CONTENT
    assert read_raw(path) == COMPRESSED[kind]


def test_plain_text_is_returned_as_it_is(tmp_path):
    path = tmp_path / "data.arff.xz"
    path.write_bytes(CONTENT)
    assert read_file(path) == CONTENT


@pytest.mark.parametrize("kind", ["xz", "bz2", "gz"])
def test_members_one_after_the_other_are_joined(kind):
    assert decompressed("f", COMPRESSED[kind] * 2) == CONTENT * 2
    assert decompressed("f", COMPRESSED[kind] + bytes(8)) == CONTENT


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_truncated_files_are_refused(kind, keep):
    data = COMPRESSED[kind]
    with pytest.raises(ValueError, match=r"^f: .*(truncated|damaged)"):
        decompressed("f", data[: int(keep * len(data))])


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_flipped_byte_is_noticed(kind):
    data = bytearray(COMPRESSED[kind])
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(ValueError, match=r"^f: "):
        decompressed("f", bytes(data))


@pytest.mark.parametrize("kind", ["xz", "bz2", "gz"])
def test_text_after_the_compressed_data_is_refused(kind):
    with pytest.raises(ValueError, match="damaged"):
        decompressed("f", COMPRESSED[kind] + b"something else")


@pytest.mark.parametrize("compress", [lzma.compress, bz2.compress, gzip.compress])
def test_bombs_are_refused(compress):
    bomb = compress(bytes(80 * 2**20))
    with pytest.raises(ValueError, match="larger than 67,108,864 bytes"):
        decompressed("f", bomb)
    assert len(decompressed("f", bomb, max_bytes=2**27)) == 80 * 2**20


def test_zip_bombs_are_refused():
    with pytest.raises(ValueError, match="larger than"):
        decompressed("f", zipped({"a.arff": bytes(80 * 2**20)}))


def test_max_bytes_counts_all_members():
    with pytest.raises(ValueError, match="larger than 12,000 bytes"):
        decompressed("f", COMPRESSED["gz"] * 2, max_bytes=12_000)


def test_the_fitting_member_of_an_archive_is_read():
    data = zipped({"a.xml": b"<labels/>", "../../a.arff": CONTENT})
    assert decompressed("f", data, ".arff") == CONTENT
    assert decompressed("f", data, ".xml") == b"<labels/>"


@pytest.mark.parametrize(
    "members", [{}, {"a.arff": b"", "b.arff": b""}, {"a.txt": b"", "b.txt": b""}]
)
def test_an_archive_without_one_fitting_member_is_refused(members):
    with pytest.raises(ValueError, match=r"expected one \.arff file"):
        decompressed("f", zipped(members))


def test_what_macos_adds_is_passed_over_and_the_archives_own_name_preferred():
    members = {"__MACOSX/e/._e.arff": b"x", "e/e.arff": CONTENT, "e/e-train.arff": b""}
    assert decompressed("some/e.zip", zipped(members)) == CONTENT


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_whose_reading_cannot_be_bounded_are_refused(method):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("a.arff", CONTENT)
    with pytest.raises(ValueError, match="must be stored or deflated"):
        decompressed("f", stream.getvalue())


@pytest.mark.parametrize("compress", [lzma.compress, bz2.compress, gzip.compress])
def test_many_members_take_no_long_time(compress):
    one, n_members = compress(b"ab"), 20_000
    began = time.perf_counter()
    assert decompressed("f", one * n_members) == b"ab" * n_members
    assert time.perf_counter() - began < 10


def test_large_content_comes_out_whole():
    content = bytes(range(256)) * 40_000
    for compress in (lzma.compress, bz2.compress, gzip.compress):
        assert decompressed("f", compress(content)) == content


def test_dictionaries_of_any_size_are_not_accepted():
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**30}]
    data = lzma.compress(CONTENT, filters=filters)
    with pytest.raises(ValueError, match="damaged"):
        decompressed("f", data)


@pytest.mark.parametrize("max_bytes", [0, -5, 1.5, "1e6"])
def test_bad_limits(max_bytes):
    with pytest.raises(ValueError, match="max_bytes must be None or an integer"):
        decompressed("f", COMPRESSED["gz"], max_bytes=max_bytes)


def test_encrypted_archives_are_refused():
    data = bytearray(COMPRESSED["zip"])
    data[6] |= 1
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    with pytest.raises(ValueError, match="damaged"):
        decompressed("f", bytes(data))


def test_only_regular_files_are_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read_file(tmp_path / "absent.arff")
    with pytest.raises(ValueError, match="regular file"):
        read_file(tmp_path)
