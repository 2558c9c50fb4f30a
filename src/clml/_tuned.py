"""LebesgueTunedClassifier: any learner's scores, tuned for several losses at once."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions

from ._mapped import Learners, MappedScoresClassifier, delegate_input_tags
from ._support.sklearn_compat import fit_context, with_callbacks
from ._support.transaction import all_or_nothing
from .lebesgue import Ties


class LebesgueTunedClassifier(MappedScoresClassifier):
    """Any multi-label classifier, its scores tuned for several losses at once.

    The classifier is fitted on folds to score the rows that it did not see. On these
    scores a small map, such as a scale and a bias for each label, climbs the Lebesgue
    measure of the losses themselves, and is held towards the identity by an amount
    that the same scores choose. The classifier, fitted on all rows, predicts through
    that map.

    Parameters
    ----------
    estimator : estimator
        With ``decision_function`` or ``predict_proba``. One that says that it takes
        no indicator, such as LogisticRegression or a pipeline that ends in it, is put
        into :class:`sklearn.multiclass.OneVsRestClassifier`. A
        :class:`sklearn.frozen.FrozenEstimator` is used as it is: its rows should be
        others than those given.
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        What to minimise, each in [0, 1]; see :func:`clml.losses.list_losses`.
    cv : int, splitter or iterable, default=5
        The folds whose scores the map is learnt on. A number is that of stratified
        folds; anything else must put every row into exactly one test part, and into
        the training parts of the other folds alone. Copies of a row belong into the
        same part: a fit warns where many are not.
    mapping : {"affine", "bias", "mixing", "thresholds"}, default="affine"
        What the map may change of the logits: a scale and a bias for each label; a
        bias; biases and what each label adds to the others, K² numbers; or the
        exact thresholds between the best Hamming loss and the best micro-F1, for
        which nothing is learnt.
    shrinkage : "auto" or float, default="auto"
        How much of what is learnt is believed, from 0 (one shift of all labels
        alone) to 1. "auto" learns on halves of the rows and judges on the others,
        where the untouched estimator may win too.
    prefit : bool, default=False
        Whether the estimator is fitted already, on other rows: the rows given
        teach the map, and nothing is fitted again. It must have been fitted on the
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
        "geometric_mean" (members of the front). Thresholds have neither
        "mean" nor "final": "geometric_mean" stands in.
    calibrate : bool, default=True
        Whether logits are divided by a temperature, fitted on the same scores. It
        changes no decision and no ranking.
    max_front : int, default=200
        Members of the front at most, by contribution; more than there are losses.
    patience : int, default=None
        Stop after this many epochs without a larger measure of the archive.
    max_seconds : float, default=None
        Stop after the first epoch that ends later than this, the time of the whole fit
        counted. The fits of the estimator are made in any case, and so is what follows
        them without epochs.
    keep_on_interrupt : bool, default=False
        Whether ``fit`` returns on Ctrl-C instead of raising while it looks for a map of
        the learners' scores; either way a model of what was found so far is stored
        then. Before that it raises: ``checkpoint`` keeps what is done.
    checkpoint : str or path, default=None
        A folder for the state of the run, made if it is not there: the scores of each
        fold, and the search. ``fit`` goes on from the state that it finds; only the
        learners of all rows are fitted again. A state of other data or settings is an
        error. None keeps none.
    checkpoint_every : float, default=60
        Seconds between two states; 0 for one after every fold and epoch. The last
        one, and Ctrl-C, write one in any case.
    n_jobs : int, default=None
        Fits at the same time, on folds and on all rows, and threads of the search;
        None is 1, -1 is all. The model is the same for any number. Above 1 the
        estimator's own ``n_jobs`` has no effect on its fits.
    random_state : int, RandomState or None, default=None
        Of the folds and the search. Learners keep their own.
    verbose : int, default=0
        1 prints a line for each fit of the estimator, with its seconds, and one an
        epoch.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows.
    front_ : ParetoFront
        Maps to choose from, judged on out-of-fold scores of rows that they were learnt
        without: see :class:`ParetoFront`. ``front_.theta`` is float64 and holds a
        factor, then a bias for each label; for "mixing" factors (K, K), then biases.
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
    LebesgueStackingClassifier : Several learners combined the same way.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml import LebesgueTunedClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = LebesgueTunedClassifier(
    ...     KNeighborsClassifier(), max_epochs=20, shrinkage=0.5, random_state=0
    ... )
    >>> clf.fit(X, Y).predict(X).shape
    (200, 5)
    >>> clf.front_.loss_names
    ('hamming', 'lrap', 'micro_f1')
    >>> clf.select("micro_f1").predict_proba(X).shape
    (200, 5)

    Each row has exactly one label, which no label can know by itself: of exact matches
    a rule for whole rows has more.

    >>> one = (Y * [5, 4, 3, 2, 1]).argmax(axis=1)[:, None] == range(5)
    >>> exact = LebesgueTunedClassifier(
    ...     KNeighborsClassifier(), losses=("subset_zero_one", "lrap"), random_state=0
    ... )
    >>> best = exact.fit(X, one.astype(int)).select("subset_zero_one")
    >>> best.rule_
    'at_least_one'
    >>> int(best.predict(X).sum(axis=1).min())
    1

    A classifier that was fitted before, tuned on rows that it has not seen:

    >>> fitted = KNeighborsClassifier().fit(X[:100], Y[:100])
    >>> clf.set_params(estimator=fitted, prefit=True).fit(X[100:], Y[100:]).estimator_
    KNeighborsClassifier()
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MappedScoresClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"])],
        "mapping": [StrOptions({"affine", "bias", "mixing", "thresholds"})],
    }

    def __init__(
        self,
        estimator: Any,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        cv: Any = 5,
        mapping: str = "affine",
        shrinkage: Any = "auto",
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
        self.estimator = estimator
        self.losses = losses
        self.cv = cv
        self.mapping = mapping
        self.shrinkage = shrinkage
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
        return delegate_input_tags(
            super().__sklearn_tags__(), [get_tags(self.estimator)]
        )

    @all_or_nothing
    @with_callbacks
    # The parameters of learners are theirs to validate.
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier, and learn the map of its scores.

        Parameters
        ----------
        X : features of n rows
            Whatever the estimator takes: arrays, sparse matrices, frames, text.
            Missing values are refused, before any fit, if it takes none.
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
        return self._fit(X, y, sample_weight)

    def _named_learners(self) -> Learners:
        return [("estimator", self.estimator)]

    def _keep_learners(self, names: list[str], fitted: list[Any]) -> None:
        (self.estimator_,) = fitted

    def _fitted_learners(self) -> list[Any]:
        return [self.estimator_]
