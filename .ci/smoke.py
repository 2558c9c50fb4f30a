"""What a first-time user does, with the core dependencies alone.

Run by ``make wheel-test`` in an environment that holds the wheel and what it requires,
and by the test suite with every optional package hidden.
"""

import numpy as np

from clml import CMA, PAPER_SETTINGS, CLMLClassifier
from clml.baselines import DELAClassifier, GaussianNBChain, MLkNNClassifier
from clml.lebesgue import lebesgue_contributions
from clml.losses import loss_values

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, :3] > 0).astype(int)
clf = CLMLClassifier(**PAPER_SETTINGS | {"max_epochs": 3}, random_state=0).fit(X, Y)
assert clf.predict(X).shape == clf.select("lrap").predict_proba(X).shape == (60, 3)
assert loss_values([[1, 0]], [[1.0, -1.0]]).tolist() == [0.0, 0.0, 0.0]
assert lebesgue_contributions([[0.5, 0.5]]).tolist() == [0.25]
for baseline in (GaussianNBChain(), MLkNNClassifier()):
    assert baseline.fit(X, Y).predict(X).shape == Y.shape
for estimator, package in (
    (CLMLClassifier(search=CMA(covariance="cma"), max_epochs=1), "cma"),
    (DELAClassifier(max_epochs=1), "'clml[torch]'"),
):
    try:
        estimator.fit(X, Y)
    except ImportError as error:
        assert f"pip install {package}" in str(error), error
    else:
        raise SystemExit(f"The package {package} was to be missing.")
print("smoke test passed")
