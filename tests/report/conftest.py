"""Results as an experiment would leave them, made up and small."""

import json

import numpy as np
import pytest

from clml.experiments.results import Results

LOSSES = ["hamming", "lrap", "micro_f1"]
DATASETS = ["emotions", "flags", "yeast", "scene"]
METHODS = ["CLML", "MLkNN", "DELA", "GNB-BR"]


def _made_up_front(members=40, n_labels=6, rows=100, seed=0, n_losses=3):
    """Return the arrays of an artifact: a front of which no member is dominated."""
    rng = np.random.default_rng(seed)
    angles = np.abs(rng.normal(size=(members, n_losses)))
    losses = 0.6 - 0.35 * angles / np.linalg.norm(angles, axis=1, keepdims=True)
    relevant = rng.integers(10, rows // 2, size=n_labels)
    hits = (relevant * rng.uniform(0.2, 0.95, size=(members, n_labels))).astype(int)
    return {
        "front/loss_names": np.array([*LOSSES, "macro_f1", "one_error"][:n_losses]),
        "front/validation": losses,
        "front/test": losses + rng.normal(scale=0.01, size=losses.shape),
        "front/relevant": relevant,
        "front/hits": hits,
        "front/predicted": hits + rng.integers(0, 20, size=hits.shape),
        "front/chosen": np.array(3),
        "labels": np.array([f"label {k}" for k in range(n_labels)]),
    }


def _made_up_history(epochs=60, seed=0):
    """Return the arrays of a history: losses that fall, noisily."""
    rng = np.random.default_rng(seed)
    fall = 0.25 + 0.4 * np.exp(-np.arange(epochs) / 15)[:, None]
    losses = fall * [1.0, 0.8, 1.2] + rng.normal(scale=0.008, size=(epochs, 3))
    return {
        "history/loss_names": np.array(LOSSES),
        "history/incumbent_train": losses,
        "history/incumbent_validation": losses + 0.05,
        "history/archive_measure": 1 - losses.prod(axis=1),
        "history/incumbent_binary_cross_entropy_train": 1.2 * losses.mean(axis=1),
    }


def _write_results(
    folder, datasets=DATASETS, methods=METHODS, splits=3, artifacts=None
):
    """Write a folder of results as the contract has it; return it."""
    rng = np.random.default_rng(1)
    (folder / "artifacts").mkdir(parents=True)
    plan = {
        "datasets": list(datasets),
        "methods": list(methods),
        "losses": LOSSES,
        "splits": splits,
        "seeds": [0],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = []
    for i, dataset in enumerate(datasets):
        for j, method in enumerate(methods):
            for split in range(splits):
                key = f"{i}-{j}-{split}"
                losses = 0.2 + 0.05 * i + 0.03 * j + rng.normal(scale=0.02, size=3)
                record = {
                    "key": key,
                    "dataset": dataset,
                    "method": method,
                    "split": split,
                    "seed": 0,
                    "status": "done",
                    "reason": None,
                    "losses": {"test": dict(zip(LOSSES, losses, strict=True))},
                    "seconds": {"fit": 2.0 + j, "predict": 0.01},
                    "peak_memory_mb": 200.0 + 10 * j,
                    "versions": {"clml": "0.1", "numpy": "2.0"},
                    "finished": "2026-11-16T04:00:00Z",
                    "artifact": None,
                }
                if method == methods[0] and split == 0 and artifacts is not False:
                    arrays = artifacts or _made_up_front(seed=i) | _made_up_history()
                    np.savez(folder / "artifacts" / f"{key}.npz", **arrays)
                    record["artifact"] = f"artifacts/{key}.npz"
                lines.append(json.dumps(record))
    failed = record | {
        "key": "f",
        "method": methods[-1],
        "dataset": "enron",
        "status": "failed",
        "reason": "time-out after 60 s",
        "losses": None,
    }
    lines.append(json.dumps(failed))
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def made_up_front():
    return _made_up_front


@pytest.fixture(scope="session")
def made_up_history():
    return _made_up_history


@pytest.fixture(scope="session")
def write_results():
    return _write_results


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    folder = _write_results(tmp_path_factory.mktemp("experiment") / "results")
    return Results.read(folder)
