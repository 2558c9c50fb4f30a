r"""Throw damaged and hostile files at everything of the library that reads files.

    nice python benchmarks/fuzz_readers.py --inputs 4000 --seed 0 \
        --output benchmarks/results/fuzz.csv

Each input must come out as a value that can be used (a model predicts, a run goes on,
a table adds up) or as a ValueError that names the file. Anything else is a finding:
another exception, a crash of the process, an input that takes longer than
``--seconds``, one that takes more memory than its reader may (384 MiB for data, which
is what the readers of data state, 64 MiB for all others, 2 GiB of address space). Its
input is kept, and the script ends with status 1.

Inputs are made of sound files: bits flipped, spans inserted, removed, repeated and
spliced, numbers replaced by extreme ones; and with knowledge of the format: members of
archives, their headers and sizes, JSON, arrays, with all checksums put right
afterwards, since these would otherwise refuse everything. Others are sound and mean
harm (``_fuzz_hostile.py``): what they name, hold too often or count wrongly must not
come out. An input depends on the reader, the seed and its number alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _fuzz_children import run_in_children, serve
from _fuzz_data import data_readers
from _fuzz_experiments import experiment_readers
from _fuzz_hostile import hostile_readers
from _fuzz_models import model_readers
from _fuzz_run import Reader, Tally
from _fuzz_states import state_readers

_COLUMNS = "reader,inputs,accepted,refused,other,slowest_ms,peak_mib,seed"


def readers() -> dict[str, Reader]:
    """Return all readers by their names."""
    found = [
        *model_readers(),
        *state_readers(),
        *data_readers(),
        *experiment_readers(),
        *hostile_readers(),
    ]
    return {reader.name: reader for reader in found}


def _line(tally: Tally, seed: int) -> str:
    return (
        f"{tally.reader},{tally.inputs},{tally.accepted},{tally.refused},{tally.other},"
        f"{tally.slowest_ms:.0f},{tally.peak_mib:.0f},{seed}"
    )


def _write(path: Path, lines: dict[str, str], order: list[str]) -> None:
    """Write the counts; those of readers that were not run stay as they were."""
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = {line.partition(",")[0]: line for line in before[1:]} | lines
    rows = [kept[name] for name in order if name in kept]
    path.write_text("\n".join([_COLUMNS, *rows]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1000, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="for an input")
    parser.add_argument("--only", nargs="+", metavar="READER", help="some readers")
    parser.add_argument("--output", type=Path, help="a CSV file for the counts")
    arguments = parser.parse_args()
    known = readers()
    unknown = set(arguments.only or ()) - set(known)
    if unknown:
        parser.error(f"there are no readers {sorted(unknown)}, but {list(known)}")
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    lines: dict[str, str] = {}
    findings: list[str] = []
    print(f"{_COLUMNS}  (in {place})", flush=True)
    for name in arguments.only or known:
        tally = run_in_children(
            known[name],
            place / name.replace(" ", "-"),
            arguments.inputs,
            script=Path(__file__),
            seed=arguments.seed,
            hang_seconds=arguments.seconds,
        )
        lines[name] = _line(tally, arguments.seed)
        findings += tally.findings
        print("\n".join([lines[name], *tally.findings]), flush=True)
        if arguments.output:
            _write(arguments.output, lines, list(known))
    if findings:
        sys.exit(f"{len(findings)} findings")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        serve(lambda name: readers()[name], sys.argv[2:])
    else:
        main()
