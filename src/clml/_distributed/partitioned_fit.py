"""A fit on rows in partitions: on a cluster, on disk, larger than memory.

Only sums travel, of row statistics and of moments. What needs single rows, such as
the temperatures of probabilities, takes a sample of some ``SAMPLE_ROWS`` of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._base.partitions import is_dask
from .._base.rows import FitRows
from .._support.cluster import current_client, open_client, told_if_closed
from .._support.memory import warn_once
from .._support.names import shown
from .._support.pickling import refuse_unpicklable
from .._support.sklearn_compat import warn_user
from .._support.torch import cpu_threads
from .._training.builder import TrainingBuilder
from .._training.recipe import MANY_WEIGHTS, as_network
from .._training.run_checkpoint import RunCheckpoint
from .._training.searches import CMA, Ascent, RankGradient, SearchMethod, as_search
from ..datasets import RowPartitions, as_partitions
from ..engine import single_threaded_blas
from ..engine.blocks import SHARD_ROWS
from ..engine.dask import DaskHolders
from ..engine.partitioned import PartitionedEngine, refuse_matrix_losses
from ..engine.tree_sum import Node, add_along_tree
from ..losses import Loss
from ..network import PaperNetwork, Scaling, describe_contrast
from .courier import Courier
from .dask_inputs import delayed_partitions
from .partition_rows import (
    TRAIN,
    VALIDATION,
    EnginePlan,
    SplitPlan,
    Survey,
    digest_of,
    joined,
    sample_of,
    shared_names,
    survey_of,
)
from .partition_sources import ClusterPartitions, LocalPartitions, Partitions

#: Rows of a part that are looked at one by one, some more where partitions are many.
SAMPLE_ROWS = 20_000
# And how many numbers these may have: fewer rows, where features are many.
_SAMPLE_NUMBERS = 1 << 24
# Into how many partitions rows in memory are cut, and how large these are at most.
_MANY_PARTITIONS = 64
_MOST_ROWS = 65_536
# Of the memory for rows, what candidates in flight may take beside them.
_SHARE_IN_FLIGHT = 0.1


@dataclass(frozen=True, eq=False)
class Sources:
    """Partitions that were given, those to train on first.

    Attributes
    ----------
    sources : tuple of callables or of dask's Delayed
        Each returns X, Y and weights or None.
    n_train : int
        How many of them are to train on; the others judge.
    feature_names, label_names : sequence of str or None
    classes : array of shape (2,) or None
        Of a target that was a column of two classes; None if it was an indicator.
    """

    sources: tuple[Any, ...]
    n_train: int
    feature_names: Sequence[str] | None
    label_names: Sequence[str] | None
    classes: Any = None

    @property
    def delayed(self) -> bool:
        """Whether they are dask's."""
        return hasattr(self.sources[0], "__dask_graph__")


def read_sources(X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Sources:
    """Return the partitions that the arguments of a fit stand for."""
    train = _sources_of(X, y, sample_weight, "X")
    if X_val is None and y_val is None:
        return train
    judge = _sources_of(X_val, y_val, None, "X_val")
    if judge.delayed != train.delayed:
        raise TypeError(
            "X and X_val must both be dask collections or both be RowPartitions, got "
            f"{type(X).__name__} and {type(X_val).__name__}."
        )
    for mine, other, what in (
        (train.feature_names, judge.feature_names, "features"),
        (train.label_names, judge.label_names, "labels"),
    ):
        if mine is not None and other is not None and mine != other:
            raise ValueError(
                f"X_val must have the {what} of X in the same order, {shown(mine)}, "
                f"got {shown(other)}."
            )
    return Sources(
        train.sources + judge.sources,
        train.n_train,
        train.feature_names,
        train.label_names,
    )


def _sources_of(X: Any, y: Any, sample_weight: Any, name: str) -> Sources:
    if isinstance(X, RowPartitions):
        if y is not None or sample_weight is not None:
            raise ValueError(
                f"{name} is RowPartitions, which have labels and weights of their own: "
                "leave y and sample_weight out."
            )
        given: Any = X
        sources = tuple(X.loaders)
    elif is_dask(X):
        given = delayed_partitions(X, y, sample_weight)
        sources = tuple(given.delayed)
    else:
        raise TypeError(
            f"{name} must be in partitions, a dask collection or RowPartitions, as "
            f"other arguments are; got {type(X).__name__}."
        )
    if not sources:
        raise ValueError(f"{name} must have at least one partition, got none.")
    return Sources(sources, len(sources), given.feature_names, given.label_names)


def cut_rows(
    given: Sequence[tuple[Any, Any, Any]],
    feature_names: Any,
    label_names: Any,
    classes: Any,
) -> Sources:
    """Cut rows in memory into partitions, by their number alone.

    Parameters
    ----------
    given : sequence of tuples
        X, indicator and weights or None: those to train on and, if any, to judge.
    feature_names, label_names : sequence of str or None
    classes : list, or array of shape (2,)
        As a fitted estimator has them.
    """
    cut = [as_partitions(*rows, rows=_partition_rows(len(rows[1]))) for rows in given]
    return Sources(
        tuple(loader for one in cut for loader in one.loaders),
        len(cut[0]),
        feature_names,
        label_names,
        None if isinstance(classes, list) else classes,
    )


def _partition_rows(n_rows: int) -> int:
    """Return how many rows a partition has: enough of them for many workers."""
    shards = -(-n_rows // (_MANY_PARTITIONS * SHARD_ROWS))
    return min(shards * SHARD_ROWS, _MOST_ROWS)


@dataclass(frozen=True, eq=False)
class _Here:
    """Computes a partition of dask's in this process, or gets it from the cluster."""

    delayed: Any
    client: Any

    def __call__(self) -> Any:
        # The thread that reads ahead does not know the current client.
        with told_if_closed(self.client):
            return self.delayed.compute(scheduler=self.client)


@contextmanager
def _opened(
    clf: Any, given: Sources, losses: tuple[Loss, ...], executor: Executor | None
) -> Iterator[Partitions]:
    """Yield the partitions where they are to be worked on."""
    on_cluster = clf._on_cluster
    if not on_cluster and given.delayed and clf.engine == "auto":
        on_cluster = current_client() is not None
    if on_cluster:
        refuse_unpicklable(losses, "losses")
        with open_client(clf.client) as client:
            partitions = ClusterPartitions(client, given.sources)
            try:
                yield partitions
            finally:
                partitions.let_go()
        return
    loaders = given.sources
    if given.delayed:
        client = current_client()
        loaders = tuple(_Here(source, client) for source in loaders)
    yield LocalPartitions(loaders, float(clf.memory_mb), executor)


def fit_in_partitions(
    clf: Any, given: Sources, arguments: tuple[Any, Any, Any]
) -> KeyboardInterrupt | None:
    """Fit a classifier on partitions; return an interrupt, if any.

    Parameters
    ----------
    clf : CLMLClassifier
    given : Sources
    arguments : tuple
        X, y and sample_weight as they were given, for callbacks.
    """
    losses = clf._check_losses()
    refuse_matrix_losses(losses)
    _refuse_settings(clf)
    device = _device(clf)
    with (
        warn_once(),
        single_threaded_blas(),
        cpu_threads(1) if device == "cpu" else nullcontext(),
        clf._threads() as executor,
        _opened(clf, given, losses, executor) as partitions,
    ):
        data = {}
        if clf.checkpoint is not None:
            digests = partitions.map_rows(digest_of)
            data = {
                "partitions": digests[: given.n_train],
                "partitions of X_val": digests[given.n_train :] or None,
            }
        keeper = clf._keeper(data)
        clf._seed = clf._draw_seed(keeper)
        share = 0.0 if given.n_train < partitions.n else float(clf.validation_fraction)
        plan = SplitPlan(share, (*clf._seed, 0), given.n_train)
        survey = _survey(partitions, plan)
        if clf.verbose:
            n_rows = ", ".join(
                f"{n:,} rows of {part}" for part, n in survey.n_rows.items()
            )
            print(f"{partitions.n} partitions: {n_rows}", flush=True)
        rows = _sample(partitions, plan, survey, (*clf._seed, 6))
        _learn_columns(clf, given, survey, rows)
        method = _search_method(clf)
        is_local = isinstance(partitions, LocalPartitions)
        in_flight = _SHARE_IN_FLIGHT if is_local else 1.0
        engines = EnginePlan(
            layout=clf.layout_,
            scaling=clf.scaling_,
            losses=losses,
            device=device,
            memory_mb=clf.memory_mb * in_flight,
            checksums=survey.checksums,
        )
        # Samples as they were given, and as they are computed with.
        beside_mb = 3 * sum(part.nbytes for part in rows.parts) / 2**20
        with partitions.held(plan, engines, beside_mb) as holders:
            return _run(
                clf, method, losses, survey, rows, engines, holders, executor, keeper,
                arguments,
            )  # fmt: skip


def _run(
    clf: Any,
    method: SearchMethod,
    losses: tuple[Loss, ...],
    survey: Survey,
    rows: FitRows,
    engines: EnginePlan,
    holders: Any,
    executor: Executor | None,
    keeper: RunCheckpoint,
    arguments: tuple[Any, Any, Any],
) -> KeyboardInterrupt | None:
    """Search on partitions that are held."""
    sample = engines.engine(rows.train).helped_by(executor)
    n_labels = clf.layout_.n_labels
    train = PartitionedEngine(holders, TRAIN, losses, n_labels, sample)
    validation = None
    if rows.validation is not None:
        sample = engines.engine(rows.validation).helped_by(executor)
        validation = train.of_part(VALIDATION, sample)
    built = TrainingBuilder(
        settings=clf,
        method=method,
        network=_network(clf),
        losses=losses,
        layout=clf.layout_,
        scaling=clf.scaling_,
        seed=tuple(clf._seed),
        rows=rows,
        device=None,  # populations are drawn by everybody who evaluates them
        executor=executor,
        n_rows=survey.n_rows[TRAIN],
        engines=(train, validation),
    )
    if validation is not None and built.samples_rows:
        # An epoch looks at some rows; to judge it by all of them would take far longer.
        share = min(1.0, SAMPLE_ROWS / survey.n_rows[VALIDATION])
        judge = validation.drawn(share, (*clf._seed, 7))
        built = replace(built, engines=(train, judge))
    with keeper.reading():
        search = built.search(None, keeper.saved.get("run"))
    if isinstance(holders, DaskHolders):
        holders.writer = Courier(search)
    n_epochs = built.recipe.n_epochs
    try:
        interrupt: KeyboardInterrupt | None = clf._run_search(
            search, rows, arguments, n_epochs, keeper
        )
    finally:
        search.detach()
    return interrupt


def _refuse_settings(clf: Any) -> None:
    """Refuse what needs single rows, before anything is computed."""
    wanted = None
    if isinstance(as_search(clf.search), Ascent):
        wanted = "search='ascent' steps through batches of rows"
    elif clf.n_members not in (None, 1):
        wanted = f"n_members={clf.n_members} judge each other's rows"
    elif clf.warm_start:
        wanted = "warm_start=True goes on with rows in memory"
    if wanted is not None:
        raise ValueError(
            f"{wanted}, and rows in partitions are never gathered: one network is "
            "evolved on them, with search='cma', 'rank_gradient' or 'auto', "
            "n_members=None and warm_start=False (checkpoint= keeps a run)."
        )


def _device(clf: Any) -> str | None:
    """Return what evaluates partitions; "auto" is decided where they are."""
    if clf.engine == "numpy" or (clf.device == "cpu" and clf.engine != "torch"):
        if clf.device != "cpu":
            clf._population_device()  # which says why not
        return None
    return str(clf.device)


def _survey(partitions: Partitions, plan: SplitPlan) -> Survey:
    """Survey all partitions, in one pass."""
    found = partitions.map(survey_of, plan)
    leaves = [Node(i, i + 1, survey) for i, survey in enumerate(found)]
    (whole,) = add_along_tree(leaves, len(leaves))
    survey: Survey | None = whole.value
    if survey is None or not survey.n_rows.get(TRAIN):
        raise ValueError(
            f"X must have at least one row of positive weight to train on, got none in "
            f"{plan.n_train} partitions."
        )
    wanted = plan.fraction > 0 or plan.n_train < partitions.n
    if wanted and not survey.n_rows.get(VALIDATION):
        raise ValueError(
            "No row is left to judge: give more rows, X_val with rows of its own, or "
            f"validation_fraction=0. Got {survey.n_rows[TRAIN]} rows in {plan.n_train} "
            f"partitions, {partitions.n - plan.n_train} partitions of X_val and "
            f"validation_fraction={plan.fraction:g}."
        )
    return survey


def _sample(
    partitions: Partitions, plan: SplitPlan, survey: Survey, seed: tuple[int, ...]
) -> FitRows:
    """Gather a sample of the rows of each part."""
    shares = {
        name: min(1.0, SAMPLE_ROWS / n, _SAMPLE_NUMBERS / survey.n_numbers[name])
        for name, n in survey.n_rows.items()
    }
    draw = partial(sample_of, shares=shares, seed=seed, checksums=survey.checksums)
    samples = partitions.map(draw, plan)
    train = joined(samples, TRAIN)
    assert train is not None  # there are some
    return FitRows(train, joined(samples, VALIDATION))


def _learn_columns(clf: Any, given: Sources, survey: Survey, rows: FitRows) -> None:
    """Store what a fit knows of features and labels."""
    n_features, n_labels = survey.shape
    clf.n_features_in_ = n_features
    clf.__dict__.pop("feature_names_in_", None)
    if given.feature_names is not None:
        _check_count("features", given.feature_names, n_features)
        clf.feature_names_in_ = np.asarray(given.feature_names, dtype=object)
    if given.label_names is not None:
        _check_count("labels", given.label_names, n_labels)
    told = (given.feature_names, given.label_names)
    for of_all, of_each, what in zip(
        told, survey.names, ("features", "labels"), strict=True
    ):
        shared_names(None if of_all is None else list(of_all), of_each, what)
    label_names = survey.names[1] if given.label_names is None else given.label_names
    clf._fit_targets(np.zeros((1, n_labels), dtype=np.uint8), label_names)
    if given.classes is not None:
        clf.classes_ = given.classes
    n_train = survey.n_rows[TRAIN]
    clf._warn_constant_labels(survey.positives / n_train)
    clf.scaling_ = Scaling.identity(n_features)
    network = _network(clf)
    if network.standardize:
        assert survey.moments is not None
        clf.scaling_ = Scaling.from_moments(survey.moments)
    contrast = describe_contrast(rows.train.X, clf.scaling_)
    if contrast is not None:
        warn_user(contrast)
    # The paper's width: a population moves all weights at once, and more rows do not
    # make that easier.
    clf.layout_ = network.build(n_features, n_labels)


def _check_count(what: str, names: Sequence[str], expected: int) -> None:
    if len(names) != expected:
        raise ValueError(f"Partitions have {expected} {what}, but {len(names)} names.")


def _network(clf: Any) -> PaperNetwork:
    network: PaperNetwork = as_network(clf.network, ascends=False)
    return network


def _search_method(clf: Any) -> SearchMethod:
    search = as_search(clf.search)
    if search is not None:
        return search
    return RankGradient() if clf.layout_.size >= MANY_WEIGHTS else CMA()
