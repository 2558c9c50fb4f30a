"""Saving and loading of estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._multilabel import MultiLabelMixin
from .._paths import PathLike, fail
from .._version import __version__
from ._container import Container, write_container
from ._decode import Decoder
from ._encode import Encoder

_FORMAT = "clml model"
#: Raised when files change such that older versions of this module misread them.
_VERSION = 1


def save(estimator: Any, path: PathLike) -> None:
    """Write an estimator of this library to a file.

    The file is a zip archive of a JSON text and one ``.npy`` member an array, without
    pickle. It is written under another name and then renamed: after an error or
    Ctrl-C, what was there before is still there.

    Parameters
    ----------
    estimator : CLMLClassifier or estimator of clml.baselines
        Fitted or not. Not saved are callbacks, metadata requests, and the search that
        ``warm_start`` would continue: the loaded estimator starts a new one.
    path : str or path
        The file, of any suffix. One that exists is replaced, a link too.

    Raises
    ------
    TypeError
        If the estimator is of another class (subclasses included), or a parameter
        cannot be saved: functions, objects such as losses of one's own.
    ValueError
        If a parameter is invalid, or the estimator is fitted in part.

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
    encoder = Encoder()
    try:
        model = encoder.encode(estimator)
    except (TypeError, ValueError) as error:
        # An invalid parameter is both for scikit-learn.
        kind = ValueError if isinstance(error, ValueError) else TypeError
        reason = str(error).removesuffix(".")
        raise kind(f"estimator cannot be saved: {reason}.") from error
    state = {
        "format": _FORMAT,
        "version": _VERSION,
        "clml": __version__,
        "model": model,
    }
    write_container(Path(path), state, encoder.arrays)


def load(path: PathLike) -> Any:
    """Read an estimator from a file that ``save`` wrote.

    The file is not trusted. Nothing in it is executed, and it says by a name which of
    a fixed list of classes to build. What it takes in memory is bounded by its size:
    members must not be compressed, their sizes must add up to no more than the file,
    and each array is used once.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        With the parameters, fitted attributes and predictions of the one saved.

    Raises
    ------
    ValueError
        If the file is damaged, of another kind or of a newer version, or what it holds
        does not fit together.
    OSError
        If the file cannot be opened.

    See Also
    --------
    save
    """
    with open(path, "rb") as file:
        try:
            container = Container(file)
            decoder = Decoder(container.take)
            estimator = decoder.decode(_model_node(container.state()))
            container.check_all_taken()
            if not isinstance(estimator, MultiLabelMixin):
                raise ValueError("it holds no estimator of this library")
        except (ValueError, *Container.DAMAGE) as error:
            reason = str(error).removesuffix(".")
            raise fail(path, f"no model could be read: {reason}.") from error
    return estimator


def _model_node(state: Any) -> Any:
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    version = state.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, not a number from 1 on")
    if version > _VERSION:
        raise ValueError(
            f"it was written by clml {state.get('clml')!r} in version {version} of "
            f"the format, and this clml {__version__} reads up to {_VERSION}"
        )
    if set(state) != {"format", "version", "clml", "model"}:
        raise ValueError("it has other entries than models have")
    return state["model"]
