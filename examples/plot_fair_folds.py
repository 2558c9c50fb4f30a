"""
Are my folds fair? From a CSV file to stratified folds
======================================================

Multi-label data are often small and their labels rare: a random fold may have twice its
share of a label, or none of it. Here a table with mixed columns is read, and its rows
are divided at random and by iterative stratification.
"""

# %%
# A table as it comes: numbers, a category with gaps, an identifier, labels by prefix.
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from clml.datasets import IterativeStratifiedKFold, read_csv

rng = np.random.default_rng(0)
n_rows = 300
rates = [0.4, 0.25, 0.15, 0.08, 0.05, 0.03]
topics = ["weather", "sport", "music", "chess", "opera", "rowing"]
lines = ["id,length,source," + ",".join(f"topic_{topic}" for topic in topics)]
for row in range(n_rows):
    labels = (rng.random(6) < rates).astype(int)
    source = rng.choice(["radio", "paper", "web", ""])
    cells = [f"article-{row}", f"{rng.lognormal(6):.0f}", source, *map(str, labels)]
    lines.append(",".join(cells))

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "articles.csv"
    path.write_text("\n".join(lines))
    data = read_csv(path, label_prefix="topic_")

# %%
# Labels were found by their prefix, the category became columns, the identifier was
# left out. The figures that describe multi-label data come along.
print(data.feature_names, data.label_names)
print(data.notes)
print(
    f"{data.n_instances} rows, {data.cardinality:.2f} labels a row, "
    f"{data.n_label_sets} different label sets, "
    f"mean imbalance ratio {data.mean_imbalance_ratio:.1f}"
)

# %%
# Five folds each way: how far is each label, in each fold, from its share?
splitters = {
    "at random": KFold(5, shuffle=True, random_state=0),
    "stratified": IterativeStratifiedKFold(5, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axis, (name, splitter) in zip(axes, splitters.items(), strict=True):
    share = np.array(
        [
            data.Y[test].sum(axis=0) / data.Y.sum(axis=0)
            for _, test in splitter.split(data.X, data.Y)
        ]
    )
    axis.axhline(0.2, color="0.6", linewidth=1)
    for label, shares in enumerate(share.T):
        axis.scatter(np.full(5, label), shares, color="#1f5fd0", alpha=0.6)
    axis.set(title=name, xticks=range(6), ylim=(0, None))
    axis.set_xticklabels(data.label_names, rotation=30, ha="right")
axes[0].set_ylabel("share of the label's rows in a fold")

figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "fair_folds.png", dpi=120)
