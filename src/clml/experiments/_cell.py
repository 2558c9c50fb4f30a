"""One job, in a process of its own: fit, predict, judge."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._learners.scores import LEAST_PROBABILITY, _answers
from .._version import __version__
from ..datasets.npz import arrays_digest
from ..losses import get_loss, loss_values
from ..splits import iterative_train_test_split
from ._artifacts import artifacts_of, validation_losses
from ._cell_data import features_and_labels, packed, unpacked
from ._methods import build_estimator

RESULT, ARTIFACT = "result.json", "artifact.npz"
_LONGEST_REASON = 500


class UndefinedLoss(ValueError):
    """A loss that is no finite number."""


def compute_cell(
    job: Mapping[str, Any], keep: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Return what a job found.

    Parameters
    ----------
    job : mapping
        ``data`` (path of the arrays), ``data_hash`` (what they must be), ``method``
        (an order of `MethodSpec`), ``split``, ``seed``, ``losses``, ``test_size``, and
        ``dataset`` where the method has presets.
    keep : callable, default=None
        Gets ``losses`` and ``seconds`` as soon as they are known: what comes after
        them may take long, or fail.

    Returns
    -------
    dict
        ``losses``, ``seconds``, ``artifact`` (arrays, perhaps none), and ``note``: why
        there are no arrays, where the model has some but could not tell them.
    """
    arrays = unpacked(job["data"])
    if arrays_digest(arrays) != job["data_hash"]:
        raise ValueError(f"{job['data']} holds other data than those of the plan")
    X, Y, label_names = features_and_labels(arrays)
    parts = iterative_train_test_split(
        X, Y, test_size=job["test_size"], refine=False, random_state=job["split"]
    )
    X_train, X_test, Y_train, Y_test = parts
    random_state = 1000 * job["seed"] + job["split"]
    # For estimators that draw from NumPy's global generator.
    np.random.seed(random_state)  # noqa: NPY002
    model = build_estimator(job["method"], random_state, job.get("dataset"))
    with warnings.catch_warnings():
        # Rare labels can be constant in a training part: every method copes.
        warnings.filterwarnings("ignore", message=".*labels are constant")
        warnings.filterwarnings("ignore", message="Label .* is present in all")
        # LightGBM tells of its own conversions, once for each label.
        warnings.filterwarnings("ignore", message="Converting data to scipy sparse")
        warnings.filterwarnings("ignore", message="X does not have valid .*LGBM")
        began = time.perf_counter()
        model.fit(X_train, Y_train)
        fitted = time.perf_counter()
        answers = _answers(model, X_test, Y_test.shape[1])
        predicted = time.perf_counter()
        test = judge(answers, Y_test, job["losses"], "test")
        answers = _answers(model, X_train, Y_train.shape[1])
        found: dict[str, Any] = {
            "losses": {
                "train": judge(answers, Y_train, job["losses"], "training"),
                "validation": validation_losses(model),
                "test": test,
            },
            "seconds": {"fit": fitted - began, "predict": predicted - fitted},
        }
        if keep is not None:
            keep(found)
        try:
            artifact = artifacts_of(model, parts, label_names, random_state)
        except Exception as error:
            return {**found, "artifact": {}, "note": f"no artifact: {_words(error)}"}
    return {**found, "artifact": artifact, "note": None}


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip(": ")[:_LONGEST_REASON]


def judge(
    answers: tuple[NDArray[np.float64], bool],
    Y: np.ndarray,
    losses: list[str],
    rows: str,
) -> dict[str, float]:
    """Return the losses of a model by name; all of them must be finite.

    Parameters
    ----------
    answers : tuple
        What it says of the rows, and whether these are probabilities: it is asked
        once, whatever the losses need.
    Y : int array
    losses : list of str
    rows : str
        What the rows are called.
    """
    given, are_probabilities = answers
    scores = given - 0.5 if are_probabilities else given
    tracked = [name for name in losses if get_loss(name).role == "tracked"]
    others = [name for name in losses if name not in tracked]
    found: dict[str, float] = {}
    if others:
        found |= dict(zip(others, loss_values(Y, scores, others), strict=True))
    if tracked:
        # Logits are for what has no upper bound: as scores, clipped ones would tie.
        logits = given
        if are_probabilities:
            least = LEAST_PROBABILITY
            logits = logit(np.clip(given, least, 1.0 - least))
        found |= dict(zip(tracked, loss_values(Y, logits, tracked), strict=True))
    for name in losses:
        if not np.isfinite(found[name]):
            raise UndefinedLoss(f"{name} on the {rows} rows is {found[name]}")
    return {name: float(found[name]) for name in losses}


def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    found = {"clml": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def peak_memory_mb() -> float | None:
    """Return the most memory that this process ever held."""
    try:
        # Of this program alone: what rusage tells includes who started it.
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)


def _limit_memory(memory_mb: float | None) -> None:
    """Refuse allocations far beyond the limit, which the parent may see too late."""
    if memory_mb is None:
        return
    try:
        import resource

        # Libraries reserve more than they use; the parent watches what is used.
        most = int(2 * memory_mb * 2**20) + 2**31
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    except (ImportError, ValueError, OSError):
        return


def _leave(folder: Path, result: Mapping[str, Any]) -> None:
    """Leave a result in a folder, in place of an earlier one."""
    told = {**result, "peak_memory_mb": peak_memory_mb(), "versions": versions()}
    _write(folder / RESULT, json.dumps(told, allow_nan=False).encode())


def _write(path: Path, content: bytes) -> None:
    """Write a file at once: this process may be killed at any moment."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def run_in_child(order: bytes, place: str) -> None:
    """Do a job and leave the result in a folder; end this process.

    Parameters
    ----------
    order : bytes
        The job as JSON.
    place : str
        The folder.
    """
    job, folder = json.loads(order), Path(place)
    _limit_memory(job["memory_mb"])
    kept: dict[str, Any] = {}

    def keep(found: Mapping[str, Any]) -> None:
        kept.update(found, status="done", reason=None)
        _leave(folder, kept)

    result: dict[str, Any]
    try:
        found = compute_cell(job, keep)
        artifact = found.pop("artifact")
        result = {**kept, **found}
        if artifact:
            _write(folder / ARTIFACT, packed(artifact))
    except UndefinedLoss as error:
        result = {"status": "failed", "reason": str(error)}
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        result = {"status": "failed", "reason": _words(error)}
        if kept:  # whatever it was, the losses are known
            result = {**kept, "note": f"no artifact: {_words(error)}"}
    _leave(folder, result)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that a library left must not keep the process.
    os._exit(0)
