"""What an experiment found, read from its folder."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.fingerprint import canonical
from .._support.json_text import check_json_size
from .._support.paths import PathLike, fail, open_regular
from ._cell_data import unpacked
from ._results_check import check_plan, check_record, no_constant, planned
from ._store import PLAN, RECORDS, read_lines

_LARGEST_PLAN = 2**24
_LARGEST_ARTIFACT = 2**30
_ARTIFACT = re.compile(r"artifacts/[0-9A-Za-z_-]{1,128}\.npz")
PARTS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Results:
    """Records of an experiment, and tables of them.

    Attributes
    ----------
    plan : dict
        The resolved plan.
    records : list of dict
        One for each job that is done or failed.
    folder : Path or None
        Where the artifacts are.

    Examples
    --------
    >>> from clml.experiments import Results
    >>> def record(method, split, hamming):
    ...     return {"key": f"{method}{split}", "dataset": "d", "method": method,
    ...             "split": split, "seed": 0, "status": "done",
    ...             "losses": {"test": {"hamming": hamming}}}
    >>> results = Results(
    ...     {"datasets": ["d"], "methods": ["a", "b"], "losses": ["hamming"]},
    ...     [record("a", 0, 0.1), record("a", 1, 0.3), record("b", 0, 0.5)],
    ... )
    >>> results.table("hamming")
    array([[0.2, 0.5]])
    >>> results.values("d", "a", "hamming")
    [0.1, 0.3]
    """

    plan: dict[str, Any]
    records: list[dict[str, Any]] = field(repr=False)
    folder: Path | None = None

    def __post_init__(self) -> None:
        versions = {(r.get("versions") or {}).get("clml") for r in self.records}
        known = sorted(str(version) for version in versions if version is not None)
        if len(known) > 1:
            warnings.warn(
                f"The results are of several versions of clml, {', '.join(known)}: "
                "what is done already was not run again.",
                stacklevel=3,
            )

    @classmethod
    def read(cls, folder: PathLike) -> Results:
        """Read a folder that :func:`run_experiment` wrote to, finished or not.

        Parameters
        ----------
        folder : str or path

        Returns
        -------
        Results
            Of each job the last record; those of jobs that the plan no longer has are
            left out.
        """
        folder = Path(folder)
        plan = _read_plan(folder / PLAN)
        records, _ = read_lines(folder / RECORDS)
        last = {record["key"]: record for record in records}
        chosen = planned(plan, last.values())
        for record in chosen:
            check_record(folder / RECORDS, record)
        return cls(plan=plan, records=chosen, folder=folder)

    @property
    def datasets(self) -> list[str]:
        """Names, in the order of the plan."""
        return _names(self.plan.get("datasets") or (), self.records, "dataset")

    @property
    def all_methods(self) -> list[str]:
        """Names, in the order of the plan, those of an ablation included."""
        return _names(self.plan.get("methods") or (), self.records, "method")

    @property
    def methods(self) -> list[str]:
        """Names, in the order of the plan, without the variants of an ablation."""
        variants = {
            entry["name"]
            for entry in self.plan.get("methods") or ()
            if isinstance(entry, Mapping) and entry.get("group", "main") != "main"
        }
        return [name for name in self.all_methods if name not in variants]

    @property
    def ablation(self) -> dict[Any, str]:
        """Value of the setting that varies to the name of the method that has it."""
        ablation = self.plan.get("ablation") or {}
        values = [
            canonical(value) if isinstance(value, list | Mapping) else value
            for value in ablation.get("values") or ()
        ]
        return dict(zip(values, ablation.get("names") or (), strict=True))

    @property
    def losses(self) -> list[str]:
        """Names, in the order of the plan."""
        found = self.plan.get("losses")
        if found is None:
            found = dict.fromkeys(
                name
                for record in self.done
                for values in record["losses"].values()
                for name in values or ()
            )
        return list(found)

    @property
    def done(self) -> list[dict[str, Any]]:
        """The records that have losses."""
        return [r for r in self.records if r["status"] == "done"]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The records that have a reason instead."""
        return [r for r in self.records if r["status"] == "failed"]

    def values(
        self, dataset: str, method: str, loss: str, part: str = "test"
    ) -> list[float]:
        """Return a loss on each split and seed that is done, in their order.

        Parameters
        ----------
        dataset, method, loss : str
        part : {"test", "train", "validation"}, default="test"
        """
        return self._all_values(loss, part).get((dataset, method), [])

    def _all_values(self, loss: str, part: str) -> dict[tuple[str, str], list[float]]:
        """Return the values of each dataset and method, in one pass over the records.

        Nothing is kept for the next time: records may be changed.
        """
        if part not in PARTS:
            raise ValueError(f"part must be one of {list(PARTS)}, got {part!r}.")
        found: dict[tuple[str, str], list[float]] = {}
        for r in sorted(self.done, key=lambda r: (r["seed"], r["split"])):
            value = (r["losses"].get(part) or {}).get(loss)
            if value is not None:
                cell = r["dataset"], r["method"]
                found.setdefault(cell, []).append(float(value))
        return found

    def table(
        self, loss: str, part: str = "test", methods: Sequence[str] | None = None
    ) -> NDArray[np.float64]:
        """Return the means over splits and seeds, shape (datasets, methods).

        Parameters
        ----------
        loss : str
        part : {"test", "train", "validation"}, default="test"
        methods : sequence of str, default=None
            None: ``self.methods``.

        Returns
        -------
        float64 array
            NaN where nothing is done.
        """
        return self._aggregated(np.mean, 1, loss, part, methods)

    def spread(
        self, loss: str, part: str = "test", methods: Sequence[str] | None = None
    ) -> NDArray[np.float64]:
        """Return the standard deviations over splits and seeds, as :meth:`table`.

        NaN where fewer than two are done.
        """
        return self._aggregated(lambda v: np.std(v, ddof=1), 2, loss, part, methods)

    def _aggregated(
        self,
        summary: Any,
        least: int,
        loss: str,
        part: str,
        methods: Sequence[str] | None,
    ) -> NDArray[np.float64]:
        columns = self.methods if methods is None else list(methods)
        datasets, found = self.datasets, self._all_values(loss, part)
        table = np.full((len(datasets), len(columns)), np.nan)
        for i, dataset in enumerate(datasets):
            for j, method in enumerate(columns):
                values = found.get((dataset, method), [])
                if len(values) >= least:
                    table[i, j] = summary(values)
        return table

    def record(
        self, dataset: str, method: str, split: int = 0, seed: int = 0
    ) -> dict[str, Any] | None:
        """Return the record of one job, None if there is none."""
        wanted = (dataset, method, split, seed)
        for r in self.records:
            if (r["dataset"], r["method"], r["split"], r["seed"]) == wanted:
                return r
        return None

    def artifact(
        self, dataset: str, method: str, split: int = 0, seed: int = 0
    ) -> dict[str, NDArray[Any]] | None:
        """Return the arrays that a job left beside its record, None if there are none.

        Parameters
        ----------
        dataset, method : str
        split, seed : int, default=0
        """
        record = self.record(dataset, method, split, seed)
        name = None if record is None else record.get("artifact")
        if name is None or self.folder is None:
            return None
        path = self.folder / str(name)
        # Records are read from a file: their paths must stay in the folder.
        if not isinstance(name, str) or not _ARTIFACT.fullmatch(name):
            raise fail(
                self.folder / RECORDS, f"artifact must be in artifacts/, got {name!r}"
            )
        if not path.is_file():
            return None
        try:
            return unpacked(path, _LARGEST_ARTIFACT)
        except Exception as error:
            raise fail(path, f"not a file of arrays: {error}") from None


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            content = file.read(_LARGEST_PLAN + 1)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no {path}: the folder holds no results of an experiment."
        ) from None
    if len(content) > _LARGEST_PLAN:
        raise fail(path, f"a plan has at most {_LARGEST_PLAN:,} bytes.")
    try:
        check_json_size(content, len(content))
        plan = json.loads(content, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise fail(path, f"expected a JSON object, {error}") from None
    if not isinstance(plan, dict):
        raise fail(path, f"expected a JSON object, got {type(plan).__name__}")
    check_plan(path, plan)
    return plan


def _names(entries: Any, records: list[dict[str, Any]], kind: str) -> list[str]:
    """Return the names of a plan's entries, or else those that the records have."""
    names = [e["name"] if isinstance(e, Mapping) else str(e) for e in entries]
    return names or list(dict.fromkeys(r[kind] for r in records))
