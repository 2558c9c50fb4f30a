"""
A trained model in another program: export to ONNX
==================================================

A service that predicts needs the trained networks, not the library that trained them.
``to_onnx`` writes them as one graph, from the features as they come to logits,
probabilities and labels, which runs wherever there is a runtime for ONNX. Are its
numbers the same, and how fast is it?
"""

# %%
# A model, and a file of it in single and in double precision.
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_multilabel_classification

from clml import CLMLClassifier

X, Y = make_multilabel_classification(
    n_samples=2000, n_features=60, n_classes=8, n_labels=3, random_state=0
)
clf = CLMLClassifier(max_epochs=10, random_state=0).fit(X[:1000], Y[:1000])

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # as many as predict_proba takes
sessions = {}
with tempfile.TemporaryDirectory() as folder:
    for dtype in ("float32", "float64"):
        path = Path(folder, f"{dtype}.onnx")
        clf.to_onnx(path, dtype=dtype)
        print(f"{dtype}: {path.stat().st_size / 1e3:.0f} kB")
        sessions[dtype] = onnxruntime.InferenceSession(path, options)

# %%
# The graph takes batches of any number of rows, dense and of its type. Sparse rows are
# made dense a batch at a time: ``batch.toarray()``.
new = X[1000:]
expected = clf.predict_proba(new)
differences = {}
for dtype, session in sessions.items():
    batch = {"features": new.astype(dtype)}
    logits, probabilities, labels = session.run(None, batch)
    differences[dtype] = np.abs(probabilities - expected).ravel()
    changed = int((labels != clf.predict(new)).sum())
    largest = differences[dtype].max()
    print(f"{dtype}: largest difference {largest:.1e}, {changed} labels changed")

# %%
# How long a batch takes.


def milliseconds(predict, rows):
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        predict(rows)
        seconds.append(time.perf_counter() - began)
    return 1e3 * min(seconds)


def run(dtype):
    return lambda rows: sessions[dtype].run(None, {"features": rows.astype(dtype)})


sizes = [1, 10, 100, 1000]
predictors = {
    "predict_proba": clf.predict_proba,
    "onnxruntime, float32": run("float32"),
    "onnxruntime, float64": run("float64"),
}
times = {
    name: [milliseconds(predict, new[:n]) for n in sizes]
    for name, predict in predictors.items()
}

# %%
# The differences, beside the 1e-5 that single precision keeps, and the times.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
bins = np.logspace(-18, -4, 57)
for dtype, found in differences.items():
    left.hist(np.maximum(found, 1e-18), bins=bins, alpha=0.7, label=dtype)
left.axvline(1e-5, color="0.4", linestyle="--", label="what is promised")
left.set(xscale="log", xlabel="difference of a probability", ylabel="probabilities")
left.legend(fontsize=8)
for name, found in times.items():
    right.plot(sizes, found, "o-", label=name)
right.set(xscale="log", yscale="log", xlabel="rows of a batch", ylabel="milliseconds")
right.legend(fontsize=8)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
