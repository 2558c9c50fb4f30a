"""What each learner of a stack is worth, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """The learners of a stack: losses, what each of them adds, and seconds.

    Learners come by the geometric mean of their losses, the best first.

    Attributes
    ----------
    names : tuple of str
        Of the M learners.
    loss_names : tuple of str
    losses : float64 array (M, o)
        Of each learner alone, as it decides itself, on the scores of rows that it was
        not fitted on.
    together : float64 array (o,)
        Of their average on the same rows, each with the share that suits all labels.
    cost_without : float64 array (M, o)
        What would be added to ``together`` without the learner, the shares of the
        others chosen anew. What is not positive: it can go. NaN of a single learner.
        Labels' own deviations from the shares, which come later, are not in it.
    seconds : float64 array (M,)
        That its fits on folds and on all rows took, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from clml._learners.leaderboard import Leaderboard
    >>> board = Leaderboard(
    ...     names=("forest", "near"),
    ...     loss_names=("hamming", "lrap"),
    ...     losses=np.array([[0.2, 0.3], [0.25, 0.35]]),
    ...     together=np.array([0.19, 0.28]),
    ...     cost_without=np.array([[0.06, 0.07], [0.01, 0.02]]),
    ...     seconds=np.array([1.5, 0.1]),
    ... )
    >>> board
    Leaderboard of 2 learners (losses on rows they did not see; without: what together \
would gain, if negative, or lose)
              hamming   lrap  hamming without  lrap without  seconds
    forest      0.200  0.300          +0.0600       +0.0700      1.5
    near        0.250  0.350          +0.0100       +0.0200      0.1
    together    0.190  0.280
    """

    names: tuple[str, ...]
    loss_names: tuple[str, ...]
    losses: NDArray[np.float64]
    together: NDArray[np.float64]
    cost_without: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def __post_init__(self) -> None:
        m, o = len(self.names), len(self.loss_names)
        expected = {
            "losses": (m, o),
            "together": (o,),
            "cost_without": (m, o),
            "seconds": (m,),
        }
        for name, shape in expected.items():
            found = getattr(getattr(self, name), "shape", None)
            if found != shape:
                raise ValueError(
                    f"{name} must be an array of shape {shape}, as there are {m} names "
                    f"and {o} loss_names, got shape {found}."
                )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        head, *rows = self._cells()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])])
            for name, *cells in (head, *rows)
        ]
        return "\n".join([self._title(), *map(str.rstrip, lines)])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        top = "".join(f"<th>{escape(name)}</th>" for name in head)
        body = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in rows
        )
        return (
            f"<div><p>{escape(self._title())}</p><table><thead><tr>{top}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>"
        )

    def to_frame(self) -> Any:
        """Return the table.

        Returns
        -------
        pandas.DataFrame
            One row a learner, with its name as the index. Columns are the names of the
            losses, each again with ``_without`` behind it for ``cost_without``, and
            ``seconds``. Needs pandas.
        """
        try:
            pd = import_module("pandas")
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas.") from None
        columns: dict[str, Any] = dict(zip(self.loss_names, self.losses.T, strict=True))
        for name, values in zip(self.loss_names, self.cost_without.T, strict=True):
            columns[f"{name}_without"] = values
        columns["seconds"] = self.seconds
        return pd.DataFrame(columns, index=pd.Index(self.names, name="learner"))

    def _title(self) -> str:
        n = len(self)
        return (
            f"Leaderboard of {n} learner{'s' if n != 1 else ''} (losses on rows they "
            "did not see; without: what together would gain, if negative, or lose)"
        )

    def _cells(self) -> list[list[str]]:
        without = [f"{name} without" for name in self.loss_names]
        rows = [["", *self.loss_names, *without, "seconds"]]
        for name, losses, costs, seconds in zip(
            self.names, self.losses, self.cost_without, self.seconds, strict=True
        ):
            own = [f"{loss:.3f}" for loss in losses]
            # Adding 0 makes of -0.0 what it is.
            added = [
                f"{np.round(cost, 4) + 0.0:+.4f}" if np.isfinite(cost) else ""
                for cost in costs
            ]
            rows.append([name, *own, *added, f"{seconds:.1f}"])
        together = [f"{loss:.3f}" for loss in self.together]
        empty = [""] * (len(without) + 1)
        return [*rows, ["together", *together, *empty]]
