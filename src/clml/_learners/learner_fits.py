"""Fits of several learners, on folds and on all rows: jobs that run side by side."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed

from .._support.forks import was_forked
from .._support.pickling import can_travel, refuse_unpicklable
from ..engine import single_threaded_blas
from .learner_warnings import Heard, heard_warnings
from .out_of_fold import Fold, FoldScores, finite_scores, fit_learner, fold_logits
from .scores import label_logits


@dataclass(frozen=True, eq=False)
class LearnerRows:
    """What learners are fitted on.

    Attributes
    ----------
    X : features of n rows, of whatever kind the learners take
    y : int array (n, K), or (n,) for one label
    folds : sequence of (train, test)
    weight : float64 array (n,) or None
        For fits, which must take ``sample_weight`` then.
    """

    X: Any
    y: NDArray
    folds: Sequence[Fold]
    weight: NDArray[np.float64] | None = None

    @property
    def n_labels(self) -> int:
        """K."""
        return int(self.y.shape[1]) if self.y.ndim == 2 else 1


@dataclass(frozen=True)
class Job:
    """One fit: of a learner, by its number, on the training part of a fold.

    ``fold`` is None for the fit on all rows.
    """

    learner: int
    fold: int | None = None


@dataclass(frozen=True, eq=False)
class Done:
    """What came of a job.

    Attributes
    ----------
    job : Job
    found : float64 array (rows, K), or estimator
        Logits of the rows that the fold tests; the learner fitted on all rows.
    seconds : float
        Of the fit and the scores.
    heard : sequence of (class, str)
        What was warned of meanwhile.
    """

    job: Job
    found: Any
    seconds: float
    heard: Sequence[Heard] = ()


@dataclass(frozen=True, eq=False)
class FittedLearners:
    """Learners that are fitted.

    Attributes
    ----------
    numbers : list of int
        Which of the learners they are: those that were done in time.
    scores : list of float64 arrays (n, K)
        Of each of them: logits of every row from a clone that did not see it.
    fitted : list of estimators
        On all rows.
    seconds : list of float
        That its fits took, one after the other, and its scores.
    """

    numbers: list[int]
    scores: list[NDArray[np.float64]]
    fitted: list[Any]
    seconds: list[float]


def tell_nobody(done: Done) -> None:
    """Say nothing."""


def no_limit() -> float:
    """Return the seconds that are left where there is no limit."""
    return math.inf


class _Jobs:
    """The jobs of learners, one learner after the other, each when it is to begin.

    A learner that cannot be done in time is passed over, as far as its fits so far
    tell. Once all of its folds have begun it has its fit on all rows.

    Parameters
    ----------
    todo : dict of int to list of Job
        Of each learner by its number, that on all rows last.
    n_workers : int
    seconds_left : callable
    in_any_case : int or None
        The learner that may take all the time it needs.

    Attributes
    ----------
    seconds : dict of int to list of float
        Of each learner's jobs that are done.
    passed_over : set of int
    """

    def __init__(
        self,
        todo: dict[int, list[Job]],
        n_workers: int,
        seconds_left: Callable[[], float],
        in_any_case: int | None,
    ):
        self._todo, self._n_workers = todo, n_workers
        self._seconds_left, self._in_any_case = seconds_left, in_any_case
        self.seconds: dict[int, list[float]] = {number: [] for number in todo}
        self.passed_over: set[int] = set()

    def __iter__(self) -> Iterator[Job]:
        for number, jobs in self._todo.items():
            for i, job in enumerate(jobs):
                if job.fold is not None and self._is_late(number, len(jobs) - i):
                    self.passed_over.add(number)
                    break
                yield job

    def _is_late(self, number: int, n_jobs: int) -> bool:
        if number == self._in_any_case:
            return False
        known = self.seconds[number]
        # The first fit may have imported a library, or compiled.
        one = min(known) if len(known) > 1 else 0.0
        return self._seconds_left() <= one * n_jobs / self._n_workers


def fit_learners(
    learners: Sequence[Any],
    rows: LearnerRows,
    n_jobs: int | None = None,
    *,
    known: Sequence[FoldScores] = (),
    told: Callable[[Done], None] = tell_nobody,
    seconds_left: Callable[[], float] = no_limit,
) -> FittedLearners:
    """Fit learners on folds, which scores every row, and on all rows.

    Each fit is a job of its own, and all of them are shared out together: nobody waits
    for the slowest fold of a learner before the next one begins.

    Parameters
    ----------
    learners : sequence of estimators
        A frozen one scores all rows as it is.
    rows : LearnerRows
    n_jobs : int, default=None
        Jobs at the same time. The results are the same for any number.
    known : sequence of FoldScores, default=()
        Of each learner, those of folds that need no fit. The others' are told.
    told : callable, default=nothing
        Called with each job that is done, in the order that they end.
    seconds_left : callable, default=no limit
        Fits that are begun are finished, but no further learner is fitted where fewer
        seconds are left than it will take. If none is done by then the first one is
        fitted all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml._learners.learner_fits import LearnerRows, fit_learners
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 0, 1, 1])
    >>> folds = [(np.array([1, 3]), np.array([0, 2])), (np.array([0, 2]), [1, 3])]
    >>> found = fit_learners([KNeighborsClassifier(1)], LearnerRows(X, y, folds))
    >>> (found.scores[0][:, 0] > 0).tolist()
    [False, False, True, True]
    >>> found.fitted
    [KNeighborsClassifier(n_neighbors=1)]
    """
    known = known or [FoldScores() for _ in learners]
    shape = (len(rows.y), rows.n_labels)
    scores = [np.empty(shape) for _ in learners]
    fitted = list(learners)
    todo: dict[int, list[Job]] = {}
    done_before = set()
    scored_in: dict[int, float] = {}
    for number, learner in enumerate(learners):
        if isinstance(learner, FrozenEstimator):
            began = time.perf_counter()
            found = label_logits(learner, rows.X, rows.n_labels)
            scores[number] = finite_scores(found, learner)
            scored_in[number] = time.perf_counter() - began
            done_before.add(number)
            continue
        parts = known[number].known
        for fold, part in parts.items():
            scores[number][rows.folds[fold][1]] = part
        missing = [fold for fold in range(len(rows.folds)) if fold not in parts]
        if not missing:
            done_before.add(number)
        todo[number] = [*(Job(number, fold) for fold in missing), Job(number)]
    n_workers = _n_workers(n_jobs, sum(map(len, todo.values())))
    in_any_case = None if done_before else 0
    jobs = _Jobs(todo, n_workers, seconds_left, in_any_case)
    for number in todo:
        jobs.seconds[number] += known[number].seconds.values()
    with closing(_run(jobs, learners, rows, n_workers)) as ended:
        for done in ended:
            job, learner = done.job, learners[done.job.learner]
            jobs.seconds[job.learner].append(done.seconds)
            if job.fold is None:
                fitted[job.learner] = done.found
            else:
                test = rows.folds[job.fold][1]
                scores[job.learner][test] = finite_scores(done.found, learner, test)
                known[job.learner].tell(job.fold, done.found, done.seconds)
            told(done)
    numbers = [i for i in range(len(learners)) if i not in jobs.passed_over]
    return FittedLearners(
        numbers,
        [scores[i] for i in numbers],
        [fitted[i] for i in numbers],
        [scored_in.get(i, 0.0) + sum(jobs.seconds.get(i, ())) for i in numbers],
    )


def _n_workers(n_jobs: int | None, n_fits: int) -> int:
    # Workers of joblib do not survive a fork, and would be waited for.
    return 1 if was_forked() else max(1, min(effective_n_jobs(n_jobs), n_fits))


def _run(
    jobs: Iterable[Job], learners: Sequence[Any], rows: LearnerRows, n_workers: int
) -> Generator[Done, None, None]:
    """Do jobs, so many at a time; return each when it is done."""
    backend, _ = get_active_backend()
    travels = n_workers > 1 and not getattr(backend, "supports_sharedmem", False)
    if travels:
        # With dask's backend of joblib nobody would hear of it, and all would wait.
        for learner in learners:
            refuse_unpicklable(learner, f"The estimator {type(learner).__name__}")
    # Each is told when it is done, where the backend gives them one by one.
    one_by_one = getattr(backend, "supports_return_generator", False)
    ended = Parallel(
        n_jobs=n_workers,
        return_as="generator_unordered" if one_by_one else "list",
        # A job is long, and its rows may have to be sent: none waits in a queue.
        batch_size=1,
        pre_dispatch="n_jobs",
    )(
        delayed(_done)(
            job,
            learners[job.learner],
            rows.X,
            rows.y,
            None if job.fold is None else rows.folds[job.fold],
            rows.weight,
            rows.n_labels,
            is_alone=n_workers == 1,
            travels=travels,
        )
        for job in jobs
    )
    try:
        for done in ended:
            yield _done_here(done, learners, rows) if done.found is None else done
    finally:
        if one_by_one:
            with warnings.catch_warnings(action="ignore"):  # of jobs that are left
                ended.close()


def _done_here(done: Done, learners: Sequence[Any], rows: LearnerRows) -> Done:
    """Fit on all rows what could not come back from where it was fitted."""
    learner = learners[done.job.learner]
    return _done(done.job, learner, rows.X, rows.y, None, rows.weight, rows.n_labels)


def _done(
    job: Job,
    learner: Any,
    X: Any,
    y: NDArray,
    fold: Fold | None,
    weight: NDArray[np.float64] | None,
    n_labels: int,
    *,
    is_alone: bool = True,
    travels: bool = False,
) -> Done:
    """Fit a clone of a learner on a fold's training part, or on all rows."""
    began = time.perf_counter()
    # BLAS rounds otherwise with more threads, of which each job would have others.
    with (
        heard_warnings(is_alone or travels) as heard,
        single_threaded_blas(),
        _own_jobs(is_alone),
    ):
        if fold is not None:
            found = fold_logits(learner, X, y, fold, weight, n_labels)
        else:
            found = fit_learner(learner, X, y, weight)
            if travels and not can_travel(found):
                found = None
    return Done(job, found, time.perf_counter() - began, heard)


def _own_jobs(is_alone: bool) -> AbstractContextManager[Any]:
    """Let a learner have the jobs that it asks for, unless others run beside it."""
    return nullcontext() if is_alone else parallel_config(backend="sequential")


def print_fits(
    names: Sequence[str],
    n_folds: int,
    known: Sequence[FoldScores],
    verbose: bool = True,
) -> Callable[[Done], None]:
    """Return what prints a line for each job that is done.

    Parameters
    ----------
    names : sequence of str
        Of the learners.
    n_folds : int
    known : sequence of FoldScores
        Those of folds that need no fit, which is said at once.
    verbose : bool, default=True
        Otherwise nothing is printed.
    """
    if not verbose:
        return tell_nobody
    width = max(map(len, names))
    for name, scores in zip(names, known, strict=True):
        if scores.known:
            print(
                f"{name.ljust(width)}  {len(scores.known)} of {n_folds} folds are kept "
                "from before",
                flush=True,
            )

    def told(done: Done) -> None:
        fold = done.job.fold
        where = "all rows" if fold is None else f"fold {fold + 1} of {n_folds}"
        name = names[done.job.learner].ljust(width)
        print(f"{name}  {where:12}  {done.seconds:8.2f} s", flush=True)

    return told
