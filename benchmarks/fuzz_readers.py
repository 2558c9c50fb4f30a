"""Throw generated and mutated files at every reader of ``clml.datasets``.

    python benchmarks/fuzz_readers.py --inputs 20000 --seed 0

Each input must come out as data or as a ValueError that names the file. Anything else
ends the script: another exception, an input that takes longer than ``--seconds`` (the
watchdog also catches what hangs inside compiled code), and memory beyond what the
readers state, 256 MiB and 64 times the uncompressed file. The files are written by hand
for this purpose; the state of an input that fails is left in a file and named.
"""

import argparse
import bz2
import faulthandler
import gzip
import io
import lzma
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from clml import datasets

DENSE = rb"""% a comment
@relation 'r: -C 2'
@attribute first {0,1}
@attribute 'the second' {NO,YES}
@attribute x numeric
@attribute y real
@attribute z {red, 'dark blue', "it\'s"}
@attribute when date "yyyy-MM-dd HH:mm"
@attribute note string

@data
0,YES,1.5,-2e3,red,"2001-02-03 04:05",'some words'
1,NO,?,0.123456789012345678901,'dark blue',?,x
1,YES,.5,1e400,'it\'s',"1999-12-31 23:59",?, {2.5}
"""
SPARSE = rb"""@RELATION 'r: -C -2'
@ATTRIBUTE x numeric
@ATTRIBUTE - {b,c,d}
@ATTRIBUTE t string
@ATTRIBUTE e {}
@ATTRIBUTE l1 {0,1}
@ATTRIBUTE l2 {1,0}
@DATA

{0 1.5,1 c,4 1}
{ 0 2 , 2 'some words', 5 0 }, {3}
{}
{1 ?,0 3}
"""
LABELS = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="first"><label name="the second"></label></label>
</labels>
"""
BOMB = b"""<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]>
<labels><label name="first &d;"/></labels>
"""
CSV = b'''id,colour,x,"a ""name""",l_a,l_b
p1,red,1.5,,0,1
p2,"green, dark",2e-3,5,1,1
p3,red,NA,"line
break",1,0
'''
SVMLIGHT = b"""1,3 1:0.5 7:2 # a comment
 2:1e3
3 qid:4 1:-.5 12:0.123456789012345678901
"""
EXTREME = b"""3 12 5
1,3 0:0.5 7:2
 2:1e3
4 0:-.5 11:3
"""
# What mutations put in: grammar, extremes, and bytes that begin other formats.
PIECES = [
    b"{", b"}", b",", b"'", b'"', b"\\", b"%", b"?", b"\n", b"\r\n", b"\r", b"\0", b" ",
    b"\t", b":", b";", b"#", b"<", b">", b"&a;", b"<!DOCTYPE x [", b"@data\n",
    b"@attribute x numeric\n", b"@attribute q {", b"@relation 'x: -C 99'\n", b"-C 0",
    b"-C -999999999", b"99999999999999999999", b"2147483648", b"-1", b"4294967296:1",
    b"1e999", b"-1e-999", b"nan", b"inf", b"0x10", b"1_0", b"1:1 1:1", b"{0 1,0 1}",
    b"{999999999 1}", b" " * 3000,
    b"{}\n" * 50, b"0" * 400, b"a," * 300, b"<label name='n'>" * 120,
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", "ü中😀".encode(), b"PK\x03\x04",
    b"BZh9", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"100000000 100000000 100000000\n",
]  # fmt: skip
COMPRESS: list[Callable[[bytes], bytes]] = [
    lzma.compress,
    bz2.compress,
    lambda data: gzip.compress(data, mtime=0),
]


def zipped(content: bytes, name: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        # Without the time, so that a seed always gives the same inputs.
        archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return stream.getvalue()


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table(
        {
            "x": [1.5, None, 3.0],
            "s": ["red", "green", None],
            "l_a": [0, 1, 1],
            "l_b": [True, False, True],
        }
    )
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    return stream.getvalue()


def mutated(data: bytes, generator: np.random.Generator) -> bytes:
    """Return the bytes after a few random changes."""
    content = bytearray(data)
    for _ in range(generator.geometric(0.5)):
        size = len(content)
        at = int(generator.integers(0, size + 1))
        length = int(min(generator.geometric(0.1), size - at))
        change = generator.integers(0, 7)
        if change == 0:
            content[at:at] = PIECES[generator.integers(len(PIECES))]
        elif change == 1:
            content[at : at + length] = PIECES[generator.integers(len(PIECES))]
        elif change == 2:
            del content[at : at + length]
        elif change == 3:
            content[at:at] = content[at : at + length] * int(generator.integers(1, 40))
        elif change == 4 and size:
            content[min(at, size - 1)] = int(generator.integers(256))
        elif change == 5:
            lines = bytes(content).split(b"\n")
            generator.shuffle(lines)
            content = bytearray(b"\n".join(lines))
        elif change == 6:
            content = content[:at]
    return bytes(content)


def generated(generator: np.random.Generator) -> bytes:
    """Return pieces of grammar in any order."""
    pieces = [
        PIECES[number]
        if kind
        else bytes(generator.integers(32, 127, 4, dtype=np.uint8))
        for number, kind in zip(
            generator.integers(len(PIECES), size=30),
            generator.integers(0, 2, size=30),
            strict=True,
        )
    ]
    return b"".join(pieces)


def amplified(generator: np.random.Generator) -> bytes:
    """Return a small ARFF file that asks for a large matrix."""
    n_attributes, n_rows, n_values = 10 ** generator.integers(1, 5, size=3) // 3
    values = ",".join(f"v{number}" for number in range(min(n_values, 300)))
    kinds = ["numeric", "string", "{0,1}", "{1,0}", f"{{{values}}}"]
    kind = kinds[generator.integers(len(kinds))]
    lines = [f"@relation 'r: -C {generator.choice([1, -1, n_attributes // 2])}'"]
    lines += ["@attribute l {0,1}", "@attribute m {0,1}"]
    lines += [f"@attribute a{number} {kind}" for number in range(n_attributes)]
    lines += ["@attribute n {0,1}", "@data"]
    return ("\n".join(lines) + "\n" + "{}\n" * int(n_rows)).encode()


def readers() -> dict[str, tuple[str, list[bytes], Callable[[Path], object]]]:
    """Return for each reader the suffix of its files, sound files, and the call."""

    def with_xml(path: Path) -> object:
        data = path.with_name("sound.arff")
        data.write_bytes(DENSE)
        return datasets.read_arff(data, labels=path)

    def text(read: Callable[..., object]) -> Callable[[Path], object]:
        return lambda path: read(path, label_prefix="l_")

    return {
        "arff": (".arff", [DENSE, SPARSE], datasets.read_arff),
        "arff codes": (
            ".arff",
            [DENSE, SPARSE],
            lambda path: datasets.read_arff(
                path,
                nominals="codes",
                drop_identifiers=False,
                missing_labels="negative",
            ),
        ),
        "arff labels": (".xml", [LABELS, BOMB], with_xml),
        "csv": (".csv", [CSV], text(datasets.read_csv)),
        "parquet": (".parquet", [parquet()], text(datasets.read_parquet)),
        "svmlight": (".txt", [SVMLIGHT], datasets.read_svmlight),
        "extreme": (".txt", [EXTREME], datasets.read_xc),
    }


def one_input(
    sound: list[bytes], suffix: str, generator: np.random.Generator
) -> tuple[bytes, int]:
    """Return the bytes of a file, and how large its uncompressed content may be."""
    data = sound[generator.integers(len(sound))]
    if suffix == ".arff" and generator.random() < 0.01:
        data = amplified(generator)
    elif generator.random() < 0.05:
        data = generated(generator)
    elif generator.random() < 0.98:
        data = mutated(data, generator)
    size = len(data)
    if generator.random() < 0.2:
        choice = int(generator.integers(5))
        if choice < 3:
            n_members = int(generator.choice([1, 1, 1, 2, 500]))
            size *= n_members
            data = COMPRESS[choice](data) * n_members
        else:
            method = zipfile.ZIP_DEFLATED if choice == 3 else zipfile.ZIP_BZIP2
            data = zipped(data, "f" + suffix, method)
        if generator.random() < 0.6:
            data = mutated(data, generator)
    return data, size


def memory() -> int:
    """Return the most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", help="one reader")
    parser.add_argument("--output", type=Path, help="a CSV file for the counts")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = {
        name: reader
        for name, reader in readers().items()
        if arguments.only in (None, name)
    }
    lines = ["reader,inputs,read,refused,slowest_seconds,memory_growth_mib"]
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (suffix, sound, read)) in enumerate(chosen.items()):
            path = Path(folder) / f"f{suffix}"
            for data in sound:  # compiles, imports
                path.write_bytes(data)
                try:
                    read(path)
                except ValueError:
                    assert data is BOMB
            generator = np.random.default_rng([arguments.seed, number])
            n_inputs = arguments.inputs // len(chosen)
            n_read, slowest, largest = 0, 0.0, 0
            before = memory()
            for count in range(n_inputs):
                data, size = one_input(sound, suffix, generator)
                path.write_bytes(data)
                largest = max(largest, size, len(data))
                faulthandler.dump_traceback_later(arguments.seconds, exit=True)
                began = time.perf_counter()
                try:
                    read(path)
                    n_read += 1
                except ValueError as error:
                    if str(path.parent) not in str(error):
                        fail(name, count, data, f"the file is not named: {error}")
                except Exception as error:  # whatever it is, it is wrong
                    fail(name, count, data, f"{type(error).__name__}: {error}")
                finally:
                    faulthandler.cancel_dump_traceback_later()
                slowest = max(slowest, time.perf_counter() - began)
                growth = memory() - before
                if growth > (256 + 64) * 2**20 + 64 * largest:
                    fail(name, count, data, f"{growth / 2**20:.0f} MiB of memory")
            refused = n_inputs - n_read
            growth_mib = (memory() - before) / 2**20
            lines.append(
                f"{name},{n_inputs},{n_read},{refused},{slowest:.3f},{growth_mib:.1f}"
            )
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")


def fail(name: str, count: int, data: bytes, message: str) -> None:
    kept = Path(tempfile.mkdtemp()) / f"{name.replace(' ', '-')}-{count}"
    kept.write_bytes(data)
    sys.exit(f"{name}, input {count}, kept in {kept}: {message}")


if __name__ == "__main__":
    main()
