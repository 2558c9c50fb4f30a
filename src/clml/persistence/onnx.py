"""A fitted classifier as an ONNX file, which predicts without this library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._support.atomic import atomic_file, check_place
from .._support.paths import PathLike
from ..network import WideLayout
from ._onnx_graph import model_of
from ._onnx_model import LARGEST_FILE, check_options, metadata_of
from ._onnx_wide import bytes_of_ensemble, model_of_ensemble
from ._registry import ESTIMATORS, find_class


def export_onnx(
    classifier: Any, path: PathLike, *, dtype: str = "float32", opset: int = 18
) -> None:
    """Write a fitted classifier as an ONNX graph.

    The graph has one input, ``features`` (N, D), with any N, and three outputs (N, K):

    - ``logits``: what ``decision_function`` returns;
    - ``probabilities``: of each label;
    - ``labels``: int64, 1 where the logit is positive, else 0.

    Needs the package ``onnx`` (extra ``onnx``), and any runtime to predict. The file is
    written under another name and then renamed: after an error or Ctrl-C, what was
    there before is still there.

    Parameters
    ----------
    classifier : CLMLClassifier
        Fitted, or a copy that ``select`` returned.
    path : str or path
        The file. One that exists is replaced.
    dtype : {"float32", "float64"}, default="float32"
        Of features, networks and scores. With "float32" the scores are within 1e-5 of
        those of ``predict_proba`` for the same float32 rows. "float64" computes as
        ``predict`` does, to the last digits, and takes some three times as long; it is
        for features that single precision cannot tell apart, such as values near 10⁷
        that differ by less than 1. Features are standardised as float64 either way.
    opset : int, default=18
        Version of the operators, 18 to 21.

    Raises
    ------
    TypeError
        If the classifier is of another class, subclasses included.
    ValueError
        If it is not fitted, or larger than an ONNX file can be, 2 GiB.
    OSError
        If the file cannot be written.

    Notes
    -----
    Of a 1-D y the graph has K = 1: ``probabilities`` are those of ``classes_[1]``, and
    ``classes_[labels[:, 0]]`` is what ``predict`` returns. The file's metadata hold,
    as JSON, ``label_names``, ``loss_names``, ``incumbent``, and where there are such,
    ``rule`` (of rows, which the graph follows), ``feature_names`` and the two
    ``classes``.

    A graph cannot refuse features: rows that ``predict`` refuses, with missing or
    infinite values or beyond 1e100 once they are standardised, have the probabilities
    NaN and no label.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import onnxruntime
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import CLMLClassifier
    >>> from clml.persistence.onnx import export_onnx
    >>> X, Y = make_multilabel_classification(n_samples=50, random_state=0)
    >>> clf = CLMLClassifier(n_members=2, max_epochs=5, random_state=0).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.onnx")
    ...     export_onnx(clf, path)
    ...     session = onnxruntime.InferenceSession(path)
    >>> batch = {"features": X.astype(np.float32)}
    >>> logits, probabilities, labels = session.run(None, batch)
    >>> bool(np.allclose(probabilities, clf.predict_proba(X), atol=1e-5))
    True
    """
    check_options(dtype, opset)
    check_classifier(classifier)
    target = Path(path)
    check_place(target)
    metadata = metadata_of(classifier)
    _check_size(classifier, dtype, metadata)
    if hasattr(classifier, "ensemble_"):
        model = model_of_ensemble(
            classifier.ensemble_,
            classifier.networks_,
            classifier.member_scale_,
            classifier.theta_,
            float(classifier.temperature_),
            rule=classifier.rule_,
            two_classes=not isinstance(classifier.classes_, list),
            dtype=dtype,
            opset=opset,
            metadata=metadata,
        )
    else:
        model = model_of(classifier, dtype, opset, metadata)
    content = model.SerializeToString()
    with atomic_file(target) as file:
        file.write(content)


def check_classifier(classifier: Any) -> None:
    """Refuse what is no fitted CLMLClassifier, and networks that have no graph."""
    kind = type(classifier)
    if kind is not find_class(ESTIMATORS, "CLMLClassifier"):
        raise TypeError(
            "Only a CLMLClassifier can be written as an ONNX graph, and no subclass, "
            f"which may predict otherwise; got {kind.__module__}.{kind.__qualname__}."
        )
    check_is_fitted(classifier)
    weights = [classifier.theta_]
    if hasattr(classifier, "ensemble_"):
        layouts = classifier.ensemble_.layouts
        if not all(isinstance(layout, WideLayout) for layout in layouts):
            raise ValueError(
                "Networks that are not clml.network.WideNetwork cannot be written as "
                f"an ONNX graph, got network={classifier.network!r}."
            )
        weights += [*classifier.networks_, classifier.member_scale_]
    if not all(np.isfinite(array).all() for array in weights):
        raise ValueError("classifier has weights that are not finite.")


def _check_size(classifier: Any, dtype: str, metadata: Mapping[str, str]) -> None:
    if hasattr(classifier, "ensemble_"):
        n_weights = sum(network.size for network in classifier.networks_)
        n_bytes = bytes_of_ensemble(classifier.ensemble_, dtype)
    else:
        n_weights, scaling = classifier.theta_.size, classifier.scaling_
        n_bytes = n_weights * np.dtype(dtype).itemsize
        n_bytes += scaling.mean.nbytes + scaling.scale.nbytes
    n_bytes += sum(len(text) for text in metadata.values())
    if n_bytes > LARGEST_FILE:
        raise ValueError(
            f"classifier has {n_weights:,} weights, which with its names take "
            f"{n_bytes:,} bytes as {dtype}, and an ONNX file holds {LARGEST_FILE:,} "
            "at most. Use dtype='float32' if it is not, or train fewer members or a "
            "smaller network."
        )
