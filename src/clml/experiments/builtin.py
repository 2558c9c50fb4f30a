"""The plans that come with the library: the paper's comparison, whole and quick."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..datasets.data_dirs import data_homes, find_file
from ..datasets.registry import get_entry
from ._methods import REGISTERED
from .plan import Plan, plan_of

SYNTHETIC_NAME = "synthetic"


def built_in_entries(name: str) -> dict[str, Any]:
    """Return the entries of a plan of the library, "reproduce" or "quick"."""
    text = files(__package__).joinpath(f"plans/{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def is_present(dataset: str) -> bool:
    """Whether the files of a named dataset are on this machine."""
    if dataset == SYNTHETIC_NAME:
        return True
    entry = get_entry(dataset)
    homes = data_homes()
    return all(find_file(homes, entry.name, part) for part in entry.parts("all"))


def reproduce_plan(
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    splits: int | None = None,
    download: bool = False,
) -> tuple[Plan, list[str]]:
    """Return the plan of the paper's comparison, and what it has to leave out.

    Parameters
    ----------
    quick : bool, default=False
        Fewer datasets and splits, shorter training.
    datasets, methods : sequences of str, default=None
        Only these; a method may be any registered one. None: those of the plan.
    splits : int, default=None
        None: as the plan has it.
    download : bool, default=False
        Whether datasets that are absent will be downloaded; otherwise they are left
        out.

    Returns
    -------
    plan : Plan
    messages : list of str
        One for each dataset that is left out.

    Examples
    --------
    >>> from clml.experiments.builtin import reproduce_plan
    >>> plan, messages = reproduce_plan(datasets=["synthetic"], methods=["CLML"])
    >>> plan, messages
    (Plan(1 dataset, 1 method, 5 splits, 1 seed: 5 jobs), [])
    """
    entries = built_in_entries("quick" if quick else "reproduce")
    wanted = [name.lower() for name in datasets or entries["datasets"]]
    present = [name for name in wanted if download or is_present(name)]
    messages = [
        f"{name} is left out: its files are not here. --download fetches what has a "
        "public copy; clml datasets lists the folders that are searched."
        for name in wanted
        if name not in present
    ]
    if not present:
        raise ValueError(f"none of the datasets is here: {', '.join(wanted)}.")
    entries["datasets"] = present
    if splits is not None:
        entries["splits"] = splits
    if methods is not None:
        known = {**{name: {} for name in REGISTERED}, **entries["methods"]}
        unknown = [name for name in methods if name not in known]
        if unknown:
            raise ValueError(f"methods must be of {list(known)}, got {unknown}.")
        entries["methods"] = {name: known[name] for name in methods}
    _limit_ablation(entries, present)
    return plan_of(entries, Path()), messages


def _limit_ablation(entries: dict[str, Any], present: list[str]) -> None:
    """Keep the ablation where its method and some of its datasets are."""
    ablation = entries["ablation"]
    ablation["datasets"] = [d for d in ablation["datasets"] if d in present]
    if not ablation["datasets"] or ablation["method"] not in entries["methods"]:
        del entries["ablation"]
