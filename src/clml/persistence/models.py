"""Saving and loading of estimators."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from .._base.multilabel import MultiLabelMixin
from .._support.paths import PathLike, fail
from .._support.transaction import snapshot
from ._registry import ESTIMATORS, is_registered
from .file import FileKind, read_file, write_file

# Models of before version 3 had other parameters, and are no longer read.
MODEL_FILE = FileKind("clml model", version=3, first_with_checksums=2)


def save(estimator: Any, path: PathLike) -> None:
    """Write an estimator of this library to a file.

    The file is a zip archive of a JSON text and one ``.npy`` member an array, without
    pickle, all covered by SHA-256. It is written under another name and then renamed:
    after an error or Ctrl-C, what was there before is still there.

    Parameters
    ----------
    estimator : estimator of this library
        Fitted or not. Not saved are callbacks, metadata requests, folders and
        clusters (``checkpoint``, ``client``), and the search that ``warm_start`` would
        continue: the loaded estimator starts a new one. Learners of other libraries,
        which :class:`~clml.LebesgueTunedClassifier` and
        :class:`~clml.LebesgueStackingClassifier` hold, are written by skops (extra
        ``persist``). Of losses of one's own the names are saved: the loaded estimator
        predicts and has its front, and asks for the losses where it is to be fitted
        again (``set_params(losses=...)``).
    path : str or path
        The file, of any suffix. One that exists is replaced and hands its permissions
        on. A link is replaced itself, and what it points to stays. Anything else, such
        as a device, is refused.

    Raises
    ------
    TypeError
        If the estimator is of another class (subclasses included), or a parameter
        cannot be saved: functions, objects of one's own.
    ValueError
        If a parameter is invalid, the estimator is fitted in part, or its weights are
        not finite.
    ImportError
        If it holds learners of other libraries and skops is not installed.
    OSError
        If the file cannot be written.

    See Also
    --------
    load

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import CLMLClassifier
    >>> from clml.persistence import load, save
    >>> X, Y = make_multilabel_classification(n_samples=50, random_state=0)
    >>> clf = CLMLClassifier(max_epochs=5, random_state=0).fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.clml")
    ...     save(clf, path)
    ...     loaded = load(path)
    >>> bool((loaded.predict(X) == clf.predict(X)).all())
    True
    """
    if not isinstance(estimator, MultiLabelMixin):
        raise TypeError(
            "estimator must be one of this library, "
            f"got {type(estimator).__module__}.{type(estimator).__qualname__}. "
            "Of a Pipeline save the last step here, and the steps before it by other "
            "means."
        )
    kind = type(estimator)
    if not is_registered(ESTIMATORS, kind):
        raise TypeError(
            f"The model cannot be saved: {kind.__module__}.{kind.__qualname__} is not "
            "a class of this library, and what it adds to one would be lost."
        )
    write_file(Path(path), MODEL_FILE, snapshot(estimator))


def load(path: PathLike, trusted: Collection[str] = ()) -> Any:
    """Read an estimator from a file that ``save`` wrote.

    The file is not trusted. Nothing in it is executed, and it says by a name which of
    a fixed list of classes to build. What it takes in memory is bounded by its size:
    members must not be compressed, their sizes must add up to no more than the file,
    and each array is used once. Checksums tell damage, not who wrote the file.

    What is loaded, and every learner in it, is of this machine: it names no folder and
    no cluster (``checkpoint``, ``client``, ``memory``), and ``n_jobs`` is at most the
    number of cores.

    Learners of other libraries are read by skops. Classes of this library,
    scikit-learn, NumPy and SciPy are accepted. Their code, that of decision trees
    apart, trusts its arrays: a file from a stranger can still end the process.

    Parameters
    ----------
    path : str or path
    trusted : collection of str, default=()
        Further types that learners may be made of, by their full names. They could
        run any code: name them only if you know where the file comes from.

    Returns
    -------
    estimator
        With the other parameters, fitted attributes and predictions of the one saved.

    Raises
    ------
    ValueError
        If the file is damaged, of another kind or of a newer version, if what it holds
        does not fit together, or if it holds types that are not trusted.
    OSError
        If the file cannot be opened.

    See Also
    --------
    save
    """
    estimator = read_file(Path(path), MODEL_FILE, trusted)
    if not isinstance(estimator, MultiLabelMixin):
        raise fail(
            path, "no model could be read: it holds no estimator of this library."
        )
    return estimator
