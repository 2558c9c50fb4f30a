"""What training found, and choosing from it afterwards."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.sklearn_compat import warn_user
from .expected_losses import expects_decisions
from .front_shown import front_html, front_text
from .row_rules import is_row_rule

RULES = ("knee", "geometric_mean")

# By how many standard errors of the difference a model has to lead the default. Where
# to cut for a loss of decisions follows from probabilities, and the rows need only
# agree; so it is with the few rules for whole rows. A model that is said to rank better
# has nothing but the rows to show for it.
_LEAD, _LEAD_OF_DECISIONS = 1.5, 0.5


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Models to choose from: none is better in every loss, but for the default.

    Attributes
    ----------
    losses : float64 array (m, o)
        What to expect of each model on new rows. See the notes for where they are from.
    loss_names : tuple of str
    theta : array (m, n)
        The numbers of each model.
    temperature : float64 array (m,)
        What the logits of each model are divided by to make probabilities; ones if
        not given.
    standard_error : float64 array (m, o)
        How far off ``losses`` may be, one standard error; NaN where that is not known.
    difference_error : float64 array (m, o)
        The same of the difference between a model and the default: both are judged on
        the same rows, so that is much less. NaN where there is no default.
    default : int or None
        The model that predicts if nothing else is chosen, where it is one of these. It
        is kept, and has a star in the table, even if another looks better in every
        loss: that may be luck.
    rules : tuple of str or None
        What decides the rows of each model beside its numbers: None where every label
        is cut by itself, at 0; "at_least_one", "top_k" or "best_prefix" where a row
        has so many of its highest labels. See docs/trade-off.md.

    Notes
    -----
    The default settings, and tuned and stacked learners, judge a model on rows that had
    no part in it: networks and learners are those that left these rows out, and the map
    of their scores is learnt anew without them. (How much of a map is believed, and
    the shares of kinds of members, are two or a few numbers that all rows chose.) The
    best of several is partly lucky even then: :meth:`select` prefers the default to a
    model that leads it by less than half a standard error of the difference in a loss
    of decisions, such as Hamming loss or micro-F1, and by less than 1.5 in others.

    A search of whole networks (``PAPER_SETTINGS``) judges all its candidates on the
    same validation rows, and on the training rows where it has none. The best of them
    is then partly the luckiest, standard errors are NaN, and losses are too small: see
    docs/trade-off.md for how much.

    Examples
    --------
    >>> import numpy as np
    >>> from clml import ParetoFront
    >>> front = ParetoFront(
    ...     losses=np.array([[0.1, 0.9], [0.2, 0.3], [0.8, 0.25]]),
    ...     loss_names=("hamming", "lrap"),
    ...     theta=np.zeros((3, 5), dtype=np.float32),
    ... )
    >>> front
    ParetoFront of 3 models
        hamming   lrap
    0     0.100  0.900
    1     0.200  0.300
    2     0.800  0.250
    >>> front.select("hamming"), front.select("knee"), front.select("lrap")
    (0, 1, 2)
    >>> front.select(weights={"hamming": 10, "lrap": 1})
    0
    >>> front.select("lrap", at_most={"hamming": 0.5})
    1

    Models for a loss of whole rows may have a rule:

    >>> ParetoFront(
    ...     losses=np.array([[0.3, 0.2], [0.4, 0.1]]),
    ...     loss_names=("subset_zero_one", "lrap"),
    ...     theta=np.zeros((2, 5), dtype=np.float32),
    ...     rules=("top_1", None),
    ... )
    ParetoFront of 2 models
        subset_zero_one   lrap   rule
    0             0.300  0.200  top_1
    1             0.400  0.100
    """

    losses: NDArray[np.float64]
    loss_names: tuple[str, ...]
    theta: NDArray[np.floating]
    temperature: NDArray[np.float64] = None  # type: ignore[assignment]
    standard_error: NDArray[np.float64] = None  # type: ignore[assignment]
    difference_error: NDArray[np.float64] = None  # type: ignore[assignment]
    default: int | None = None
    rules: tuple[str | None, ...] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        m, unknown = len(self.losses), np.full(self.losses.shape, np.nan)
        standing_in = {
            "temperature": np.ones(m),
            "standard_error": unknown,
            "difference_error": unknown,
            "rules": (None,) * m,
        }
        for name, values in standing_in.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, values)
        shapes = (self.losses.shape, self.theta.shape[:1], self.temperature.shape)
        if shapes != ((m, len(self.loss_names)), (m,), (m,)) or m == 0:
            raise ValueError(
                "A front needs losses (m, o), o loss_names, theta (m, n) and "
                f"temperature (m,) with m at least 1, got shapes {shapes} and "
                f"{len(self.loss_names)} names."
            )
        for name in ("standard_error", "difference_error"):
            if getattr(self, name).shape != self.losses.shape:
                raise ValueError(
                    f"{name} must have the shape of losses, {self.losses.shape}, "
                    f"got {getattr(self, name).shape}."
                )
        if self.default is not None and not 0 <= self.default < m:
            raise ValueError(
                f"default must be the index of one of {m} models, got {self.default}."
            )
        rules = self.rules
        if not isinstance(rules, tuple) or not all(
            rule is None or is_row_rule(rule) for rule in rules
        ):
            raise ValueError(
                "rules must be a tuple of None, 'at_least_one', 'top_k' with a number "
                f"as k, and 'best_prefix', got {rules!r}."
            )
        if len(rules) != m:
            raise ValueError(f"rules must be one for each of {m} models, got {rules}.")

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        return front_text(self)

    def _repr_html_(self) -> str:
        return front_html(self)

    def to_frame(self) -> Any:
        """Return a table of the models: their losses and what these may be off by.

        Returns
        -------
        pandas.DataFrame
            One row a model. Columns are the names of the losses, and each again with
            ``_error`` behind it for its standard error, where that is known; ``rule``
            where a model has one; ``is_default`` is true for the model that predicts
            if nothing else is chosen. Needs pandas.
        """
        try:
            pd = import_module("pandas")
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas.") from None
        columns: dict[str, Any] = dict(zip(self.loss_names, self.losses.T, strict=True))
        if np.isfinite(self.standard_error).any():
            for name, values in zip(
                self.loss_names, self.standard_error.T, strict=True
            ):
                columns[f"{name}_error"] = values
        if any(self.rules):
            columns["rule"] = pd.Series(self.rules, dtype=object)
        columns["is_default"] = np.arange(len(self)) == self.default
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self), name="model"))

    def select(
        self,
        which: str | int | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
    ) -> int:
        """Return the index of the model that a rule prefers.

        Parameters
        ----------
        which : str or int, default=None
            The name of a loss: the model with the smallest value of it. "knee": the
            model nearest to the best value of every loss at once, losses scaled to
            [0, 1] over the front. "geometric_mean": the smallest product of the
            losses. An integer: that model.
        weights : mapping of str to float, default=None
            Instead of ``which``: the smallest weighted sum of the named losses.
        at_most : mapping of str to float, default=None
            Limits of some losses: models beyond them are not considered. Alone: the
            default if it keeps to them, or else the smallest product of the losses.

        Returns
        -------
        int
            The best of the models that lead the default clearly: by half a standard
            error of the difference where the loss that is asked for reads decisions,
            by 1.5 otherwise; in a sum, by as much as all its losses together ask for.
            If some lead, but none clearly, the default, with a warning.
            Ties go to the smaller geometric mean, then to the smaller index.

        Raises
        ------
        ValueError
            If no model keeps to the limits; the message has the nearest one.
        """
        index, in_doubt = self.choice(which, weights=weights, at_most=at_most)
        if in_doubt:
            wanted = repr(which) if weights is None else f"weights={dict(weights)}"
            warn_user(
                f"No model of the front is clearly better for {wanted} than the "
                "default: what leads does so by so little, beside the standard error "
                "of the difference, that it may be chance. The default is selected."
            )
        return index

    def choice(
        self,
        which: str | int | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
    ) -> tuple[int, bool]:
        """Return what :meth:`select` returns, and whether it is in doubt.

        Parameters
        ----------
        which, weights, at_most
            As :meth:`select` takes them.

        Returns
        -------
        index : int
        in_doubt : bool
            Whether another model leads the default, but not clearly. Nothing warns.
        """
        if which is None and weights is None and at_most is not None:
            allowed = self._allowed(at_most)
            if self.default is not None and allowed[self.default]:
                return self.default, False
            return self._smallest(_log_geometric_mean(self.losses), allowed), False
        if (which is None) == (weights is None):
            raise ValueError(
                "select needs either a rule or weights, "
                f"got which={which!r} and weights={weights!r}."
            )
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            if at_most is not None:
                raise ValueError("at_most goes with a rule, not with an index.")
            return self._check_index(int(which)), False
        allowed = self._allowed(at_most)
        if which == "knee":
            return self._smallest(_distance_to_ideal(self.losses), allowed), False
        if which == "geometric_mean":
            return self._smallest(_log_geometric_mean(self.losses), allowed), False
        vector = np.zeros(len(self.loss_names))
        if weights is not None:
            vector = self._weight_vector(weights)
        else:
            vector[self._loss_index(which)] = 1.0
        # Losses that nobody asks for may be undefined.
        asked, vector = vector > 0, vector[vector > 0]
        values = self.losses[:, asked] @ vector
        if self.default is None or not allowed[self.default]:
            return self._smallest(values, allowed), False
        lead = values[self.default] - values
        clear = lead > self.clear_lead[:, asked] @ vector
        clear[self.default] = True
        index = self._smallest(values, allowed & clear)
        return index, index == self.default and bool((lead[allowed] > 0).any())

    @property
    def clear_lead(self) -> NDArray[np.float64]:
        """By how much models (m, o) have to be better than the default to be chosen."""
        errors = [
            _LEAD_OF_DECISIONS if expects_decisions(name) else _LEAD
            for name in self.loss_names
        ]
        # NaN, as of models that nobody compared with the default, doubts nothing.
        return np.array(errors) * np.nan_to_num(self.difference_error)

    def _allowed(self, at_most: Mapping[str, float] | None) -> NDArray[np.bool_]:
        """Tell which models keep to the limits; refuse limits that none keeps to."""
        if at_most is None:
            return np.ones(len(self), dtype=bool)
        if not isinstance(at_most, Mapping):
            raise TypeError(
                "at_most must map loss names to limits, such as "
                f"{{{self.loss_names[0]!r}: 0.2}}, got {at_most!r}."
            )
        limits = np.full(len(self.loss_names), np.inf)
        for name, limit in at_most.items():
            limits[self._asked_loss(name, "at_most")] = _checked_limit(name, limit)
        beyond = np.maximum(self.losses - limits, 0)
        allowed = ~beyond.any(axis=1)
        if allowed.any():
            return allowed
        nearest = int(np.lexsort((beyond.sum(axis=1), beyond.max(axis=1)))[0])
        found = ", ".join(
            f"{name} {value:.4g}"
            for name, value in zip(self.loss_names, self.losses[nearest], strict=True)
        )
        raise ValueError(
            f"No model of the front keeps to at_most={dict(at_most)}. The nearest is "
            f"{nearest}: {found}."
        )

    def _smallest(self, values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> int:
        of_equal = _log_geometric_mean(self.losses)
        return int(np.lexsort((of_equal, values, ~allowed))[0])

    def _check_index(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise ValueError(f"The front has {len(self)} models, got index {index}.")
        return index % len(self)

    def _loss_index(self, name: object) -> int:
        known = [*self.loss_names, *RULES]
        takes = "select takes the name of an optimised loss or a rule, one of"
        return self._place(name, known, takes, " or the index of a model,")

    def _asked_loss(self, name: object, argument: str) -> int:
        takes = f"{argument} must name optimised losses, some of"
        return self._place(name, list(self.loss_names), takes)

    def _place(
        self, name: object, known: list[str], takes: str, besides: str = ""
    ) -> int:
        if name in self.loss_names:
            return self.loss_names.index(name)
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{takes} {known},{besides} got {name!r}.{hint}")

    def _weight_vector(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        if not isinstance(weights, Mapping):
            raise TypeError(
                "weights must map loss names to numbers, such as "
                f"{{{self.loss_names[0]!r}: 1.0}}, got {weights!r}."
            )
        vector = np.zeros(len(self.loss_names))
        for name, weight in weights.items():
            vector[self._asked_loss(name, "weights")] = weight
        if not np.isfinite(vector).all() or (vector < 0).any() or not vector.any():
            raise ValueError(
                "weights must be finite, not negative and not all zero, "
                f"got {dict(weights)}."
            )
        return vector


def _checked_limit(name: str, limit: Any) -> float:
    if not isinstance(limit, Real) or isinstance(limit, bool) or limit != limit:
        raise ValueError(f"at_most[{name!r}] must be a number, got {limit!r}.")
    return float(limit)


def _log_geometric_mean(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    # A loss of 0 is best of all; below 0, where no loss should be, there is no mean.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(losses).mean(axis=1)


def _distance_to_ideal(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = losses.min(axis=0), losses.max(axis=0)
    scaled = (losses - low) / np.where(high > low, high - low, 1.0)
    return np.sqrt((scaled**2).sum(axis=1))
