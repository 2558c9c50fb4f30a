"""Arrays as a run of an experiment leaves them, and figures that are closed again."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

NAMES = ("hamming", "lrap", "micro_f1")


@pytest.fixture(autouse=True)
def _close_figures():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture
def artifact():
    """Return the arrays of a made-up run of 40 epochs, 5 members, 3 labels."""
    rng = np.random.default_rng(0)
    decay = np.exp(-np.arange(40) / 10)
    losses = 0.2 + decay[:, None] * [0.3, 0.2, 0.4] + 0.01 * rng.random((40, 3))
    curve = np.array([[0.1, 0.5, np.nan, 0.9], [0.2, 0.4, np.nan, 0.8]])
    return {
        "history/incumbent_train": losses,
        "history/incumbent_validation": losses + 0.05,
        "history/incumbent_binary_cross_entropy_train": 0.5 + decay,
        "history/incumbent_row_log_loss_train": 3 + 2 * decay,
        "history/archive_measure": 0.4 * (1 - decay),
        "history/loss_names": np.array(NAMES),
        "front/loss_names": np.array(NAMES),
        "front/validation": rng.random((5, 3)),
        "front/test": rng.random((5, 3)),
        "front/chosen": np.array(2),
        "labels": np.array(["a", "b", "c"]),
        "probability/bins": np.linspace(0, 1, 6),
        "probability/before": np.array([[0, 1, 5, 1, 0], [0, 0, 2, 1, 0]]),
        "probability/after": np.array([[4, 1, 0, 1, 2], [1, 1, 0, 0, 0]]),
        "calibration/before": curve,
        "calibration/after": curve + 0.05,
    }


@pytest.fixture
def results(artifact, tmp_path):
    """Return two datasets, two methods and an ablation, with arrays of the first."""
    from clml.experiments import Results

    folder = tmp_path / "results"
    (folder / "artifacts").mkdir(parents=True)
    methods = ["CLML-paper", "other", "CLML-paper embedding_dim=40"]
    records = []
    for i, dataset in enumerate(("emotions", "a b/c")):
        for j, method in enumerate(methods):
            name = f"artifacts/{i}{j}.npz"
            losses = {loss: 0.1 * (k + 1) + 0.01 * j for k, loss in enumerate(NAMES)}
            record = {
                "key": f"{i}{j}",
                "dataset": dataset,
                "method": method,
                "split": 0,
                "seed": 0,
                "status": "done",
                "losses": {"train": losses, "validation": None, "test": losses},
                "artifact": None if method == "other" else name,
            }
            records.append(record)
            if record["artifact"]:
                np.savez(folder / name, **artifact)
    plan = {
        "datasets": ["emotions", "a b/c"],
        "methods": [
            {"name": name, "group": "ablation" if "=" in name else "main"}
            for name in methods
        ],
        "losses": list(NAMES),
        "ablation": {
            "method": "CLML-paper",
            "setting": "network__embedding_dim",
            "values": [20, 40],
            "names": [methods[0], methods[2]],
            "datasets": ["emotions"],
        },
    }
    return Results(plan, records, folder)


@pytest.fixture(scope="session")
def fitted(small_data):
    """Return an estimator after few epochs of the paper's search."""
    from clml import PAPER_SETTINGS, CLMLClassifier

    settings = PAPER_SETTINGS | {"max_epochs": 8}
    return CLMLClassifier(**settings, random_state=0).fit(*small_data)


@pytest.fixture(scope="session")
def texts():
    """Return what lists the words of a drawn figure that can be seen."""
    from matplotlib.text import Text

    def listed(figure):
        found = figure.findobj(Text)
        return [t.get_text() for t in found if t.get_visible() and t.get_text()]

    return listed


@pytest.fixture(scope="session")
def overlaps():
    """Return what lists pairs of an axes' free texts that cover each other."""

    def listed(ax):
        ax.figure.canvas.draw()
        boxes = [(t.get_text(), t.get_window_extent()) for t in ax.texts]
        return [
            (a, b)
            for i, (a, box) in enumerate(boxes)
            for b, other in boxes[i + 1 :]
            if box.overlaps(other)
        ]

    return listed
