"""A tuned or stacked classifier as an ONNX file, with all its learners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._support.atomic import atomic_file, check_place
from .._support.paths import PathLike
from ._onnx_learners import logits_of
from ._onnx_map import map_of
from ._onnx_model import (
    DTYPES,
    LARGEST_FILE,
    check_options,
    finished_model,
    metadata_of,
)
from ._onnx_parts import NotExportableError, PartsGraph
from ._registry import ESTIMATORS, is_registered


def export_mapped(
    classifier: Any, path: PathLike, *, dtype: str = "float32", opset: int = 18
) -> None:
    """Write a fitted classifier and its learners as an ONNX graph.

    It has the input, the outputs and the metadata of
    :func:`clml.persistence.onnx.export_onnx`. Learners read float64 rows, made of
    the features; networks have the precision that is asked for.

    Parameters
    ----------
    classifier : LebesgueTunedClassifier or LebesgueStackingClassifier
        Fitted, or a copy that ``select`` returned.
    path : str or path
        The file. One that exists is replaced.
    dtype : {"float32", "float64"}, default="float32"
        Of features, networks and scores.
    opset : int, default=18
        Version of the operators, 18 to 21.

    Raises
    ------
    TypeError
        If the classifier is of another class, or if a learner has no graph: the
        message says which one, and why.
    ValueError
        If it is not fitted, reads no columns of numbers, or is larger than an ONNX
        file can be, 2 GiB.
    ImportError
        If ``onnx``, or for some learners ``skl2onnx``, is not installed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from clml import LebesgueTunedClassifier
    >>> from clml.persistence.onnx_mapped import export_mapped
    >>> X, Y = make_multilabel_classification(n_samples=50, random_state=0)
    >>> forest = RandomForestClassifier(10, random_state=0)
    >>> clf = LebesgueTunedClassifier(forest, shrinkage=0.5, random_state=0).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.onnx")
    ...     export_mapped(clf, path)
    ...     session = onnxruntime.InferenceSession(path)
    >>> batch = {"features": X.astype(np.float32)}
    >>> logits, probabilities, labels = session.run(None, batch)
    >>> bool((labels == clf.predict(X)).all())
    True
    """
    check_options(dtype, opset)
    _check_mapped(classifier)
    target = Path(path)
    check_place(target)
    graph = PartsGraph(DTYPES[dtype], opset)
    try:
        add = map_of(classifier, logits_of)
        scores = add(graph, graph.cast("features", np.float64))
    except NotExportableError as error:
        text = str(error)
        raise TypeError(f"{text[0].upper()}{text[1:]}.") from error
    graph.cast(graph.nan_where_refused(scores), graph.kind, output="logits")
    graph.keep_what_gives("logits")
    _check_size(graph)
    model = finished_model(
        graph,
        n_features=classifier.n_features_in_,
        n_labels=classifier.n_labels_,
        text=f"{type(classifier).__name__}: {classifier.n_labels_} label(s).",
        two_classes=not isinstance(classifier.classes_, list),
        dtype=dtype,
        opset=opset,
        metadata=metadata_of(classifier),
    )
    content = model.SerializeToString()
    with atomic_file(target) as file:
        file.write(content)


def _check_mapped(classifier: Any) -> None:
    kind = type(classifier)
    if not is_registered(ESTIMATORS, kind) or not hasattr(
        classifier, "_fitted_learners"
    ):
        raise TypeError(
            "Only a LebesgueTunedClassifier or a LebesgueStackingClassifier can be "
            "written with its learners, and no subclass, which may predict otherwise; "
            f"got {kind.__module__}.{kind.__qualname__}."
        )
    check_is_fitted(classifier)
    if not hasattr(classifier, "n_features_in_"):
        raise ValueError(
            "The features of an ONNX graph are a matrix of numbers, and the classifier "
            "was fitted on an X without a number of columns, such as text."
        )


def _check_size(graph: PartsGraph) -> None:
    n_bytes = sum(one.ByteSize() for one in (*graph.nodes, *graph.constants))
    if n_bytes > LARGEST_FILE:
        raise ValueError(
            f"classifier takes {n_bytes:,} bytes, and an ONNX file holds "
            f"{LARGEST_FILE:,} at most. Use fewer or shallower trees, or smaller "
            "networks."
        )
