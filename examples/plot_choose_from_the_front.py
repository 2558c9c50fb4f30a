"""
Which model do you want? Choosing after training
================================================

Losses disagree: the model with the fewest wrong decisions is not the one with the best
ranking. CLML optimises all of them at once and returns the front of models between
which the losses disagree. You choose afterwards, without training again.
"""

# %%
# Some data with six labels, and a split that keeps every label's share.
import sys

import matplotlib.pyplot as plt
from sklearn.datasets import make_multilabel_classification

from clml import CLMLClassifier
from clml.datasets import iterative_train_test_split
from clml.losses import loss_values

X, Y = make_multilabel_classification(
    n_samples=800, n_features=20, n_classes=6, n_labels=2, random_state=2
)
X_train, X_test, Y_train, Y_test = iterative_train_test_split(
    X, Y, test_size=0.3, random_state=0
)

# %%
# One fit: a network whose weights are evolved, as in the paper, for the three losses of
# the paper.
clf = CLMLClassifier(
    search="cma", n_members=1, max_epochs=400, n_jobs=-1, random_state=0
).fit(X_train, Y_train)
front = clf.front_
print(front)

# %%
# Every member of the front is best for somebody: for a loss, for a weighting of them,
# or for whoever wants a bit of everything.
chosen = {
    "select('hamming')": clf.select("hamming"),
    "select('lrap')": clf.select("lrap"),
    "select('micro_f1')": clf.select("micro_f1"),
    "select('knee')": clf.select("knee"),
}
for name, model in chosen.items():
    hamming, lrap, micro_f1 = loss_values(Y_test, model.decision_function(X_test))
    print(f"{name:20s} test losses {hamming:.3f} {lrap:.3f} {micro_f1:.3f}")

# %%
# The front on the validation rows, and how the search got there.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
every = clf.archive_losses_
left.scatter(every[:, 0], every[:, 2], s=2, color="0.85", label="every candidate")
points = left.scatter(
    front.losses[:, 0], front.losses[:, 2], c=front.losses[:, 1], s=30, zorder=2
)
figure.colorbar(points, ax=left, label="1 - label ranking average precision")
markers = dict(zip(chosen, "v^<D", strict=True))
for name, model in chosen.items():
    hamming, _, micro_f1 = front.losses[model.incumbent_]
    left.plot(
        hamming,
        micro_f1,
        markers[name],
        markersize=11,
        markerfacecolor="none",
        markeredgecolor="tab:red",
        zorder=3,
        label=name,
    )
low, high = front.losses.min(axis=0), front.losses.max(axis=0)
margin = 0.35 * (high - low)
left.set_xlim(low[0] - margin[0], high[0] + margin[0])
left.set_ylim(low[2] - margin[2], high[2] + margin[2])
left.set(xlabel="Hamming loss", ylabel="1 - micro-F1", title="The front")
left.legend(fontsize=8, loc="upper right")
for k, name in enumerate(front.loss_names):
    right.plot(clf.history_["mean_validation"][:, k], label=name)
right.set(xlabel="epoch", ylabel="validation loss", title="The search")
right.legend(fontsize=8)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
