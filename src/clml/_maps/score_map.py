"""Small maps of score matrices, and where they are searched for.

A map takes the logits of M learners, (n, M, K), to one matrix of logits (n, K). It is
linear, and written down as one flat array: weights, then biases. Elementwise maps have
weights (M, K), z'_k = Σ_m A_mk·z_mk + b_k; maps that mix labels have weights (K, K),
z'_k = Σ_j A_jk·z_j + b_k.

The search does not move weights but deviations from the identity, an average of the
learners that all labels share: a strength between 0 and 1 then says how much of a
deviation is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ..losses import RowTargets
from .platt import fit_platt
from .shares import fit_shares


class _Transform(NamedTuple):
    """What deviations of one kind are.

    ``size(M, K)`` counts them, ``sigma`` is the step that the search begins with, and
    ``gains(deviations (p, size), shares (M,), K)`` are the weights (p, rows, K), in the
    unit of the identity, and the biases (p, K) that they stand for.
    ``pull(gains (rows, K), slope (rows, K))`` are derivatives in the deviations but for
    the biases, ``slope`` being those in the gains.
    """

    size: Callable[[int, int], int]
    sigma: float
    gains: Callable[
        [NDArray[np.float64], NDArray[np.float64], int],
        tuple[NDArray[np.float64], NDArray[np.float64]],
    ]
    pull: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


_Gains = tuple[NDArray[np.float64], NDArray[np.float64]]


# Where a deviation changes no loss a search drifts, in the end beyond all numbers.
# Beyond these nothing is gained: of biases and weights, and of scales (e¹⁰).
_LARGEST = 1e6
_MOST_STRETCH = 10.0


def _bias_gains(
    deviations: NDArray[np.float64], shares: NDArray[np.float64], k: int
) -> _Gains:
    shape = (len(deviations), len(shares), k)
    return np.broadcast_to(shares[:, None], shape), deviations


def _affine_gains(
    deviations: NDArray[np.float64], shares: NDArray[np.float64], k: int
) -> _Gains:
    stretch = np.exp(np.clip(deviations[:, None, :k], -_MOST_STRETCH, _MOST_STRETCH))
    return shares[:, None] * stretch, deviations[:, k:]


def _weight_gains(
    deviations: NDArray[np.float64], shares: NDArray[np.float64], k: int
) -> _Gains:
    m = len(shares)
    own = deviations[:, : m * k].reshape(-1, m, k)
    return shares[:, None] + own, deviations[:, m * k :]


def _mixing_gains(
    deviations: NDArray[np.float64], shares: NDArray[np.float64], k: int
) -> _Gains:
    # Every label has K entries: divided by K they move it as far as one scale would.
    mixed = deviations[:, : k * k].reshape(-1, k, k) / k
    return np.eye(k) + mixed, deviations[:, k * k :]


def _nothing(
    gains: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.empty(0)


def _pull_stretch(
    gains: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray((gains * slope).sum(axis=0))


def _pull_weights(
    gains: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    return slope.ravel()


def _pull_mixing(
    gains: NDArray[np.float64], slope: NDArray[np.float64]
) -> NDArray[np.float64]:
    return slope.ravel() / slope.shape[1]


_BIAS = _Transform(lambda m, k: k, 0.15, _bias_gains, _nothing)
_TRANSFORMS: dict[str, _Transform] = {
    "affine": _Transform(lambda m, k: 2 * k, 0.15, _affine_gains, _pull_stretch),
    "average": _BIAS,
    "bias": _BIAS,
    "mixing": _Transform(lambda m, k: k * k + k, 0.15, _mixing_gains, _pull_mixing),
    "thresholds": _BIAS,
    "weights": _Transform(lambda m, k: m * k + k, 0.1, _weight_gains, _pull_weights),
}


@dataclass(frozen=True, eq=False)
class MapSpace:
    """The maps of one transform, as deviations from the average of the learners.

    Attributes
    ----------
    transform : {"affine", "average", "bias", "mixing", "thresholds", "weights"}
        What deviations change: a scale and a bias a label of the average; nothing; a
        bias a label; the labels' influence on each other and biases; biases (that are
        not evolved); a weight for each learner and label, and biases.
    n_labels : int
    scale, offset : float64 arrays (M,)
        What makes the learners' scores logits of one unit.
    shares : float64 array (M,), default=None
        The learners' weights where there is no deviation; None for the plain average.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.score_map import MapSpace, apply_map
    >>> space = MapSpace("bias", 2, scale=np.array([1.0]), offset=np.array([0.0]))
    >>> full, half = (space.maps(np.array([[2.0, -2.0]]), strength=s) for s in (1, 0.5))
    >>> half
    array([[ 1.,  1.,  1., -1.]])
    >>> apply_map(half[0], np.array([[[0.5, 0.5]]]))
    array([[ 1.5, -0.5]])
    """

    transform: str
    n_labels: int
    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    shares: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.transform not in _TRANSFORMS:
            raise ValueError(
                f"transform must be one of {sorted(_TRANSFORMS)}, "
                f"got {self.transform!r}."
            )
        if self.mixing and self.n_learners != 1:
            raise ValueError(
                "transform='mixing' maps the scores of one learner, "
                f"got those of {self.n_learners}."
            )

    @classmethod
    def fit(
        cls, scores: NDArray[np.floating], targets: RowTargets, transform: str
    ) -> MapSpace:
        """Return the space whose identity has logits of one unit.

        A single learner gets a scale alone: the identity leaves its decisions as they
        are. Several get a bias each too, without which their average means little;
        where they may have weights, those that suit all labels together come first.
        """
        _, n_learners, n_labels = scores.shape
        fits = [fit_platt(scores[:, m], targets) for m in range(n_learners)]
        scale, offset = np.array(fits).reshape(-1, 2).T
        if n_learners == 1:
            offset = np.zeros(1)
        shares = None
        if transform == "weights":
            shares = fit_shares(scores * scale[:, None] + offset[:, None], targets)
        return cls(transform, n_labels, scale.copy(), offset.copy(), shares)

    def of_learners(
        self,
        learners: NDArray[np.integer],
        scores: NDArray[np.floating],
        targets: RowTargets,
    ) -> MapSpace:
        """Return the space of some of the learners, with shares of their own.

        Parameters
        ----------
        learners : int array (m,)
        scores : float array (n, M, K)
            Of all learners.
        targets : RowTargets
        """
        scale, offset = self.scale[learners], self.offset[learners]
        shares = None
        if self.shares is not None:
            own = scores[:, learners]
            shares = fit_shares(own * scale[:, None] + offset[:, None], targets)
        return MapSpace(self.transform, self.n_labels, scale, offset, shares)

    @property
    def n_learners(self) -> int:
        """M."""
        return len(self.scale)

    @property
    def _shares(self) -> NDArray[np.float64]:
        if self.shares is None:
            return np.full(self.n_learners, 1.0 / self.n_learners)
        return self.shares

    @property
    def mixing(self) -> bool:
        """Whether weights are (K, K)."""
        return self.transform == "mixing"

    @property
    def evolved(self) -> bool:
        """Whether there is anything for a search to find."""
        return self.transform not in ("average", "thresholds")

    @property
    def n_deviations(self) -> int:
        """Coordinates of a deviation."""
        return _TRANSFORMS[self.transform].size(self.n_learners, self.n_labels)

    @property
    def sigma(self) -> float:
        """The first step of a search."""
        return _TRANSFORMS[self.transform].sigma

    def maps(
        self,
        deviations: NDArray[np.floating],
        shift: float = 0.0,
        strength: float = 1.0,
    ) -> NDArray[np.float64]:
        """Return the maps of deviations, as flat arrays.

        Parameters
        ----------
        deviations : float array (p, n_deviations)
        shift : float, default=0.0
            A bias that all labels have in common.
        strength : float, default=1.0
            What the deviations, not the shift, are multiplied by.

        Returns
        -------
        float64 array (p, (M + 1)·K), or (p, (K + 1)·K) for mixing
        """
        exact = np.asarray(deviations, dtype=np.float64)
        gains, bias = _TRANSFORMS[self.transform].gains(
            strength * np.clip(exact, -_LARGEST, _LARGEST),
            self._shares,
            self.n_labels,
        )
        scale, offset = self._units
        bias = bias + np.einsum("prk,r->pk", gains, offset) + shift
        weights = gains * scale[:, None]
        return np.concatenate([weights.reshape(len(weights), -1), bias], axis=1)

    @property
    def _units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scale and offset of each row of the weights."""
        if not self.mixing:
            return self.scale, self.offset
        # Every row is of the one learner.
        return np.repeat(self.scale, self.n_labels), np.repeat(
            self.offset, self.n_labels
        )

    def pulled_back(
        self,
        deviations: NDArray[np.floating],
        weights: NDArray[np.float64],
        bias: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return derivatives (n,) in the deviations, from those in the map of them.

        Parameters
        ----------
        deviations : float array (n,)
        weights : float64 array (rows, K)
        bias : float64 array (K,)
        """
        transform = _TRANSFORMS[self.transform]
        exact = np.asarray(deviations, dtype=np.float64)[None]
        gains, _ = transform.gains(exact, self._shares, self.n_labels)
        scale, offset = self._units
        slope = weights * scale[:, None] + bias * offset[:, None]
        return np.concatenate([transform.pull(gains[0], slope), bias])

    def identity(self, shift: float = 0.0) -> NDArray[np.float64]:
        """Return the map of no deviation, flat."""
        return self.maps(np.zeros((1, self.n_deviations)), shift)[0]


def apply_map(
    theta: NDArray[np.floating],
    scores: NDArray[np.floating],
    *,
    mixing: bool = False,
) -> NDArray[np.float64]:
    """Return the logits (n, K) of one flat map on the scores (n, M, K)."""
    maps = np.asarray(theta, dtype=np.float64)[None]
    given = np.ascontiguousarray(scores, dtype=np.float64)
    return apply_maps(*split_maps(maps, given.shape[2]), given, mixing)[0]


def moved_map(
    theta: NDArray[np.float64],
    gain: float | NDArray[np.float64],
    bias: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the flat map whose logits are gain·z + bias, those of the given being z.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._maps.score_map import moved_map
    >>> moved_map(np.array([1.0, 1.0, 0.5, 0.0]), 2.0, np.array([0.0, 1.0]))
    array([2., 2., 1., 1.])
    """
    rows = theta.reshape(-1, len(bias)) * gain
    rows[-1] += bias
    return rows.ravel()


def split_maps(
    maps: NDArray[np.float64], n_labels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights (p, rows, K) and biases (p, K) of flat maps (p, size)."""
    weights = maps[:, :-n_labels].reshape(len(maps), -1, n_labels)
    return np.ascontiguousarray(weights), np.ascontiguousarray(maps[:, -n_labels:])


def apply_maps(
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
    scores: NDArray[np.float64],
    mixing: bool,
) -> NDArray[np.float64]:
    """Return the logits (p, n, K) of maps on the scores (n, M, K).

    No sum depends on which rows or maps are computed together.
    """
    out = np.empty((len(weights), len(scores), scores.shape[2]))
    (_mix if mixing else _weigh)(weights, bias, scores, out)
    return out


@compiled
def _weigh(weights, bias, scores, out):  # type: ignore[no-untyped-def]
    # The bias comes first: with one learner a score that equals its threshold gives
    # exactly 0, and the nearest float above it more.
    for p in range(out.shape[0]):
        for i in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[p, i, k] = bias[p, k]
            for m in range(scores.shape[1]):
                for k in range(out.shape[2]):
                    out[p, i, k] += weights[p, m, k] * scores[i, m, k]


@compiled
def _mix(weights, bias, scores, out):  # type: ignore[no-untyped-def]
    for p in range(out.shape[0]):
        for i in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[p, i, k] = bias[p, k]
            for j in range(out.shape[2]):
                score = scores[i, 0, j]
                for k in range(out.shape[2]):
                    out[p, i, k] += weights[p, j, k] * score
