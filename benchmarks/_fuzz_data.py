"""Files of data: sound ones, written by hand for this purpose, and their readers."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from _fuzz_archives import damaged_archive, zipped
from _fuzz_bytes import Generator, babble, damaged, pick
from _fuzz_json import parsable_json
from _fuzz_run import Reader

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
_COMPRESS: list[Callable[[bytes], bytes]] = [
    lzma.compress,
    bz2.compress,
    lambda data: gzip.compress(data, mtime=0),
]
# The readers state 256 MiB and 64 times the text, which here is not above 1 MiB.
_MOST_MIB = 256 + 64 + 64


def _parquet() -> list[bytes]:
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
    return [stream.getvalue()]


def _amplified(generator: Generator) -> bytes:
    """Return a small ARFF file that asks for a large matrix."""
    n_attributes, n_rows, n_values = 10 ** generator.integers(1, 5, size=3) // 3
    values = ",".join(f"v{number}" for number in range(min(n_values, 300)))
    kinds = ["numeric", "string", "{0,1}", "{1,0}", f"{{{values}}}"]
    kind = pick(generator, kinds)
    lines = [f"@relation 'r: -C {pick(generator, [1, -1, n_attributes // 2])}'"]
    lines += ["@attribute l {0,1}", "@attribute m {0,1}"]
    lines += [f"@attribute a{number} {kind}" for number in range(n_attributes)]
    lines += ["@attribute n {0,1}", "@data"]
    return ("\n".join(lines) + "\n" + "{}\n" * int(n_rows)).encode()


def _damage(suffix: str) -> Callable[[Sequence[bytes], Generator], bytes]:
    """Return what makes an input, compressed in a fifth of all cases."""

    def damage(seeds: Sequence[bytes], generator: Generator) -> bytes:
        data = pick(generator, seeds)
        if suffix == ".arff" and generator.random() < 0.01:
            data = _amplified(generator)
        elif generator.random() < 0.05:
            data = babble(generator)
        elif generator.random() < 0.98:
            data = damaged(data, seeds, generator)
        if generator.random() < 0.2:
            data = _compressed(data, suffix, generator)
            if generator.random() < 0.6:
                data = damaged(data, [data], generator)
        return data

    return damage


def _compressed(data: bytes, suffix: str, generator: Generator) -> bytes:
    choice = int(generator.integers(5))
    if choice < 3:
        return _COMPRESS[choice](data) * int(pick(generator, [1, 1, 1, 2, 500]))
    method = zipfile.ZIP_DEFLATED if choice == 3 else zipfile.ZIP_BZIP2
    return zipped([(f"f{suffix}", data)], method=method)


def _with_xml(path: Path) -> Any:
    data = path.with_name("sound.arff")
    data.write_bytes(DENSE)
    return datasets.read_arff(data, labels=path)


def _without_labels(kind: str) -> Callable[[Path], Any]:
    """Return what reads the columns of a file, as the command that predicts does."""
    from clml._commands._columns import column_names_of, read_columns

    def read(path: Path) -> Any:
        column_names_of(path, kind, ",")
        return read_columns(path, kind, ",", None)

    return read


def _cached() -> list[bytes]:
    """Return parsed copies, one of dense and one of sparse features."""
    from clml.datasets._cache import store

    found = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number, content in enumerate((DENSE, SPARSE)):
            path = folder / f"{number}.arff"
            path.write_bytes(content)
            store(folder, f"{number}", datasets.read_arff(path))
            found.append((folder / f"{number}.npz").read_bytes())
    return found


def _recalled(path: Path) -> Any:
    from clml.datasets._cache import _sealed, recall
    from clml.datasets.npz import read_arrays

    # With the checksum put right: anybody can do that.
    try:
        arrays = read_arrays(path, path.stat().st_size)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    arrays.pop("checksum", None)
    np.savez(path, **_sealed(arrays, path.stem))
    found = recall(path.parent, path.stem, "somewhere")
    if found is None:  # the file will be read again: the way to refuse a copy
        raise ValueError(f"{path}: damaged")
    return found.X.sum(), found.Y.sum(), str(found)


def _schemas() -> list[bytes]:
    """Return the schema of a CSV file, which models keep."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sound.csv")
        path.write_bytes(CSV)
        found = [
            datasets.read_csv(path, label_prefix="l_", nominals=nominals).schema
            for nominals in ("onehot", "codes")
        ]
    return [json.dumps(schema).encode() for schema in found]


def _read_alike(path: Path) -> Any:
    data = path.with_name("sound.csv")
    data.write_bytes(CSV)
    schema = json.loads(path.read_bytes())
    return datasets.read_csv(data, like=schema, unknown="ignore")


def _named_labels(path: Path) -> Any:
    from clml._commands._data import parse_labels

    try:
        return parse_labels(str(path))
    except click.BadParameter as error:
        raise ValueError(error.message) from error


def data_readers() -> list[Reader]:
    """Return the readers of ``clml.datasets``."""

    def reader(
        name: str,
        suffix: str,
        seeds: Callable[[], list[bytes]],
        read: Callable[[Path], Any],
    ) -> Reader:
        return Reader(name, suffix, seeds, read, _damage(suffix), most_mib=_MOST_MIB)

    def labelled(read: Callable[..., Any]) -> Callable[[Path], Any]:
        return lambda path: read(path, label_prefix="l_")

    def as_codes(path: Path) -> Any:
        return datasets.read_arff(
            path, nominals="codes", drop_identifiers=False, missing_labels="negative"
        )

    arff = lambda: [DENSE, SPARSE]  # noqa: E731
    return [
        reader("arff", ".arff", arff, datasets.read_arff),
        reader("arff codes", ".arff", arff, as_codes),
        reader("arff columns", ".arff", arff, _without_labels("arff")),
        reader("arff labels", ".xml", lambda: [LABELS, BOMB], _with_xml),
        reader("csv", ".csv", lambda: [CSV], labelled(datasets.read_csv)),
        reader("csv columns", ".csv", lambda: [CSV], _without_labels("csv")),
        reader("parquet", ".parquet", _parquet, labelled(datasets.read_parquet)),
        reader("svmlight", ".txt", lambda: [SVMLIGHT], datasets.read_svmlight),
        reader("extreme", ".txt", lambda: [EXTREME], datasets.read_xc),
        reader("label lists", ".txt", lambda: [b"first\nthe second\n"], _named_labels),
        Reader(
            "schemas",
            ".json",
            _schemas,
            _read_alike,
            parsable_json,
            refusals=(ValueError, TypeError),
            names_file=False,
        ),
        Reader(
            "parsed copies",
            ".npz",
            _cached,
            _recalled,
            damaged_archive,
            most_mib=_MOST_MIB,
        ),
    ]
