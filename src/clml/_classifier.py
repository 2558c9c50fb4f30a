"""CLMLClassifier: the consistent Lebesgue measure-based multi-label learner."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ._base.partitions import in_partitions
from ._base.rows import FitRows, Part, drop_weightless
from ._base.twins import warn_of_twins
from ._learners.bare_models import are_bare
from ._lebesgue_estimator import LebesgueEstimator, choose_model
from ._maps.member_fit import (
    MapSettings,
    evolved_outputs,
    mapped_networks,
    member_attributes,
    plain_outputs,
)
from ._maps.teacher import Teacher
from ._support.cluster import open_client
from ._support.fingerprint import Describer
from ._support.memory import warn_once
from ._support.names import column_names
from ._support.paths import PathLike
from ._support.pickling import refuse_unpicklable
from ._support.sklearn_compat import (
    EpochCallbacks,
    clone_sharing,
    fit_context,
    warn_user,
    with_callbacks,
)
from ._support.torch import cpu_threads, find_device
from ._support.transaction import all_or_nothing, snapshot
from ._support.value import Value
from ._training.builder import TrainingBuilder
from ._training.ensemble import Ensemble, default_encodings
from ._training.idle_settings import refuse_idle_settings, say_where
from ._training.left_out import encodings_in_turn, members_of_kinds
from ._training.member_epochs import RunAll
from ._training.members import MemberRun
from ._training.own_losses import (
    MapBudget,
    are_slow,
    functions_among,
    map_budget,
    read_slow,
    with_gradient,
)
from ._training.recipe import (
    MANY_ROWS,
    as_network,
    default_members,
    default_width,
)
from ._training.run_checkpoint import RunCheckpoint
from ._training.run_state import members_state
from ._training.searches import (
    CMA,
    SEARCHES,
    Ascent,
    SearchMethod,
    as_search,
)
from .encoding import Encoding
from .engine import single_threaded_blas
from .losses import Loss, get_losses, supports_gradient
from .network import PaperNetwork, Scaling, describe_contrast, predictor_of

if TYPE_CHECKING:
    # What is on partitions is imported when it is asked for.
    from ._distributed.partitioned_fit import Sources

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
# Names that stand for networks with their defaults.
_NETWORKS = ("paper", "wide")

# Rows from which on predictions are shared among threads.
_WORTH_THREADS = 500

# What a warm start cannot change beside the search and the network: the members were
# built with it.
_FIXED_BY_SEARCH = ("n_members", "encoding", "max_front")

#: The settings of the paper: ``CLMLClassifier(**PAPER_SETTINGS)``. Population
#: 4 + ⌊3 ln n⌋, no rule for ties, and the final incumbent of Algorithm 1 predicts.
PAPER_SETTINGS: dict[str, Any] = {
    "losses": ("hamming", "lrap", "micro_f1"),
    "search": CMA(
        population_size=None,
        covariance="rank_one",
        sigma0=1.0,
        ties=None,
        reference="unit",
        lebesgue="exact",
    ),
    "network": PaperNetwork(embedding_dim=20, n_layers=1),
    "n_members": 1,
    "max_epochs": 750,
    "validation_fraction": 0.2,
    "incumbent": "final",
    "patience": None,
    "max_seconds": None,
}


class CLMLClassifier(LebesgueEstimator):
    """Multi-label classifier that improves several losses at once, directly.

    Networks that are trained on the losses themselves, no surrogate in their
    place, so that the Lebesgue measure of what their losses dominate grows. What comes
    out is not one model but a front of them, to choose from after training.

    By default several members climb that measure, each without some of the rows, and
    are averaged; a scale and a bias for each label are then learnt from what members
    say about rows they never saw. ``search="cma"`` with ``n_members=1`` is the paper's
    learner: one network whose weights are evolved, every epoch a population of
    networks ranked by what each contributes to the measure
    (``CLMLClassifier(**PAPER_SETTINGS)``).

    Parameters
    ----------
    losses : sequence of str, Loss or callable, default=("hamming", "lrap", "micro_f1")
        What to minimise, each in [0, 1]; see :func:`clml.losses.list_losses`. Where
        fewer than three are asked for, members of an ascent are trained on the
        default's as well; the map of their outputs and the front are about those alone
        that were asked for. A function is called as ``f(Y, scores)``: a label is
        predicted where its score is positive, so a metric of decisions is
        ``lambda Y, S: metric(Y, S > 0)``. With ``sample_weight`` it is given these,
        too. No member is trained on functions: they judge epochs, and the front is
        searched for with 14,000 calls at most (2,400 of slow ones). See the notes.
    search : {"auto", "ascent", "cma", "rank_gradient"} or a search, default="auto"
        How networks are trained, and what belongs to that alone. "ascent" stands for
        :class:`Ascent`: the losses, smoothed a little, have a gradient in the outputs,
        and the chain rule carries it to the weights. "cma" stands for :class:`CMA`,
        CMA-ES on the Lebesgue contributions of a population; "rank_gradient" for
        :class:`RankGradient`, antithetic sampling on the same contributions, for
        networks of many weights. "auto" is the first.
    network : {"auto", "paper", "wide"} or a network, default="auto"
        What is trained. "wide" stands for :class:`clml.network.WideNetwork`, one of
        many units, whose members read columns by ``encoding`` and each leave out some
        of the rows; "paper" for :class:`clml.network.PaperNetwork`, the paper's kind of
        network. One of your own has a method ``build(n_inputs, n_labels)`` that returns
        a :class:`clml.network.NetworkLayout`. "auto" is a wide one; populations
        (``search="cma"``, "rank_gradient") and rows in partitions have the paper's
        kind, and no other.
    encoding : "auto", Encoding or sequence of them, default="auto"
        How columns enter a wide network or one of your own, see :mod:`clml.encoding`;
        members take several in turn. "auto" is robust numbers, bins, and features of
        two Gaussian kernels. Where all columns are 0 and 1, of which bins say the same,
        there are no bins; dense rows of numbers, below 10,000, also have features of a
        Laplace kernel. Encodings take missing values (NaN).
    n_members : int, default=None
        Networks that are averaged, each trained without some of the rows; None for
        five a default encoding and, below 1,000 rows, ten a kernel, which makes 15 to
        40, and for 5 from 10,000 rows on. Of the paper's kind 16, 8 from 10,000 rows
        on, and one where functions are among the losses of a population, which are
        called for every candidate of every epoch. With one, ``validation_fraction`` of
        the rows judge.
    max_epochs : int, default=None
        Epochs. None for 40 of an ascent of wide networks and 100 of the paper's kind
        (other numbers from 10,000 rows on), 750 of CMA-ES, 2,000 of a rank gradient.
        With ``warm_start`` each call of ``fit`` adds as many.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How much of the labels' own scales and biases is believed; halves of the
        judging rows choose it. One evolved network has none.
    validation_fraction : float, default=0.2
        With one member: share of the rows, stratified, that the front is judged on.
        With 0 all rows train, the front holds training losses, and the mean of the
        search distribution predicts.
    incumbent : str, default="mean"
        What predicts after ``fit``: "final" (best candidate of the last epoch by its
        fitness, as in Algorithm 1), "mean" (mean of the search distribution), the
        name of a loss, "knee" or "geometric_mean" (members of the front). With several
        members the candidates are maps of their average outputs, and "mean" is the map
        that their losses lead to.
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
        What evaluates populations and trains wide members: compiled kernels on the CPU,
        or PyTorch (extra ``torch``). "auto" is the first on the CPU and the second
        elsewhere. "dask" (extra ``dask``) is the workers of a cluster: rows are
        sent to them, members are trained there. Dask collections choose it themselves
        where there is a client.
    client : distributed.Client, str or None, default=None
        The cluster, or the address of its scheduler, which stands for
        ``engine="dask"``; None is the current client. The result is the same for any
        number of workers. It is not saved with the model.
    device : str, default="cpu"
        Where populations are drawn and evaluated, and members of a
        :class:`~clml.network.WideNetwork` are trained, all of them in one batch: "cpu",
        "cuda", "cuda:1", or "auto" for a GPU where there is one. Fitted models predict
        on the CPU. Members of the paper's kind of network, and of a network of your
        own, are trained on the CPU.
    n_jobs : int, default=None
        Threads; None is 1, -1 is all. The result is the same for any number.
    memory_mb : float, default=512
        Working memory for candidates in flight, and on a device for the pairs of labels
        that wide members look at; where partitions are read from disk also for the rows
        that are kept. The result is the same for any, on a GPU up to rounding.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line an epoch.

    Attributes
    ----------
    front_ : ParetoFront
        Models to choose from. With members they are maps of the outputs, judged on rows
        that they were learnt without, by the members that left these out; otherwise the
        networks that no other dominates on the validation rows, whose losses are too
        good: see :class:`ParetoFront`. Its ``theta`` are weights (m, n) of networks;
        with members maps (m, 2·K), scales and biases of the labels.
    theta_ : float32 array (n,), or (members, n)
        The weights that predict.
    networks_ : float32 array (members, n)
        With members: their weights before a map.
    shrinkage_, shift_ : float
        With members: how much of the learnt maps is believed, and the bias that all
        labels have in common.
    temperature_ : float
        What their logits are divided by.
    incumbent_ : str or int
        Which they are.
    rule_ : str or None
        What decides whole rows beside them, see ``front_.rules``; None where every
        label is cut by itself.
    history_ : dict of arrays
        Per epoch: ``sigma`` (the learning rate of an ascent), ``measure`` (of the
        training losses), ``archive_measure`` (the largest so far on the rows that
        judge), ``seconds``; (epochs, o) how many candidates had ``undefined`` losses,
        and losses ``incumbent_train``,
        ``incumbent_validation``, ``mean_train``, ``mean_validation``, the mean being
        the one that the epoch sampled from, the incumbent the members' average
        (``mean_train`` is NaN for losses that members are not trained on);
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
        Mean and scale of the features; of networks of the paper's kind.
    layout_ : Layout
        Where each weight stands in theta; of networks of the paper's kind.
    ensemble_ : Ensemble
        Of other networks: the encodings and which of them each member has.
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
        "search": [StrOptions({"auto", *SEARCHES}), *SEARCHES.values()],
        "network": [StrOptions({"auto", *_NETWORKS}), HasMethods(["build"])],
        "encoding": [StrOptions({"auto"}), Encoding, list, tuple],
        "n_members": [Interval(Integral, 1, None, closed="left"), None],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
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
        search: SearchMethod | str = "auto",
        network: Any = "auto",
        encoding: Any = "auto",
        n_members: int | None = None,
        max_epochs: int | None = None,
        shrinkage: Any = "auto",
        validation_fraction: float = 0.2,
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
        self.network = network
        self.encoding = encoding
        self.n_members = n_members
        self.max_epochs = max_epochs
        self.shrinkage = shrinkage
        self.validation_fraction = validation_fraction
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
            where they are, and one network is evolved on them: see the notes. NaN,
            None and pandas' NA are missing values: an indicator and a neutral value,
            see :mod:`clml.encoding`; networks of the paper's kind refuse them. Infinite
            ones are refused.
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
        ``search=CMA(init="surrogate")``. Losses must be sums of row statistics, as all
        named ones are. The network is of the paper's kind, 20 wide by default, and
        where ``epoch_rows`` is not all of them some 20,000 rows judge an epoch. The
        model is the same bit for bit for the same partitions, whoever holds them.

        Functions, and losses with statistics of your own, say nothing about single
        outputs. Members are trained on the other losses, or on cross-entropy if there
        are none. The functions judge epochs, with these losses, and are evolved on
        where outputs are mapped, so the front, ``select`` and ``incumbent`` know them.
        A loaded model predicts without them, and asks for them to be fitted again.

        The first fit after an installation compiles its kernels, which takes some
        seconds, once. ``verbose=1`` prints a line an epoch; with scikit-learn 1.9 or
        newer ``set_callbacks(sklearn.callback.ProgressBar())`` shows progress.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def _fit_to(self, teacher: Teacher, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit members to what a teacher says of the rows; their labels judge.

        Part of another fit, which is all or nothing, and says at its end what
        ``_after_fit`` has to say.
        """
        return self._fit(X, y, sample_weight, teacher=teacher)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        teacher: Teacher | None = None,
    ) -> Self:
        judges_given = X_val is not None or y_val is not None
        if in_partitions(X, y, sample_weight, X_val, y_val):
            network = as_network(self.network, ascends=False)
            if not isinstance(network, PaperNetwork):
                raise ValueError(
                    "Rows in partitions train one network of the paper's kind, got "
                    f"network={self.network!r}."
                )
            refuse_idle_settings(self, network, False, True, judges_given)
            from ._distributed.partitioned_fit import read_sources

            sources = read_sources(X, y, sample_weight, X_val, y_val)
            return self._fit_sources(sources, (X, y, sample_weight))
        encodings = self._check_network()
        refuse_idle_settings(
            self,
            self._chosen_network,
            self._ascends(),
            self._trains_one(),
            judges_given,
        )
        if self._on_cluster and self._evolves_one():
            sources = self._cut_into_sources(X, y, sample_weight, X_val, y_val)
            return self._fit_sources(sources, (X, y, sample_weight))
        losses = self._check_losses()
        continued = self._search_to_continue()
        rows, keeper = self._check_rows_to_fit(
            X, y, sample_weight, X_val, y_val, continued, teacher
        )
        with single_threaded_blas():  # kernels are eigenvectors, rounded by threads
            self._prepare_networks(rows.train, encodings, continued)
        fingerprint = self._fingerprint(rows) if self.warm_start else None
        before = self._search_settings["rows"] if continued is not None else None
        by_kind = self._has_kinds(rows.train)
        if continued is not None:  # members are as they were, whatever rows come now
            by_kind = self._search_settings["by_kind"]
        if continued is not None and fingerprint not in (None, before):
            warn_user(
                "warm_start goes on with other rows than before: some of those that "
                "judge now were trained on. Give X_val and y_val to be sure."
            )
        method = self._search_method
        device = self._population_device()
        trains = hasattr(self, "ensemble_") and not self._on_cluster
        if isinstance(method, Ascent) and device not in (None, "cpu") and not trains:
            warn_user(
                f"device={self.device!r} is where populations live and wide networks "
                "are trained: members of the paper's kind of network, and those of a "
                "cluster, are trained on the CPU. search='cma' and 'rank_gradient' use "
                "the device, and so does network='wide'."
            )
        # PyTorch's sums on a CPU are rounded differently by other numbers of threads.
        one_thread = cpu_threads(1) if device == "cpu" else nullcontext()
        with (
            warn_once(),
            single_threaded_blas(),
            one_thread,
            self._threads() as executor,
            self._workers(losses) as run_all,
        ):
            built = TrainingBuilder(
                settings=self,
                method=method,
                losses=losses,
                layout=getattr(self, "layout_", None),
                scaling=getattr(self, "scaling_", None),
                seed=tuple(self._seed),
                rows=rows,
                device=device,
                executor=executor,
                run_all=run_all,
                network=self._paper_network,
                ensemble=getattr(self, "ensemble_", None),
                by_kind=by_kind,
            )
            fit = self._fit_members
            if self._trains_one() and not isinstance(method, Ascent):
                fit = self._fit_population
            search, interrupt = fit(built, (X, y, sample_weight), continued, keeper)
        self.__dict__.pop("_search", None)
        if self.warm_start:
            self._search = search
            self._search_settings = {
                **self._fixed_settings(),
                "rows": fingerprint,
                "by_kind": by_kind,
            }
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
    def _fits_missing(self) -> bool:
        """Whether members read columns by encodings, which know missing values."""
        return self._paper_network is None

    @property
    def _predicts_missing(self) -> bool:
        return hasattr(self, "ensemble_")

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
        trains = self._ascends()
        refuse_unpicklable(with_gradient(losses) if trains else losses, "losses")
        from ._distributed.cluster_members import ClusterEpochs

        with open_client(self.client) as client:
            yield ClusterEpochs(client)

    def _ascends(self) -> bool:
        """Whether gradients train the networks, not populations."""
        return isinstance(self._search_method, Ascent)

    def _trains_one(self) -> bool:
        """Whether there is but one member."""
        if self.n_members is not None:
            return bool(self.n_members == 1)
        # Functions take their time where every candidate of every epoch is judged.
        return not self._ascends() and not supports_gradient(self.losses)

    def _evolves_one(self) -> bool:
        """Whether the settings are of one network that a population searches for."""
        return self._trains_one() and not self._ascends()

    @property
    def _chosen_network(self) -> Any:
        """What ``network`` stands for."""
        return as_network(self.network, self._ascends())

    @property
    def _paper_network(self) -> PaperNetwork | None:
        """The same if it is of the paper's kind, else None."""
        network = self._chosen_network
        return network if isinstance(network, PaperNetwork) else None

    def _validate_params(self) -> None:
        super()._validate_params()
        if isinstance(self.network, type):
            raise ValueError(
                f"network must be a network, such as {self.network.__name__}(), got "
                "the class itself."
            )
        for value in (self.search, self.network):
            if isinstance(value, SearchMethod | PaperNetwork):
                value.check()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of values inside, such as ``search__sigma0``.

        Names are what they stand for: ``search="cma", search__sigma0=0.5`` sets
        ``CMA(sigma0=0.5)``.

        Parameters
        ----------
        **params : dict
            All of them are set, or, where one is not known, none.

        Returns
        -------
        self
        """
        for name in params.keys() - set(self._get_param_names()):
            where = say_where(name)
            if where is not None:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: {where}."
                )
        return super().set_params(**params)

    def _within(self, name: str, held: Any) -> Any:
        if name == "search" and isinstance(held, str) and held in SEARCHES:
            return as_search(held)
        if name == "network" and isinstance(held, str) and held in _NETWORKS:
            return as_network(held, ascends=True)
        some = {"search": "'cma'", "network": "'paper'", "encoding": "Bins()"}
        if name in some and not hasattr(held, "set_params"):
            raise ValueError(
                f"{name}={held!r} has no parameters to set: set one that has them, "
                f"such as {name}={some[name]}, too."
            )
        return held

    def _cut_into_sources(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> Sources:
        """Cut rows in memory into partitions."""
        from ._distributed.partitioned_fit import cut_rows

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
        from ._distributed.partitioned_fit import fit_in_partitions

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
        from .persistence.onnx import export_onnx

        export_onnx(snapshot(self), path, dtype=dtype, opset=opset)

    def _fingerprint(self, rows: FitRows) -> str | None:
        """Return what tells the rows apart where some of them judge, else None."""
        train, validation = rows.train, rows.validation
        if validation is not None and len(validation.Y) and not self._validation_given:
            return joblib.hash([train.X, train.Y, validation.X, validation.Y])
        if validation is None and self._n_members(rows.train) > 1:
            return joblib.hash([train.X, train.Y])
        return None

    @property
    def _search_method(self) -> SearchMethod:
        """Return what "auto" stands for."""
        return as_search(self.search) or Ascent()

    def _fit_population(
        self,
        built: TrainingBuilder,
        given: tuple[Any, Any, Any],
        continued: Any,
        keeper: RunCheckpoint,
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
        built: TrainingBuilder,
        given: tuple[Any, Any, Any],
        continued: Any,
        keeper: RunCheckpoint,
    ) -> tuple[Any, KeyboardInterrupt | None]:
        """Train several networks; the front holds maps of their average outputs."""
        n_members = self._n_members(built.rows.train)
        with keeper.reading():
            run = built.members(n_members, continued, keeper.saved.get("run"))
        budget = self._map_budget(run, built.losses, keeper)
        settings = MapSettings.of(built, budget)
        interrupt = self._run_members(run, built, settings, given, keeper)
        return (run.members.state(), run.progress.to_continue()), interrupt

    def _map_budget(
        self, run: MemberRun, losses: Sequence[Loss], keeper: RunCheckpoint
    ) -> MapBudget:
        """Try functions among the losses; return how often they may be called."""
        functions = functions_among(losses)
        with keeper.reading():
            slow = read_slow(keeper.saved.get("slow"))
        if functions and slow is None:
            slow = are_slow(functions, run.judge)
            keeper.settle(slow=slow)
        return map_budget(losses, bool(slow))

    def _run_members(
        self,
        run: MemberRun,
        built: TrainingBuilder,
        settings: MapSettings,
        given: tuple[Any, Any, Any],
        keeper: RunCheckpoint,
    ) -> KeyboardInterrupt | None:
        """Train the members, evolve their outputs, store the fitted attributes."""
        X, y, sample_weight = given
        which = self.incumbent if run.jury.impartial else "mean"

        def fitted(evolved: bool) -> dict[str, Any]:
            if run.progress.best is None:
                run.judge_now()
            together = run.weighed()
            outputs = plain_outputs(run, together)
            if evolved:
                # Neither the mean nor the last epoch's map is chosen from a front.
                judged = not are_bare() or which not in ("final", "mean")
                outputs = evolved_outputs(
                    run, together, settings, built.executor, judged
                )
            found = member_attributes(
                run, together, outputs, self.losses, self.calibrate and evolved
            )
            model = choose_model(found["front_"], found["_alternatives"], which)
            if built.ensemble is not None:
                scale = together.scales(run.jury.kind_of)
                # What predicts is laid out from them once, so they must not change.
                kept = tuple(_read_only(one) for one in together.networks)
                found |= {"networks_": kept, "member_scale_": scale}
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
        if self._trains_one():
            return 1
        if self.n_members is not None:
            return int(self.n_members)
        if self._has_kinds(train):
            return len(_default_kinds(train))
        return default_members(len(train.Y), self._paper_network is None)

    def _has_kinds(self, train: Part) -> bool:
        """Whether each encoding has members for all rows, as few rows have."""
        by_default = self.n_members is None and isinstance(self.encoding, str)
        wide = self._paper_network is None and self._ascends()
        return by_default and wide and len(train.Y) < MANY_ROWS

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
        found |= {
            "search": _lasting(as_search(self.search) or "auto"),
            "network": _lasting(self._chosen_network),
            **{name: getattr(self, name) for name in _FIXED_BY_SEARCH},
        }
        return copy.deepcopy(found)  # values may be changed in place

    def _search_to_continue(self) -> Any:
        search = getattr(self, "_search", None) if self.warm_start else None
        if search is None:
            return None
        for name, value in self._fixed_settings().items():
            if not _is_same(value, self._search_settings[name]):
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
        teacher: Teacher | None = None,
    ) -> tuple[FitRows, RunCheckpoint]:
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
        soft = None if teacher is None else teacher.soft
        train, validation = Part(X, Y, weight, soft=soft), None
        self._validation_given = X_val is not None or y_val is not None
        if self._validation_given:
            validation = self._check_validation_rows(X_val, y_val)
        keeper = self._keeper(_named_data(train, validation))
        keeper.clock = None if teacher is None else teacher.clock
        if continued is None:
            # Kept as plain integers, so that a warm start repeats the split.
            self._seed = self._draw_seed(keeper)
        share = float(self.validation_fraction)
        if validation is None and share > 0 and self._n_members(train) == 1:
            generator = np.random.default_rng([*self._seed, 0])
            train, validation = train.split(share, generator)
        parts_itself = validation is not None or self._n_members(train) > 1
        if teacher is not None:  # who has warned of these rows
            return FitRows(train, validation), keeper
        if continued is None and parts_itself and not self._validation_given:
            warn_of_twins(X, "give X_val and y_val that have none of them")
        self._warn_constant(train.Y)
        return FitRows(train, validation), keeper

    def _check_network(self) -> tuple[Encoding, ...]:
        """Return the encodings that were asked for, of networks that have some."""
        if self._paper_network is not None:
            return ()
        if not self._ascends():
            raise ValueError(
                f"network={self.network!r} is trained by search='ascent', got "
                f"search={self.search!r}."
            )
        if isinstance(self.encoding, str):
            return ()
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
        network = self._chosen_network
        if not isinstance(network, PaperNetwork):
            encodings = encodings or default_encodings(train.X)
            if self._has_kinds(train):
                chosen = _default_kinds(train)
            else:
                chosen = encodings_in_turn(self._n_members(train), len(encodings))
            self.ensemble_ = Ensemble.fit(
                train.X,
                train.weight,
                self.n_labels_,
                network,
                encodings,
                chosen,
            )
            return
        X = train.X
        self.scaling_ = Scaling.identity(X.shape[1])
        if network.standardize:
            self.scaling_ = Scaling.fit(X, train.weight)
        contrast = describe_contrast(X, self.scaling_)
        if contrast is not None:
            warn_user(contrast)
        width = default_width(len(train.Y))
        self.layout_ = network.build(X.shape[1], self.n_labels_, width)

    def _settings_of_run(self, describer: Describer) -> dict[str, Any]:
        # "auto" is another device elsewhere, and other devices round differently.
        where = {"device": self._population_device(), "engine": None}
        # Names are what they stand for.
        search, network = as_search(self.search) or "auto", self._chosen_network
        values = {"search": search, "network": network}
        told = {name: describer.of(value) for name, value in values.items()}
        return super()._settings_of_run(describer) | where | told

    def _mapped_logits(self, X: Any) -> NDArray[np.float64]:
        if hasattr(self, "ensemble_"):
            scale, bias = np.split(self.theta_.astype(np.float64), 2)
            few = X.shape[0] < _WORTH_THREADS
            threads = nullcontext() if few else self._threads()
            with single_threaded_blas(), threads as executor:
                logits = self.ensemble_.logits(
                    self.networks_, self.member_scale_, X, executor
                )
            return scale * logits + bias
        networks = predictor_of(self.theta_, self.layout_, self.scaling_)
        # BLAS rounds otherwise with more threads, and a fit beside takes them away.
        with single_threaded_blas():
            return networks.logits(X)


def _default_kinds(train: Part) -> list[int]:
    """Return the encoding of each member, of those that rows have by default."""
    encodings = default_encodings(train.X)
    are_quick = [encoding.hidden_units == 0 for encoding in encodings]
    return members_of_kinds(are_quick, len(train.Y))


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _lasting(value: Any) -> Any:
    """Return a search or network without what a warm start may change."""
    if isinstance(value, Ascent):
        return Ascent(init=value.init)
    if isinstance(value, PaperNetwork):
        return copy.copy(value).set_params(dropout=0.0)
    return value


def _is_same(value: Any, other: Any) -> bool:
    """Tell whether a setting is as it was; a network of one's own by what it holds."""
    if isinstance(value, Value) or not hasattr(value, "build"):
        return bool(value == other)
    return type(value) is type(other) and vars(value) == vars(other)


def _named_data(train: Part, validation: Part | None) -> dict[str, Any]:
    """Return the data of a fit under the names of its arguments."""
    named = {"X": train.X, "y": train.Y, "sample_weight": train.weight}
    named["teacher"] = train.soft
    if validation is not None:
        named |= {"X_val": validation.X, "y_val": validation.Y}
    return named
