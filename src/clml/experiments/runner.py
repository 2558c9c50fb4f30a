"""Running a plan: every job once, in a process of its own, whatever happens."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._support.atomic import atomic_file
from .._support.paths import PathLike
from ..datasets.npz import arrays_digest
from ._cell_data import data_arrays, packed, unpacked
from ._kept_methods import kept_methods
from ._limits import Outcome, Stopped, run_cell
from ._methods import preset_of
from ._progress import Progress
from ._schedule import Cell, cells_of, digest
from ._store import BEAT_SECONDS, DATA, RECORDS, Store, read_lines
from .plan import Plan, read_plan
from .results import Results

# How often jobs that another runner is at are looked after.
_LOOK_SECONDS = 0.5
# Job, path of its data, limits, what stops it: the outcome.
Execute = Callable[
    [Mapping[str, Any], str, Mapping[str, Any], threading.Event], Outcome
]


def run_experiment(
    plan: Plan | PathLike,
    folder: PathLike,
    *,
    jobs: int = 1,
    dask: Any = None,
    progress: bool = True,
    retry_failed: bool = False,
    download: bool = False,
    execute: Execute | None = None,
) -> Results:
    """Run every job of a plan that the folder does not have yet.

    Each job runs in a fresh process, so that a crash, a time-out or too much memory
    ends that job alone: its record then says why. What is finished is never lost: the
    function may be interrupted or killed at any moment and called again, and several
    calls may work on one folder.

    Parameters
    ----------
    plan : Plan, str or path
        A plan, or the TOML file of one.
    folder : str or path
        Where the results go; made if it is missing.
    jobs : int, default=1
        Processes at a time.
    dask : str or distributed.Client, default=None
        Instead of here, run the jobs on the workers of this cluster; needs the extra
        ``dask``. ``jobs`` is then the number of jobs that are sent at a time, at least
        that of the workers' threads.
    progress : bool, default=True
        Whether to show what is being done.
    retry_failed : bool, default=False
        Whether to run jobs again that have failed.
    download : bool, default=False
        Whether the files of datasets that are missing may be downloaded.
    execute : callable, default=None
        What runs a job, for tests.

    Returns
    -------
    Results

    Examples
    --------
    >>> import tempfile
    >>> from clml.experiments import Plan, run_experiment
    >>> plan = Plan({"tiny": {"synthetic": {"n_samples": 60}}}, ["GNB-BR"], splits=1)
    >>> with tempfile.TemporaryDirectory() as folder:      # doctest: +SKIP
    ...     results = run_experiment(plan, folder, progress=False)
    >>> results.table("hamming").shape                     # doctest: +SKIP
    (1, 1)
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be an integer of at least 1, got {jobs!r}.")
    if not isinstance(plan, Plan):
        plan = read_plan(plan)
    kept: Mapping[str, Any] = {}
    if dask is None:  # workers have packages of their own
        kept = kept_methods(plan, Path(folder), retry_failed, download)
    store = Store(Path(folder), retry_failed)
    resolved = _resolve(plan, store.folder, download, kept)
    store.write_plan(resolved)
    run = _Run(plan, resolved, store, Progress(progress, len(cells_of(resolved))))
    if dask is not None:
        from ._cluster import cluster

        with cluster(dask) as (run_there, n_threads):
            run.all(run_there, max(jobs, n_threads))
    else:
        run.all(execute or run_cell, jobs)
    return _results(resolved, store.folder)


def _results(resolved: dict[str, Any], folder: Path) -> Results:
    """Return the results of this plan: the folder may have got another one since."""
    records, _ = read_lines(folder / RECORDS)
    last = {record["key"]: record for record in records}
    wanted = {cell.key for cell in cells_of(resolved)}
    chosen = [record for key, record in last.items() if key in wanted]
    return Results(resolved, chosen, folder)


def _resolve(
    plan: Plan, folder: Path, download: bool, kept: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the plan with the hash of every dataset, whose file is in the folder.

    Jobs read these copies: the same rows for all, whatever happens to the originals.
    Methods in ``kept`` are described as they are there.
    """
    resolved = plan.as_dict()
    resolved["methods"] = [kept.get(m["name"], m) for m in resolved["methods"]]
    for spec, entry in zip(plan.datasets, resolved["datasets"], strict=True):
        bunch = spec.load(download)
        arrays = data_arrays(bunch)
        entry["data_hash"] = arrays_digest(arrays)
        n_labels = arrays["Y"].shape[1]
        entry |= {
            "n_instances": int(bunch.n_instances),
            "n_features": int(bunch.n_features),
            "n_labels": n_labels,
            "label_counts": arrays["Y"].sum(axis=0, dtype=int).tolist(),
            "cardinality": float(arrays["Y"].sum(axis=1, dtype=int).mean()),
        }
        path = _data_path(folder, entry["data_hash"])
        if not _holds(path, entry["data_hash"]):
            with atomic_file(path) as file:
                file.write(packed(arrays))
    return resolved


def _holds(path: Path, hash_of_data: str) -> bool:
    """Whether a file has the data that its name says, all of it."""
    try:
        return arrays_digest(unpacked(path)) == hash_of_data
    except Exception:  # it is missing, or damaged in whatever way
        return False


def _data_path(folder: Path, hash_of_data: str) -> Path:
    return folder / DATA / f"{hash_of_data}.npz"


def _wait_for(events: list[threading.Event]) -> None:
    """Wait for all of them, and let Ctrl-C through."""
    for event in events:
        while not event.wait(0.1):
            pass


class _Run:
    """One pass over the jobs of a plan by some threads, each driving one child."""

    def __init__(
        self, plan: Plan, resolved: dict[str, Any], store: Store, progress: Progress
    ) -> None:
        self.store = store
        self.progress = progress
        self.orders = {m.name: m.order() for m in plan.methods}
        self.settings = {m["name"]: m["settings"] for m in resolved["methods"]}
        self.hashes = {d["name"]: d["data_hash"] for d in resolved["datasets"]}
        self.resolved = resolved
        self.plan_hash = digest(resolved)
        self.stop = threading.Event()
        self.queue: deque[Cell] = deque()
        self.error: BaseException | None = None

    def all(self, execute: Execute, jobs: int) -> None:
        """Run what is not finished; return when nothing is left, here or elsewhere."""
        for cell in cells_of(self.resolved):
            if self.store.is_finished(cell.key):
                self.progress.skip()
            else:
                self.queue.append(cell)
        ended: list[threading.Event] = []
        with self.progress, self._beating():
            try:
                for _ in range(min(jobs, len(self.queue))):
                    ended.append(self._start(execute))
                _wait_for(ended)
            except BaseException:
                self.stop.set()
                _wait_for(ended)
                raise
        if self.error is not None:
            raise self.error
        cells = cells_of(self.resolved)
        missing = [cell for cell in cells if not self.store.is_finished(cell.key)]
        if missing:
            raise RuntimeError(
                f"{len(missing)} of {len(cells)} jobs were given up, "
                f"the first is {missing[0]}; run the plan again to go on."
            )

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Show other runners that this one lives, as long as the block takes."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT_SECONDS):
                self.store.beat()

        threading.Thread(target=beat, name="clml-beat", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _start(self, execute: Execute) -> threading.Event:
        """Start a thread that works; return what tells its end.

        It is not joined: in some versions of Python an interrupted join takes a
        running thread for a dead one.
        """
        ended = threading.Event()

        def work() -> None:
            try:
                self._work(execute)
            finally:
                ended.set()

        threading.Thread(target=work, name="clml-job").start()
        return ended

    def _work(self, execute: Execute) -> None:
        try:
            while not self.stop.is_set():
                try:
                    cell = self.queue.popleft()
                except IndexError:
                    return
                self._try(cell, execute)
        except Stopped as error:
            if not self.stop.is_set():  # nobody asked for it
                self.error = RuntimeError("a job was ended although the run goes on.")
                self.error.__cause__ = error
                self.stop.set()
        except BaseException as error:  # the disk is full, say
            self.error = error
            self.stop.set()

    def _try(self, cell: Cell, execute: Execute) -> None:
        """Run a job, unless others have; put it back if they are at it."""
        claim = self.store.claim(cell.key)
        if claim == "finished":
            self.progress.skip()
        elif claim == "taken":
            self.queue.append(cell)
            if all(self._is_taken(other) for other in list(self.queue)):
                self.stop.wait(_LOOK_SECONDS)
        else:
            try:
                self._run(cell, execute)
            except BaseException:
                self.store.release(cell.key)
                raise

    def _settings_of(self, cell: Cell) -> dict[str, Any]:
        settings, order = self.settings[cell.method], self.orders[cell.method]
        if order.get("presets"):
            settings = {**preset_of(order["estimator"], cell.dataset), **settings}
        return settings

    def _is_taken(self, cell: Cell) -> bool:
        return (self.store.folder / "claims" / f"{cell.key}.json").exists()

    def _run(self, cell: Cell, execute: Execute) -> None:
        self.progress.begin(cell)
        began = time.monotonic()
        job = {
            "method": self.orders[cell.method],
            "dataset": cell.dataset,
            "data_hash": self.hashes[cell.dataset],
            "split": cell.split,
            "seed": cell.seed,
            "losses": self.resolved["losses"],
            "test_size": self.resolved["test_size"],
        }
        data = str(_data_path(self.store.folder, self.hashes[cell.dataset]).absolute())
        outcome = execute(job, data, self.resolved["limits"], self.stop)
        result = outcome.result
        self.store.finish(
            {
                "key": cell.key,
                "dataset": cell.dataset,
                "method": cell.method,
                "split": cell.split,
                "seed": cell.seed,
                "status": result["status"],
                "reason": result.get("reason"),
                "losses": result.get("losses"),
                "seconds": result.get("seconds"),
                "peak_memory_mb": result.get("peak_memory_mb"),
                "settings": self._settings_of(cell),
                "versions": result.get("versions", {}),
                "plan_hash": self.plan_hash,
                "data_hash": self.hashes[cell.dataset],
                "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "artifact": None,
                **({"note": result["note"]} if result.get("note") else {}),
            },
            outcome.artifact,
        )
        self.progress.end(cell, result, time.monotonic() - began)
