"""CLMLClassifier: the consistent Lebesgue measure-based multi-label learner."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._cluster import open_client
from ._cluster_members import ClusterEpochs
from ._ensemble import MIXED, Ensemble
from ._fingerprint import Describer
from ._keeper import Keeper
from ._lebesgue_estimator import LebesgueEstimator, choose_model
from ._member_epochs import RunAll
from ._member_fit import (
    evolved_outputs,
    mapped_networks,
    member_attributes,
    plain_outputs,
)
from ._members import MemberRun, encodings_in_turn
from ._memory import told_once
from ._names import column_names
from ._network_fit import NetworkFit
from ._partitioned_fit import (
    Sources,
    cut_rows,
    fit_in_partitions,
    in_partitions,
    read_sources,
)
from ._paths import PathLike
from ._pickling import refuse_unpicklable
from ._recipe import (
    COVARIANCES,
    MANY_ROWS,
    MANY_WEIGHTS,
    default_members,
    default_width,
)
from ._rows import FitRows, Part, drop_weightless
from ._run_state import members_state
from ._sklearn_compat import (
    EpochCallbacks,
    clone_sharing,
    fit_context,
    warn_user,
    with_callbacks,
)
from ._torch import cpu_threads, find_device
from ._transaction import all_or_nothing, snapshot
from ._twins import warn_of_twins
from .encoding import Encoding
from .engine import single_threaded_blas
from .lebesgue import Method, Ties
from .losses import Loss, get_losses, supports_credit
from .network import Layout, Scaling, WideNetwork, describe_contrast, predictor_of

# Fitted attributes that only members have.
_OF_MEMBERS = (
    "networks_",
    "shrinkage_",
    "shift_",
    "population_size_",
    "ensemble_",
    "member_scale_",
)
# Those of networks of the paper's kind.
_OF_PAPER = ("layout_", "scaling_")
# Parameters of networks of the paper's kind, and what they are if nothing was set.
_PAPER_NETWORK = {
    "embedding_dim": None,
    "n_layers": 1,
    "dropout": 0.0,
    "evolve": "all",
    "standardize": True,
}

# What a warm start cannot change: the search was built with it.
_FIXED_BY_SEARCH = (
    "search",
    "n_members",
    "network",
    "encoding",
    "init",
    "evolve",
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
    "search": "cma",
    "n_members": 1,
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

    Small networks that are trained on the losses themselves, no surrogate in their
    place, so that the Lebesgue measure of what their losses dominate grows. What comes
    out is not one model but a front of them, to choose from after training.

    By default several members climb that measure, each without some of the rows, and
    are averaged; a scale and a bias for each label are then evolved on what members
    say about rows they never saw. ``search="cma"`` with ``n_members=1`` is the paper's
    learner: one network whose weights are evolved, every epoch a population of
    networks ranked by what each contributes to the measure
    (``CLMLClassifier(**PAPER_SETTINGS)``).

    Parameters
    ----------
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        What to minimise, each in [0, 1]; see :func:`clml.losses.list_losses`. A
        function is called as ``f(Y, scores)``: a label is predicted where its score is
        positive, so a metric of decisions is ``lambda Y, S: metric(Y, S > 0)``.
    search : {"auto", "ascent", "cma", "rank_gradient"}, default="auto"
        How networks are trained. "ascent": each output of each row is moved a little,
        the change of the losses is its credit, and the chain rule carries it to the
        weights; needs losses that are made of row statistics, as all named ones are
        (a function of your own is not). "cma": CMA-ES on the Lebesgue contributions of
        a population. "rank_gradient": antithetic sampling on the same contributions,
        for networks of many weights. "auto" is the first where the losses allow it,
        else one of the others by the number of weights and rows.
    n_members : int, default=None
        Networks that are averaged, each trained without some of the rows; None for 16,
        for 8 from 10,000 rows on, and for one where functions are among the losses,
        which are called for every candidate of every epoch; of a ``network`` that is
        given 15, and 5 from 10,000 rows on. With one, ``validation_fraction`` of the
        rows judge.
    network : WideNetwork, "wide" or one of your own, default=None
        What members are: a network of many units, such as
        ``clml.network.WideNetwork(hidden=(256, 256))``, which is what "wide" stands
        for. It learns more than the paper's and takes longer. Its members leave out
        one of five folds in turn, and read columns by ``encoding``. One of your own
        has a method ``build(n_inputs, n_labels)`` that returns a
        :class:`clml.network.NetworkLayout`. None is the paper's kind of network, of
        width ``embedding_dim``.
    encoding : "auto", Encoding or sequence of them, default="auto"
        How columns enter a ``network``, see :mod:`clml.encoding`; members take several
        in turn. "auto" is robust numbers, bins and quantiles.
    embedding_dim : int, default=None
        Width C of the network, at least 2; None for 20, the paper's, and for 64 from
        10,000 rows on.
    n_layers : int, default=1
        Number of hidden layers of C × C weights.
    max_epochs : int, default=None
        Epochs. None for 100 of an ascent (fewer from 10,000 rows on), 750 of CMA-ES,
        2,000 of a rank gradient. With ``warm_start`` each call of ``fit`` adds as many.
    init : {"random", "surrogate"}, default="random"
        Where networks start; "surrogate" from the same network trained on
        cross-entropy, which large sparse data gains from.
    evolve : {"all", "last"}, default="all"
        Which weights are trained on the losses: "last" leaves all but the output layer
        as ``init`` made them.
    learning_rate : float, default=None
        Of an ascent (None for 0.01) and of a rank gradient (None for 0.02).
    batch_size : int, default=None
        Rows of a step of an ascent; None for 2·√n, from 32 to 256.
    smoothing : float, default=0.5
        How far outputs are moved in an ascent, in units of logits.
    dropout : float, default=0.0
        Share of the hidden units that each step of an ascent leaves out.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How much of the labels' evolved scales and biases is believed; halves of the
        judging rows choose it.
    epoch_rows : "auto" or float, default="auto"
        Share of the rows, drawn afresh every epoch, that populations are evaluated on;
        "auto" is all of them, and some 5,000 for a rank gradient.
    population_size : int, "auto" or None, default="auto"
        Candidates an epoch and member: 64, or 256 of a rank gradient; None for
        4 + ⌊3 ln n⌋, n the number of weights.
    ties : {"depth", "layer"} or None, default="depth"
        How candidates with equal contributions are ordered: see
        :func:`clml.lebesgue.fitness_order`.
    reference : {"unit", "archive"}, default="unit"
        What the Lebesgue measure is bounded by: the worst loss vector (1, ..., 1), or
        the non-dominated losses of all epochs so far, as Algorithm 1 of the paper
        has it. The latter takes long with four losses or more, and is for one evolved
        network alone.
    lebesgue : {"auto", "exact", "monte_carlo"}, default="auto"
        How contributions are computed. "auto" is exact up to populations of 4,096 with
        two or three losses and of 256 with four or five, and estimates beyond.
    n_samples : int, default=10_000
        Samples of Monte Carlo contributions.
    covariance : {"rank_one", "separable", "full", "cma"}, default="rank_one"
        The search distribution; "full" is for small networks, "cma" uses the package
        of that name (extra ``cma``).
    sigma0 : float, default=1.0
        Initial step size of CMA-ES; a tenth of it is that of a rank gradient.
    validation_fraction : float, default=0.2
        With one member: share of the rows, stratified, that the front is judged on.
        With 0 all rows train, the front holds training losses, and the mean of the
        search distribution predicts.
    standardize : bool, default=True
        Whether features are standardised by the training rows' mean and deviation.
        Sparse data stays sparse.
    incumbent : str, default="mean"
        What predicts after ``fit``: "final" (best candidate of the last epoch by its
        fitness, as in Algorithm 1), "mean" (mean of the search distribution), the
        name of a loss, "knee" or "geometric_mean" (members of the front). With several
        members the candidates are maps of their average outputs.
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
    checkpoint : str or path, default=None
        A folder for the state of the run, made if it is not there. ``fit`` goes on
        from the state that it finds, and ends bit for bit as if nothing had happened;
        a state of other data, settings or code is an error. None keeps none.
    checkpoint_every : float, default=60
        Seconds between two states; 0 for one after every epoch. The last epoch
        writes one in any case, and so does Ctrl-C, unless evolved members are halfway
        through an epoch.
    engine : {"auto", "numpy", "torch", "dask"}, default="auto"
        What evaluates populations: compiled kernels on the CPU, or PyTorch (extra
        ``torch``), with fused kernels on a GPU. "auto" is the first on the CPU and the
        second elsewhere. "dask" (extra ``dask``) is the workers of a cluster: rows are
        sent to them, members are trained there. Dask collections choose it themselves
        where there is a client.
    client : distributed.Client, str or None, default=None
        The cluster, or the address of its scheduler, which stands for
        ``engine="dask"``; None is the current client. The result is the same for any
        number of workers. It is not saved with the model.
    device : str, default="cpu"
        Where populations are drawn and evaluated: "cpu", "cuda", "cuda:1", or "auto"
        for a GPU where there is one. An ascent has no populations: its members are
        trained on the CPU.
    n_jobs : int, default=None
        Threads; None is 1, -1 is all. The result is the same for any number.
    memory_mb : float, default=512
        Working memory for candidates in flight; where partitions are read from disk
        also for the rows that are kept. The result is the same for any.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line an epoch.

    Attributes
    ----------
    front_ : ParetoFront
        The non-dominated candidates on the rows that judge: validation rows, or all
        rows, each by the members that left it out. The same rows chose them:
        :class:`ParetoFront` says how much too good these losses are. Its
        ``theta`` are weights (m, n) of networks; with members maps (m, 2·K), scales and
        biases of the labels.
    theta_ : float32 array (n,), or (members, n)
        The weights that predict.
    networks_ : float32 array (members, n)
        With members: their weights before a map.
    shrinkage_, shift_ : float
        With members: how much of the evolved maps is believed, and the bias that all
        labels have in common.
    temperature_ : float
        What their logits are divided by.
    incumbent_ : str or int
        Which they are.
    history_ : dict of arrays
        Per epoch: ``sigma`` (the learning rate of an ascent), ``measure`` (of the
        training losses), ``archive_measure`` (the largest so far on the rows that
        judge), ``seconds``; (epochs, o) how many candidates had ``undefined`` losses,
        and losses ``incumbent_train``,
        ``incumbent_validation``, ``mean_train``, ``mean_validation``, the mean being
        the one that the epoch sampled from, the incumbent the members' average;
        ``incumbent_binary_cross_entropy_*`` and ``incumbent_row_log_loss_*``.
    archive_losses_ : float32 array (candidates, o)
        Validation losses of every candidate of every epoch; with members those of
        their average after each epoch.
    n_epochs_ : int
    population_size_ : int
        Of one evolved network.
    interrupted_ : bool
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names
    scaling_ : Scaling
        Mean and scale of the features; not with a ``network``.
    layout_ : Layout
        Where each weight stands in theta; not with a ``network``.
    ensemble_ : Ensemble
        With a ``network``: the encodings and which of them each member has.
        ``networks_`` is then a tuple of arrays, one a member, ``member_scale_`` what
        the logits of each are multiplied by, and ``theta_`` the map of their average,
        scales and then biases of the labels.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import CLMLClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = CLMLClassifier(random_state=0).fit(X, Y)
    >>> clf.predict(X).shape
    (200, 5)
    >>> clf.front_.loss_names
    ('hamming', 'lrap', 'micro_f1')
    >>> best_ranking = clf.select("lrap")
    >>> best_ranking.predict_proba(X).shape
    (200, 5)
    """

    _search_settings: dict[str, Any]
    _not_saved: ClassVar[tuple[str, ...]] = (
        "_search",
        "_search_settings",
        "_validation_given",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "losses": [list, tuple, np.ndarray, str],
        "search": [StrOptions({"auto", "ascent", "cma", "rank_gradient"})],
        "n_members": [Interval(Integral, 1, None, closed="left"), None],
        "network": [HasMethods(["build"]), StrOptions({"wide"}), None],
        "encoding": [StrOptions({"auto"}), Encoding, list, tuple],
        "init": [StrOptions({"random", "surrogate"})],
        "evolve": [StrOptions({"all", "last"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "epoch_rows": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "embedding_dim": [Interval(Integral, 2, None, closed="left"), None],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "population_size": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "ties": [StrOptions({"depth", "layer"}), None],
        "reference": [StrOptions({"unit", "archive"})],
        "lebesgue": [StrOptions({"auto", "exact", "monte_carlo"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions(set(COVARIANCES))],
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
        **LebesgueEstimator._checkpoint_constraints,
        "engine": [StrOptions({"auto", "numpy", "torch", "dask"})],
        "client": [str, HasMethods(["submit", "scatter"]), None],
        "device": [str],
        "n_jobs": [Integral, None],
        "memory_mb": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        search: str = "auto",
        n_members: int | None = None,
        network: Any = None,
        encoding: Any = "auto",
        embedding_dim: int | None = None,
        n_layers: int = 1,
        max_epochs: int | None = None,
        init: str = "random",
        evolve: str = "all",
        learning_rate: float | None = None,
        batch_size: int | None = None,
        smoothing: float = 0.5,
        dropout: float = 0.0,
        shrinkage: Any = "auto",
        epoch_rows: Any = "auto",
        population_size: Any = "auto",
        ties: Ties = "depth",
        reference: str = "unit",
        lebesgue: Method = "auto",
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
        checkpoint: Any = None,
        checkpoint_every: float = 60,
        engine: str = "auto",
        client: Any = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        memory_mb: float = 512,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.losses = losses
        self.search = search
        self.n_members = n_members
        self.network = network
        self.encoding = encoding
        self.embedding_dim = embedding_dim
        self.n_layers = n_layers
        self.max_epochs = max_epochs
        self.init = init
        self.evolve = evolve
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.smoothing = smoothing
        self.dropout = dropout
        self.shrinkage = shrinkage
        self.epoch_rows = epoch_rows
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
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.engine = engine
        self.client = client
        self.device = device
        self.n_jobs = n_jobs
        self.memory_mb = memory_mb
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Evolve the network.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D), or rows in partitions
            Partitions are a dask array or data frame, a list of ``dask.delayed``, or
            :class:`clml.datasets.RowPartitions` of files and memory maps. Rows stay
            where they are, and one network is evolved on them: see the notes.
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
            Of a dask data frame also the names of its label columns. Partitions that
            have labels of their own have none here.
        sample_weight : array-like of shape (n,), default=None
            Row weights in every loss; rows of weight 0 are left out.
        X_val, y_val : like X and y, default=None
            Validation rows; ``validation_fraction`` is then not used. Labels of a
            frame are found by their names, in any order.

        Returns
        -------
        self

        Notes
        -----
        Rows in partitions are split, standardised and evaluated where they are, on the
        workers of a dask cluster or in this process, a few at a time; only sums are
        gathered, and a sample of some 20,000 rows, on which temperatures and the
        ``incumbent_*`` cross-entropies of ``history_`` are computed, and the start of
        ``init="surrogate"``. Losses must be sums of row statistics, as all named ones
        are. The network is ``embedding_dim=20`` wide by default, and where
        ``epoch_rows`` is not all of them some 20,000 rows judge an epoch. The model is
        the same bit for bit for the same partitions, whoever holds them.

        The first fit after an installation compiles its kernels, which takes some
        seconds, once. ``verbose=1`` prints a line an epoch; with scikit-learn 1.9 or
        newer ``set_callbacks(sklearn.callback.ProgressBar())`` shows progress.
        """
        encodings = self._check_network()
        if in_partitions(X, y, sample_weight, X_val, y_val):
            if self.network is not None:
                raise ValueError(
                    "Rows in partitions train one network of the paper's kind, got "
                    f"network={self.network!r}."
                )
            sources = read_sources(X, y, sample_weight, X_val, y_val)
            return self._fit_sources(sources, (X, y, sample_weight))
        if self._on_cluster and self._evolves_one():
            sources = self._cut_into_sources(X, y, sample_weight, X_val, y_val)
            return self._fit_sources(sources, (X, y, sample_weight))
        losses = self._check_losses()
        continued = self._search_to_continue()
        rows, keeper = self._check_rows_to_fit(
            X, y, sample_weight, X_val, y_val, continued
        )
        self._prepare_networks(rows.train, encodings, continued)
        fingerprint = self._fingerprint(rows) if self.warm_start else None
        before = self._search_settings["rows"] if continued is not None else None
        if continued is not None and fingerprint not in (None, before):
            warn_user(
                "warm_start goes on with other rows than before: some of those that "
                "judge now were trained on. Give X_val and y_val to be sure."
            )
        kind = self._search_kind(rows)
        device = self._population_device()
        if kind == "ascent" and device not in (None, "cpu"):
            warn_user(
                f"device={self.device!r} is where populations live, and an ascent has "
                "none: its members are trained on the CPU. search='cma' and "
                "'rank_gradient' use the device."
            )
        # PyTorch's sums on a CPU are rounded differently by other numbers of threads.
        one_thread = cpu_threads(1) if device == "cpu" else nullcontext()
        with (
            told_once(),
            single_threaded_blas(),
            one_thread,
            self._threads() as executor,
            self._workers(losses) as run_all,
        ):
            built = NetworkFit(
                settings=self,
                kind=kind,
                losses=losses,
                layout=getattr(self, "layout_", None),
                scaling=getattr(self, "scaling_", None),
                seed=tuple(self._seed),
                rows=rows,
                device=device,
                executor=executor,
                run_all=run_all,
                ensemble=getattr(self, "ensemble_", None),
            )
            fit = self._fit_members
            if self._n_members(rows.train) == 1 and kind != "ascent":
                fit = self._fit_population
            elif self.reference == "archive":
                raise ValueError(
                    "reference='archive' is for one network that is evolved, with "
                    "n_members=1 and search='cma' or 'rank_gradient'; got "
                    f"n_members={self.n_members} and search={self.search!r}."
                )
            search, interrupt = fit(built, (X, y, sample_weight), continued, keeper)
        self.__dict__.pop("_search", None)
        if self.warm_start:
            self._search = search
            self._search_settings = {**self._fixed_settings(), "rows": fingerprint}
        if interrupt is not None and not self.keep_on_interrupt:
            raise interrupt
        return self

    def __sklearn_clone__(self) -> Self:
        return clone_sharing(self, "client")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # A connection is of this process alone; an address is understood anywhere.
        if not isinstance(self.client, str):
            state["client"] = None
        return state

    @property
    def _on_cluster(self) -> bool:
        """Whether a cluster was asked for."""
        named = self.client is not None and self.engine == "auto"
        return self.engine == "dask" or named

    @contextmanager
    def _workers(self, losses: Sequence[Loss]) -> Iterator[RunAll | None]:
        """Yield what runs epochs of members on a cluster, if they are to."""
        if not self._on_cluster:
            yield None
            return
        refuse_unpicklable(losses, "losses")
        with open_client(self.client) as client:
            yield ClusterEpochs(client)

    def _evolves_one(self) -> bool:
        """Whether the settings are of one network that a population searches for."""
        credit = supports_credit(self.losses)
        ascends = self.search == "ascent" or (self.search == "auto" and credit)
        one = self.n_members == 1 or (self.n_members is None and not credit)
        return one and not ascends

    def _cut_into_sources(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> Sources:
        """Cut rows in memory into partitions."""
        names = column_names(y)
        X, y = self._check_X_y(X, y, reset=True)
        X, y, weight = drop_weightless(X, y, sample_weight)
        given = [(X, self._fit_targets(y, names), weight)]
        if X_val is not None or y_val is not None:
            part = self._check_validation_rows(X_val, y_val)
            given.append((part.X, part.Y, None))
        columns = getattr(self, "feature_names_in_", None)
        return cut_rows(given, columns, self.label_names_, self.classes_)

    def _fit_sources(self, sources: Sources, given: tuple[Any, Any, Any]) -> Self:
        """Fit rows in partitions."""
        for name in (*_OF_MEMBERS, "_search"):
            self.__dict__.pop(name, None)
        interrupt = fit_in_partitions(self, sources, given)
        if interrupt is not None and not self.keep_on_interrupt:
            raise interrupt
        return self

    def to_onnx(
        self, path: PathLike, *, dtype: str = "float32", opset: int = 18
    ) -> None:
        """Write the fitted classifier as an ONNX file, which predicts without Python.

        Scaling, networks, their average and the temperature are one graph, from
        ``features`` (N, D) to ``logits``, ``probabilities`` and ``labels`` (N, K).
        Needs the extra ``onnx``. Rows are dense: of a sparse matrix give batches, as
        arrays.

        Parameters
        ----------
        path : str or path
            The file. One that exists is replaced.
        dtype : {"float32", "float64"}, default="float32"
            Of features and scores. With "float32" scores are within 1e-5 of those of
            ``predict_proba``, for rows that float32 can tell apart.
        opset : int, default=18
            Version of the operators, 18 to 21.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from clml import CLMLClassifier
        >>> X, Y = make_multilabel_classification(n_samples=50, random_state=0)
        >>> clf = CLMLClassifier(max_epochs=5, random_state=0).fit(X, Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "model.onnx")
        ...     clf.to_onnx(path)
        ...     path.stat().st_size > 1000
        True
        """
        from .persistence._onnx import export_onnx

        export_onnx(snapshot(self), path, dtype=dtype, opset=opset)

    def _fingerprint(self, rows: FitRows) -> str | None:
        """Return what tells the rows apart where some of them judge, else None."""
        train, validation = rows.train, rows.validation
        if validation is not None and len(validation.Y) and not self._validation_given:
            return joblib.hash([train.X, train.Y, validation.X, validation.Y])
        if validation is None and self._n_members(rows.train) > 1:
            return joblib.hash([train.X, train.Y])
        return None

    def _search_kind(self, rows: FitRows) -> str:
        """Return what "auto" stands for."""
        credit = supports_credit(self.losses)
        if self.search == "ascent" and not credit:
            raise ValueError(
                "search='ascent' needs losses that are made of row statistics, got "
                f"{tuple(loss.name for loss in get_losses(self.losses))}. "
                "search='auto' takes any."
            )
        if self.search != "auto":
            return self.search
        if credit:
            return "ascent"
        many = len(rows.train.Y) >= MANY_ROWS or self.layout_.size >= MANY_WEIGHTS
        return "rank_gradient" if many else "cma"

    def _fit_population(
        self,
        built: NetworkFit,
        given: tuple[Any, Any, Any],
        continued: Any,
        keeper: Keeper,
    ) -> tuple[Any, KeyboardInterrupt | None]:
        """Evolve one network; the front holds its candidates."""
        with keeper.reading():
            search = built.search(continued, keeper.saved.get("run"))
        try:
            interrupt = self._run_search(
                search, built.rows, given, built.recipe.n_epochs, keeper
            )
            return search, interrupt
        finally:
            search.detach()

    def _fit_members(
        self,
        built: NetworkFit,
        given: tuple[Any, Any, Any],
        continued: Any,
        keeper: Keeper,
    ) -> tuple[Any, KeyboardInterrupt | None]:
        """Train several networks; the front holds maps of their average outputs."""
        n_members = self._n_members(built.rows.train)
        with keeper.reading():
            run = built.members(n_members, continued, keeper.saved.get("run"))
        interrupt = self._run_members(run, built, given, keeper)
        return (run.members.state(), run.progress.to_continue()), interrupt

    def _run_members(
        self,
        run: MemberRun,
        built: NetworkFit,
        given: tuple[Any, Any, Any],
        keeper: Keeper,
    ) -> KeyboardInterrupt | None:
        """Train the members, evolve their outputs, store the fitted attributes."""
        X, y, sample_weight = given
        which = self.incumbent if run.jury.impartial else "mean"

        def fitted(evolved: bool) -> dict[str, Any]:
            if run.progress.best is None:
                run.judge_now()
            together = run.progress.best
            assert together is not None
            outputs = plain_outputs(run, together)
            if evolved:
                outputs = evolved_outputs(
                    run, together, built.output_settings, built.executor
                )
            found = member_attributes(
                run, together, outputs, self.losses, self.calibrate and evolved
            )
            model = choose_model(found["front_"], found["_alternatives"], which, None)
            if self.network is not None:
                scale = 1.0 / together.sizes
                found |= {"networks_": together.networks, "member_scale_": scale}
                return {**found, **model}
            both = zip(together.networks, together.sizes, strict=True)
            networks = [self.layout_.mapped(one, 1.0 / size) for one, size in both]
            found["networks_"] = np.stack(networks)
            theta = mapped_networks(found["networks_"], self.layout_, model["theta_"])
            return {**found, **model, "theta_": theta}

        final: dict[str, Any] = {}
        n_epochs = built.recipe.n_epochs
        callbacks = EpochCallbacks(
            self,
            X,
            y,
            {} if sample_weight is None else {"sample_weight": sample_weight},
            n_epochs,
            lambda: final or fitted(evolved=False),
        )
        interrupt = self._evolve(
            run,
            callbacks,
            n_epochs,
            keeper,
            lambda: members_state(run.members, run.progress),
        )
        # First a model that holds whatever comes: an impatient second Ctrl-C must not
        # lose the first one's model.
        self.__dict__.update(fitted(evolved=False))
        try:
            final = fitted(evolved=True)
            self.__dict__.update(final)
            if interrupt is None or self.keep_on_interrupt:
                callbacks.end_fit()
        except KeyboardInterrupt as late:
            interrupt = interrupt or late
        self.interrupted_ = interrupt is not None
        return interrupt

    def _predicting(self, model: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(self, "networks_") or hasattr(self, "ensemble_"):
            return model
        theta = mapped_networks(self.networks_, self.layout_, model["theta_"])
        return {**model, "theta_": theta}

    def _n_members(self, train: Part) -> int:
        if self.n_members is not None:
            return int(self.n_members)
        if not supports_credit(self.losses):  # functions take their time
            return 1
        return default_members(len(train.Y), self.network is not None)

    def _population_device(self) -> str | None:
        """Return where populations live; None is the memory of the CPU."""
        if self._on_cluster:  # workers find their own
            return None if self.device == "cpu" else str(self.device)
        device = "cpu" if self.device == "cpu" else str(find_device(self.device))
        if self.engine == "numpy" and device != "cpu":
            raise ValueError(
                f"engine='numpy' computes on the CPU, got device={self.device!r}. "
                "Leave engine='auto', or use device='cpu'."
            )
        torch = self.engine == "torch" or device != "cpu"
        return device if torch else None

    def _fixed_settings(self) -> dict[str, Any]:
        names = tuple(loss.name for loss in get_losses(self.losses))
        # Where populations live: "cpu" is PyTorch's, None the library's own.
        found = {"losses": names, "device": self._population_device()}
        # Copies: networks and encodings may be changed in place.
        return found | {n: copy.deepcopy(getattr(self, n)) for n in _FIXED_BY_SEARCH}

    def _search_to_continue(self) -> Any:
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
        # The one that is kept must be as it was if this fit fails.
        return copy.deepcopy(search)

    def _check_rows_to_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        continued: Any,
    ) -> tuple[FitRows, Keeper]:
        """Check the data, part the validation rows, fit the scaling."""
        names = column_names(y)
        X, y = self._check_X_y(X, y, reset=continued is None)
        if isinstance(X, np.ndarray):
            X = np.ascontiguousarray(X)  # sums of other orders round differently
        X, y, weight = drop_weightless(X, y, sample_weight)
        if continued is None:
            Y = self._fit_targets(y, names)
        else:
            Y = self._encode_targets(y, "y", names)
        train, validation = Part(X, Y, weight), None
        self._validation_given = X_val is not None or y_val is not None
        if self._validation_given:
            validation = self._check_validation_rows(X_val, y_val)
        keeper = self._keeper(_named_data(train, validation))
        if continued is None:
            # Kept as plain integers, so that a warm start repeats the split.
            self._seed = self._draw_seed(keeper)
        share = float(self.validation_fraction)
        if validation is None and share > 0 and self._n_members(train) == 1:
            generator = np.random.default_rng([*self._seed, 0])
            train, validation = train.split(share, generator)
        parts_itself = validation is not None or self._n_members(train) > 1
        if continued is None and parts_itself and not self._validation_given:
            warn_of_twins(X, "give X_val and y_val that have none of them")
        self._warn_constant(train.Y)
        return FitRows(train, validation), keeper

    def _check_network(self) -> tuple[Encoding, ...]:
        """Return the encodings of wide members; refuse what has no effect."""
        if self.network is None:
            if not isinstance(self.encoding, str):
                raise ValueError(
                    "encoding is how columns enter a network that is given, such as "
                    "network=WideNetwork(); without one columns are standardised."
                )
            return ()
        for name, default in _PAPER_NETWORK.items():
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name} is of networks of the paper's kind and has no effect on "
                    f"network={self.network!r}; got {name}={getattr(self, name)!r}."
                )
        if self.search not in ("auto", "ascent") or not supports_credit(self.losses):
            raise ValueError(
                f"network={self.network!r} is trained by search='ascent', on losses "
                f"that are made of row statistics; got search={self.search!r} and "
                f"losses={tuple(loss.name for loss in get_losses(self.losses))}."
            )
        if isinstance(self.encoding, str):
            return MIXED
        given = self.encoding
        found = (given,) if isinstance(given, Encoding) else tuple(given)
        if not found or not all(isinstance(one, Encoding) for one in found):
            raise ValueError(
                "encoding must be 'auto' or encodings of clml.encoding, "
                f"got {self.encoding!r}."
            )
        return found

    def _prepare_networks(
        self, train: Part, encodings: tuple[Encoding, ...], continued: Any
    ) -> None:
        """Learn how columns enter networks from the training rows."""
        if continued is not None:
            return
        for name in (*_OF_MEMBERS, *_OF_PAPER):
            self.__dict__.pop(name, None)
        if self.network is not None:
            n_members = self._n_members(train)
            chosen = encodings_in_turn(n_members, len(encodings))
            self.ensemble_ = Ensemble.fit(
                train.X,
                train.weight,
                self.n_labels_,
                WideNetwork() if self.network == "wide" else self.network,
                encodings,
                chosen,
            )
            return
        X = train.X
        self.scaling_ = Scaling.identity(X.shape[1])
        if self.standardize:
            self.scaling_ = Scaling.fit(X, train.weight)
        contrast = describe_contrast(X, self.scaling_)
        if contrast is not None:
            warn_user(contrast)
        self.layout_ = Layout(
            X.shape[1], self.n_labels_, self._width(train), int(self.n_layers)
        )

    def _settings_of_run(self, describer: Describer) -> dict[str, Any]:
        # "auto" is another device elsewhere, and other devices round differently.
        where = {"device": self._population_device(), "engine": None}
        return super()._settings_of_run(describer) | where

    def _width(self, train: Part) -> int:
        if self.embedding_dim is not None:
            return int(self.embedding_dim)
        return default_width(len(train.Y))

    def _logits(self, X: Any) -> NDArray[np.float64]:
        if hasattr(self, "ensemble_"):
            scale, bias = np.split(self.theta_.astype(np.float64), 2)
            with single_threaded_blas():
                logits = self.ensemble_.logits(self.networks_, self.member_scale_, X)
            return (scale * logits + bias) / self.temperature_
        networks = predictor_of(self.theta_, self.layout_, self.scaling_)
        # BLAS rounds otherwise with more threads, and a fit beside takes them away.
        with single_threaded_blas():
            return networks.logits(X) / self.temperature_


def _named_data(train: Part, validation: Part | None) -> dict[str, Any]:
    """Return the data of a fit under the names of its arguments."""
    named = {"X": train.X, "y": train.Y, "sample_weight": train.weight}
    if validation is not None:
        named |= {"X_val": validation.X, "y_val": validation.Y}
    return named
