"""What populations and the paper's settings give, bit for bit.

``golden.json`` holds weights, losses and decisions of small seeded fits as they came
out on the CPU when it was recorded. They must not change with the code around them.

Other processors and other releases of NumPy, numba or BLAS round differently, and a
search amplifies that: there, losses of the first epoch alone are compared, and not to
the last bit. To write the table anew, after a change that is meant to change results:
``python tests/test_golden.py``.
"""

import hashlib
import json
import platform
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from nested_settings import nested
from threadpoolctl import threadpool_info

from clml import PAPER_SETTINGS, CLMLClassifier

TABLE = Path(__file__).with_name("golden.json")

EVOLVED = {"search": "cma", "n_members": 1, "max_epochs": 6, "embedding_dim": 5}
FOLLOWED = {"search": "rank_gradient", "n_members": 1, "max_epochs": 6}
MEMBERS = {"n_members": 3, "max_epochs": 3, "shrinkage": 0.5, "embedding_dim": 5}
# Settings, and how the rows are given.
CASES = {
    "paper": (PAPER_SETTINGS | {"max_epochs": 8}, "dense"),
    "paper, sparse": (PAPER_SETTINGS | {"max_epochs": 8}, "sparse"),
    "paper, weights": (PAPER_SETTINGS | {"max_epochs": 8}, "weighted"),
    "paper, validation rows": (PAPER_SETTINGS | {"max_epochs": 8}, "validation"),
    "paper, one label": (PAPER_SETTINGS | {"max_epochs": 8}, "one label"),
    "cma": (EVOLVED, "dense"),
    "cma, two layers": (EVOLVED | {"n_layers": 2}, "dense"),
    "cma, separable": (EVOLVED | {"covariance": "separable"}, "dense"),
    "cma, full": (EVOLVED | {"covariance": "full"}, "dense"),
    "cma, population": (EVOLVED | {"population_size": 40}, "dense"),
    "cma, no ties": (EVOLVED | {"ties": None}, "dense"),
    "cma, layers as ties": (EVOLVED | {"ties": "layer"}, "dense"),
    "cma, archive": (EVOLVED | {"reference": "archive"}, "dense"),
    "cma, monte carlo": (EVOLVED | {"lebesgue": "monte_carlo"}, "dense"),
    "cma, surrogate": (EVOLVED | {"init": "surrogate", "sigma0": 0.1}, "dense"),
    "cma, last layer": (EVOLVED | {"init": "surrogate", "evolve": "last"}, "dense"),
    "cma, some rows": (EVOLVED | {"epoch_rows": 0.5}, "dense"),
    "cma, raw": (EVOLVED | {"standardize": False}, "dense"),
    "cma, losses": (
        EVOLVED | {"losses": ("macro_f1", "ranking_loss", "jaccard", "coverage")},
        "dense",
    ),
    "cma, members": (MEMBERS | {"search": "cma"}, "dense"),
    "rank gradient": (FOLLOWED, "dense"),
    "rank gradient, sparse": (FOLLOWED, "sparse"),
    "rank gradient, members": (MEMBERS | {"search": "rank_gradient"}, "sparse"),
}


def rows(kind):
    """Return the arguments of a fit, and the rows that are decided on."""
    generator = np.random.default_rng(20)
    X = generator.normal(size=(90, 7)) * [1, 10, 0.1, 1, 1, 1, 1] + 3
    X[:, 4:] = generator.random((90, 3)) < 0.3
    logits = (X - X.mean(axis=0)) @ generator.normal(size=(7, 4))
    Y = (logits + generator.normal(size=(90, 4)) > 0).astype(int)
    if kind == "sparse":
        X = sp.csr_array(np.where(X > 2.5, X, 0.0))
    if kind == "one label":
        Y = Y[:, 0]
    given = {"X": X[:60], "y": Y[:60]}
    if kind == "weighted":
        given["sample_weight"] = np.linspace(0.1, 2, 60)
    if kind == "validation":
        given |= {"X_val": X[60:], "y_val": Y[60:]}
    return given, X


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def outcome(name):
    """Return what a fit gives: digests of all bits, and its first losses to read."""
    settings, kind = CASES[name]
    given, X = rows(kind)
    clf = CLMLClassifier(**nested(settings), random_state=7).fit(**given)
    history = clf.history_
    seen = "train" if "incumbent_train" in history else "validation"
    return {
        "theta": digest(clf.theta_),
        "front": digest(clf.front_.theta),
        "front_losses": digest(clf.front_.losses),
        "archive_losses": digest(clf.archive_losses_),
        "incumbent": digest(history[f"incumbent_{seen}"]),
        "decisions": digest(clf.predict(X)),
        "first_losses": history[f"incumbent_{seen}"][0].tolist(),
    }


def surroundings():
    """Return what rounding depends on."""
    blas = sorted(
        f"{found['internal_api']} {found['version']} {found.get('architecture')}"
        for found in threadpool_info()
        if found["user_api"] == "blas"
    )
    return {
        "blas": blas,
        "processor": llvmlite.binding.get_host_cpu_name(),
        "machine": platform.machine(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_ever(name):
    table = json.loads(TABLE.read_text())
    found, expected = outcome(name), table["outcomes"][name]
    first, known = found.pop("first_losses"), expected.pop("first_losses")
    # Decisions of a few rows that are near to a tie may differ.
    np.testing.assert_allclose(first, known, atol=0.02)
    if surroundings() == table["surroundings"]:
        assert first == known
        assert found == expected


def test_other_weights_are_noticed(monkeypatch):
    before = outcome("cma")
    monkeypatch.setitem(CASES, "cma", (EVOLVED | {"sigma0": 1.0000001}, "dense"))
    after = outcome("cma")
    assert before["theta"] != after["theta"]


if __name__ == "__main__":
    content = {
        "surroundings": surroundings(),
        "outcomes": {name: outcome(name) for name in CASES},
    }
    TABLE.write_text(json.dumps(content, indent=1) + "\n")
