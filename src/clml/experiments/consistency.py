"""Whether learners come to the Bayes values as rows and epochs grow.

The data are drawn from one known distribution, so each loss has a known Bayes value on
the test rows and every expectation is exact. CLML is compared with its own network
trained on cross-entropy. Each is judged as it is, and with what it chose for each loss
on rows that it held out itself: CLML a member of its front, the network a threshold for
micro-F1.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._classifier import CLMLClassifier
from .._support.atomic import atomic_texts
from .._support.csv_cells import original_text, write_cells
from .._support.paths import PathLike, fail, open_regular
from .._training.cross_entropy import fit_cross_entropy
from ..datasets import make_bayes_multilabel

Floats = NDArray[np.float64]
Scores = dict[str, Floats]

LOSSES = ("hamming", "lrap", "micro_f1")
CLML, CLML_SELECTED = "CLML", "CLML, selected"
NETWORK, NETWORK_TUNED = "cross-entropy network", "cross-entropy network, tuned"
#: The second of each pair is the first after its choice for the loss.
LEARNERS = (CLML, CLML_SELECTED, NETWORK, NETWORK_TUNED)

ROWS = (125, 250, 500, 1000, 2000, 4000)
EPOCHS = (10, 30, 100, 300)
QUICK_ROWS = (60, 120, 240)
QUICK_EPOCHS = (10, 40)
TEST_ROWS = 4000
# A file of this study has some hundred lines; what is longer is something else.
_MOST_RECORDS = 100_000
_LONGEST_FIELD = 1000


@dataclass(frozen=True)
class ConsistencyRecord:
    """One loss of one fitted learner.

    Attributes
    ----------
    learner : str
    rows, epochs, seed : int
        Of the training.
    loss : str
    value : float
        Expected on the test rows.
    bayes : float
        The smallest that any predictor has there.
    """

    learner: str
    rows: int
    epochs: int
    seed: int
    loss: str
    value: float
    bayes: float


_COLUMNS = [field.name for field in fields(ConsistencyRecord)]


def consistency_study(
    rows: Sequence[int] | None = None,
    epochs: Sequence[int] | None = None,
    seeds: Iterable[int] | None = None,
    *,
    path: PathLike | None = None,
    quick: bool = False,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> list[ConsistencyRecord]:
    """Fit CLML and a cross-entropy network to more and more rows, longer and longer.

    Each number of rows is fitted with the most epochs, and the most rows with each
    number of epochs. All seeds draw their rows from the same distribution.

    Parameters
    ----------
    rows : sequence of int, default=None
        At least 20 each; None for 125 to 4,000.
    epochs : sequence of int, default=None
        None for 10 to 300.
    seeds : iterable of int, default=None
        Each draws training rows of its own; None for 0, 1 and 2.
    path : str or path, default=None
        A CSV file. What it holds already is not computed again; it is written anew
        after each fit.
    quick : bool, default=False
        What is None above is small: half a minute at most.
    random_state : int, default=0
        Of the distribution and the test rows.
    progress : callable, default=None
        Is told in words what is fitted next.

    Returns
    -------
    list of ConsistencyRecord
        In the order of the file.

    Examples
    --------
    >>> from clml.experiments.consistency import consistency_study
    >>> records = consistency_study(rows=[60], epochs=[2], seeds=[0])
    >>> len(records)  # 4 learners, 3 losses
    12
    >>> all(record.value >= record.bayes for record in records)
    True
    """
    rows = _check_counts("rows", rows, QUICK_ROWS if quick else ROWS, 20)
    epochs = _check_counts("epochs", epochs, QUICK_EPOCHS if quick else EPOCHS, 1)
    wanted = range(2 if quick else 3) if seeds is None else seeds
    truth = make_bayes_multilabel(1, random_state=random_state).truth
    X_test, _ = truth.sample(TEST_ROWS, np.random.default_rng([random_state, 1]))
    bayes = truth.bayes_losses(X_test)

    known = path is not None and Path(path).exists()
    records = read_consistency(path) if path is not None and known else []
    _check_same_data(records, bayes, path)
    done = {(r.rows, r.epochs, r.seed) for r in records}
    for n_rows, n_epochs, seed in _places(rows, epochs, wanted):
        if (n_rows, n_epochs, seed) in done:
            continue
        if progress is not None:
            progress(f"{n_rows} rows, {n_epochs} epochs, seed {seed}")
        X, Y = truth.sample(n_rows, np.random.default_rng([random_state, 2, seed]))
        judged = _judge(truth, X_test, _scores(X, Y, X_test, n_epochs, seed))
        records += [
            ConsistencyRecord(learner, n_rows, n_epochs, seed, loss, value, best)
            for learner, values in judged.items()
            for loss, value, best in zip(
                LOSSES, values.tolist(), bayes.tolist(), strict=True
            )
        ]
        if path is not None:
            write_consistency(records, path)
    return records


def read_consistency(path: PathLike) -> list[ConsistencyRecord]:
    """Read the file of a study, and refuse it whole if a line is not of one.

    Parameters
    ----------
    path : str or path
        CSV with the columns learner, rows, epochs, seed, loss, value and bayes.

    Returns
    -------
    list of ConsistencyRecord
    """
    records = []
    with (
        open_regular(path) as stored,
        io.TextIOWrapper(stored, encoding="utf-8", newline="") as file,
    ):
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if header != _COLUMNS:
                raise fail(path, f"the columns must be {_COLUMNS}, got {header}", 1)
            for row in itertools.islice(reader, _MOST_RECORDS + 1):
                records.append(_parsed(row, path, reader.line_num))
        except (csv.Error, UnicodeDecodeError) as error:
            raise fail(path, str(error), reader.line_num) from error
    if len(records) > _MOST_RECORDS:
        raise fail(path, f"more than {_MOST_RECORDS} records")
    return records


def write_consistency(records: Sequence[ConsistencyRecord], path: PathLike) -> None:
    """Write the file of a study; it is complete or as it was before.

    Parameters
    ----------
    records : sequence of ConsistencyRecord
    path : str or path
    """
    with atomic_texts(path) as [file]:
        write_cells(file, [_COLUMNS])
        write_cells(file, map(astuple, records))


def _parsed(row: list[str], path: PathLike, line: int) -> ConsistencyRecord:
    if len(row) != len(_COLUMNS):
        raise fail(path, f"expected {len(_COLUMNS)} values, got {len(row)}", line)
    learner, *counts, loss, value, bayes = row
    try:
        n_rows, n_epochs, seed = (int(count) for count in counts)
        numbers = float(value), float(bayes)
    except ValueError as error:
        raise fail(path, str(error), line) from error
    if not all(map(math.isfinite, numbers)) or min(n_rows, n_epochs) < 1:
        raise fail(path, f"expected positive counts and finite numbers: {row}", line)
    if max(len(learner), len(loss)) > _LONGEST_FIELD:
        raise fail(path, "a name is too long", line)
    learner, loss = original_text(learner), original_text(loss)
    return ConsistencyRecord(learner, n_rows, n_epochs, seed, loss, *numbers)


def _places(
    rows: Sequence[int], epochs: Sequence[int], seeds: Iterable[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield what to fit: rows, epochs, seed; short fits first."""
    pairs = {(n, epochs[-1]) for n in rows} | {(rows[-1], n) for n in epochs}
    # A seed after the other: what is there early covers both axes.
    for seed in seeds:
        for n_rows, n_epochs in sorted(pairs):
            yield n_rows, n_epochs, int(seed)


def _scores(
    X: Floats, Y: NDArray[np.int64], X_test: Floats, n_epochs: int, seed: int
) -> dict[str, Scores]:
    """Return the scores of each learner on the test rows, for each loss."""
    # The same kind of network as the one that cross-entropy trains.
    clf = CLMLClassifier(
        LOSSES, network="paper", max_epochs=n_epochs, random_state=seed
    ).fit(X, Y)
    network = fit_cross_entropy(
        X, Y, max_epochs=n_epochs, patience=n_epochs, random_state=seed
    )
    logits = network.decision_function(X_test)
    plain = clf.decision_function(X_test)
    tuned = {"micro_f1": logits - network.f1_threshold}
    return {
        CLML: dict.fromkeys(LOSSES, plain),
        CLML_SELECTED: {
            loss: clf.select(loss).decision_function(X_test) for loss in LOSSES
        },
        NETWORK: dict.fromkeys(LOSSES, logits),
        NETWORK_TUNED: dict.fromkeys(LOSSES, logits) | tuned,
    }


def _judge(truth: Any, X_test: Floats, scores: dict[str, Scores]) -> dict[str, Floats]:
    """Return the expected loss of each learner by the scores meant for it."""
    return {
        learner: np.array(
            [
                truth.expected_losses(X_test, meant[loss])[i]
                for i, loss in enumerate(LOSSES)
            ]
        )
        for learner, meant in scores.items()
    }


def _check_counts(
    name: str, counts: Sequence[int] | None, default: Sequence[int], least: int
) -> list[int]:
    chosen = sorted({int(n) for n in (default if counts is None else counts)})
    if not chosen or chosen[0] < least:
        raise ValueError(
            f"{name} must be numbers of at least {least}, one or more, got {counts!r}."
        )
    return chosen


def _check_same_data(
    records: Sequence[ConsistencyRecord], bayes: Floats, path: PathLike | None
) -> None:
    """Refuse to go on with a file from another distribution."""
    ours = dict(zip(LOSSES, bayes.tolist(), strict=True))
    for record in records:
        if not math.isclose(record.bayes, ours.get(record.loss, -1), rel_tol=1e-6):
            raise ValueError(
                f"path must be a new file or one of the same study: {path} has "
                f"{record.bayes} as the Bayes value of {record.loss!r}, expected "
                f"{ours.get(record.loss)}."
            )
