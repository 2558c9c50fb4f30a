"""Learners and transformers of scikit-learn whose nodes the package skl2onnx writes.

It writes some classes so that they predict something else: only those are taken that
the tests compare. Where its nodes can have float64 rows they get them, else float32.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import (
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
)
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from ._onnx_model import LEARNERS_DOMAIN, LEARNERS_OPSET
from ._onnx_parts import NotExportableError, PartsGraph

# Classes by what their rows may be.
_TRANSFORMERS: dict[type, type[np.floating]] = {
    Normalizer: np.float64,
    PCA: np.float64,
    PolynomialFeatures: np.float32,
    PowerTransformer: np.float32,
    QuantileTransformer: np.float64,
    TruncatedSVD: np.float64,
}


class _Kind(NamedTuple):
    """How a class is written: of which rows, and whether it is asked for decisions."""

    rows: type[np.floating]
    decides: bool = False


_CLASSIFIERS: dict[type, _Kind] = {
    AdaBoostClassifier: _Kind(np.float32, decides=True),
    BernoulliNB: _Kind(np.float32),
    GaussianNB: _Kind(np.float64),
    KNeighborsClassifier: _Kind(np.float64),
}


# Settings that are written as they predict: at no distance other weights are infinite.
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "weights": ("uniform",),
    "effective_metric_": ("euclidean", "manhattan"),
}


def import_skl2onnx() -> ModuleType:
    """Return the package skl2onnx, or say how to install it."""
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError(
            "Export of this learner needs the package skl2onnx. Install it with: "
            "pip install 'clml[onnx]'"
        ) from error
    return skl2onnx


def is_known_transformer(transformer: Any) -> bool:
    """Return whether a transformer is of a class that is written as it transforms."""
    return type(transformer) in _TRANSFORMERS and bool(import_skl2onnx())


def is_known_classifier(learner: Any, decides: bool) -> bool:
    """Return whether a classifier is of a class that is written as it predicts.

    Parameters
    ----------
    learner : fitted classifier
    decides : bool
        Whether its ``decision_function`` is asked for, else ``predict_proba``.
    """
    kind = _CLASSIFIERS.get(type(learner))
    if kind is None or kind.decides != decides:
        return False
    if type(learner) is AdaBoostClassifier:
        _check_trees(learner)
    for name, allowed in _SETTINGS.items():
        found = getattr(learner, name, allowed[0])
        if found not in allowed:
            raise NotExportableError(
                f"{type(learner).__name__} needs {name} to be one of {allowed}, "
                f"got {found!r}"
            )
    return bool(import_skl2onnx())


def _check_trees(boosted: Any) -> None:
    """Refuse what boosts anything but trees."""
    kinds = {type(model) for model in boosted.estimators_}
    if kinds - {DecisionTreeClassifier}:
        names = sorted(kind.__name__ for kind in kinds)
        raise NotExportableError(f"it must boost DecisionTreeClassifier, got {names}")


def add_transformer(graph: PartsGraph, transformer: Any, rows: str) -> str:
    """Add what a fitted transformer makes of rows (N, D)."""
    (columns,) = _add(graph, transformer, rows, _TRANSFORMERS[type(transformer)], {})
    return _without_last(graph, graph.cast(columns, np.float64))


def _without_last(graph: PartsGraph, rows: str) -> str:
    ends = [graph.table([end], np.int64) for end in (0, -1, 0)]
    return graph.node("Slice", rows, *ends)


def add_classifier_scores(
    graph: PartsGraph, learner: Any, rows: str, decides: bool
) -> str:
    """Add decisions or probabilities (N, K) of a fitted classifier.

    A label has both its classes.
    """
    options: dict[str, Any] = {"zipmap": False}
    if decides:
        options["raw_scores"] = True
    kind = _CLASSIFIERS[type(learner)].rows
    _, scores = _add(graph, learner, rows, kind, options)
    scores = graph.cast(scores, np.float64)
    # (N, 2), or of each label below each other.
    last = graph.node("Gather", scores, graph.table(1, np.int64), axis=-1)
    if isinstance(learner.classes_, list):
        last = graph.node("Transpose", last, perm=[1, 0])
    else:
        last = graph.node("Unsqueeze", last, graph.table([1], np.int64))
    return _without_last(graph, last)


def _add(
    graph: PartsGraph,
    model: Any,
    rows: str,
    dtype: type[np.floating],
    options: dict[str, Any],
) -> list[str]:
    """Add a model's nodes; return the names of its outputs."""
    n_columns = model.n_features_in_
    missing = bool(get_tags(model).input_tags.allow_nan)
    given = graph.finite(rows, n_columns, dtype, missing=missing)
    # Not all of its nodes bear that there are no rows: there is always one more.
    spare = graph.table(np.zeros((1, n_columns)), dtype)
    given = graph.node("Concat", given, spare, axis=0)
    proto = _converted(model, n_columns, dtype, options, graph.opset)
    if unknown := {i.domain for i in proto.opset_import} - {"", LEARNERS_DOMAIN}:
        raise NotExportableError(f"it needs operators of {sorted(unknown)}")
    inner = proto.graph
    names = graph.embed(inner.node, inner.initializer, {"features": given})
    return [names[output.name] for output in inner.output]


def _converted(
    model: Any,
    n_columns: int,
    dtype: type[np.floating],
    options: dict[str, Any],
    opset: int,
) -> Any:
    package = import_skl2onnx()
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if dtype is np.float64 else FloatTensorType
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it uses itself
            return package.convert_sklearn(
                model,
                name="learner",
                initial_types=[("features", kind([None, n_columns]))],
                target_opset={"": opset, LEARNERS_DOMAIN: LEARNERS_OPSET},
                options={id(model): options} if options else None,
            )
    except Exception as error:  # of whatever class skl2onnx chose
        raise NotExportableError(
            f"skl2onnx cannot write its {type(model).__name__}: "
            f"{type(error).__name__}: {error}"
        ) from error
