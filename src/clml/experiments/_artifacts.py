"""What a fitted model tells beside its losses: its run, its front, its probabilities.

The names of the arrays are those of a results folder; see :class:`Results`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from .._learners.scores import label_logits, uncalibrated_logits
from ..losses import loss_values

Arrays = dict[str, NDArray[Any]]
# The paper's figures of label probabilities and of calibration have as many bins.
PROBABILITY_BINS, CALIBRATION_BINS = 50, 10
# Decisions (rows × labels) that all members of a front together may take.
_MOST_DECISIONS = 100_000_000
_FOLLOWED = "incumbent_row_log_loss_validation"


def unwrapped(model: Any, *features: Any) -> tuple[Any, ...]:
    """Return the last step of a pipeline, and features as that step sees them."""
    while hasattr(model, "steps"):
        features = tuple(model[:-1].transform(X) for X in features)
        model = model.steps[-1][1]
    return model, *features


def validation_losses(model: Any) -> dict[str, float] | None:
    """Return the losses by which the model that predicts was judged, if it tells."""
    (model,) = unwrapped(model)
    front = getattr(model, "front_", None)
    history = getattr(model, "history_", None)
    incumbent = getattr(model, "incumbent_", None)
    if front is None or history is None:
        return None
    if isinstance(incumbent, int | np.integer):
        values = front.losses[incumbent]
    elif hasattr(model, "networks_"):
        # The history is of the members' mean; the maps of their scores came after it,
        # and the losses of the final one are not kept.
        return None
    elif incumbent == "final" and "incumbent_validation" in history:
        values = history["incumbent_validation"][-1]
    else:
        return None
    if not np.isfinite(values).all():
        return None
    losses = {n: float(v) for n, v in zip(front.loss_names, values, strict=True)}
    followed = np.asarray(history.get(_FOLLOWED, ()), dtype=np.float64)
    if incumbent == "final" and len(followed) and np.isfinite(followed[-1]):
        losses.setdefault(
            "row_log_loss", float(followed[-1])
        )  # of the paper's ablation
    return losses


def artifacts_of(
    model: Any,
    parts: tuple[Any, Any, Any, Any],
    label_names: NDArray[Any],
    random_state: int,
) -> Arrays:
    """Return the arrays of a fitted model, none if it has no front.

    Parameters
    ----------
    model : fitted estimator, or a pipeline that ends in one
    parts : tuple
        Features of the training and the test rows, then their labels.
    label_names : array of str
    random_state : int
        Of the copy that is trained for one epoch, to compare with.
    """
    X_train, X_test, Y_train, Y_test = parts
    model, X_train, X_test = unwrapped(model, X_train, X_test)
    if not hasattr(model, "front_") or not hasattr(model, "select"):
        return {}
    found = {"labels": np.asarray(label_names, dtype=str)}
    found |= _history(model)
    found |= _front(model, X_test, Y_test)
    logits = uncalibrated_logits(model, X_test, Y_test.shape[1])
    found |= _probabilities("after", logits, Y_test)
    if getattr(model, "temperature_", 1.0) != 1.0:
        # Beside the paper's, which is not calibrated: what predict_proba returns.
        logits = label_logits(model, X_test, Y_test.shape[1])
        found |= _probabilities("calibrated", logits, Y_test)
    if "max_epochs" in model.get_params(deep=False):
        early = clone(model).set_params(max_epochs=1).fit(X_train, Y_train)
        logits = uncalibrated_logits(early, X_test, Y_test.shape[1])
        found |= _probabilities("before", logits, Y_test)
    return found


def _history(model: Any) -> Arrays:
    arrays = {
        f"history/{name}": np.asarray(values)
        for name, values in getattr(model, "history_", {}).items()
        if np.asarray(values).dtype.kind in "biuf"
    }
    names = np.asarray(model.front_.loss_names, dtype=str)
    return {**arrays, "history/loss_names": names}


def chosen_member(model: Any) -> int:
    """Return which member of the front predicts, −1 if none does."""
    incumbent = getattr(model, "incumbent_", None)
    return int(incumbent) if isinstance(incumbent, int | np.integer) else -1


def shown_members(
    losses: NDArray[np.float64], most: int, chosen: int = -1
) -> NDArray[np.intp]:
    """Return the members of a front to show: all, or as many along it as may be.

    The best of each loss and the chosen one are among them.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.experiments._artifacts import shown_members
    >>> losses = np.column_stack([np.arange(10), 9 - np.arange(10)])
    >>> shown_members(losses, most=4, chosen=5)
    array([0, 3, 5, 6, 9])
    """
    if len(losses) <= most:
        return np.arange(len(losses))
    order = np.argsort(losses[:, 0], kind="stable")
    along = order[np.linspace(0, len(losses) - 1, most).round().astype(int)]
    kept = [along, losses.argmin(axis=0), [chosen] if chosen >= 0 else []]
    return np.unique(np.concatenate(kept).astype(np.intp))


def _front(model: Any, X: Any, Y: NDArray[np.int64]) -> Arrays:
    front, chosen = model.front_, chosen_member(model)
    names = list(front.loss_names)
    members = shown_members(
        front.losses, max(_MOST_DECISIONS // max(Y.size, 1), 10), chosen
    )
    losses = np.empty((len(members), len(names)))
    predicted = np.empty((len(members), Y.shape[1]), dtype=np.int64)
    hits = np.empty_like(predicted)
    for place, member in enumerate(members):
        scores = label_logits(model.select(int(member)), X, Y.shape[1])
        losses[place] = loss_values(Y, scores, names)
        decided = scores > 0
        predicted[place] = decided.sum(axis=0)
        hits[place] = (decided & (Y == 1)).sum(axis=0)
    rules = [front.rules[member] or "" for member in members]
    place_of_chosen = int(np.searchsorted(members, chosen)) if chosen >= 0 else -1
    decided = label_logits(model, X, Y.shape[1]) > 0
    return {
        "default/predicted": decided.sum(axis=0),
        "default/hits": (decided & (Y == 1)).sum(axis=0),
        "front/loss_names": np.asarray(names, dtype=str),
        "front/validation": np.asarray(front.losses[members], dtype=np.float64),
        "front/test": losses,
        "front/hits": hits,
        "front/predicted": predicted,
        "front/relevant": Y.sum(axis=0).astype(np.int64),
        "front/chosen": np.asarray(place_of_chosen),
        **({"front/rules": np.asarray(rules, dtype=str)} if any(rules) else {}),
    }


def _probabilities(
    when: str, logits: NDArray[np.float64], Y: NDArray[np.int64]
) -> Arrays:
    """Return how often probabilities lie in each bin, and the calibration curve."""
    probability, relevant = expit(logits).ravel(), Y.ravel() == 1
    correct = (logits.ravel() > 0) == relevant
    edges, place = _places(probability, PROBABILITY_BINS)
    counts = [
        np.bincount(place[part], minlength=PROBABILITY_BINS)
        for part in (correct, ~correct)
    ]
    _, place = _places(probability, CALIBRATION_BINS)
    total, *sums = (
        np.bincount(place, weights=weights, minlength=CALIBRATION_BINS)
        for weights in (None, probability, relevant)
    )
    with np.errstate(invalid="ignore"):
        curve = np.stack(sums) / total
    return {
        "probability/bins": edges,
        f"probability/{when}": np.stack(counts),
        f"calibration/{when}": curve,
    }


def _places(
    probability: NDArray[np.float64], n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the edges of bins of equal width, and in which one each value lies."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    return edges, np.clip(np.digitize(probability, edges) - 1, 0, n_bins - 1)
