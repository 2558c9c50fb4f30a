"""Files of models: one of every estimator, read and then asked for predictions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _fuzz_archives import damaged_archive
from _fuzz_run import Reader
from sklearn.datasets import make_multilabel_classification

# More features than this come as sparse rows: a model may say any number.
_MOST_DENSE = 10_000


def small_data() -> tuple[Any, Any]:
    """Return features and labels that any estimator learns from in an instant."""
    return make_multilabel_classification(
        n_samples=40, n_features=5, n_classes=3, n_labels=2, random_state=0
    )


def classifiers() -> Iterator[Any]:
    """Yield one of every search, and one that is not fitted."""
    from clml import CMA, CLMLClassifier, RankGradient
    from clml.network import PaperNetwork

    X, Y = small_data()
    small = {"network": PaperNetwork(2), "max_epochs": 2, "random_state": 0}
    yield CLMLClassifier(search=CMA(4), n_members=1, **small).fit(X, Y)
    yield CLMLClassifier(search="ascent", n_members=2, **small).fit(X, Y)
    followed = CLMLClassifier(search=RankGradient(4), n_members=1, **small)
    yield followed.fit(X, Y[:, 0])
    yield CLMLClassifier()


def wide() -> Iterator[Any]:
    """Yield members of many units, with encodings that differ and with one."""
    from clml import Ascent, CLMLClassifier
    from clml.encoding import Quantiles
    from clml.network import WideNetwork

    X, Y = small_data()
    small = {"n_members": 3, "max_epochs": 1, "shrinkage": 1.0, "random_state": 0}
    yield CLMLClassifier(network=WideNetwork((3,)), **small).fit(X, Y)
    network = WideNetwork((2, 2), activation="tanh", linear_path=True)
    search = Ascent(learning_rate=0.1)
    yield CLMLClassifier(
        network=network, search=search, encoding=Quantiles(), **small
    ).fit(X, Y[:, 0])


def baselines() -> Iterator[Any]:
    """Yield those that are no networks."""
    from clml.baselines import (
        GaussianNBChain,
        GaussianNBRelevance,
        LIFTClassifier,
        LLSFClassifier,
        MLkNNClassifier,
    )

    X, Y = small_data()
    yield MLkNNClassifier(n_neighbors=2).fit(X, Y)
    yield MLkNNClassifier(n_neighbors=2).fit(sp.csr_array(X), Y)
    yield LIFTClassifier(random_state=0).fit(X, Y)
    yield LLSFClassifier().fit(X, Y)
    yield GaussianNBChain(random_state=3).fit(X, Y)
    yield GaussianNBRelevance().fit(X, Y)


def deep_baselines() -> Iterator[Any]:
    """Yield the networks."""
    import clml.baselines

    X, Y = small_data()
    for name in ("C2AE", "CLIF", "DELA", "MPVAE", "MLPRelevance"):
        kind = getattr(clml.baselines, f"{name}Classifier")
        yield kind(max_epochs=1, random_state=0).fit(X, Y)


def tuned() -> Iterator[Any]:
    """Yield what holds learners of its own and, as skops writes them, of others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from clml import LebesgueStackingClassifier, LebesgueTunedClassifier
    from clml.baselines import GaussianNBRelevance

    X, Y = small_data()
    small = {"max_epochs": 2, "cv": 2, "random_state": 0, "shrinkage": 1.0}
    linear = OneVsRestClassifier(LogisticRegression())
    yield LebesgueTunedClassifier(linear, **small).fit(X, Y)
    yield from own_tuned()
    learners = [("naive", GaussianNBRelevance()), ("linear", linear)]
    yield LebesgueStackingClassifier(learners, **small).fit(X, Y)


def own_tuned() -> Iterator[Any]:
    """Yield one that is tuned and holds nothing of others."""
    from clml import LebesgueTunedClassifier
    from clml.baselines import MLkNNClassifier

    small = {"max_epochs": 2, "cv": 2, "random_state": 0, "shrinkage": 1.0}
    near = MLkNNClassifier(n_neighbors=2)
    yield LebesgueTunedClassifier(near, **small).fit(*small_data())


def forests() -> Iterator[Any]:
    """Yield a tuned forest."""
    from sklearn.ensemble import RandomForestClassifier

    from clml import LebesgueTunedClassifier

    forest = RandomForestClassifier(2, max_depth=3, random_state=0)
    small = {"max_epochs": 2, "cv": 2, "random_state": 0, "shrinkage": 1.0}
    yield LebesgueTunedClassifier(forest, **small).fit(*small_data())


def _of_skops() -> list[bytes]:
    """Return files as the command line wrote them before it had one format."""
    import skops.io

    return [skops.io.dumps(model) for model in (*tuned(), *forests())]


def saved(models: Callable[[], Iterator[Any]]) -> list[bytes]:
    """Return the files of models."""
    from clml.persistence import save

    return [_written(partial(save, model)) for model in models()]


def _written(write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.clml")
        write(path)
        return path.read_bytes()


def use(model: Any, path: Path) -> None:
    """Have a model predict; what it refuses is refused in the name of its file."""
    for _ in predicted(model, path):
        pass


def predicted(model: Any, path: Path) -> Iterator[Any]:
    """Yield what a model predicts, in every way that it can."""
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        repr(model)
        return
    X: Any = np.linspace(-2.0, 2.0, 15).reshape(3, 5)
    if n_features <= _MOST_DENSE:
        X = np.resize(X, (3, n_features))
    else:
        X = sp.csr_array((3, n_features))
    # Names would only be compared with those of frames.
    vars(model).pop("feature_names_in_", None)
    for method in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, method):
            try:
                yield getattr(model, method)(X)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error


def _load_and_use(path: Path) -> None:
    from clml.persistence import load

    use(load(path), path)


def _load_and_use_learners(path: Path) -> None:
    """Load what holds learners of other libraries, and have it predict.

    These raise what they like where a setting of theirs is missing. They must not end
    the process, hang or take all memory.
    """
    from clml._commands._store import load_model

    model = load_model(path)
    try:
        use(model, path)
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: {error!r}") from error


def model_readers() -> list[Reader]:
    """Return the readers of models, by what the files hold."""

    def reader(
        name: str, models: Callable[[], Iterator[Any]], read: Callable[[Path], None]
    ) -> Reader:
        return Reader(name, ".clml", partial(saved, models), read, damaged_archive)

    skops, learners = _of_skops, _load_and_use_learners
    return [
        reader("models", classifiers, _load_and_use),
        reader("models of wide networks", wide, _load_and_use),
        reader("models of baselines", baselines, _load_and_use),
        reader("models of deep baselines", deep_baselines, _load_and_use),
        reader("tuned models", tuned, learners),
        reader("tuned forests", forests, learners),
        Reader("skops files", ".skops", skops, learners, damaged_archive),
    ]
