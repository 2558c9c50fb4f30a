"""What each learner of a stack is worth, by scores of rows that it did not see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._maps.score_engine import ScoreEngine
from .leaderboard import Leaderboard

# The learners' shares are so few numbers that they need no more scores than these.
_MOST_SCORES = 500_000


def judge_learners(
    names: Sequence[str],
    loss_names: Sequence[str],
    engine: ScoreEngine,
    seconds: Sequence[float],
) -> Leaderboard:
    """Return what each learner is worth.

    Parameters
    ----------
    names : sequence of str
    loss_names : sequence of str
    engine : ScoreEngine
        Of scores (n, M, K) of rows that the learners were not fitted on.
    seconds : sequence of float
        That the learners took.
    """
    space = engine.space
    n = len(names)
    alone = np.zeros((n, n + 1, space.n_labels))
    alone[np.arange(n), np.arange(n)] = 1.0
    maps = [*alone.reshape(n, -1), space.identity()]
    if n > 1:
        maps += [_without(engine, learner) for learner in range(n)]
    losses = engine.losses(np.array(maps))
    own, together = losses[:n], losses[n]
    costs = np.full(own.shape, np.nan)
    if n > 1:
        costs = losses[n + 1 :] - together
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.log(own).mean(axis=1), kind="stable")
    return Leaderboard(
        tuple(names[i] for i in order),
        tuple(loss_names),
        own[order],
        together,
        costs[order],
        np.asarray(seconds, dtype=np.float64)[order],
    )


def _without(engine: ScoreEngine, learner: int) -> NDArray[np.float64]:
    """Return the map (size,) of all learners but one, their shares chosen anew."""
    space = engine.space
    others = np.delete(np.arange(space.n_learners), learner)
    step = -(-engine.n_rows * space.n_labels // _MOST_SCORES)
    some = engine.take(np.arange(0, engine.n_rows, step)) if step > 1 else engine
    left = space.of_learners(others, some.given_scores, some.targets)
    weights, bias = np.split(left.identity(), [-space.n_labels])
    return np.concatenate(
        [
            np.insert(weights.reshape(len(others), -1), learner, 0.0, axis=0).ravel(),
            bias,
        ]
    )
