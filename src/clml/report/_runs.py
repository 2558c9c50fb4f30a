"""One run as plain values: its trajectory and its front, for the page to explore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._maps.front import ParetoFront, _log_geometric_mean
from ._sections import loss_title

Floats = NDArray[np.float64]

# What a trajectory keeps: a curve of more points looks the same.
MOST_EPOCHS = 400
# What a front may hold before the page would be too much for a browser.
MOST_MEMBERS, MOST_LABELS, MOST_LOSSES = 500, 5000, 12

# Series of a history that are places in the space of the losses, as readers know them.
_SERIES = {
    "incumbent_train": "incumbent, training rows",
    "incumbent_validation": "incumbent, validation rows",
    "mean_train": "mean of the search, training rows",
    "mean_validation": "mean of the search, validation rows",
}
# What a trajectory can be coloured by, the first that a history has.
_COLOURS = {
    "incumbent_binary_cross_entropy_train": "cross-entropy, training rows",
    "incumbent_row_log_loss_train": "row log loss, training rows",
}


def trajectory_of(
    history: Mapping[str, ArrayLike], loss_names: Sequence[str]
) -> dict[str, Any] | None:
    """Return the losses of a run epoch by epoch, thinned; None if it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.report._runs import trajectory_of
    >>> history = {"incumbent_train": np.array([[0.5, 0.4], [0.3, 0.2]])}
    >>> found = trajectory_of(history, ["hamming", "lrap"])
    >>> found["epochs"], found["series"][0]["values"]
    ([1, 2], [[0.5, 0.4], [0.3, 0.2]])
    """
    o = len(loss_names)
    arrays = {name: np.asarray(history[name]) for name in _SERIES if name in history}
    arrays = {
        name: values.astype(np.float64)
        for name, values in arrays.items()
        if values.ndim == 2 and values.shape[1] == o and len(values)
    }
    if not arrays or o < 2 or o > MOST_LOSSES:
        return None
    epochs = min(len(values) for values in arrays.values())
    kept = np.unique(np.linspace(0, epochs - 1, min(epochs, MOST_EPOCHS)).astype(int))
    return {
        "loss_titles": [loss_title(name) for name in loss_names],
        "epochs": [int(i) + 1 for i in kept],
        "series": [
            {"name": _SERIES[name], "values": _plain(values[kept], 6)}
            for name, values in arrays.items()
        ],
        "colour": _colour(history, epochs, kept),
        "measure": _measure(history, epochs, kept),
    }


def _colour(
    history: Mapping[str, ArrayLike], epochs: int, kept: NDArray[np.integer]
) -> dict[str, Any]:
    for name, title in _COLOURS.items():
        if name in history:
            values = np.asarray(history[name], dtype=np.float64)
            if values.shape == (epochs,) and np.isfinite(values).all():
                return {"name": title, "values": _plain(values[kept], 6)}
    return {"name": "epoch", "values": [int(i) + 1 for i in kept]}


def _measure(
    history: Mapping[str, ArrayLike], epochs: int, kept: NDArray[np.integer]
) -> list[Any] | None:
    values = np.asarray(history.get("archive_measure", ()), dtype=np.float64)
    return _plain(values[kept], 6) if values.shape == (epochs,) else None


def front_of(
    losses: ArrayLike,
    loss_names: Sequence[str],
    *,
    default: Mapping[str, Any],
    rows: str = "validation",
    test: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    relevant: ArrayLike | None = None,
    hits: ArrayLike | None = None,
    predicted: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    difference_error: ArrayLike | None = None,
    compared_with: int | None = None,
    row_rules: Sequence[str | None] | None = None,
) -> dict[str, Any]:
    """Return a front with all that the page needs to choose from it.

    Parameters
    ----------
    losses : array-like of shape (m, o)
        What members are chosen by.
    loss_names : sequence of str
    default : mapping
        The model that predicts: its ``name``, its ``index`` in the front or None,
        and, where it is no member, ``validation`` and ``test`` losses, ``hits`` and
        ``predicted`` counts, each or None.
    rows : str, default="validation"
        Which rows ``losses`` are of.
    test : array-like of shape (m, o), default=None
    labels : sequence of str, default=None
        Names of the K labels.
    relevant : array-like of shape (K,), default=None
        Test rows that have each label.
    hits, predicted : array-like of shape (m, K), default=None
        Test rows for which each member decides for a label: rightly, and at all.
    standard_error, difference_error : array-like of shape (m, o), default=None
        How far off ``losses`` may be, and their differences from those of the member
        ``compared_with``, which is chosen where none is clearly better.
    compared_with : int, default=None
    row_rules : sequence of str or None, default=None
        What decides the rows of each member beside its numbers.

    Returns
    -------
    dict
    """
    front = _checked_front(
        losses, loss_names, standard_error, difference_error, compared_with, row_rules
    )
    m, o = front.losses.shape
    # Ties of weighted sums go by this order: the page need not take logarithms.
    tie_rank = np.empty(m, dtype=int)
    tie_rank[np.lexsort((_log_geometric_mean(front.losses),))] = np.arange(m)
    rules = [*front.loss_names, *(("knee", "geometric_mean") if o > 1 else ())]
    titles = [f"best {loss_title(name)}" for name in front.loss_names]
    found: dict[str, Any] = {
        "rows": rows,
        "loss_names": list(front.loss_names),
        "loss_titles": [loss_title(name) for name in front.loss_names],
        "validation": front.losses.tolist(),
        "standard_error": None
        if standard_error is None
        else _plain(front.standard_error, 8),
        "compared_with": compared_with,
        "row_rules": list(front.rules) if any(front.rules) else None,
        "clear_lead": None if compared_with is None else front.clear_lead.tolist(),
        "test": None if test is None else _plain(_shaped(test, (m, o), "test"), 8),
        "tie_rank": tie_rank.tolist(),
        "presets": [
            {"name": title, "index": front.choice(rule)[0]}
            for title, rule in zip(
                [*titles, "knee", "geometric mean"], rules, strict=False
            )
        ],
        "labels": None,
        "default": _default(
            default, m, o, 0 if relevant is None else np.size(relevant)
        ),
    }
    if relevant is not None and hits is not None and predicted is not None:
        true = _counts(relevant, (np.size(relevant),), "relevant")
        k = len(true)
        found |= {
            "labels": list(labels or [f"label{i}" for i in range(k)])[:MOST_LABELS],
            "relevant": true.tolist()[:MOST_LABELS],
            "hits": _counts(hits, (m, k), "hits")[:, :MOST_LABELS].tolist(),
            "predicted": _counts(predicted, (m, k), "predicted")[
                :, :MOST_LABELS
            ].tolist(),
        }
        if len(found["labels"]) != len(found["relevant"]):
            raise ValueError(
                f"labels must name the {k} labels that are counted, "
                f"got {len(found['labels'])} names."
            )
    start = found["default"]["index"]
    found["start"] = front.choice("geometric_mean")[0] if start is None else start
    return found


def _checked_front(
    losses: ArrayLike,
    loss_names: Sequence[str],
    standard_error: ArrayLike | None,
    difference_error: ArrayLike | None,
    default: int | None,
    row_rules: Sequence[str | None] | None,
) -> ParetoFront:
    array = np.asarray(losses, dtype=np.float64)
    if array.ndim != 2 or not len(array) or not np.isfinite(array).all():
        raise ValueError(
            "The losses of a front must be a finite array (members, losses), "
            f"got shape {array.shape}."
        )
    m, o = array.shape
    if m > MOST_MEMBERS or o > MOST_LOSSES:
        raise ValueError(
            f"A front on a page has at most {MOST_MEMBERS} members and {MOST_LOSSES} "
            f"losses, got {m} and {o}."
        )
    names = tuple(str(name) for name in loss_names)
    return ParetoFront(
        array,
        names,
        np.zeros((m, 1), dtype=np.float32),
        standard_error=_errors(standard_error, (m, o), "standard_error"),
        difference_error=_errors(difference_error, (m, o), "difference_error"),
        default=default,
        rules=None if row_rules is None else tuple(row_rules),  # type: ignore[arg-type]
    )


def _errors(values: ArrayLike | None, shape: tuple[int, int], name: str) -> Floats:
    return _shaped(np.full(shape, np.nan) if values is None else values, shape, name)


def _default(default: Mapping[str, Any], m: int, o: int, k: int) -> dict[str, Any]:
    """Return what is known of the model that predicts, k labels counted."""
    index = default.get("index")
    if index is not None and not 0 <= index < m:
        raise ValueError(f"The front has {m} members, got a default index of {index}.")

    found: dict[str, Any] = {"name": str(default["name"]), "index": index}
    sizes = {"validation": o, "test": o, "hits": k, "predicted": k}
    for name, size in sizes.items():
        values = default.get(name)
        if values is not None:
            values = _plain(_shaped(values, (size,), f"default {name}"), 8)
            values = values[:MOST_LABELS]
        found[name] = values
    return found


def _shaped(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    return array


def _counts(values: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.int64]:
    array = _shaped(values, shape, name)
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must hold counts, not negative and finite.")
    return array.astype(np.int64)


def _plain(values: NDArray[Any], digits: int) -> list[Any]:
    """Return nested lists of numbers of some digits, None where one is not finite."""
    if values.ndim > 1:
        return [_plain(row, digits) for row in values]
    return [
        float(f"{value:.{digits}g}") if np.isfinite(value) else None
        for value in values.tolist()
    ]


def run_of_artifact(
    name: str, artifact: Mapping[str, NDArray[Any]], record: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return what a stored run shows, and sentences about what it could not.

    An artifact is a file that somebody may have changed: a part that does not fit
    together is left out.
    """
    trouble = []
    trajectory = front = None
    history = {
        key.removeprefix("history/"): values
        for key, values in artifact.items()
        if key.startswith("history/")
    }
    names = [str(s) for s in np.ravel(artifact.get("history/loss_names", ()))]
    try:
        trajectory = trajectory_of(history, names) if names else None
        if "front/validation" in artifact and "front/loss_names" in artifact:
            front = _stored_front(artifact, record)
    except (TypeError, ValueError) as error:
        trouble.append(f"{name}: {error}")
    if trajectory is None and front is None:
        return None, trouble
    return {"name": name, "trajectory": trajectory, "front": front}, trouble


def _stored_front(
    artifact: Mapping[str, NDArray[Any]], record: Mapping[str, Any]
) -> dict[str, Any]:
    names = [str(s) for s in np.ravel(artifact["front/loss_names"])]
    chosen = int(artifact["front/chosen"]) if "front/chosen" in artifact else -1
    default: dict[str, Any] = {"name": "the model that predicts", "index": None}
    if chosen >= 0:
        default["index"] = chosen
    else:
        # Counts of the model itself are optional, as all of an artifact is.
        for name in ("hits", "predicted"):
            default[name] = artifact.get(f"default/{name}")
        losses = record.get("losses") or {}
        for part in ("validation", "test"):
            of_part = losses.get(part) or {}
            if all(loss in of_part for loss in names):
                default[part] = [of_part[loss] for loss in names]
    labels = artifact.get("labels")
    rules = None
    if "front/rules" in artifact:
        rules = [str(rule) or None for rule in np.ravel(artifact["front/rules"])]
    return front_of(
        artifact["front/validation"],
        names,
        default=default,
        test=artifact.get("front/test"),
        labels=None if labels is None else [str(s) for s in np.ravel(labels)],
        relevant=artifact.get("front/relevant"),
        hits=artifact.get("front/hits"),
        predicted=artifact.get("front/predicted"),
        row_rules=rules,
    )
