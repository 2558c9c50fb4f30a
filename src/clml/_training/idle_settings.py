"""Settings that would have no effect on a fit: an error that says where they belong."""

from __future__ import annotations

from typing import Any

from .._support.value import Value
from ..network import PaperNetwork
from .searches import SEARCHES, Population, as_search

# Shares of rows that judge one network, if nothing was set.
_DEFAULT_FRACTION = 0.2


def refuse_idle_settings(
    clf: Any, network: Any, ascends: bool, trains_one: bool, judges_given: bool
) -> None:
    """Refuse what was set in vain.

    Limits that are not reached (``memory_mb``, ``n_jobs``), ``checkpoint_every``
    without a checkpoint, and ``validation_fraction`` where ``fit`` is given validation
    rows stay as they are: what they go with comes and goes while they remain.

    Parameters
    ----------
    clf : CLMLClassifier
        For its parameters, which are valid.
    network : network
        What its own stands for.
    ascends : bool
        Whether gradients train it.
    trains_one : bool
        Whether there is but one member.
    judges_given : bool
        Whether ``fit`` has validation rows.
    """
    for idle in (
        _network(clf, network, ascends),
        _members(clf, ascends, trains_one),
        _judges(clf, trains_one, judges_given),
        _cluster(clf),
    ):
        if idle is not None:
            raise ValueError(idle)


def say_where(name: str) -> str | None:
    """Return where a parameter of searches or networks is set; None if it is none.

    Examples
    --------
    >>> from clml._training.idle_settings import say_where
    >>> say_where("covariance")
    'covariance is a parameter of searches: search__covariance, as CMA(covariance=...)'
    """
    kinds: dict[str, list[type[Value]]] = {
        "search": list(SEARCHES.values()),
        "network": [PaperNetwork],
    }
    for what, classes in kinds.items():
        having = [kind for kind in classes if name in kind._defaults()]
        if having:
            plural = {"search": "searches", "network": "networks"}[what]
            return (
                f"{name} is a parameter of {plural}: {what}__{name}, as "
                f"{having[0].__name__}({name}=...)"
            )
    return None


def _network(clf: Any, network: Any, ascends: bool) -> str | None:
    if not isinstance(network, PaperNetwork):
        return None
    if not isinstance(clf.encoding, str):
        return (
            "encoding is how columns enter a network such as WideNetwork(), and those "
            "of the paper's kind standardise them (PaperNetwork(standardize=...)); got "
            f"encoding={clf.encoding!r} with network={clf.network!r}."
        )
    steps = ascends or getattr(as_search(clf.search), "init", None) == "surrogate"
    if network.dropout and not steps:
        return (
            "dropout of PaperNetwork is of steps along gradients: those of "
            "search='ascent', or of a start with init='surrogate'; got "
            f"network={network!r} with search={clf.search!r}."
        )
    return None


def _members(clf: Any, ascends: bool, trains_one: bool) -> str | None:
    if trains_one and not ascends and clf.shrinkage != "auto":
        return (
            "shrinkage is of the map of outputs that members and ascents have, and "
            "candidates of one evolved network have none; got "
            f"shrinkage={clf.shrinkage!r} with search={clf.search!r} and "
            f"n_members={clf.n_members!r}."
        )
    search = as_search(clf.search)
    archived = isinstance(search, Population) and search.reference == "archive"
    if archived and not trains_one:
        return (
            "reference='archive' is for one network that is evolved, with "
            f"n_members=1; got n_members={clf.n_members!r} and search={search!r}."
        )
    return None


def _judges(clf: Any, trains_one: bool, judges_given: bool) -> str | None:
    if not trains_one and clf.validation_fraction != _DEFAULT_FRACTION:
        return (
            "validation_fraction is the share of the rows that judge one network, with "
            "n_members=1: several members judge the rows that each of them left out. "
            f"Got validation_fraction={clf.validation_fraction!r} with "
            f"n_members={clf.n_members!r}."
        )
    none_judge = trains_one and not judges_given and clf.validation_fraction == 0
    if none_judge and clf.incumbent != "mean":
        return (
            "incumbent is chosen by rows that judge, and validation_fraction=0 leaves "
            "none: incumbent='mean' predicts. Give X_val and y_val, or another "
            f"validation_fraction; got incumbent={clf.incumbent!r}."
        )
    return None


def _cluster(clf: Any) -> str | None:
    if clf.client is not None and clf.engine not in ("auto", "dask"):
        return (
            "client is the cluster of engine='dask', got "
            f"engine={clf.engine!r} with client={clf.client!r}."
        )
    return None
