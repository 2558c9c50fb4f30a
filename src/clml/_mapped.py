"""What Tuned and Stacking share: scores of learners, and a map of them, evolved."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_array, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._tags import Tags
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ._base.missing import has_missing
from ._base.multilabel import refuse_ragged
from ._base.rows import Part, drop_weightless
from ._base.twins import warn_of_twins
from ._learners.kept_folds import KeptFolds
from ._learners.learner_fits import (
    Done,
    LearnerRows,
    fit_learners,
    no_limit,
    print_fits,
)
from ._learners.learner_tags import for_labels, refuses_missing
from ._learners.learner_warnings import LearnerWarnings
from ._learners.out_of_fold import check_takes_weight, fold_of_rows, folds
from ._learners.scores import check_same_labels, label_logits
from ._lebesgue_estimator import LebesgueEstimator, choose_model
from ._maps.calibration import fit_temperatures
from ._maps.front import ParetoFront
from ._maps.map_search import MapSearch, Shrinkage
from ._maps.score_engine import ScoreEngine
from ._maps.score_map import apply_map
from ._support.memory import warn_once
from ._support.names import column_names
from ._support.paths import PathLike
from ._support.sklearn_compat import warn_user
from ._support.transaction import snapshot
from ._training.run_checkpoint import Clock, RunCheckpoint
from ._training.run_state import damaged
from ._training.search import Search, history_arrays
from .engine import single_threaded_blas
from .losses import get_losses

#: Learners with their names.
Learners = list[tuple[str, Any]]


@dataclass(frozen=True, eq=False)
class _MapFit:
    """What the fitted attributes are made of, beside the search."""

    run: MapSearch
    shrinkage: Shrinkage


class MappedScoresClassifier(LebesgueEstimator):
    """Predicts with a map of the scores of fitted learners.

    A subclass names its learners, keeps the fitted ones, and gives these back.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "losses": [list, tuple, np.ndarray, str],
        "cv": ["cv_object"],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "prefit": ["boolean"],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "population_size": [Interval(Integral, 2, None, closed="left"), None],
        "ties": [StrOptions({"depth", "layer"}), None],
        "incumbent": [str],
        "calibrate": ["boolean"],
        "max_front": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "keep_on_interrupt": ["boolean"],
        **LebesgueEstimator._checkpoint_constraints,
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    #: Whether the shrinkage is the mean of what pairs of halves choose, rather than
    #: that of the simplest map within one standard error of the best.
    _averages_halves: ClassVar[bool] = False

    def _named_learners(self) -> Learners:
        """Return the learners, not fitted unless ``prefit``."""
        raise TypeError(f"{type(self).__name__} must define _named_learners().")

    def _keep_learners(self, names: list[str], fitted: list[Any]) -> None:
        """Store the fitted learners under their public attributes."""
        raise TypeError(f"{type(self).__name__} must define _keep_learners().")

    def _fitted_learners(self) -> list[Any]:
        """Return what ``_keep_learners`` stored."""
        raise TypeError(f"{type(self).__name__} must define _fitted_learners().")

    def _judge_learners(self, engine: ScoreEngine, seconds: list[float]) -> None:
        """Store what the learners are worth, where there are several."""

    def _check_distillable(self, part: Part) -> None:
        """Refuse rows that a network which is to learn from this one cannot read."""

    def _distil(
        self,
        scores: NDArray[np.float64],
        part: Part,
        seed: tuple[int, ...],
        clock: Clock,
    ) -> KeyboardInterrupt | None:
        """Train a network on what this one says of rows; return an interrupt."""
        return None

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        clock = Clock(self.max_seconds)
        self._check_n_jobs()
        losses = self._check_losses()
        named = self._named_learners()
        part = self._training_rows(X, y, sample_weight)
        _check_missing(named, part.X)
        self._check_distillable(part)
        if not self.prefit and self.n_labels_ > 1:
            named = [(name, for_labels(learner)) for name, learner in named]
        for _, learner in named:
            if self.prefit or isinstance(learner, FrozenEstimator):
                names = self.label_names_.tolist()
                check_same_labels(learner, part.X, self.classes_, names)
        keeper = self._keeper({"X": part.X, "y": part.Y, "sample_weight": part.weight})
        keeper.clock = clock
        seed = tuple(self._draw_seed(keeper))
        scores, seconds = self._learn(named, part, seed, keeper, clock)
        with warn_once(), single_threaded_blas(), self._threads() as executor:
            run = MapSearch(
                scores,
                part.targets,
                losses,
                transform=self.mapping,
                max_epochs=int(self.max_epochs),
                population_size=self.population_size,
                ties=self.ties,
                max_front=int(self.max_front),
                seed=seed,
                executor=executor,
                averages=self._averages_halves,
            )
            self._judge_learners(run.judge, seconds)
            interrupt = self._fit_map(run, (X, y, sample_weight), keeper)
        if interrupt is None:
            interrupt = self._distil(scores, part, seed, clock)
        if interrupt is not None and not self.keep_on_interrupt:
            raise interrupt
        return self

    def _learn(
        self,
        named: Learners,
        part: Part,
        seed: tuple[int, ...],
        keeper: RunCheckpoint,
        clock: Clock,
    ) -> tuple[NDArray[np.float64], list[float]]:
        """Fit the learners on all rows; return scores (n, M, K) of unseen ones.

        Beside them stand the seconds of each learner.
        """
        y = part.Y.astype(np.int64)
        if not isinstance(self.classes_, list):
            y = y[:, 0]
        if not self.prefit:
            for _, learner in named:
                check_takes_weight(learner, part.weight)
        frozen = [
            FrozenEstimator(learner) if self.prefit else learner for _, learner in named
        ]
        parts = []
        if not all(isinstance(learner, FrozenEstimator) for learner in frozen):
            parts = folds(self.cv, part.X, part.Y, self._fold_seed(seed))
            warn_of_twins(
                part.X,
                "give folds that keep them together as cv, such as "
                "list(GroupKFold().split(X, Y, groups))",
                fold_of_rows(parts),
            )
        kept = KeptFolds(keeper, part.Y.shape[1], parts, clock)
        numbers = kept.learners or list(range(len(named)))
        with keeper.reading():
            if numbers[-1] >= len(named):
                raise damaged("learners must be numbers of learners")
        names = [named[i][0] for i in numbers]
        warned = LearnerWarnings(names, self.label_names_.tolist(), kept.folds, part.Y)
        known = [kept.of_learner(number) for number in numbers]
        say = print_fits(names, len(kept.folds), known, bool(self.verbose))

        def told(done: Done) -> None:
            say(done)
            warned.add(done.job.learner, done.heard)

        try:
            with kept.written():
                found = fit_learners(
                    [frozen[i] for i in numbers],
                    LearnerRows(part.X, y, kept.folds, part.weight),
                    self.n_jobs,
                    known=known,
                    told=told,
                    # Who takes part is settled where a run goes on after that.
                    seconds_left=clock.left if kept.learners is None else no_limit,
                )
        finally:
            warned.tell()
        numbers = [numbers[i] for i in found.numbers]
        kept.settle(numbers)
        self._warn_left_out(named, numbers)
        fitted = [named[i][1] for i in numbers] if self.prefit else found.fitted
        self._keep_learners([named[i][0] for i in numbers], fitted)
        return np.stack(found.scores, axis=1), found.seconds

    def _warn_left_out(self, named: Learners, numbers: list[int]) -> None:
        """Say who was not done in time."""
        out = [repr(name) for i, (name, _) in enumerate(named) if i not in numbers]
        if out:
            warn_user(
                f"max_seconds={self.max_seconds:g} is too short for {len(out)} of "
                f"{len(named)} learners, which had not scored all rows and are left "
                f"out: {', '.join(out)}."
            )

    def _fold_seed(self, seed: tuple[int, ...]) -> int:
        """Return the seed of the folds: an integer ``random_state`` itself."""
        given = isinstance(self.random_state, Integral)
        return int(self.random_state) if given else seed[0]

    def _fit_map(
        self, run: MapSearch, given: tuple[Any, Any, Any], keeper: RunCheckpoint
    ) -> KeyboardInterrupt | None:
        """Choose the strength, evolve, store the attributes; return an interrupt."""
        with keeper.reading():
            chosen = Shrinkage.from_state(keeper.saved.get("choice"))
        began = time.perf_counter()
        try:
            chosen = chosen or run.choose(self._shrinkage_in_time(run, keeper))
        except KeyboardInterrupt as interrupt:
            # The learners are fitted: they predict as they are.
            nothing = _MapFit(run, Shrinkage(0.0, 0.0, {}))
            self.__dict__.update(self._fitted_attributes(None, nothing, "none"))
            self.interrupted_ = True
            return interrupt
        if self.verbose:
            seconds = time.perf_counter() - began
            print(f"shrinkage {chosen.strength:g} chosen  {seconds:.2f} s", flush=True)
        keeper.settle(choice=chosen.state())
        search = None
        if run.evolves:
            with keeper.reading():
                search = run.search(chosen.shift, keeper.saved.get("run"))
        fit = _MapFit(run, chosen)
        return self._run_search(search, fit, given, self.max_epochs, keeper)  # type: ignore[arg-type]

    def _shrinkage_in_time(self, run: MapSearch, keeper: RunCheckpoint) -> Any:
        """Return the parameter, or what needs no evolutions on halves of the rows."""
        late = keeper.clock is not None and keeper.clock.left() <= 0
        return (
            0.0 if late and run.evolves and self.shrinkage == "auto" else self.shrinkage
        )

    def _evolve(self, search: Any, *arguments: Any) -> KeyboardInterrupt | None:
        return None if search is None else super()._evolve(search, *arguments)

    def _fitted_attributes(
        self,
        search: Search | None,
        rows: Any,
        calibrated: Literal["all", "chosen", "none"] = "all",
    ) -> dict[str, Any]:
        run, shrinkage = rows.run, rows.shrinkage
        found = run.found(search, shrinkage, judged=calibrated == "all")
        names = tuple(loss.name for loss in get_losses(self.losses))
        front = ParetoFront(
            found.front.losses,
            names,
            found.front.maps,
            standard_error=found.front.standard_error,
            difference_error=found.front.difference_error,
            default=found.default,
            rules=found.front.rules or None,  # type: ignore[arg-type]
        )
        maps = {"final": found.final_map, "mean": found.mean_map}
        alternatives = {k: (v, 1.0) for k, v in maps.items() if v is not None}
        which = self.incumbent
        if which in maps and not alternatives:
            which = "geometric_mean"
        if self.calibrate and calibrated != "none":
            chosen = choose_model(front, alternatives, which)["incumbent_"]
            front, alternatives = _calibrated(
                run, front, alternatives, None if calibrated == "all" else chosen
            )
        archived = () if search is None else search.progress.archived_losses
        archived = archived or (found.front.losses.astype(np.float32),)
        return {
            "front_": front,
            "history_": _history(found.history, len(names)),
            "archive_losses_": np.concatenate(archived),
            "n_epochs_": len(found.history),
            "population_size_": 0
            if search is None
            else search.strategy.population_size,
            "interrupted_": False,
            "_mixing": run.space.mixing,
            "shrinkage_": found.strength,
            "shift_": found.shift,
            "shrinkage_path_": dict(found.path),
            "_alternatives": alternatives,
            **choose_model(front, alternatives, which),
        }

    def _training_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Part:
        """Check y and count X, which learners get as it is; leave weightless rows."""
        names = column_names(y)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # text has neither
        validate_data(self, X, y, skip_check_array=True)
        _check_two_dimensions(X)
        refuse_ragged(y)
        y = check_array(
            y,
            accept_sparse="csr",
            ensure_2d=False,
            dtype=None,
            ensure_min_features=0,  # labels, of which an indicator speaks better
            input_name="y",
        )
        check_consistent_length(X, y)
        # Folds take rows: sparse formats without rows become CSR, nothing else changes.
        (X,) = indexable(X)
        n = _num_samples(X)
        kept, y, weight = drop_weightless(np.arange(n), y, sample_weight)
        if len(kept) < n:
            if not isinstance(self.cv, Integral | None):
                raise ValueError(
                    "cv must be a number where sample_weight holds zeros: the rows of "
                    f"weight 0 are left out of the folds. Got {n - len(kept)} weights "
                    f"of 0 and a cv of {type(self.cv).__name__}."
                )
            X = self._take(X, kept)
        part = Part(X, self._fit_targets(y, names), weight)
        self._warn_constant(part.Y)
        return part

    def _take(self, X: Any, rows: NDArray[np.int64]) -> Any:
        if self.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "sample_weight must be positive for every row where X holds kernels "
                f"between rows, got {_num_samples(X) - len(rows)} weights of 0."
            )
        return _safe_indexing(X, rows)

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        _check_two_dimensions(X)
        return validate_data(self, X, reset=False, skip_check_array=True)

    def _mapped_logits(self, X: Any) -> NDArray[np.float64]:
        scores = [
            label_logits(learner, X, self.n_labels_)
            for learner in self._fitted_learners()
        ]
        stacked = np.stack(scores, axis=1)
        return apply_map(self.theta_, stacked, mixing=self._mixing)

    def to_onnx(
        self, path: PathLike, *, dtype: str = "float32", opset: int = 18
    ) -> None:
        """Write the fitted classifier as an ONNX file, which predicts without Python.

        The learners, the map and the temperature are one graph, from ``features``
        (N, D) to ``logits``, ``probabilities`` and ``labels`` (N, K). Needs the extra
        ``onnx``. Rows are dense: of a sparse matrix give batches, as arrays.

        Parameters
        ----------
        path : str or path
            The file. One that exists is replaced.
        dtype : {"float32", "float64"}, default="float32"
            Of features, networks and scores. With "float32" scores are within 1e-5 of
            those of ``predict_proba``, for rows that float32 can tell apart.
        opset : int, default=18
            Version of the operators, 18 to 21.

        Raises
        ------
        TypeError
            If a learner has no graph: the message says which one, and why.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from clml import LebesgueTunedClassifier
        >>> X, Y = make_multilabel_classification(n_samples=100, random_state=0)
        >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0)
        >>> clf = LebesgueTunedClassifier(tree, shrinkage=0.5, random_state=0).fit(X, Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "model.onnx")
        ...     clf.to_onnx(path)
        ...     path.stat().st_size > 1000
        True
        """
        from .persistence.onnx_mapped import export_mapped

        export_mapped(snapshot(self), path, dtype=dtype, opset=opset)


def delegate_input_tags(tags: Tags, learners: list[Tags]) -> Tags:
    """Return the tags with what all learners can take."""
    for name in ("sparse", "allow_nan", "pairwise"):
        able = all(getattr(learner.input_tags, name) for learner in learners)
        setattr(tags.input_tags, name, able)
    return tags


def _calibrated(
    run: MapSearch,
    front: ParetoFront,
    alternatives: dict[str, tuple[NDArray[np.float64], float]],
    only: str | int | None,
) -> tuple[ParetoFront, dict[str, tuple[NDArray[np.float64], float]]]:
    """Return the models with temperatures, of all of them or one only."""

    def temperature(
        name: str | int, theta: NDArray[np.floating], rule: str | None = None
    ) -> float:
        if only is not None and name != only:
            return 1.0
        scores = run.rows.ruled_by(rule).scores(theta[None])
        return float(fit_temperatures(scores, run.rows.targets)[0])

    both = zip(front.theta, front.rules, strict=True)
    values = np.array([temperature(i, *pair) for i, pair in enumerate(both)])
    pairs = {k: (v, temperature(k, v)) for k, (v, _) in alternatives.items()}
    return replace(front, temperature=values), pairs


def _history(records: tuple[dict[str, Any], ...], n_losses: int) -> dict[str, NDArray]:
    """Return one array a quantity; without epochs each is empty."""
    if records:
        return history_arrays(records)
    numbers = (
        "sigma",
        "measure",
        "archive_measure",
        "incumbent_binary_cross_entropy_train",
        "incumbent_row_log_loss_train",
        "seconds",
    )
    return (
        {name: np.empty(0) for name in numbers}
        | {name: np.empty((0, n_losses)) for name in ("incumbent_train", "mean_train")}
        | {"undefined": np.empty((0, n_losses), dtype=np.int64)}
    )


def _check_missing(named: Learners, X: Any) -> None:
    """Refuse missing values that a learner takes none of, before others are fitted."""
    refusing = [name for name, learner in named if refuses_missing(learner)]
    if not refusing or not has_missing(X):
        return
    kinds = {name: _kind_of(learner) for name, learner in named}
    told = ", ".join(f"{name!r} ({kinds[name]})" for name in refusing)
    others = ", ".join(repr(name) for name in kinds if name not in refusing)
    raise ValueError(
        f"X contains NaN, and these learners take no missing values: {told}. Fill them "
        "in, as make_pipeline(SimpleImputer(), learner) of scikit-learn does, or leave "
        f"these learners out. Those that take them: {others or 'none'}."
    )


def _kind_of(learner: Any) -> str:
    """Return the class, and the network that a CLMLClassifier has, since it matters."""
    network = getattr(learner, "network", None)
    of_network = f"(network={network!r})" if isinstance(network, str) else ""
    return type(learner).__name__ + of_network


def _check_two_dimensions(X: Any) -> None:
    """Refuse one row or column given as a plain array of numbers."""
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "buif":
        raise ValueError(
            f"X must be 2D, of shape (rows, features), got a 1D array of {len(X)} "
            "numbers. Reshape your data: X.reshape(1, -1) for one row, "
            "X.reshape(-1, 1) for one feature."
        )
