"""
Which method for which loss? A comparison on data with known truth
==================================================================

Methods differ in what they are good at: one ranks well, another decides well. Here each
gets the same rows, and its losses are put beside the best that any method can expect.
"""

# %%
# Data whose p(y|x) is known, one division for all methods, features scaled by the
# training rows: no method scales by itself.
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    GaussianNBChain,
    GaussianNBRelevance,
    MLkNNClassifier,
    MLPRelevanceClassifier,
)
from clml.datasets import iterative_train_test_split, make_bayes_multilabel

data = make_bayes_multilabel(900, random_state=0)
X_train, X_test, Y_train, Y_test = iterative_train_test_split(
    data.X, data.Y, random_state=0
)
methods = {
    "GNB-BR": GaussianNBRelevance(),
    "GNB-CC": GaussianNBChain(),
    "MLkNN": MLkNNClassifier(),
    "C2AE": C2AEClassifier(max_epochs=200, random_state=0),
    "CLIF": CLIFClassifier(max_epochs=15, random_state=0),
    "DELA": DELAClassifier(max_epochs=15, random_state=0),
    "plain network": MLPRelevanceClassifier(max_epochs=30, random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}

# %%
# Expected losses on the test rows: exact, since the truth is known.
expected = {}
for name, method in methods.items():
    model = make_pipeline(StandardScaler(), method).fit(X_train, Y_train)
    if name == "random forest":  # a list with the probabilities of each label
        scores = np.column_stack([p[:, 1] for p in model.predict_proba(X_test)]) - 0.5
    else:
        scores = model.decision_function(X_test)
    expected[name] = data.truth.expected_losses(X_test, scores)
    print(f"{name:14}", *(f"{loss:.3f}" for loss in expected[name]))
bayes = data.truth.bayes_losses(X_test)

# %%
# What each loses on top of what must be lost.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
names = list(expected)
losses = ("Hamming loss", "1 - LRAP", "1 - micro-F1")
for i, (axis, loss) in enumerate(zip(axes, losses, strict=True)):
    values = np.array([expected[name][i] for name in names])
    axis.barh(names, values - bayes[i], left=bayes[i], color="#1f5fd0", height=0.6)
    axis.axvline(bayes[i], color="0.3", linewidth=1)
    axis.set(title=loss, xlim=(bayes[i] * 0.9, None))
axes[0].invert_yaxis()
figure.supxlabel("from the Bayes value, which no method beats", fontsize="medium")

figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "compare_methods.png", dpi=120)
