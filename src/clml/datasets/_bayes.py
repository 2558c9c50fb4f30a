"""Multi-label data whose Bayes risks are known."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch

from ..splits.stratify import RandomSource, random_source
from ._bayes_distribution import hidden_units
from ._bayes_risk import Floats
from ._bayes_truth import BayesTruth
from .bunch import make_bunch

MAX_LABELS = 12
# Units of the network behind the labels; a width of 20 holds five copies of each.
_UNITS = 4
# Log-odds have to be finite.
_LEAST_NOISE = 1e-6
# Rows by which the log-odds are brought to their mean, deviation and frequency.
_REFERENCE_ROWS = 4096


def _check_count(name: str, value: Any, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    count = int(value)
    if count < 1:
        raise ValueError(f"{name} must be at least 1, got {count}.")
    if most is not None and count > most:
        raise ValueError(
            f"{name} must be at most {most}, got {count}: exact risks go through all "
            "2^n_labels label sets of every row."
        )
    return count


def _check_share(name: str, value: Any, *, zero: bool, one: bool) -> float:
    interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number in {interval}, got {value!r}.")
    share = float(value)
    inside = 0 < share < 1 or (zero and share == 0) or (one and share == 1)
    if not inside:
        raise ValueError(f"{name} must lie in {interval}, got {value!r}.")
    return share


def _biases_for_frequency(signal: Floats, frequency: float) -> Floats:
    """Bias of each column with which its sigmoids have this mean; by bisection."""
    reach = np.abs(signal).max() + 40.0
    low = np.full(signal.shape[1], -reach)
    high = np.full(signal.shape[1], reach)
    for _ in range(60):
        middle = (low + high) / 2
        too_often = expit(signal + middle).mean(axis=0) > frequency
        high = np.where(too_often, middle, high)
        low = np.where(too_often, low, middle)
    return (low + high) / 2


def _opposed(n_labels: int) -> np.ndarray:
    """Mark the last sixth of the labels, at least one, none if there is no other.

    Few against many: label sets of the two sides differ much in size, and then the
    best ranking is far from that of the marginals.
    """
    n_opposed = min(max(n_labels // 6, 1), n_labels - 1)
    return np.arange(n_labels) >= n_labels - n_opposed


def _draw_truth(
    generator: Any,
    n_features: int,
    n_labels: int,
    dependence: float,
    noise: float,
    density: float,
) -> BayesTruth:
    first = generator.normal(size=(n_features + 1, _UNITS))
    first[-1] /= 2
    second = generator.normal(size=(_UNITS + 1, _UNITS))
    last = generator.normal(size=(_UNITS + 1, n_labels))
    reference = generator.normal(size=(_REFERENCE_ROWS, n_features))

    hidden = hidden_units(reference, first[:-1], first[-1])
    # Centred, so that standardising a row magnifies what varies and not what is
    # constant: the labels are then far from linear in the features.
    second[-1] = -hidden.mean(axis=0) @ second[:-1]
    hidden = hidden_units(hidden, second[:-1], second[-1])
    last[:-1] *= (1 - noise) / noise / (hidden @ last[:-1]).std(axis=0)
    last[-1] = _biases_for_frequency(hidden @ last[:-1], density)
    return BayesTruth(first, second, last, _opposed(n_labels), dependence)


def make_bayes_multilabel(
    n_samples: int = 1000,
    n_labels: int = 6,
    dependence: float = 1.0,
    noise: float = 0.3,
    *,
    n_features: int = 10,
    density: float = 1 / 3,
    random_state: RandomSource = None,
) -> Bunch:
    """Draw multi-label rows from a distribution whose Bayes risks are known.

    Given its features a row's labels are dependent and random, and p(y|x) is known:
    so is the smallest value of Hamming loss, 1 − LRAP and 1 − micro-F1 that any model
    without tied scores can reach, at given rows exactly, and the expected losses of any
    scores. Each of the three has a Bayes predictor of its own, and together they have a
    Bayes front (``truth.bayes_front``).

    Parameters
    ----------
    n_samples : int, default=1000
    n_labels : int, default=6
        From 1 to 12: exact risks go through all label sets.
    dependence : float, default=1.0
        In [0, 1]: the chance that one draw decides all labels of a row, the
        last sixth of them against the others. With 0 labels are independent given
        the features. The probability of each single label stays
        the same, and with it the Bayes values of Hamming loss and micro-F1.
    noise : float, default=0.3
        In [0, 1]: the labels' log-odds have the deviation (1 − noise) / noise. At 1
        features say nothing of the labels, at 0 (taken as one in a million) they decide
        them.
    n_features : int, default=10
        Independent standard normal.
    density : float, default=1/3
        In (0, 1): about how frequent each label is.
    random_state : int, RandomState, Generator or None, default=None
        Draws the distribution first, then the rows: the same seed and shape give the
        same distribution for any ``n_samples``.

    Returns
    -------
    Bunch
        As of every dataset: ``X``, ``Y``, names and figures; and ``truth``, the
        :class:`BayesTruth` that says what there is to know.

    Notes
    -----
    The log-odds of the labels are the logits of a network of the method's own shape
    with 4 units, each of which stands five times in a network of width 20. So
    ``CLMLClassifier`` with its default ``embedding_dim`` can represent the Bayes
    predictors of Hamming loss and of micro-F1 exactly (``truth.theta()``), and no
    linear model can. The best order for LRAP is no such network, but one fitted to it
    comes near: its expected LRAP at fresh rows was at most 0.0009 below the best, where
    the order of the marginals lacked 0.002 to 0.013 (random states 0 to 4, otherwise
    defaults; ``benchmarks/bayes_gap.py``).

    Examples
    --------
    >>> from clml.datasets import make_bayes_multilabel
    >>> data = make_bayes_multilabel(random_state=0)
    >>> data.X.shape, data.Y.shape
    ((1000, 10), (1000, 6))

    The smallest Hamming loss, 1 − LRAP and 1 − micro-F1 that are to be had, over the
    distribution:

    >>> data.truth.bayes_risk().value.round(2)
    array([0.16, 0.07, 0.24])
    """
    n_samples = _check_count("n_samples", n_samples)
    n_features = _check_count("n_features", n_features)
    n_labels = _check_count("n_labels", n_labels, MAX_LABELS)
    dependence = _check_share("dependence", dependence, zero=True, one=True)
    noise = max(_check_share("noise", noise, zero=True, one=True), _LEAST_NOISE)
    density = _check_share("density", density, zero=False, one=False)
    generator = random_source(random_state)
    truth = _draw_truth(generator, n_features, n_labels, dependence, noise, density)
    X, Y = truth.sample(n_samples, generator)
    return make_bunch(X, Y, source="make_bayes_multilabel", truth=truth)
