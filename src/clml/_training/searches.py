"""Ways to search for weights, as values: what belongs to one of them alone.

An estimator takes one as ``search``. It is compared, cloned, searched by grids
(``search__sigma0``) and written into files like any other parameter.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from .._support.value import Value
from ..evolution import CMAPackage, FullCMA, PrintedCMA, RankOneCMA, SeparableCMA
from ..lebesgue import Method, Ties

COVARIANCES: dict[str, Any] = {
    "rank_one": RankOneCMA,
    "printed": PrintedCMA,
    "separable": SeparableCMA,
    "full": FullCMA,
    "cma": CMAPackage,
}
# Samples of Monte Carlo contributions if nothing is said.
_N_SAMPLES = 10_000

_POSITIVE = Interval(Real, 0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
_INIT: list[Any] = [StrOptions({"random", "surrogate"})]
_RATE: list[Any] = [_POSITIVE, None]


class SearchMethod(Value):
    """A way to search for the weights of networks."""

    #: The name that stands for it with its defaults.
    kind: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    init: str

    def check(self) -> None:
        """Refuse parameters that mean nothing.

        Raises
        ------
        ValueError
            It names the parameter, what is expected and what it is.
        """
        validate_parameter_constraints(
            self._parameter_constraints,
            self.get_params(deep=False),
            caller_name=type(self).__name__,
        )


class Ascent(SearchMethod):
    """Networks climb the Lebesgue measure of their losses by gradients.

    For losses that are made of row statistics, as all named ones are.

    Parameters
    ----------
    learning_rate : float, default=None
        None for 0.01, and 0.001 of wide networks.
    batch_size : int, default=None
        Rows of a step; None for 2·√n, from 32 to 256.
    smoothing : float, default=0.5
        How far outputs are moved, in units of logits.
    weight_decay : float, default=None
        What a step takes off the weights, times the learning rate; None for 0, and
        0.0001 of wide networks.
    init : {"random", "surrogate"}, default="random"
        Where networks start; "surrogate" trains the first part of the epochs on
        cross-entropy, which large sparse data gains from.

    Examples
    --------
    >>> from clml import Ascent, CLMLClassifier
    >>> CLMLClassifier(search=Ascent(learning_rate=0.003))
    CLMLClassifier(search=Ascent(learning_rate=0.003))
    """

    kind: ClassVar[str] = "ascent"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": _RATE,
        "batch_size": [_COUNT, None],
        "smoothing": [_POSITIVE],
        "weight_decay": [Interval(Real, 0, None, closed="left"), None],
        "init": _INIT,
    }

    def __init__(
        self,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        smoothing: float = 0.5,
        weight_decay: float | None = None,
        init: str = "random",
    ):
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.smoothing = smoothing
        self.weight_decay = weight_decay
        self.init = init


class Population(SearchMethod):
    """A search that ranks candidates by their Lebesgue contributions."""

    population_size: Any
    sigma0: float
    ties: Ties
    reference: str
    lebesgue: Method
    n_samples: int
    epoch_rows: Any
    evolve: str

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "population_size": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "sigma0": [_POSITIVE],
        "ties": [StrOptions({"depth", "layer"}), None],
        "reference": [StrOptions({"unit", "archive"})],
        "lebesgue": [StrOptions({"auto", "exact", "monte_carlo"})],
        "n_samples": [_COUNT],
        "epoch_rows": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
        "init": _INIT,
        "evolve": [StrOptions({"all", "last"})],
    }

    def check(self) -> None:
        """Refuse parameters that mean nothing, or have no effect."""
        super().check()
        if self.lebesgue == "exact" and self.n_samples != _N_SAMPLES:
            raise ValueError(
                "n_samples is of Monte Carlo contributions and has no effect with "
                f"lebesgue='exact', got {self!r}."
            )


class CMA(Population):
    """CMA-ES on the Lebesgue contributions of a population.

    Parameters
    ----------
    population_size : int, "auto" or None, default="auto"
        Candidates an epoch and member: 64; None for 4 + ⌊3 ln n⌋, n the number of
        weights.
    covariance : {"rank_one", "printed", "separable", "full", "cma"}, \
default="rank_one"
        The search distribution; "printed" is the rank-one update as the paper prints
        it, without an evolution path, "full" is for small networks, "cma" uses the
        package of that name (extra ``cma``).
    sigma0 : float, default=1.0
        Initial step size; a twentieth of it after a surrogate start.
    ties : {"depth", "layer"} or None, default="depth"
        How candidates with equal contributions are ordered: see
        :func:`clml.lebesgue.fitness_order`.
    reference : {"unit", "archive"}, default="unit"
        What the Lebesgue measure is bounded by: the worst loss vector (1, ..., 1), or
        the non-dominated losses of all epochs so far, as Algorithm 1 of the paper
        has it. The latter takes long with four losses or more, and is for one
        network alone.
    lebesgue : {"auto", "exact", "monte_carlo"}, default="auto"
        How contributions are computed. "auto" is exact up to populations of 4,096 with
        two or three losses and of 256 with four or five, and estimates beyond.
    n_samples : int, default=10_000
        Samples of Monte Carlo contributions.
    epoch_rows : "auto" or float, default="auto"
        Share of the rows, drawn afresh every epoch, that a population is evaluated on;
        "auto" is all of them.
    init : {"random", "surrogate"}, default="random"
        Where the search starts; "surrogate" at the same network trained on
        cross-entropy.
    evolve : {"all", "last"}, default="all"
        Which weights are moved: "last" leaves all but the output layer as ``init``
        made them.

    Examples
    --------
    >>> from clml import CMA, CLMLClassifier
    >>> clf = CLMLClassifier(search=CMA(population_size=32), n_members=1)
    >>> clf.set_params(search__sigma0=0.5).search
    CMA(population_size=32, sigma0=0.5)
    """

    kind: ClassVar[str] = "cma"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Population._parameter_constraints,
        "covariance": [StrOptions(set(COVARIANCES))],
    }

    def __init__(
        self,
        population_size: Any = "auto",
        covariance: str = "rank_one",
        sigma0: float = 1.0,
        ties: Ties = "depth",
        reference: str = "unit",
        lebesgue: Method = "auto",
        n_samples: int = _N_SAMPLES,
        epoch_rows: Any = "auto",
        init: str = "random",
        evolve: str = "all",
    ):
        self.population_size = population_size
        self.covariance = covariance
        self.sigma0 = sigma0
        self.ties = ties
        self.reference = reference
        self.lebesgue = lebesgue
        self.n_samples = n_samples
        self.epoch_rows = epoch_rows
        self.init = init
        self.evolve = evolve


class RankGradient(Population):
    """Antithetic samples ranked by their Lebesgue contributions, for many weights.

    Parameters
    ----------
    population_size : int, "auto" or None, default="auto"
        Candidates an epoch and member: 256; None for 4 + ⌊3 ln n⌋, n the number of
        weights.
    learning_rate : float, default=None
        None for 0.02.
    sigma0 : float, default=1.0
        A tenth of it is the initial step size, a twentieth after a surrogate start.
    ties, reference, lebesgue, n_samples, init, evolve
        As those of :class:`CMA`.
    epoch_rows : "auto" or float, default="auto"
        Share of the rows, drawn afresh every epoch, that a population is evaluated on;
        "auto" is some 5,000 of them.

    Examples
    --------
    >>> from clml import CLMLClassifier, RankGradient
    >>> CLMLClassifier(search=RankGradient(epoch_rows=0.1), n_members=1)
    CLMLClassifier(n_members=1, search=RankGradient(epoch_rows=0.1))
    """

    kind: ClassVar[str] = "rank_gradient"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Population._parameter_constraints,
        "learning_rate": _RATE,
    }

    def __init__(
        self,
        population_size: Any = "auto",
        learning_rate: float | None = None,
        sigma0: float = 1.0,
        ties: Ties = "depth",
        reference: str = "unit",
        lebesgue: Method = "auto",
        n_samples: int = _N_SAMPLES,
        epoch_rows: Any = "auto",
        init: str = "random",
        evolve: str = "all",
    ):
        self.population_size = population_size
        self.learning_rate = learning_rate
        self.sigma0 = sigma0
        self.ties = ties
        self.reference = reference
        self.lebesgue = lebesgue
        self.n_samples = n_samples
        self.epoch_rows = epoch_rows
        self.init = init
        self.evolve = evolve


#: By the names that stand for them.
SEARCHES: dict[str, type[SearchMethod]] = {
    one.kind: one for one in (Ascent, CMA, RankGradient)
}


def as_search(search: SearchMethod | str) -> SearchMethod | None:
    """Return the search that a setting stands for; None of "auto".

    Examples
    --------
    >>> from clml._training.searches import as_search
    >>> as_search("cma")
    CMA()
    """
    if isinstance(search, str):
        return None if search == "auto" else SEARCHES[search]()
    return search
