"""What tells candidates to somebody elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any


class Letter(ABC):
    """Something small that candidates come out of, where it is opened."""

    @abstractmethod
    def open(self) -> Any:
        """Return the candidates (population, n), or None if they cannot be told."""


@dataclass(frozen=True, eq=False)
class Whole(Letter):
    """The candidates themselves.

    Attributes
    ----------
    thetas : array (population, n)
    """

    thetas: Any

    def open(self) -> Any:
        """Return the candidates."""
        return self.thetas
