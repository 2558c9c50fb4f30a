"""
More rows than one machine holds: training on a cluster
=======================================================

Rows that lie on the workers of a dask cluster stay there. Every epoch the workers are
told in some hundred bytes which networks to try, and answer with sums over their rows.
What comes out is what one machine would have found.

Give a file for the picture and the address of your scheduler to run it on a cluster of
your own: ``python plot_cluster.py picture.png tcp://10.0.0.1:8786``.
"""

# %%
# Two threads of this process stand in for the workers, unless there is a cluster.
import sys
import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
from distributed import Client, LocalCluster

from clml import CMA, CLMLClassifier, dask_predict
from clml.datasets import make_bayes_multilabel
from clml.losses import loss_values
from clml.network import PaperNetwork

if len(sys.argv) > 2:
    cluster = None
    client = Client(sys.argv[2])
else:
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    client = Client(cluster)

# %%
# Rows in files of 1,500, as another program may have left them: a folder of NumPy's
# files for the features, one for the labels. Workers on other machines must find them
# at the same place.
data = make_bayes_multilabel(18_000, random_state=0)
folder = tempfile.TemporaryDirectory()
for name, array in (("X", data.X), ("Y", data.Y)):
    blocks = da.from_array(array, chunks=(1500, -1))
    da.to_npy_stack(Path(folder.name, name), blocks)
X = da.from_npy_stack(Path(folder.name, "X"))
Y = da.from_npy_stack(Path(folder.name, "Y"))
print(f"{X.numblocks[0]} partitions on {len(client.nthreads())} workers")

# %%
# One network, evolved on the first ten partitions; the last two are for the test. It
# starts where a surrogate loss leads to on a sample of the rows. The client that was
# made last is found by itself.
n_train = 15_000
clf = CLMLClassifier(
    search=CMA(init="surrogate"),
    network=PaperNetwork(embedding_dim=8),
    max_epochs=50,
    random_state=0,
)
clf.fit(X[:n_train], Y[:n_train])
print(clf.front_)
print(f"an epoch took {1e3 * sorted(clf.history_['seconds'])[25]:.0f} ms")

# %%
# Predictions are made where the rows are, when they are asked for; three models of the
# front, beside the best that any model can expect.
X_test, Y_test = X[n_train:], Y[n_train:].compute()
best = data.truth.bayes_losses(data.X[n_train:])
for choice in ("hamming", "lrap", "micro_f1"):
    model = clf.select(choice)
    scores = dask_predict(model, X_test, "decision_function")
    losses = loss_values(Y_test, scores.compute())
    print(f"select({choice!r})".ljust(20), *(f"{loss:.3f}" for loss in losses))
print("can be expected".ljust(20), *(f"{loss:.3f}" for loss in best))

# %%
# The front, and how the search got there.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
losses = clf.front_.losses
points = left.scatter(losses[:, 0], losses[:, 2], c=losses[:, 1], s=30)
figure.colorbar(points, ax=left, label="1 - label ranking average precision")
left.set(xlabel="Hamming loss", ylabel="1 - micro-F1", title="The front")
names = ("Hamming loss", "1 - LRAP", "1 - micro-F1")
for name, values in zip(names, clf.history_["mean_validation"].T, strict=True):
    right.plot(values, label=name)
right.set(xlabel="epoch", ylabel="loss", title="Mean of the search distribution")
right.legend()
client.close()
if cluster is not None:
    cluster.close()
folder.cleanup()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
