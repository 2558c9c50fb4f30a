"""CLMLClassifier: the consistent Lebesgue measure-based multi-label learner."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ._archive import Archive
from ._lebesgue_estimator import LebesgueEstimator
from ._multilabel import column_names
from ._rows import FitRows, Part, drop_weightless
from ._search import Fitness, Search
from ._sklearn_compat import fit_context, with_callbacks
from .engine import NumpyEngine, single_threaded_blas
from .evolution import CMAPackage, FullCMA, RankOneCMA, SeparableCMA
from .lebesgue import Method, Ties
from .losses import get_losses
from .network import Layout, Scaling, forward

_STRATEGIES: dict[str, Any] = {
    "rank_one": RankOneCMA,
    "separable": SeparableCMA,
    "full": FullCMA,
    "cma": CMAPackage,
}

# What a warm start cannot change: the search was built with it.
_FIXED_BY_SEARCH = (
    "embedding_dim",
    "n_layers",
    "population_size",
    "ties",
    "reference",
    "lebesgue",
    "n_samples",
    "covariance",
    "sigma0",
    "standardize",
    "max_front",
)

#: The settings of the paper: ``CLMLClassifier(**PAPER_SETTINGS)``. Population
#: 4 + ⌊3 ln n⌋, no rule for ties, and the final incumbent of Algorithm 1 predicts.
PAPER_SETTINGS: dict[str, Any] = {
    "losses": ("hamming", "lrap", "micro_f1"),
    "embedding_dim": 20,
    "n_layers": 1,
    "max_epochs": 750,
    "population_size": None,
    "ties": None,
    "reference": "unit",
    "lebesgue": "exact",
    "covariance": "rank_one",
    "sigma0": 1.0,
    "validation_fraction": 0.2,
    "standardize": True,
    "incumbent": "final",
    "patience": None,
    "max_seconds": None,
}


class CLMLClassifier(LebesgueEstimator):
    """Multi-label classifier that improves several losses at once, directly.

    A small network whose weights are evolved: every epoch samples a population of
    networks, computes the losses themselves (no surrogate) for all of them, and
    moves towards those that contribute most to the Lebesgue measure of the space
    that the population dominates. What comes out is not one model but a front of
    them, to choose from after training.

    Parameters
    ----------
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        What to minimise, each in [0, 1]; see :func:`clml.losses.list_losses`. A
        function is called as ``f(Y, scores)``: a label is predicted where its score is
        positive, so a metric of decisions is ``lambda Y, S: metric(Y, S > 0)``.
    embedding_dim : int, default=20
        Width C of the network, at least 2.
    n_layers : int, default=1
        Number of hidden layers of C × C weights.
    max_epochs : int, default=750
        Generations of the search. With ``warm_start`` each call of ``fit`` adds as
        many.
    population_size : int, default=64
        Candidates an epoch; None for 4 + ⌊3 ln n⌋, n the number of weights.
    ties : {"depth", "layer"} or None, default="depth"
        How candidates with equal contributions are ordered: see
        :func:`clml.lebesgue.fitness_order`.
    reference : {"unit", "archive"}, default="unit"
        What the Lebesgue measure is bounded by: the worst loss vector (1, ..., 1), or
        the non-dominated losses of all epochs so far, as Algorithm 1 of the paper
        has it. The latter takes long with four losses or more.
    lebesgue : {"exact", "monte_carlo"}, default="exact"
        How contributions are computed.
    n_samples : int, default=10_000
        Samples of Monte Carlo contributions.
    covariance : {"rank_one", "separable", "full", "cma"}, default="rank_one"
        The search distribution; "full" is for small networks, "cma" uses the package
        of that name (extra ``cma``).
    sigma0 : float, default=1.0
        Initial step size.
    validation_fraction : float, default=0.2
        Share of the rows, stratified, that the front is judged on. With 0 all rows
        train, the front holds training losses, and the mean of the search
        distribution predicts.
    standardize : bool, default=True
        Whether features are standardised by the training rows' mean and deviation.
        Sparse data stays sparse.
    incumbent : str, default="mean"
        What predicts after ``fit``: "final" (best candidate of the last epoch by its
        fitness, as in Algorithm 1), "mean" (mean of the search distribution), the
        name of a loss, "knee" or "geometric_mean" (members of the front).
    calibrate : bool, default=True
        Whether logits are divided by a temperature fitted on the validation rows. It
        changes no decision and no ranking.
    max_front : int, default=200
        Members of the front at most, by contribution; more than there are losses,
        since the best of each always stays.
    patience : int, default=None
        Stop after this many epochs without a larger measure of the validation
        archive.
    max_seconds : float, default=None
        Stop after the first epoch that ends later than this.
    warm_start : bool, default=False
        Whether ``fit`` continues the evolution of the last one. Feature scaling and
        the seed of the split are those of the first.
    keep_on_interrupt : bool, default=False
        Whether ``fit`` returns on Ctrl-C instead of raising. Either way the model of
        the epochs so far is stored.
    engine : {"auto", "numpy"}, default="auto"
        What evaluates the population.
    device : {"cpu"}, default="cpu"
        Where.
    n_jobs : int, default=None
        Threads; None is 1, -1 is all. The result is the same for any number.
    memory_mb : float, default=512
        Working memory for candidates in flight. The result is the same for any.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line an epoch.

    Attributes
    ----------
    front_ : ParetoFront
        The non-dominated candidates on the validation rows.
    theta_ : float32 array (n,)
        The weights that predict.
    temperature_ : float
        What their logits are divided by.
    incumbent_ : str or int
        Which they are.
    history_ : dict of arrays
        Per epoch: ``sigma``, ``measure`` (of the population's training losses),
        ``archive_measure`` (of the validation archive), ``seconds``; (epochs, o)
        losses ``incumbent_train``, ``incumbent_validation``, ``mean_train``,
        ``mean_validation``, the mean being the one that the epoch sampled from;
        ``incumbent_binary_cross_entropy_*`` and ``incumbent_row_log_loss_*``.
    archive_losses_ : float32 array (candidates, o)
        Validation losses of every candidate of every epoch.
    n_epochs_ : int
    population_size_ : int
    interrupted_ : bool
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names
    scaling_ : Scaling
        Mean and scale of the features.
    layout_ : Layout
        Where each weight stands in theta.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import CLMLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = CLMLClassifier(max_epochs=50, random_state=0).fit(X, Y)
    >>> clf.predict(X).shape
    (200, 5)
    >>> clf.front_.loss_names
    ('hamming', 'lrap', 'micro_f1')
    >>> best_ranking = clf.select("lrap")
    >>> best_ranking.predict_proba(X).shape
    (200, 5)
    """

    _not_saved: ClassVar[tuple[str, ...]] = ("_search", "_search_settings")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "losses": [list, tuple, np.ndarray, str],
        "embedding_dim": [Interval(Integral, 2, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "population_size": [Interval(Integral, 2, None, closed="left"), None],
        "ties": [StrOptions({"depth", "layer"}), None],
        "reference": [StrOptions({"unit", "archive"})],
        "lebesgue": [StrOptions({"exact", "monte_carlo"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions(set(_STRATEGIES))],
        "sigma0": [Interval(Real, 0, None, closed="neither")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "incumbent": [str],
        "calibrate": ["boolean"],
        "max_front": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "keep_on_interrupt": ["boolean"],
        "engine": [StrOptions({"auto", "numpy"})],
        "device": [StrOptions({"cpu"})],
        "n_jobs": [Integral, None],
        "memory_mb": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        embedding_dim: int = 20,
        n_layers: int = 1,
        max_epochs: int = 750,
        population_size: int | None = 64,
        ties: Ties = "depth",
        reference: str = "unit",
        lebesgue: Method = "exact",
        n_samples: int = 10_000,
        covariance: str = "rank_one",
        sigma0: float = 1.0,
        validation_fraction: float = 0.2,
        standardize: bool = True,
        incumbent: str = "mean",
        calibrate: bool = True,
        max_front: int = 200,
        patience: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        engine: str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        memory_mb: float = 512,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.losses = losses
        self.embedding_dim = embedding_dim
        self.n_layers = n_layers
        self.max_epochs = max_epochs
        self.population_size = population_size
        self.ties = ties
        self.reference = reference
        self.lebesgue = lebesgue
        self.n_samples = n_samples
        self.covariance = covariance
        self.sigma0 = sigma0
        self.validation_fraction = validation_fraction
        self.standardize = standardize
        self.incumbent = incumbent
        self.calibrate = calibrate
        self.max_front = max_front
        self.patience = patience
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.engine = engine
        self.device = device
        self.n_jobs = n_jobs
        self.memory_mb = memory_mb
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Evolve the network.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
        sample_weight : array-like of shape (n,), default=None
            Row weights in every loss; rows of weight 0 are left out.
        X_val, y_val : like X and y, default=None
            Validation rows; ``validation_fraction`` is then not used.

        Returns
        -------
        self

        Notes
        -----
        The first fit after an installation compiles its kernels, which takes some
        seconds, once. ``verbose=1`` prints a line an epoch; with scikit-learn 1.9 or
        newer ``set_callbacks(sklearn.callback.ProgressBar())`` shows progress.
        """
        losses = self._check_losses()
        continued = self._search_to_continue()
        rows = self._check_rows_to_fit(X, y, sample_weight, X_val, y_val, continued)
        with single_threaded_blas(), self._threads() as executor:

            def engine(part: Part) -> NumpyEngine:
                return NumpyEngine(
                    self.layout_,
                    part.X,
                    part.targets,
                    losses,
                    scaling=self.scaling_,
                    executor=executor,
                    memory_mb=self.memory_mb,
                )

            search = continued or self._new_search(len(losses))
            try:
                search.attach(
                    engine(rows.train),
                    None if rows.validation is None else engine(rows.validation),
                )
                interrupt = self._run_search(search, rows, X, y, sample_weight)
            finally:
                search.detach()
        self.__dict__.pop("_search", None)
        if self.warm_start:
            self._search = search
            self._search_settings = self._fixed_settings()
        if interrupt is not None and not self.keep_on_interrupt:
            raise interrupt
        return self

    def _fixed_settings(self) -> dict[str, Any]:
        names = tuple(loss.name for loss in get_losses(self.losses))
        return {"losses": names} | {n: getattr(self, n) for n in _FIXED_BY_SEARCH}

    def _search_to_continue(self) -> Search | None:
        search = getattr(self, "_search", None) if self.warm_start else None
        if search is None:
            return None
        for name, value in self._fixed_settings().items():
            if value != self._search_settings[name]:
                raise ValueError(
                    f"warm_start continues a search with {name}="
                    f"{self._search_settings[name]!r}, got {name}={value!r}. Set "
                    "warm_start=False to start anew."
                )
        return search

    def _check_rows_to_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        continued: Search | None,
    ) -> FitRows:
        """Check the data, part the validation rows, fit the scaling."""
        names = column_names(y)
        X, y = self._check_X_y(X, y, reset=continued is None)
        X, y, weight = drop_weightless(X, y, sample_weight)
        if continued is None:
            Y = self._fit_targets(y, names)
            # Kept as plain integers, so that a warm start repeats the split.
            random = check_random_state(self.random_state)
            self._seed = random.randint(2**31 - 1, size=4).tolist()
        else:
            Y = self._encode_targets(y, "y")
        train, validation = Part(X, Y, weight), None
        if X_val is not None or y_val is not None:
            validation = self._check_validation_rows(X_val, y_val)
        elif self.validation_fraction > 0:
            generator = np.random.default_rng([*self._seed, 0])
            train, validation = train.split(float(self.validation_fraction), generator)
        self._warn_constant(train.Y)
        if continued is None:
            self.scaling_ = Scaling.identity(X.shape[1])
            if self.standardize:
                self.scaling_ = Scaling.fit(train.X, train.weight)
            self.layout_ = Layout(
                X.shape[1], self.n_labels_, int(self.embedding_dim), int(self.n_layers)
            )
        return FitRows(train, validation)

    def _new_search(self, n_losses: int) -> Search:
        n = self.layout_.size
        start, strategy = np.random.SeedSequence([*self._seed, 1]).spawn(2)
        mean = np.random.default_rng(start).normal(scale=n**-0.5, size=n)
        return Search(
            strategy=_STRATEGIES[self.covariance](
                mean,
                float(self.sigma0),
                population_size=self.population_size,
                seed=strategy,
            ),
            fitness=Fitness(
                ties=self.ties,
                method=self.lebesgue,
                n_samples=self.n_samples,
                seed=(*self._seed, 2),
                archived=self.reference == "archive",
            ),
            archive=Archive.empty(n_losses, n, int(self.max_front)),
        )

    def _logits(self, X: Any) -> NDArray[np.float64]:
        theta = self.theta_.astype(np.float64)
        return forward(theta, X, self.layout_, self.scaling_) / self.temperature_
