"""What learners warn of in their many fits, said once and with the user's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray

from .._support.names import shown
from .._support.sklearn_compat import warn_user
from .out_of_fold import Fold

#: The class of a warning, and its text.
Heard = tuple[type[Warning], str]

# What OneVsRestClassifier and the estimators of this library say of a label that never
# varies. They know its number in a fold, not its name.
_CONSTANT = re.compile(
    r"Label .* is present in all training examples\.$"
    r"|.* labels are constant in the training rows and cannot be learnt: "
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@contextmanager
def heard_warnings(hears: bool) -> Iterator[list[Heard]]:
    """Yield a list that holds, at the end, what was warned of inside, unsaid.

    Parameters
    ----------
    hears : bool
        Whether to listen: threads hear each other's warnings, and should not. What is
        warned of before an error is said in any case.
    """
    found: list[Heard] = []
    if not hears:
        yield found
        return
    try:
        with catch_warnings(record=True) as records:
            yield found
    except BaseException:
        for record in records:
            warn_user(str(record.message), record.category)
        raise
    found += [(record.category, str(record.message)) for record in records]


class LearnerWarnings:
    """Collects what the fits of learners warn of.

    Parameters
    ----------
    names : sequence of str
        Of the learners.
    label_names : sequence of str
    folds : sequence of (train, test)
    Y : array (n, K)

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from clml._learners.learner_warnings import LearnerWarnings
    >>> told = LearnerWarnings(["near"], ["calm"], [], np.zeros((2, 1)))
    >>> told.add(0, [(UserWarning, "no step in 10 iterations")])
    >>> told.add(0, [(UserWarning, "no step in 12 iterations")])
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     told.tell()
    >>> print(heard[0].message)
    no step in 10 iterations (the learner 'near', in 2 fits)
    """

    def __init__(
        self,
        names: Sequence[str],
        label_names: Sequence[str],
        folds: Sequence[Fold],
        Y: NDArray[Any],
    ):
        self._names, self._label_names = names, label_names
        self._folds, self._Y = folds, Y
        self._found: dict[tuple[int, type[Warning], str], tuple[str, int]] = {}
        self._some_constant = False

    def add(self, learner: int, heard: Sequence[Heard]) -> None:
        """Take what one fit of a learner, given by its number, warned of."""
        for category, message in dict.fromkeys(heard):
            if _CONSTANT.match(message):
                self._some_constant = True
                continue
            # Messages that differ in their numbers alone say the same.
            key = learner, category, _NUMBER.sub("#", message)
            first, count = self._found.get(key, (message, 0))
            self._found[key] = (first, count + 1)

    def tell(self) -> None:
        """Warn of each thing once, and forget it."""
        found, self._found = self._found, {}
        constant = self._constant_in_folds() if self._some_constant else []
        self._some_constant = False
        if constant:
            warn_user(
                f"{len(constant)} of {len(self._label_names)} labels are constant in "
                "the training part of a fold, where some learners cannot learn them: "
                f"{shown(constant)}."
            )
        for (learner, category, _), (message, count) in found.items():
            fits = "1 fit" if count == 1 else f"{count} fits"
            name = self._names[learner]
            warn_user(f"{message} (the learner {name!r}, in {fits})", category)

    def _constant_in_folds(self) -> list[str]:
        """Return the labels that vary, but not in the training part of each fold."""

        def varies(Y: NDArray[Any]) -> NDArray[np.bool_]:
            return np.asarray(Y.min(axis=0) != Y.max(axis=0))

        parts = [varies(self._Y[train]) for train, _ in self._folds if len(train)]
        if not parts:
            return []
        lost = varies(self._Y) & ~np.all(parts, axis=0)
        return [str(self._label_names[k]) for k in np.flatnonzero(lost).tolist()]
