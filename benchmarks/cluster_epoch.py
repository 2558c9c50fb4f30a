"""An epoch on a cluster: who computes, who waits, and how many bytes travel.

    python benchmarks/cluster_epoch.py --workers 1 2

Starts a cluster of worker processes on this machine for each number of workers, and
evolves a network on generated rows in 16 partitions: several numbers of rows, sizes of
the population and widths of the network. Every epoch is taken apart into ``compute``
(of the slowest worker), ``network`` (the rest of the pass: letters, scheduler, answers)
and ``update`` (drawing, ranking, archive, tracked losses). Bytes are counted twice:
those of the arrays in letters and answers, and those that went over the loopback
device, where everything passes twice, from client to scheduler to worker and back. All
programs share that device: where others use it, give this one a device of its own,

    unshare -rn sh -c 'ip link set lo up; python benchmarks/cluster_epoch.py'

Rows that lie on the workers in no order (``scattered``) are compared with neighbours on
the same worker. Everything is fitted twice, minutes apart, and the quieter of the two
counts: on a machine that others use, too, the slower one tells of them. Medians and
interquartile ranges over epochs go to ``results/cluster_epoch.csv``;
``_scale_page.py`` makes pages and predictions of them.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from clml import CMA, CLMLClassifier
from clml.datasets import as_partitions
from clml.engine.dask import DaskHolders, Pass
from clml.network import PaperNetwork

RESULTS = Path(__file__).parent / "results" / "cluster_epoch.csv"
FEATURES, LABELS = 50, 10
# Epochs that begin a run: workers are told the strategy, and compile.
FIRST = 2


@dataclass(frozen=True)
class Setting:
    """What is fitted, and where."""

    workers: int
    rows: int
    population: int = 64
    width: int = 20
    partitions: int = 16
    placement: str = "neighbours"


@dataclass(frozen=True)
class Result:
    """A line of the table: medians over epochs; ``iqr`` is the middle half's width."""

    cores: int
    workers: int
    rows: int
    features: int
    labels: int
    population: int
    width: int
    weights: int
    partitions: int
    placement: str
    epochs: int
    epoch_ms: float
    epoch_iqr_ms: float
    compute_ms: float
    compute_iqr_ms: float
    network_ms: float
    network_iqr_ms: float
    update_ms: float
    update_iqr_ms: float
    scheduling_cpu_ms: float
    first_letter_bytes: int
    letter_bytes: int
    answer_bytes: int
    wire_bytes: int
    wire_iqr_bytes: int
    idle_bytes_per_s: int
    population_bytes: int
    worker_peak_mb: float


def settings_of(workers: int) -> list[Setting]:
    """Return what is measured with so many workers; few of what takes long."""
    found = [
        Setting(workers, rows, population, width)
        for rows in (20_000, 80_000)
        for population in (32, 64, 128)
        for width in (8, 20)
    ]
    found += [Setting(workers, 320_000, width=width) for width in (8, 20)]
    some = Setting(workers, 80_000, width=8)
    found.append(replace(some, placement="scattered"))
    found.append(replace(some, partitions=64, placement="scattered"))
    found += [replace(some, partitions=many) for many in (64, 256)]
    return found


def setting_of(result: Result) -> Setting:
    """Return what was measured."""
    return Setting(**{one.name: getattr(result, one.name) for one in fields(Setting)})


def read(path: Path) -> list[Result]:
    """Return the lines of a table."""
    kinds = {"int": int, "float": float, "str": str}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Result(
                **{one.name: kinds[one.type](row[one.name]) for one in fields(Result)}
            )
            for row in csv.DictReader(file)
        ]


def loopback_bytes() -> int:
    """Return what the loopback device has sent so far."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    raise OSError("There is no loopback device in /proc/net/dev.")


def _memory_of_worker(line: str) -> float:
    """Return a line of what the kernel knows of this process's memory, in MB."""
    for text in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if text.startswith(f"{line}:"):
            return int(text.split()[1]) / 1024
    return float("nan")


def _forget_peak() -> None:
    """Let the peak of this process's memory be counted from now on."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@dataclass(frozen=True)
class Moment:
    """The end of a pass: clocks and counters that only grow."""

    taken: Pass
    sent: int
    process_cpu: float
    main_cpu: float

    @classmethod
    def now(cls, taken: Pass) -> Moment:
        """Return the moment at which a pass ended."""
        clocks = time.process_time(), time.thread_time()
        return cls(taken, loopback_bytes(), *clocks)


@dataclass
class Recorder:
    """Notes what every pass took."""

    moments: list[Moment] = field(default_factory=list)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note passes for the time being."""
        evaluate = DaskHolders.evaluate

        def noted(holders: DaskHolders, *given: Any) -> Any:
            answer = evaluate(holders, *given)
            self.moments.append(Moment.now(holders.passes[-1]))
            return answer

        with patch.object(DaskHolders, "evaluate", noted):
            yield


def generated(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((FEATURES, LABELS), dtype=np.float32)
    X = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
    return X, (X @ weights > 6).astype(np.uint8)


def rows_on_workers(client: Any, setting: Setting) -> tuple[Any, ...]:
    """Return what is given to ``fit``: rows where the setting wants them."""
    X, Y = generated(setting.rows)
    partition_rows = -(-setting.rows // setting.partitions)
    if setting.placement == "neighbours":
        return (as_partitions(X, Y, rows=partition_rows),)
    import dask
    import dask.array as da

    workers = sorted(client.nthreads())
    # As many partitions each, in an order that knows nothing of neighbours.
    owners = np.resize(workers, setting.partitions)
    np.random.default_rng(1).shuffle(owners)
    collections = []
    for array in (X, Y):
        blocks = []
        for i, owner in enumerate(owners):
            block = array[i * partition_rows : (i + 1) * partition_rows]
            future = client.scatter(block, workers=[str(owner)], hash=False)
            blocks.append(
                da.from_delayed(dask.delayed(future), block.shape, block.dtype)
            )
        collections.append(da.concatenate(blocks))
    return tuple(collections)


@dataclass(frozen=True)
class Idle:
    """What a cluster that waits takes.

    Attributes
    ----------
    bytes_per_s : float
        Over the loopback device, of all workers.
    memory_mb : float
        Of the worker that takes least: code, and nothing of rows.
    """

    bytes_per_s: float = 0.0
    memory_mb: float = 0.0

    @classmethod
    def of(cls, client: Any, seconds: float = 3.0) -> Idle:
        """Watch a cluster for some seconds."""
        began, sent = time.perf_counter(), loopback_bytes()
        time.sleep(seconds)
        rate = (loopback_bytes() - sent) / (time.perf_counter() - began)
        return cls(rate, min(client.run(_memory_of_worker, "VmRSS").values()))


def measure(client: Any, setting: Setting, epochs: int, idle: Idle) -> Result:
    """Fit once and take the epochs apart."""
    client.run(_forget_peak)
    given = rows_on_workers(client, setting)
    recorder = Recorder()
    clf = CLMLClassifier(
        search=CMA(population_size=setting.population),
        network=PaperNetwork(embedding_dim=setting.width),
        n_members=1,
        max_epochs=FIRST + epochs,
        calibrate=False,
        random_state=0,
        client=client,
    )
    with recorder.listening():
        clf.fit(*given)
    after = client.run(_memory_of_worker, "VmHWM")
    return _result(
        setting,
        clf,
        recorder.moments[: FIRST + epochs],
        idle,
        max(after.values()) - idle.memory_mb,
    )


def _result(
    setting: Setting,
    clf: CLMLClassifier,
    moments: Sequence[Moment],
    idle: Idle,
    peak_mb: float,
) -> Result:
    later = moments[FIRST:]
    seconds = clf.history_["seconds"][FIRST:]
    passes = np.array([moment.taken.seconds for moment in later])
    compute = np.array([moment.taken.compute_seconds for moment in later])
    steps = list(zip(moments[FIRST - 1 :], later, strict=False))
    # The thread of the client's and the scheduler's loop: all that is not the main one.
    loop_cpu = [
        b.process_cpu - a.process_cpu - (b.main_cpu - a.main_cpu) for a, b in steps
    ]
    wire = np.array([b.sent - a.sent for a, b in steps])
    return Result(
        os.cpu_count() or 1,
        setting.workers,
        setting.rows,
        FEATURES,
        LABELS,
        setting.population,
        setting.width,
        clf.layout_.size,
        setting.partitions,
        setting.placement,
        len(later),
        *_middle(1e3 * seconds),
        *_middle(1e3 * compute),
        *_middle(1e3 * (passes - compute)),
        *_middle(1e3 * (seconds - passes)),
        scheduling_cpu_ms=_middle(1e3 * np.array(loop_cpu))[0],
        first_letter_bytes=moments[0].taken.sent,
        letter_bytes=max(moment.taken.sent for moment in later),
        answer_bytes=max(moment.taken.received for moment in later),
        wire_bytes=round(float(np.median(wire)) / setting.workers),
        wire_iqr_bytes=round(_middle(wire)[1] / setting.workers),
        idle_bytes_per_s=round(idle.bytes_per_s / setting.workers),
        # The mean of the distribution is evaluated with the candidates.
        population_bytes=(setting.population + 1) * clf.layout_.size * 4,
        worker_peak_mb=round(peak_mb, 1),
    )


def _middle(values: np.ndarray) -> tuple[float, float]:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return round(float(middle), 2), round(float(high - low), 2)


def run(workers: int, epochs: int, rounds: int) -> Iterator[Result]:
    """Measure all settings on one cluster, some times."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        measure(client, Setting(workers, 2_000), 3, Idle())  # compiles
        idle = Idle.of(client)
        for setting in rounds * settings_of(workers):
            yield measure(client, setting, epochs, idle)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--table", type=Path, default=RESULTS)
    parser.add_argument(
        "--more", action="store_true", help="add to the table: one more round of it"
    )
    arguments = parser.parse_args()
    quietest = {}
    if arguments.more:
        quietest = {setting_of(result): result for result in read(arguments.table)}
    for workers in arguments.workers:
        for result in run(workers, arguments.epochs, arguments.rounds):
            known = quietest.get(setting_of(result), result)
            quietest[setting_of(result)] = min(known, result, key=lambda r: r.epoch_ms)
            print(
                f"{result.workers} workers, {result.rows} rows, population "
                f"{result.population}, width {result.width}, {result.partitions} "
                f"{result.placement}: {result.epoch_ms:.1f} ms = "
                f"{result.compute_ms:.1f} + {result.network_ms:.1f} + "
                f"{result.update_ms:.1f}; {result.wire_bytes} bytes a worker",
                flush=True,
            )
    with open(arguments.table, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Result)])
        writer.writeheader()
        writer.writerows(asdict(result) for result in quietest.values())


if __name__ == "__main__":
    main()
