"""What an experiment is to do: which methods on which data, judged how."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from .._support.machine import names_place
from .._support.paths import PathLike, fail, open_regular
from ..losses import get_losses, own_loss
from ._cell_data import DatasetSpec
from ._methods import MethodSpec, as_json, check_settings, setting_of

_LARGEST_FILE = 2**20
# The random_state of a job is 1000 · seed + split: more splits would share some.
_MOST_SPLITS = 1000
_KEYS = (
    "name",
    "notes",
    "datasets",
    "methods",
    "splits",
    "seeds",
    "losses",
    "test_size",
    "limits",
    "ablation",
)
_ABLATION_KEYS = ("method", "setting", "values", "datasets")


@dataclass(frozen=True)
class Limits:
    """What one job may use.

    Attributes
    ----------
    seconds : float or None
        From the start of its process to the end.
    memory_mb : float or None
        Resident memory of its process.
    threads : int
        Of the libraries for linear algebra in it.
    """

    seconds: float | None = None
    memory_mb: float | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("seconds", "memory_mb"):
            value = getattr(self, name)
            if value is None:
                continue
            if not (_is_number(value) and 0 < value <= sys.float_info.max):
                raise ValueError(
                    f"limits.{name} must be a positive number, got {value!r}."
                )
        _check_count("limits.threads", self.threads)


class Plan:
    """Methods, datasets and the protocol that all of them share.

    Each job is one method on one split: ``test_size`` of the rows are test rows, the
    same for all methods, stratified, and decided by the number of the split.

    Parameters
    ----------
    datasets : sequence or mapping
        Names for :func:`clml.datasets.load_dataset`, or "synthetic" for data with
        known Bayes risks; tables ``{"name": ..., "path": ..., "labels": ...}`` for a
        file or ``{"name": ..., "synthetic": {...}}`` with arguments of
        :func:`clml.datasets.make_bayes_multilabel`; or a mapping of names to such
        values or to pairs ``(X, Y)``.
    methods : sequence of str, or mapping
        Registered names, such as "CLML", "GNB-BR" or "RandomForest"; or a mapping of
        names to estimators, to import paths ``"package.module:Class"``, or to tables
        with ``estimator``, ``settings``, ``one_vs_rest``, ``scale``, ``presets``,
        ``datasets``.
        Searches, networks and encodings among the settings may be written as tables,
        ``{"kind": "cma", "sigma0": 0.5}`` for ``CMA(sigma0=0.5)``, and one parameter
        of them as ``search__sigma0``.
    splits : int, default=5
        How many, at most 1000.
    seeds : sequence of int, default=(0,)
        Repetitions of each split; the ``random_state`` of the methods is
        1000 · seed + split.
    losses : sequence of str, default=("hamming", "lrap", "micro_f1")
    limits : Limits or mapping, default=None
    test_size : float, default=0.3
    ablation : mapping, default=None
        ``method``, ``setting``, ``values`` and ``datasets``: variants of a method
        that differ in one setting.
    name : str, default="experiment"
    notes : sequence of str, default=()
        What a reader of the results has to know.

    Examples
    --------
    >>> from clml.experiments import Plan
    >>> plan = Plan(["flags", "synthetic"], ["CLML", "GNB-BR"], splits=2)
    >>> plan
    Plan(2 datasets, 2 methods, 2 splits, 1 seed: 8 jobs)
    """

    def __init__(
        self,
        datasets: Any,
        methods: Any,
        *,
        splits: int = 5,
        seeds: Sequence[int] = (0,),
        losses: Sequence[str] = ("hamming", "lrap", "micro_f1"),
        limits: Limits | Mapping[str, Any] | None = None,
        test_size: float = 0.3,
        ablation: Mapping[str, Any] | None = None,
        name: str = "experiment",
        notes: Sequence[str] = (),
    ) -> None:
        self.name = _check_text("name", name)
        self.notes = tuple(_check_text("notes", n) for n in _listed("notes", notes))
        self.datasets = tuple(
            DatasetSpec.of(key, value) for key, value in _entries("datasets", datasets)
        )
        self.methods = tuple(
            MethodSpec.of(key, value) for key, value in _entries("methods", methods)
        )
        _check_distinct("datasets", [d.name for d in self.datasets])
        self.splits = _check_count("splits", splits)
        if self.splits > _MOST_SPLITS:
            raise ValueError(f"splits must be at most {_MOST_SPLITS}, got {splits!r}.")
        self.seeds = tuple(_check_seed(seed) for seed in _listed("seeds", seeds))
        _check_distinct("seeds", self.seeds)
        names = [_check_text("losses", n) for n in _listed("losses", losses)]
        self.losses = tuple(loss.name for loss in get_losses(names))
        self.limits = _check_limits(limits)
        if not (_is_number(test_size) and 0 < test_size < 1):
            raise ValueError(f"test_size must lie in (0, 1), got {test_size!r}.")
        self.test_size = float(test_size)
        self.ablation = None if ablation is None else self._add_ablation(ablation)
        _check_distinct("methods", [m.name for m in self.methods])
        known = {d.name for d in self.datasets}
        for method in self.methods:
            unknown = set(method.datasets or ()) - known
            if unknown:
                raise ValueError(
                    f"methods.{method.name}.datasets must be datasets of the plan, "
                    f"{sorted(known)}, got {sorted(unknown)}."
                )

    def __repr__(self) -> str:
        n_pairs = sum(
            len(self.datasets if m.datasets is None else m.datasets)
            for m in self.methods
        )
        return (
            f"Plan({_counted(len(self.datasets), 'dataset')}, "
            f"{_counted(len(self.methods), 'method')}, "
            f"{_counted(self.splits, 'split')}, {_counted(len(self.seeds), 'seed')}: "
            f"{n_pairs * self.splits * len(self.seeds)} jobs)"
        )

    def _add_ablation(self, ablation: Mapping[str, Any]) -> dict[str, Any]:
        """Append the variants to the methods; return what they are called."""
        if not isinstance(ablation, Mapping) or set(ablation) != set(_ABLATION_KEYS):
            raise ValueError(
                f"ablation must have the entries {list(_ABLATION_KEYS)}, got "
                f"{ablation!r}."
            )
        base = next((m for m in self.methods if m.name == ablation["method"]), None)
        if base is None:
            raise ValueError(
                "ablation.method must be a method of the plan, "
                f"{[m.name for m in self.methods]}, got {ablation['method']!r}."
            )
        setting = _check_text("ablation.setting", ablation["setting"])
        values = [
            check_settings(base.name, {setting: value})[setting]
            for value in _listed("ablation.values", ablation["values"])
        ]
        short = setting.rpartition("__")[2]
        datasets = tuple(_listed("ablation.datasets", ablation["datasets"]))
        names = []
        for value in values:
            if _has_setting(base.settings, setting, value):
                names.append(base.name)  # it is that variant itself
                continue
            variant = replace(
                base,
                name=f"{base.name} {short}={value}",
                settings={**base.settings, setting: value},
                datasets=datasets,
                group="ablation",
            )
            self.methods = (*self.methods, variant)
            names.append(variant.name)
        return {
            "method": base.name,
            "setting": setting,
            "values": as_json(values),
            "datasets": list(datasets),
            "names": names,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it, every name resolved."""
        losses = {name: own_loss(name) for name in self.losses}
        own = {name: as_json(loss) for name, loss in losses.items() if loss != name}
        return {
            "name": self.name,
            "notes": list(self.notes),
            "datasets": [d.description() for d in self.datasets],
            "methods": [
                {
                    **m.description(),
                    "datasets": None if m.datasets is None else list(m.datasets),
                    "group": m.group,
                }
                for m in self.methods
            ],
            "splits": self.splits,
            "seeds": list(self.seeds),
            "losses": list(self.losses),
            "test_size": self.test_size,
            "limits": as_json(asdict(self.limits)),
            "ablation": self.ablation,
            **({"own_losses": own} if own else {}),
        }


def read_plan(path: PathLike) -> Plan:
    """Read a plan from a TOML file.

    Its entries are the parameters of :class:`Plan`; paths of data files are relative
    to the folder of the plan. A plan may name any class that can be imported: run
    only those whose methods you trust. Searches, networks and encodings are tables,
    ``search = {kind = "cma", sigma0 = 0.5}``. Settings that name a folder or a cluster
    (``checkpoint``, ``client``, ``memory``) are for :class:`Plan` alone.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Plan

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clml.experiments import read_plan
    >>> text = '''
    ... datasets = ["synthetic"]
    ... splits = 3
    ... [methods.CLML.settings]
    ... max_epochs = 20
    ... [methods."CLML, evolved"]
    ... estimator = "CLML"
    ... settings = {search = {kind = "cma", sigma0 = 0.5}, n_members = 1}
    ... [methods.forest]
    ... estimator = "sklearn.ensemble:RandomForestClassifier"
    ... scale = false
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "plan.toml")
    ...     _ = file.write_text(text)
    ...     read_plan(file)
    Plan(1 dataset, 3 methods, 3 splits, 1 seed: 9 jobs)
    """
    path = Path(path)
    with open_regular(path) as file:
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise fail(path, f"a plan has at most {_LARGEST_FILE:,} bytes.")
    try:
        entries = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, long digits
        raise fail(path, f"not a TOML file: {error}") from None
    try:
        return plan_of(entries, path.parent)
    except (TypeError, ValueError) as error:
        raise fail(path, str(error)) from None


def plan_of(entries: Mapping[str, Any], folder: Path) -> Plan:
    """Return the plan of the entries of a file; paths are relative to the folder."""
    unknown = sorted(set(entries) - set(_KEYS))
    if unknown:
        raise ValueError(f"a plan may have the entries {list(_KEYS)}, got {unknown}.")
    for key in ("datasets", "methods"):
        if key not in entries:
            raise ValueError(f"a plan needs the entry {key!r}.")
    datasets = [
        DatasetSpec.of(key, value).relative_to(folder)
        for key, value in _entries("datasets", entries["datasets"])
    ]
    plan = Plan(**{**entries, "datasets": datasets})
    for method in plan.methods:
        for name in _names_in(method.settings):
            if names_place(name):
                raise ValueError(
                    f"methods.{method.name}.settings must not name a folder or a "
                    f"cluster in a file, got {name!r}."
                )
    return plan


def _has_setting(settings: Mapping[str, Any], name: str, value: Any) -> bool:
    try:
        own = setting_of(settings, name)
    except KeyError:
        return False
    return bool(as_json(own) == as_json(value))


def _names_in(settings: Any) -> Iterator[str]:
    """Yield the names of settings, those within settings too."""
    if isinstance(settings, Mapping):
        yield from map(str, settings)
        settings = list(settings.values())
    for value in settings if isinstance(settings, list | tuple) else ():
        yield from _names_in(value)


def _entries(what: str, value: Any) -> list[tuple[str, Any]]:
    """Return names and what they stand for; None: the name says it."""
    if isinstance(value, Mapping):
        found = list(value.items())
    elif isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a list of names or a mapping, got {value!r}.")
    else:
        found = []
        for item in value:
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                rest = {k: v for k, v in item.items() if k != "name"}
                found.append((item["name"], rest))
            elif isinstance(item, DatasetSpec):
                found.append((item.name, item))
            elif isinstance(item, str):
                found.append((item, None))
            else:
                raise TypeError(
                    f"{what} must hold names or tables with a name, got {item!r}."
                )
    if not found:
        raise ValueError(f"{what} must not be empty.")
    return found


def _listed(what: str, value: Any) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a list, got {value!r}.")
    return list(value)


def _check_text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, got {value!r}.")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_count(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{what} must be an integer of at least 1, got {value!r}.")
    return int(value)


def _check_seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"seeds must be integers, got {value!r}.")
    seed = int(value)
    if not 0 <= seed < 2**20:
        raise ValueError(f"seeds must be from 0 to {2**20 - 1}, got {seed}.")
    return seed


def _check_distinct(what: str, values: Sequence[Any]) -> None:
    repeated = sorted({v for v in values if list(values).count(v) > 1})
    if repeated or not values:
        raise ValueError(
            f"{what} must be distinct and at least one, got {list(values)}."
        )


def _check_limits(limits: Any) -> Limits:
    if limits is None:
        return Limits()
    if isinstance(limits, Limits):
        return limits
    known = list(Limits.__dataclass_fields__)
    if not isinstance(limits, Mapping) or set(limits) - set(known):
        raise ValueError(f"limits may have the entries {known}, got {limits!r}.")
    return Limits(**limits)


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
