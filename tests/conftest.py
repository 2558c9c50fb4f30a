"""Fixtures that several folders share."""

import signal
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from sklearn.datasets import make_multilabel_classification

# The first call of a kernel compiles it, which takes longer than any deadline.
# Half of the usual examples: the suite runs often, and seeds differ from run to run.
settings.register_profile("kernels", deadline=None, max_examples=50)
settings.load_profile("kernels")


# A shell that starts the tests in the background has them ignore Ctrl-C, and so would
# the processes that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Several test processes share the cores: waiting threads would take them."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Keep parsed copies and downloads out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLML_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def import_benchmark():
    """Return what imports a script of ``benchmarks/`` by its name."""
    folder = str(Path(__file__).parents[1] / "benchmarks")

    def imported(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(folder)
            return import_module(name)

    return imported


@pytest.fixture(scope="session")
def small_data():
    """Rows, indicator: 120 × 8 with 4 labels, learnable in a few epochs."""
    X, Y = make_multilabel_classification(
        n_samples=120, n_features=8, n_classes=4, n_labels=2, random_state=0
    )
    X = X.astype(np.float64)
    X.setflags(write=False)
    Y.setflags(write=False)
    return X, Y
