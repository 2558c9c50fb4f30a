"""What a first-time user does, with the core dependencies alone.

Run by ``make wheel-test`` in an environment that holds the wheel and what it requires,
and by the test suite with every optional package hidden.
"""

import numpy as np

from clml import PAPER_SETTINGS, CLMLClassifier
from clml.lebesgue import lebesgue_contributions
from clml.losses import loss_values

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, :3] > 0).astype(int)
clf = CLMLClassifier(**PAPER_SETTINGS | {"max_epochs": 3}, random_state=0).fit(X, Y)
assert clf.predict(X).shape == clf.select("lrap").predict_proba(X).shape == (60, 3)
assert loss_values([[1, 0]], [[1.0, -1.0]]).tolist() == [0.0, 0.0, 0.0]
assert lebesgue_contributions([[0.5, 0.5]]).tolist() == [0.25]
try:
    CLMLClassifier(covariance="cma", max_epochs=1).fit(X, Y)
except ImportError as error:
    assert "pip install cma" in str(error), error
else:
    raise SystemExit("The package cma was to be missing.")
print("smoke test passed")
