"""Reading the large public files: ``clml.datasets`` against liac-arff, side by side.

    CLML_DATA=folder python benchmarks/reader_time.py --output results/reader_time.csv

Each reading runs in a process of its own, whose largest memory is recorded; imports and
the loading of compiled kernels count for neither side's seconds: one small file is
read first. ``decompress`` is the floor, the time of the decompression alone.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

FILES = ("tmc2007-500/tmc2007-500.arff.xz", "imdb-f/imdb-f.arff.bz2")
PRELUDE = """
import sys, time, resource, tempfile
from pathlib import Path
path, home = Path(sys.argv[1]), Path(sys.argv[2])
"""
CLML = """
from clml.datasets import read_arff
for small in ("enron/enron.arff.xz", "yeast/yeast.arff.xz"):
    read_arff(home / small)
"""
READERS = {
    "decompress": """
import bz2, lzma
from clml.datasets.files import read_file
began = time.perf_counter(); read_file(path)
""",
    "clml": CLML + "began = time.perf_counter(); read_arff(path)",
    "clml, parsed copy": CLML
    + """
folder = tempfile.TemporaryDirectory()
read_arff(path, cache=folder.name)
began = time.perf_counter(); read_arff(path, cache=folder.name)
""",
    "liac-arff": """
import arff, bz2, lzma
opened = {".xz": lzma.open, ".bz2": bz2.open}[path.suffix]
began = time.perf_counter()
with opened(path, "rt", encoding="utf-8") as stream:
    arff.load(stream, return_type=arff.LOD)
""",
}
END = """
seconds = time.perf_counter() - began
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure(reader: str, path: Path, home: Path) -> tuple[float, float]:
    code = PRELUDE + READERS[reader] + END
    command = [sys.executable, "-c", code, str(path), str(home)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, mebibytes = map(float, output.split())
    return seconds, mebibytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    home = os.environ.get("CLML_DATA")
    if home is None:
        sys.exit("The environment variable CLML_DATA must name the folder of the data.")
    lines = ["file,reader,seconds_best,seconds_worst,peak_mib,times_liac_arff"]
    for name in FILES:
        path = Path(home, name)
        taken: dict[str, list[tuple[float, float]]] = {reader: [] for reader in READERS}
        for repeat in range(arguments.repeats):
            for reader in READERS:  # side by side, so that noise hits all alike
                if reader == "liac-arff" and repeat > 1:
                    continue
                taken[reader].append(measure(reader, path, Path(home)))
        theirs = min(seconds for seconds, _ in taken["liac-arff"])
        for reader, measured in taken.items():
            best = min(seconds for seconds, _ in measured)
            worst = max(seconds for seconds, _ in measured)
            peak = max(mebibytes for _, mebibytes in measured)
            lines.append(
                f'{path.name},"{reader}",{best:.3f},{worst:.3f},{peak:.0f},'
                f"{theirs / best:.1f}"
            )
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
