"""The page of one fitted estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._support.names import column_names
from .._support.paths import PathLike
from ..losses import get_losses, loss_values
from ._runs import front_of, trajectory_of
from ._sections import group, loss_title, number_cell, table, text_cell
from .page import build_page, write_page

_LONGEST_SETTING = 120


def report_of(estimator: Any, path: PathLike, X: Any = None, Y: Any = None) -> Path:
    """Write the page of a fitted estimator.

    Parameters
    ----------
    estimator : CLMLClassifier, LebesgueTunedClassifier or LebesgueStackingClassifier
        Fitted.
    path : str or path
        Where the HTML file goes. It needs no other file and no network.
    X, Y : array-like or sparse matrix, default=None
        Test rows and their labels: the page then shows the test losses of every member
        of the front, and how well it finds each label. Labels of a frame are found by
        their names, in any order.

    Returns
    -------
    Path
        Where it is.
    """
    return write_page(path, build_page(estimator_data(estimator, X, Y)))


def estimator_data(estimator: Any, X: Any = None, Y: Any = None) -> dict[str, Any]:
    """Return what a page shows of an estimator, as :func:`build_page` takes it.

    Parameters
    ----------
    estimator, X, Y
        As for :func:`report_of`.

    Returns
    -------
    dict

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import PAPER_SETTINGS, CLMLClassifier
    >>> from clml.report import estimator_data
    >>> X, Y = make_multilabel_classification(n_samples=60, random_state=0)
    >>> clf = CLMLClassifier(**PAPER_SETTINGS | {"max_epochs": 5}, random_state=0)
    >>> data = estimator_data(clf.fit(X, Y), X, Y)
    >>> [group["title"] for group in data["groups"]]
    ['Overview', 'Settings']
    >>> len(data["runs"][0]["front"]["test"]) == len(clf.front_)
    True
    """
    if not hasattr(estimator, "get_params"):
        raise TypeError(
            "estimator must be a fitted estimator that has a front_, "
            f"got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "front_"):
        raise TypeError(
            "estimator must have a front_, as CLMLClassifier does after fit, "
            f"got {type(estimator).__name__}."
        )
    if (X is None) != (Y is None):
        missing = "X" if X is None else "Y"
        raise ValueError(f"X and Y go together, but {missing} is None.")
    name = type(estimator).__name__
    counts = {} if X is None else _judged(estimator, X, Y)
    front = _front(estimator, counts)
    run = {
        "name": name,
        "trajectory": trajectory_of(estimator.history_, estimator.front_.loss_names),
        "front": front,
    }
    return {
        "title": f"A fitted {name}",
        "subtitle": f"{len(estimator.front_)} models to choose from after "
        f"{estimator.n_epochs_} epochs.",
        "groups": [
            group(
                "overview",
                "Overview",
                facts=_facts(estimator, X),
                tables=[_rules_table(front)],
            ),
            group(
                "settings",
                "Settings",
                tables=[_settings_table(estimator)],
                late=True,
            ),
        ],
        "runs": [run],
        "notes": [],
    }


def _judged(estimator: Any, X: Any, Y: Any) -> dict[str, Any]:
    """Return test losses and label counts of every member and of the default."""
    losses = get_losses(estimator.losses)
    true = estimator._encode_targets(Y, "Y", column_names(Y))
    front = estimator.front_

    def judge(model: Any) -> tuple[NDArray, NDArray, NDArray]:
        scores = np.asarray(model.decision_function(X)).reshape(len(true), -1)
        decided = scores > 0
        right = (decided & true.astype(bool)).sum(axis=0)
        return loss_values(true, scores, losses), right, decided.sum(axis=0)

    if len(true) != _n_rows(X):
        raise ValueError(
            f"X and Y must have as many rows, got {_n_rows(X)} and {len(true)}."
        )
    values = [judge(estimator.select(i)) for i in range(len(front))]
    test, hits, predicted = (np.stack(part) for part in zip(*values, strict=True))
    own = judge(estimator)
    return {
        "test": test,
        "hits": hits,
        "predicted": predicted,
        "relevant": true.sum(axis=0),
        "own": dict(zip(("test", "hits", "predicted"), own, strict=True)),
    }


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _front(estimator: Any, counts: dict[str, Any]) -> dict[str, Any]:
    chosen, front = estimator.incumbent_, estimator.front_
    if chosen == "mean" and front.default is not None:
        chosen = front.default
    member = isinstance(chosen, int | np.integer)
    words = "member that predicts" if member else f"what predicts, {chosen!r}"
    default: dict[str, Any] = {"name": words, "index": int(chosen) if member else None}
    if not member:
        default |= counts.get("own", {})
        default["validation"] = _final_losses(estimator)
    counted = {k: v for k, v in counts.items() if k != "own"}
    counted["row_rules"] = front.rules
    if np.isfinite(front.standard_error).any():
        counted["standard_error"] = front.standard_error
    if front.default is not None:
        counted["difference_error"] = front.difference_error
        counted["compared_with"] = front.default
    return front_of(
        front.losses,
        front.loss_names,
        default=default,
        rows=_judging_rows(estimator),
        labels=[str(label) for label in estimator.label_names_],
        **counted,
    )


def _final_losses(estimator: Any) -> NDArray | None:
    """Return by what the last incumbent was judged, where that is what predicts.

    The mean of a search, and maps of members, are judged after the last epoch.
    """
    judged = estimator.history_.get("incumbent_validation", ())
    predicts = estimator.incumbent_ == "final" and not hasattr(estimator, "networks_")
    return judged[-1] if predicts and len(judged) else None


def _judging_rows(estimator: Any) -> str:
    """Return which rows the losses of the front are of."""
    if hasattr(estimator, "cv") or hasattr(estimator, "networks_"):
        return "left-out"
    judged = "incumbent_validation" in estimator.history_
    return "validation" if judged else "training"


def _facts(estimator: Any, X: Any) -> dict[str, str]:
    features = getattr(estimator, "n_features_in_", None)
    facts = {
        "losses": ", ".join(loss_title(n) for n in estimator.front_.loss_names),
        "labels": estimator.n_labels_,
        "features": features,
        "epochs": estimator.n_epochs_,
        "models in the front": len(estimator.front_),
        "what predicts": estimator.incumbent_,
        "rule for whole rows": estimator.rule_,
        "test rows": None if X is None else _n_rows(X),
        "stopped early": "yes, by the user" if estimator.interrupted_ else None,
    }
    measure = estimator.history_.get("archive_measure")
    if measure is not None and len(measure):
        facts["Lebesgue measure"] = f"{measure[-1]:.4f}"
    return {name: str(value) for name, value in facts.items() if value is not None}


def _rules_table(front: dict[str, Any]) -> dict[str, Any]:
    """Return the losses of the member that each rule selects."""
    parts = ["validation"] + (["test"] if front["test"] is not None else [])
    words = {"validation": front["rows"], "test": "test"}
    rows = [
        [
            text_cell(preset["name"]),
            text_cell(preset["index"]) | {"value": preset["index"]},
            *(
                number_cell(value)
                for part in parts
                for value in front[part][preset["index"]]
            ),
        ]
        for preset in front["presets"]
    ]
    own = front["default"]["test"]
    if own is not None:
        blank = [text_cell("\u2013")] * (1 + len(front["loss_names"]))
        cells = [number_cell(value) for value in own]
        rows.insert(0, [text_cell(front["default"]["name"]), *blank, *cells])
    columns = [
        f"{title}, {words[part]}" for part in parts for title in front["loss_titles"]
    ]
    return table("rules", "What each rule selects", ["rule", "member", *columns], rows)


def _settings_table(estimator: Any) -> dict[str, Any]:
    fresh = _defaults(type(estimator))
    rows = []
    for name, value in sorted(estimator.get_params(deep=False).items()):
        text = " ".join(repr(value).split())
        if len(text) > _LONGEST_SETTING:
            text = text[: _LONGEST_SETTING - 1] + "\u2026"
        changed = (
            "changed" if name not in fresh or repr(fresh[name]) != repr(value) else ""
        )
        rows.append([text_cell(name), text_cell(text), text_cell(changed)])
    columns = ["parameter", "value", "differs from the default"]
    return table("settings-table", "Parameters", columns, rows, words=3)


def _defaults(kind: type) -> dict[str, Any]:
    """Return the default values of a constructor."""
    import inspect

    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}
