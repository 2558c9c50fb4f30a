"""The jobs of a plan, and the key by which each is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._methods import canonical

# A change of what a job does with the same plan gets another number here.
PROTOCOL = 1


@dataclass(frozen=True)
class Cell:
    """One job: a method on a split of a dataset."""

    key: str
    dataset: str
    method: str
    split: int
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method}, split {self.split}, seed {self.seed}"


def digest(value: Any) -> str:
    """Return the sha256 of a value that JSON can hold."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def cells_of(plan: Mapping[str, Any]) -> list[Cell]:
    """Return the jobs of a resolved plan, split by split.

    An experiment that is stopped early then has some splits of everything, not
    everything of some datasets.

    Parameters
    ----------
    plan : mapping
        Of :meth:`Plan.as_dict`, with the ``data_hash`` of each dataset.
    """
    cells = []
    for seed in plan["seeds"]:
        for split in range(plan["splits"]):
            for dataset in plan["datasets"]:
                for method in plan["methods"]:
                    chosen = method["datasets"]
                    if chosen is None or dataset["name"] in chosen:
                        cells.append(_cell(plan, dataset, method, split, seed))
    return cells


def _cell(
    plan: Mapping[str, Any],
    dataset: Mapping[str, Any],
    method: Mapping[str, Any],
    split: int,
    seed: int,
) -> Cell:
    spec = ("name", "estimator", "settings", "one_vs_rest", "scale")
    # Plans of before have none of these, and keep their keys.
    more = [name for name in ("code", "state", "packages", "presets") if name in method]
    own_losses = plan.get("own_losses")
    key = digest(
        {
            "dataset": dataset["name"],
            "data_hash": dataset["data_hash"],
            "method": {name: method[name] for name in (*spec, *more)},
            "protocol": {"version": PROTOCOL, "test_size": plan["test_size"]},
            "split": split,
            "seed": seed,
            "losses": plan["losses"],
            **({"own_losses": own_losses} if own_losses else {}),
        }
    )
    return Cell(key, dataset["name"], method["name"], split, seed)
