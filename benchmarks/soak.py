"""Work that is killed two hundred times ends as if nothing had happened.

    python benchmarks/soak.py --kills 200

Rounds of work go on in one process at a time: a fit with checkpoints (an ascent, an
evolved network, evolved members, a tuned learner in turn), its model saved, a parsed
copy of data kept in a cache. Each process is killed (SIGKILL, no time to tidy up) after
a random while within a kind of work that is drawn first, and another one takes over;
the rounds that are finished are known by their model files alone. After every kill

- every file under its final name must be readable,
- the newest state of the run must be no older than the newest before.

At the end every round is done once more without any kill, and models, fronts,
histories (but for their seconds) and cached data must be equal bit for bit. What was
seen goes to a table, benchmarks/results/soak.csv.
"""

from __future__ import annotations

import argparse
import csv
import mmap
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.neighbors import KNeighborsClassifier

from clml import CMA, CLMLClassifier, LebesgueTunedClassifier
from clml.datasets import read_arff, write_arff
from clml.datasets._cache import recall, store
from clml.network import PaperNetwork
from clml.persistence import load
from clml.persistence.checkpoint import KIND
from clml.persistence.file import read_file

PHASES = ("fit", "checkpoint", "save", "cache")
RESULTS = Path(__file__).parent / "results" / "soak.csv"
# Short writes are repeated, so that kills hit them.
REPEATS = 25
# Seconds after which a worker is killed whatever it does, and how long it goes on with
# what was aimed at.
LONGEST_WAIT = 5.0
LONGEST = {"fit": 0.5, "checkpoint": 0.003, "save": 0.1, "cache": 0.05}


def estimator(number: int) -> Any:
    """Return what a round fits: one of four kinds, with a seed of its own."""
    small: dict[str, Any] = {"network": PaperNetwork(6), "random_state": number}
    evolved = small | {"search": CMA(population_size=16)}
    return (
        CLMLClassifier(max_epochs=60, n_members=3, shrinkage=0.5, **small),
        CLMLClassifier(max_epochs=200, n_members=1, **evolved),
        CLMLClassifier(max_epochs=40, n_members=2, shrinkage=0.5, **evolved),
        LebesgueTunedClassifier(
            KNeighborsClassifier(), max_epochs=60, shrinkage=0.5, random_state=number
        ),
    )[number % 4]


def data(number: int) -> tuple[Any, Any]:
    return make_multilabel_classification(
        n_samples=150, n_features=10, n_classes=4, random_state=number
    )


class Phase:
    """What the worker is doing, where its killer can see it."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def set(self, name: str) -> None:
        """Say what is done now."""
        self._shared[0] = PHASES.index(name)

    def get(self) -> str:
        """Return what is done now."""
        return PHASES[self._shared[0]]


def tell_of_checkpoints(phase: Phase) -> None:
    """Let the phase say so while a state is written."""
    from clml.persistence import checkpoint as _checkpoint

    write = _checkpoint.write_file

    def written(*arguments: Any) -> None:
        phase.set("checkpoint")
        write(*arguments)
        phase.set("fit")

    _checkpoint.write_file = written  # type: ignore[assignment]


def work(folder: Path, phase: Phase) -> None:
    """Do rounds without end; those whose model is there are done."""
    number = 0
    while True:
        one_round(folder, number, phase)
        number += 1


def one_round(folder: Path, number: int, phase: Phase) -> None:
    model = folder / f"round{number}.clml"
    if model.exists():
        return
    phase.set("fit")
    X, Y = data(number)
    clf = estimator(number)
    clf.set_params(checkpoint=str(folder / f"states{number}"), checkpoint_every=0)
    clf.fit(X, Y)
    phase.set("cache")
    bunch = read_arff(folder / "data.arff")
    for _ in range(REPEATS):
        store(folder / "cache", f"round{number}", bunch)
    phase.set("save")
    for _ in range(REPEATS):
        clf.save(folder / f"draft{number}.clml")
    clf.save(model)


def check(folder: Path, epochs: dict[str, int]) -> None:
    """Read every file under its final name; remember how far each run is."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.suffix in (".part", ".arff", ".xml"):
            continue
        if path.parent.name == "cache":
            if recall(path.parent, path.stem, "soak") is None:
                raise SystemExit(f"{path} cannot be read.")
        elif path.parent == folder:
            load(path)
        else:
            read_file(path, KIND)
    for states in folder.glob("states*"):
        files = sorted(states.glob("checkpoint-*.clml"))
        if files:
            run = read_file(files[-1], KIND)["state"].get("run", {"epoch": 0})
            if run["epoch"] < epochs.get(states.name, 0):
                raise SystemExit(f"{states} went back to epoch {run['epoch']}.")
            epochs[states.name] = run["epoch"]


def kill_once(folder: Path, phase: Phase, target: str, after: float) -> str:
    """Start a worker, kill it at what is aimed at; return what it was doing."""
    phase.set("fit")
    worker = os.fork()
    if worker == 0:
        # A copy of this process: everything is imported and compiled.
        try:
            work(folder, phase)
        finally:
            os._exit(1)
    waited_until = time.monotonic() + LONGEST_WAIT
    while phase.get() != target and time.monotonic() < waited_until:
        time.sleep(1e-4)
    time.sleep(after)
    doing = phase.get()
    os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit("The worker had an error of its own, see above.")
    return doing


def same(one: Any, other: Any) -> bool:
    """Tell whether two runs are equal bit for bit, but for their seconds."""
    arrays = [(one.theta_, other.theta_), (one.archive_losses_, other.archive_losses_)]
    arrays += [
        (getattr(one.front_, name), getattr(other.front_, name))
        for name in ("losses", "theta", "temperature")
    ]
    arrays += [
        (values, other.history_[name])
        for name, values in one.history_.items()
        if name != "seconds"
    ]
    return (
        one.history_.keys() == other.history_.keys()
        and one.temperature_ == other.temperature_
        and all(np.array_equal(a, b, equal_nan=True) for a, b in arrays)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="default: print only")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    began = time.perf_counter()
    phase, kills, epochs = Phase(), Counter[str](), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, Y = data(0)
        write_arff(folder / "data.arff", X, Y)
        for number in range(4):  # compiles, where that was never done
            estimator(number).set_params(max_epochs=2).fit(*data(number))
        tell_of_checkpoints(phase)
        for _ in range(options.kills):
            target = chance.choice(PHASES)
            after = chance.uniform(0, LONGEST[target])
            kills[kill_once(folder, phase, target, after)] += 1
            check(folder, epochs)
        left = sum(path.suffix == ".part" for path in folder.rglob(".*"))
        # The round that was under way comes to its end.
        n_rounds = len(list(folder.glob("round*.clml"))) + 1
        one_round(folder, n_rounds - 1, phase)
        differing = 0
        for number in range(n_rounds):
            whole = estimator(number).fit(*data(number))
            differing += not same(whole, load(folder / f"round{number}.clml"))
            kept = recall(folder / "cache", f"round{number}", "soak")
            differing += not np.array_equal(kept.X, read_arff(folder / "data.arff").X)
    row = {
        "kills": options.kills,
        **{f"in {name}": kills[name] for name in PHASES},
        "rounds": n_rounds,
        "unreadable": 0,
        "differing": differing,
        "temporary files left": left,
        "seconds": round(time.perf_counter() - began),
        "seed": options.seed,
    }
    for key, value in row.items():
        print(f"{key:>21}  {value}")
    if options.table:
        with open(options.table, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, row, lineterminator="\n")
            writer.writeheader()
            writer.writerow(row)
    if differing:
        sys.exit(f"{differing} rounds differ.")


if __name__ == "__main__":
    main()
