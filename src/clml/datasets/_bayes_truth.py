"""What can be known of data from a known distribution: the Bayes risks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..splits.stratify import RandomSource, random_source
from ._bayes_distribution import LabelDistribution
from ._bayes_front import BayesFront, front_of_rows, joined, treatments_of_rows
from ._bayes_risk import (
    LOSS_NAMES,
    Floats,
    best_micro_f1,
    best_orders,
    expected_lrap,
    hamming_risks,
    micro_f1_parts,
    order_scores,
    pair_expectations,
)

# Joint probabilities held at a time: 2^22 numbers, 32 MiB.
_JOINT_ENTRIES = 2**22


class BayesRisk(NamedTuple):
    """Bayes values over the distribution, estimated from rows drawn.

    Attributes
    ----------
    value : float64 array (3,)
        Of hamming, lrap and micro_f1.
    standard_error : float64 array (3,)
    """

    value: Floats
    standard_error: Floats


class BayesTruth(LabelDistribution):
    """The distribution that :func:`make_bayes_multilabel` draws from, and its risks.

    A value of parameters: see :class:`LabelDistribution` for them, and for ``sample``,
    ``marginals``, ``joint`` and ``theta``.

    Notes
    -----
    Results of the three losses are in the order hamming, lrap, micro_f1, smaller is
    better, with the conventions of :func:`clml.losses.loss_values`.

    Micro-F1 is taken as a ratio of expectations, 2·E[hits] / (predicted +
    E[relevant]) over the rows together, which is its value on many rows. The mean F1
    of a few drawn rows differs slightly (a mean of ratios is no ratio of means), and
    the risk of the paper, which averages an F1 of each row, is another quantity.

    Best means best without ties, which networks do not have. Tied labels all have the
    worst of their ranks, which costs precision where they stand first. Further down it
    may gain some: of two labels that come together, if at all, the first has the other
    among those that count for it. Scores with ties made for that lower 1 − LRAP by
    up to another 0.0035 (random states 0 to 4, otherwise defaults).

    Examples
    --------
    >>> from clml.datasets import make_bayes_multilabel
    >>> truth = make_bayes_multilabel(random_state=1).truth
    >>> X, Y = truth.sample(500, random_state=2)
    >>> X.shape, Y.shape, truth.joint(X).shape
    ((500, 10), (500, 6), (500, 64))

    The Bayes value of each loss at these rows, and how far the marginals themselves
    get: best at Hamming loss, but they order dependent labels less well than can be
    done, and 1/2 is not the threshold for micro-F1.

    >>> truth.bayes_losses(X).round(3)
    array([0.168, 0.068, 0.22 ])
    >>> truth.expected_losses(X, truth.marginals(X) - 0.5).round(3)
    array([0.168, 0.076, 0.227])
    """

    def bayes_scores(self, X: Any, loss: str) -> Floats:
        """Scores (n, K) that reach the Bayes value of a loss at these rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
        loss : {"hamming", "lrap", "micro_f1"}
            ``"hamming"``: marginals less 1/2. ``"micro_f1"``: marginals less F*/2, F*
            the best ratio for these rows together. ``"lrap"``: the order of largest
            expected precision, which is not that of the marginals; scores are
            places, without ties, and only their order means anything.

        Returns
        -------
        float64 array (n, K)
            A label is predicted where its score is positive.
        """
        if loss not in LOSS_NAMES:
            raise ValueError(f"loss must be one of {LOSS_NAMES}, got {loss!r}.")
        p = self.marginals(X)
        if loss == "hamming":
            return p - 0.5
        if loss == "micro_f1":
            return p - best_micro_f1(p) / 2
        scores = np.empty(p.shape)
        for rows in self._chunks(len(p)):
            scores[rows] = order_scores(best_orders(self._pairs(p[rows])[0]))
        return scores

    def expected_losses(self, X: Any, scores: Any) -> Floats:
        """Compute the expected losses of scores at these rows, exactly.

        Parameters
        ----------
        X : array-like of shape (n, D)
        scores : array-like of shape (n, K)
            A label is predicted where its score is positive; ties in the ranking
            count against.

        Returns
        -------
        float64 array (3,)
            Of hamming, lrap and micro_f1.
        """
        p = self.marginals(X)
        scores = self._check_scores(scores, p.shape)
        hits, size = micro_f1_parts(p, scores > 0)
        f1 = hits.sum() / size.sum() if size.sum() > 0 else 0.0
        risks = hamming_risks(p, scores > 0), self._lrap_risks(p, scores)
        return np.array([*(risk.mean() for risk in risks), 1 - f1])

    def bayes_losses(self, X: Any) -> Floats:
        """Smallest expected losses that any scores without ties reach at these rows.

        Each loss has scores of its own (:meth:`bayes_scores`); no single model need
        reach all three. What compromises there are: :meth:`bayes_front`.

        Returns
        -------
        float64 array (3,)
            Of hamming, lrap and micro_f1.
        """
        X = self._check_rows(X)
        each = (
            self.expected_losses(X, self.bayes_scores(X, name)) for name in LOSS_NAMES
        )
        return np.diagonal(list(each)).copy()

    def bayes_front(
        self, X: Any, losses: Sequence[str] = LOSS_NAMES, *, resolution: int = 24
    ) -> BayesFront:
        """Losses at these rows that no scores without ties better all at once.

        The set of the paper's theorem: a Bayes predictor of each loss is in it, and
        between these the best compromises.

        Parameters
        ----------
        X : array-like of shape (n, D)
        losses : sequence of str, default=("hamming", "lrap", "micro_f1")
            Some of these, in any order.
        resolution : int, default=24
            At least 2: how many weights of the ranking against the decisions, and of
            Hamming loss against micro-F1, are tried.

        Returns
        -------
        BayesFront

        Notes
        -----
        Each point is attained, exactly, by scores for these rows, and is the best for
        some weights of its losses. So the best value of each loss, and how it changes
        with the rows, are those of :meth:`bayes_losses`. A finite number of points
        measures a little less than the front: with the default by some 0.000001. On a
        few rows there are also points that are the best for no weights, but no more
        than a row or two can make up ahead of those that are; where rows are many, what
        they attain has no such dents.

        With more rows from the distribution the front goes to that of the distribution,
        as :meth:`bayes_losses` go to :meth:`bayes_risk`. Models should be compared with
        the front of the same rows: most of what the rows differ by is then in both.

        Examples
        --------
        >>> from clml.datasets import make_bayes_multilabel
        >>> from clml.lebesgue import lebesgue_measure
        >>> truth = make_bayes_multilabel(random_state=4).truth
        >>> X, _ = truth.sample(500, random_state=0)
        >>> front = truth.bayes_front(X)
        >>> front.losses.min(axis=0).round(3), truth.bayes_losses(X).round(3)
        (array([0.162, 0.067, 0.228]), array([0.162, 0.067, 0.228]))

        Cross-entropy leads to the log-odds, which order labels by their marginals:

        >>> log_odds = truth.expected_losses(X, truth.log_odds(X))
        >>> round(front.lebesgue_measure - lebesgue_measure([log_odds]), 3)
        0.014
        """
        names = self._check_losses(losses)
        if resolution < 2:
            raise ValueError(f"resolution must be at least 2, got {resolution!r}.")
        p = self.marginals(X)
        parts = [
            treatments_of_rows(*self._pairs(p[rows]), p[rows])
            for rows in self._chunks(len(p))
        ]
        return front_of_rows(joined(parts), p, names, resolution)

    def bayes_risk(
        self, n_samples: int = 10_000, random_state: RandomSource = 0
    ) -> BayesRisk:
        """Bayes values over the distribution, by Monte Carlo over the features.

        Parameters
        ----------
        n_samples : int, default=10_000
            Rows to draw, at least 2; their risks given the features are exact.
        random_state : int, RandomState, Generator or None, default=0

        Returns
        -------
        BayesRisk
            ``value`` and ``standard_error``, (3,) each. That of micro-F1, a ratio, is
            by the delta method; that its threshold comes from the same rows changes
            it by less than that order, since it is at a maximum.

        Examples
        --------
        >>> from clml.datasets import make_bayes_multilabel
        >>> risk = make_bayes_multilabel(random_state=0).truth.bayes_risk()
        >>> risk.value.round(2)
        array([0.16, 0.07, 0.24])
        >>> bool((risk.standard_error < 0.002).all())
        True
        """
        if n_samples < 2:
            raise ValueError(f"n_samples must be at least 2, got {n_samples!r}.")
        generator = random_source(random_state)
        X = generator.normal(size=(n_samples, self.n_features))
        p = self.marginals(X)
        hits, size = micro_f1_parts(p, self.bayes_scores(X, "micro_f1") > 0)
        mean_size = size.mean()
        # Without any chance of a label micro-F1 is 0.
        f1 = hits.mean() / mean_size if mean_size > 0 else 0.0
        influence = (hits - f1 * size) / mean_size if mean_size > 0 else hits
        terms = np.stack(
            [
                hamming_risks(p, p > 0.5),
                self._lrap_risks(p, self.bayes_scores(X, "lrap")),
                1 - f1 - influence,
            ]
        )
        error = terms.std(axis=1, ddof=1) / np.sqrt(n_samples)
        return BayesRisk(terms.mean(axis=1), error)

    def _lrap_risks(self, p: Floats, scores: Floats) -> Floats:
        risks = np.empty(len(p))
        for rows in self._chunks(len(p)):
            risks[rows] = 1 - expected_lrap(*self._pairs(p[rows]), scores[rows])
        # Probabilities may sum to just above 1.
        return np.maximum(risks, 0.0)

    def _pairs(self, p: Floats) -> tuple[Floats, Floats]:
        joint = self._joint(p)
        return pair_expectations(joint), np.ascontiguousarray(joint[:, 0])

    def _check_losses(self, losses: Sequence[str]) -> tuple[str, ...]:
        names = (losses,) if isinstance(losses, str) else tuple(losses)
        known = set(names) <= set(LOSS_NAMES)
        if not (names and known and len(set(names)) == len(names)):
            raise ValueError(
                f"losses must be some of {LOSS_NAMES}, each once, got {losses!r}."
            )
        return names

    def _chunks(self, n_rows: int) -> Iterator[slice]:
        step = max(_JOINT_ENTRIES >> self.n_labels, 1)
        for start in range(0, n_rows, step):
            yield slice(start, start + step)

    def _check_scores(self, scores: Any, shape: tuple[int, ...]) -> Floats:
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        if scores.shape != shape:
            raise ValueError(f"scores must have shape {shape}, got {scores.shape}.")
        if np.isnan(scores).any():
            raise ValueError("scores must be numbers, got NaN.")
        return scores
