"""
Better decisions from the model you have
========================================

A forest ranks labels well, but it decides at a probability of one half, which is the
best threshold for few losses. Its scores can be tuned for several losses at once, on
rows that it did not see: a scale and a bias for each label, evolved, and held towards
the forest's own decisions by as much as the rows call for.
"""

# %%
# Data whose best possible losses are known, and a split.
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from clml import LebesgueTunedClassifier
from clml.datasets import iterative_train_test_split, make_bayes_multilabel
from clml.losses import loss_values

data = make_bayes_multilabel(1500, random_state=3)
X_train, X_test, Y_train, Y_test = iterative_train_test_split(
    data.X, data.Y, test_size=0.3, random_state=0
)

# %%
# The forest, and the forest tuned. Any classifier of scikit-learn will do that has
# scores or probabilities for labels.
forest = RandomForestClassifier(200, n_jobs=-1, random_state=0)
tuned = LebesgueTunedClassifier(forest, cv=5, random_state=0).fit(X_train, Y_train)
plain = tuned.estimator_
probabilities = np.column_stack([p[:, 1] for p in plain.predict_proba(X_test)])
before = loss_values(Y_test, probabilities, threshold=0.5)
after = loss_values(Y_test, tuned.decision_function(X_test))
print(f"strength {tuned.shrinkage_}, shift {tuned.shift_:.2f}")
for name, a, b in zip(tuned.front_.loss_names, before, after, strict=True):
    print(f"{name:10s} {a:.3f} -> {b:.3f}")

# %%
# What was found, on the rows of the folds, and what else one could choose.
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
losses = tuned.front_.losses
points = axes.scatter(losses[:, 0], losses[:, 2], c=losses[:, 1], s=30)
figure.colorbar(points, ax=axes, label="1 - label ranking average precision")
for name in ("hamming", "micro_f1", "knee"):
    member = losses[tuned.front_.select(name)]
    axes.annotate(f"select({name!r})", (member[0], member[2]), fontsize=8)
axes.set(xlabel="Hamming loss", ylabel="1 - micro-F1", title="A forest, tuned")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
