"""What displays share that show the history of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from ._style import history_of, take


class HistoryDisplay(ABC):
    """A display that a history is enough for."""

    @classmethod
    @abstractmethod
    def from_history(cls, *arguments: Any, **options: Any) -> Self:
        """Take the incumbents of a history: a subclass says which of its entries."""

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Take the history of a fitted estimator.

        Parameters
        ----------
        estimator : CLMLClassifier or another with ``history_`` and ``front_``
        **options
            Those of :meth:`from_history`.
        """
        names = estimator.front_.loss_names
        return cls.from_history(estimator.history_, names, **options)

    @classmethod
    def from_artifact(cls, artifact: Mapping[str, NDArray], **options: Any) -> Self:
        """Take the history that a run of an experiment left.

        Parameters
        ----------
        artifact : mapping of str to arrays
            As :meth:`clml.experiments.Results.artifact` returns it.
        **options
            Those of :meth:`from_history`.
        """
        (names,) = take(artifact, "history/loss_names")
        return cls.from_history(history_of(artifact), names.tolist(), **options)
