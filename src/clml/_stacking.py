"""LebesgueStackingClassifier: several learners combined for several losses at once."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import _BaseComposition

from ._base.rows import Part
from ._classifier import CLMLClassifier
from ._distillation import check_distillable, new_student, teach
from ._learners.learner_worth import judge_learners
from ._mapped import Learners, MappedScoresClassifier, delegate_input_tags
from ._maps.score_engine import ScoreEngine
from ._maps.score_map import apply_map
from ._maps.teacher import Teacher, soft_targets
from ._support.sklearn_compat import fit_context, warn_user, with_callbacks
from ._support.transaction import all_or_nothing, params_kept_on_error
from ._training.run_checkpoint import Clock
from .lebesgue import Ties
from .losses import get_losses


def default_learners(random_state: Any = None) -> Learners:
    """Return the learners that are combined unless others are given.

    Two forests and CLML, which err in their own ways. All take sparse rows and missing
    values, and none needs another package.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        An int is that of every learner.

    Returns
    -------
    list of (str, estimator)

    Examples
    --------
    >>> from clml._stacking import default_learners
    >>> [name for name, _ in default_learners()]
    ['forest', 'extra_trees', 'clml']
    """
    # Imported here: the library itself needs none of them.
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    seed = random_state
    if hasattr(random_state, "randint"):
        seed = check_random_state(random_state).randint(2**31 - 1)
    return [
        ("forest", RandomForestClassifier(300, random_state=seed)),
        ("extra_trees", ExtraTreesClassifier(300, random_state=seed)),
        ("clml", CLMLClassifier(random_state=seed)),
    ]


class LebesgueStackingClassifier(_BaseComposition, MappedScoresClassifier):
    """Several multi-label classifiers, combined for several losses at once.

    Each learner is fitted on folds to score the rows that it did not see, and one
    scale and one bias make its scores logits. Weights that all labels share come next,
    near to the plain average unless the scores say otherwise. Each label's own
    deviations from them, and biases, then climb the Lebesgue measure of the losses
    themselves, and are believed as far as the same scores tell. The learners, fitted on
    all rows, predict through that map.

    Parameters
    ----------
    estimators : list of (str, estimator), default=None
        The learners, each with ``decision_function`` or ``predict_proba``, and their
        names. One that says that it takes no indicator, such as LogisticRegression or
        a pipeline that ends in it, is put into
        :class:`sklearn.multiclass.OneVsRestClassifier`. None for a random forest and
        extra trees, of 300 trees each, and ``CLMLClassifier()``, which take missing
        values. A :class:`sklearn.frozen.FrozenEstimator` is used as it is: its rows
        should be others than those given.
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        What to minimise, each in [0, 1]; see :func:`clml.losses.list_losses`.
    cv : int, splitter or iterable, default=5
        The folds whose scores the map is learnt on. A number is that of stratified
        folds; anything else must put every row into exactly one test part, and into
        the training parts of the other folds alone. Copies of a row belong into the
        same part: a fit warns where many are not.
    mapping : {"weights", "affine", "average"}, default="weights"
        What the map may change: a weight for each learner and label, and biases; a
        scale and a bias for each label of the plain average; or nothing, which is the
        plain average.
    shrinkage : "auto" or float, default="auto"
        How much of what is learnt is believed, from 0 (one shift of all labels
        alone) to 1. "auto" learns on halves of the rows and judges on the others,
        where shared weights and no shift may win too: the mean of what pairs of
        halves choose.
    distil : bool, default=False
        Whether ``distilled_`` is fitted, too: one :class:`CLMLClassifier` that learns
        from what the stack says of rows that its learners did not see, and predicts
        without them. Rows must be numbers, which may be missing.
    prefit : bool, default=False
        Whether the learners are fitted already, on other rows: the rows given
        teach the map, and nothing is fitted again. They must have been fitted on the
        labels of y in their order, or on the classes of a 1-D y.
    max_epochs : int, default=120
        Generations of the search, which takes place where a loss has no gradient, as
        functions have none. Otherwise maps ascend the losses, there are no epochs, and
        ``population_size``, ``ties`` and ``patience`` have no effect.
    population_size : int, default=64
        Candidates an epoch; None for 4 + ⌊3 ln n⌋, n the numbers that are evolved.
    ties : {"depth", "layer"} or None, default="depth"
        How candidates with equal contributions are ordered: see
        :func:`clml.lebesgue.fitness_order`.
    incumbent : str, default="mean"
        What predicts after ``fit``: "mean" (of the search distribution), "final"
        (best candidate of the last epoch), the name of a loss, "knee" or
        "geometric_mean" (members of the front). The plain average
        has neither "mean" nor "final": "geometric_mean" stands in.
    calibrate : bool, default=True
        Whether logits are divided by a temperature, fitted on the same scores. It
        changes no decision and no ranking.
    max_front : int, default=200
        Members of the front at most, by contribution; more than there are losses.
    patience : int, default=None
        Stop after this many epochs without a larger measure of the archive.
    max_seconds : float, default=None
        For the whole fit. A learner that cannot be done in time, as far as its first
        fits tell, is left out, with a warning that names it; the first one is fitted in
        any case, if no other is done. Epochs end with the first one that ends later
        than this. What was begun is finished, and what follows the learners without
        epochs, some seconds, is done in any case. ``distilled_`` has what is left, and
        one epoch, with a warning, if nothing is.
    keep_on_interrupt : bool, default=False
        Whether ``fit`` returns on Ctrl-C instead of raising while it looks for a map of
        the learners' scores, or distils; either way a model of what was found so far is
        stored then. Before that it raises: ``checkpoint`` keeps what is done.
    checkpoint : str or path, default=None
        A folder for the state of the run, made if it is not there: the scores of each
        fold, and the search; in a folder ``distilled`` of it that of ``distilled_``.
        ``fit`` goes on from the state that it finds; only the
        learners of all rows are fitted again. A state of other data or settings is an
        error. None keeps none.
    checkpoint_every : float, default=60
        Seconds between two states; 0 for one after every fold and epoch. The last
        one, and Ctrl-C, write one in any case.
    n_jobs : int, default=None
        Fits at the same time, of learners on folds and on all rows, and threads of the
        search; None is 1, -1 is all. The model is the same for any number. Above 1 a
        learner's own ``n_jobs`` has no effect on its fits.
    random_state : int, RandomState or None, default=None
        Of the folds and the search. Learners keep their own.
    verbose : int, default=0
        1 prints a line for each fit of a learner, with its seconds, and one an epoch.

    Attributes
    ----------
    estimators_ : list of estimators
        Fitted on all rows.
    named_estimators_ : Bunch
        The same by name.
    leaderboard_ : Leaderboard
        Of each learner: its losses on rows that it was not fitted on, what would be
        added to those of all together without it (``cost_without``), and the seconds
        that it took. It has a ``to_frame()``.
    distilled_ : CLMLClassifier
        With ``distil``: what learnt from the stack, a fitted classifier of its own. A
        ``fit`` that was interrupted before it had begun has none. The losses that its
        ``front_`` states are 3 to 11 % too small: rows that judge it have had a part in
        what the stack says of others. ``select`` of the stack leaves it as it is.
    front_ : ParetoFront
        Maps to choose from, judged on out-of-fold scores of rows that they were learnt
        without: see :class:`ParetoFront`. ``front_.theta`` is float64 and holds weights
        (M, K) of the learners' own scores, then a bias for each label.
    theta_ : float64 array
        The map that predicts.
    temperature_ : float
        What its logits are divided by.
    incumbent_ : str or int
        Which it is.
    rule_ : str or None
        What decides whole rows beside it, see ``front_.rules``; None where every label
        is cut by itself.
    shrinkage_ : float
        The strength of the labels' own deviations.
    shift_ : float
        The bias that all labels have in common, 0 if that is best.
    shrinkage_path_ : dict
        Geometric mean of the losses on held-out halves, for "identity" and for each
        strength with a shift; empty if ``shrinkage`` is a number.
    history_ : dict of arrays
        Per epoch, on the out-of-fold scores: ``sigma``, ``measure`` (of the
        population's losses), ``archive_measure``, ``seconds``; (epochs, o) losses
        ``incumbent_train`` and ``mean_train``, and how many candidates had
        ``undefined`` ones;
        ``incumbent_binary_cross_entropy_train`` and ``incumbent_row_log_loss_train``.
        Arrays are empty where nothing was evolved: where all losses have a gradient.
    archive_losses_ : float32 array (candidates, o)
        Losses of every candidate of every epoch, at full strength.
    n_epochs_, population_size_ : int
    interrupted_ : bool
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    See Also
    --------
    LebesgueTunedClassifier : One learner tuned the same way.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from clml import LebesgueStackingClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = LebesgueStackingClassifier(
    ...     [("near", KNeighborsClassifier()), ("tree", DecisionTreeClassifier())],
    ...     max_epochs=20,
    ...     shrinkage=0.5,
    ...     random_state=0,
    ... )
    >>> clf.fit(X, Y).predict(X).shape
    (200, 5)
    >>> clf.named_estimators_.near
    KNeighborsClassifier()
    >>> sorted(clf.leaderboard_.names)
    ['near', 'tree']
    >>> clf.select("lrap").predict_proba(X).shape
    (200, 5)

    A network in the place of the learners, in a small file and quick to predict:

    >>> clf.set_params(distil=True, losses=("hamming", "lrap", "micro_f1"))
    ...     # doctest: +ELLIPSIS
    LebesgueStackingClassifier(...)
    >>> clf.fit(X, Y).distilled_.predict(X).shape
    (200, 5)
    """

    # Weights for each learner and label are many numbers, and pairs of halves often
    # disagree on how far to believe them.
    _averages_halves = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MappedScoresClassifier._parameter_constraints,
        "estimators": [list, None],
        "mapping": [StrOptions({"weights", "affine", "average"})],
        "distil": ["boolean"],
    }

    def __init__(
        self,
        estimators: Any = None,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        cv: Any = 5,
        mapping: str = "weights",
        shrinkage: Any = "auto",
        distil: bool = False,
        prefit: bool = False,
        max_epochs: int = 120,
        population_size: int | None = 64,
        ties: Ties = "depth",
        incumbent: str = "mean",
        calibrate: bool = True,
        max_front: int = 200,
        patience: int | None = None,
        max_seconds: float | None = None,
        keep_on_interrupt: bool = False,
        checkpoint: Any = None,
        checkpoint_every: float = 60,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.estimators = estimators
        self.losses = losses
        self.cv = cv
        self.mapping = mapping
        self.shrinkage = shrinkage
        self.distil = distil
        self.prefit = prefit
        self.max_epochs = max_epochs
        self.population_size = population_size
        self.ties = ties
        self.incumbent = incumbent
        self.calibrate = calibrate
        self.max_front = max_front
        self.patience = patience
        self.max_seconds = max_seconds
        self.keep_on_interrupt = keep_on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        named = self.estimators or default_learners()
        return delegate_input_tags(tags, [get_tags(learner) for _, learner in named])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` those of the named learners too.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, such as ``forest__max_depth`` or ``forest`` itself.

        Parameters
        ----------
        **params : dict
            All of them are set, or, where one is not known, none.

        Returns
        -------
        self
        """
        with params_kept_on_error(self):
            self._set_params("estimators", **params)
        return self

    @all_or_nothing
    @with_callbacks
    # The parameters of learners are theirs to validate.
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learners, and learn the map of their scores.

        Parameters
        ----------
        X : features of n rows
            Whatever all learners take: arrays, sparse matrices, frames, text. Missing
            values are refused, before any fit, if one of them takes none.
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
        sample_weight : array-like of shape (n,), default=None
            Row weights in every fit, which must take them, and in every loss; rows of
            weight 0 are left out.

        Returns
        -------
        self

        Notes
        -----
        Weights are handed on without metadata routing: to ``sample_weight`` of a
        fit, or of the fit of a pipeline's last step.
        """
        self.__dict__.pop("distilled_", None)  # of another fit
        return self._fit(X, y, sample_weight)

    def _named_learners(self) -> Learners:
        if self.estimators is None:
            if self.prefit:
                raise ValueError("prefit=True needs fitted estimators, got None.")
            return default_learners(self.random_state)
        return self._check_named(self.estimators)

    def _check_named(self, estimators: Any) -> Learners:
        pairs = [isinstance(e, tuple | list) and len(e) == 2 for e in estimators]
        if not pairs or not all(pairs):
            raise ValueError(
                "estimators must be a list of pairs (name, estimator), at least one, "
                f"got {estimators!r}."
            )
        self._validate_names([name for name, _ in estimators])
        for name, learner in estimators:
            if not hasattr(learner, "fit"):
                raise TypeError(
                    f"estimators must hold estimators with fit, got {learner!r} "
                    f"for {name!r}."
                )
        return [(name, learner) for name, learner in estimators]

    def _keep_learners(self, names: list[str], fitted: list[Any]) -> None:
        self.estimators_ = fitted
        self.named_estimators_ = Bunch(**dict(zip(names, fitted, strict=True)))

    def _judge_learners(self, engine: ScoreEngine, seconds: list[float]) -> None:
        losses = [loss.name for loss in get_losses(self.losses)]
        names = list(self.named_estimators_)
        self.leaderboard_ = judge_learners(names, losses, engine, seconds)

    def _check_distillable(self, part: Part) -> None:
        if self.distil:
            parts_rows = isinstance(self.cv, Integral | None) and not self.prefit
            check_distillable(part, stack_warns=parts_rows)

    def _distil(
        self,
        scores: NDArray[np.float64],
        part: Part,
        seed: tuple[int, ...],
        clock: Clock,
    ) -> KeyboardInterrupt | None:
        if not self.distil:
            return None
        student = new_student(self, self._fold_seed(seed))
        self._distilled_late = clock.left() <= 0
        interrupt = None
        try:
            logits = apply_map(self.theta_, scores, mixing=self._mixing)
            soft = soft_targets(logits / self.temperature_, part.targets)
            teach(student, Teacher(soft, clock), part, self)
        except KeyboardInterrupt as error:
            interrupt = error
        if hasattr(student, "interrupted_"):  # it holds a model
            student.interrupted_ = interrupt is not None
            self.distilled_ = student
        self.interrupted_ = interrupt is not None
        return interrupt

    def _after_fit(self) -> None:
        super()._after_fit()
        late = self.__dict__.pop("_distilled_late", False)
        if not hasattr(self, "distilled_"):
            return
        if late:
            warn_user(
                f"max_seconds={self.max_seconds:g} was over before distil=True had "
                "begun: distilled_ is trained for one epoch alone."
            )
        self.distilled_._after_fit()

    def _fitted_learners(self) -> list[Any]:
        return self.estimators_
