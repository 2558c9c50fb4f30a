"""States of runs, which checkpoints hold, and what options of the command line say."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from _fuzz_archives import damaged_archive
from _fuzz_bytes import Generator, damaged, pick
from _fuzz_json import parsable_json
from _fuzz_models import small_data
from _fuzz_run import Reader

_STRATEGIES = ("CMAPackage", "FullCMA", "RankGradient", "RankOneCMA", "SeparableCMA")
# An option, and what stands after it.
_OPTIONS = """set n_members=4
set search.init=surrogate
set network={"kind": "wide", "hidden": [8]}
set max_epochs=[1, (2.5, None), {'a': -3}]
losses hamming, micro_f1,lrap
select hamming=1, micro_f1=2
select -3
labels -6
labels topic_*
labels a, b
"""


def _strategies() -> list[bytes]:
    from clml import evolution

    found = []
    for name in _STRATEGIES:
        strategy = getattr(evolution, name)(np.ones(3), 0.5, seed=0)
        for _ in range(3):
            strategy.tell(np.argsort((strategy.ask() ** 2).sum(axis=1)))
        found.append(json.dumps(strategy.state(), default=_as_list).encode())
    return found


def _as_list(value: Any) -> Any:
    return value.tolist()


def _continue_strategy(path: Path) -> None:
    from clml.evolution import strategy_from_state

    strategy = strategy_from_state(json.loads(path.read_bytes()))
    for _ in range(2):
        strategy.tell(np.arange(len(strategy.ask())))
    repr(strategy)


# --- checkpoints -----------------------------------------------------------------


def _named(search: Any) -> bytes:
    """Return what tells a search from others in the identity of a checkpoint."""
    return f"{type(search).__module__}:{type(search).__name__}".encode()


def _runs() -> dict[bytes, Any]:
    """Return estimators that keep checkpoints, by words that only theirs have."""
    from clml import (
        CMA,
        Ascent,
        CLMLClassifier,
        LebesgueStackingClassifier,
        LebesgueTunedClassifier,
        RankGradient,
    )
    from clml.baselines import GaussianNBRelevance, MLkNNClassifier
    from clml.network import PaperNetwork

    small = {"max_epochs": 3, "random_state": 0, "checkpoint_every": 0}
    networks: list[dict[str, Any]] = [
        {"search": CMA(4), "n_members": 1},
        {"search": Ascent(), "n_members": 2, "shrinkage": 1.0},
        {"search": RankGradient(4), "n_members": 2},
    ]
    runs: dict[bytes, Any] = {
        _named(options["search"]): CLMLClassifier(
            network=PaperNetwork(2), **small, **options
        )
        for options in networks
    }
    learners = [("naive", GaussianNBRelevance()), ("near", MLkNNClassifier(2))]
    maps = {**small, "cv": 2, "shrinkage": 1.0, "population_size": 4}
    return runs | {
        b"LebesgueTunedClassifier": LebesgueTunedClassifier(learners[1][1], **maps),
        b"LebesgueStackingClassifier": LebesgueStackingClassifier(learners, **maps),
    }


def _short_maps() -> Any:
    """Return what makes the last stage of members as short as the others."""
    from clml._training import own_losses as _own_losses

    short = replace(_own_losses.FULL, max_epochs=3)
    return mock.patch.object(_own_losses, "FULL", short)


def _checkpoints() -> list[bytes]:
    """Return states of each run: early, in the middle, and at its end."""
    from clml.persistence import checkpoint as _checkpoint
    from clml.persistence.file import write_file

    X, Y = small_data()
    found = []
    for model in _runs().values():
        states: list[bytes] = []

        def noted(path: Path, *arguments: Any, states: list[bytes] = states) -> None:
            write_file(path, *arguments)
            states.append(path.read_bytes())

        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(_checkpoint, "write_file", noted),
            _short_maps(),
        ):
            model.set_params(checkpoint=folder).fit(X, Y)
        found += [states[0], states[len(states) // 2], states[-1]]
    return found


def _continue_fit(path: Path) -> None:
    """Go on from a file with the run that wrote its like."""
    content = path.read_bytes()
    runs = _runs()
    told = [model for words, model in runs.items() if words in content]
    folder = path.parent / "checkpoint"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "checkpoint-0000000001.clml").write_bytes(content)
    model = (told or list(runs.values()))[0]
    model.set_params(checkpoint=folder, checkpoint_every=3600)
    X, Y = small_data()
    with _short_maps():
        model.fit(X, Y).predict(X)


# --- options ---------------------------------------------------------------------


def _damaged_option(seeds: Sequence[bytes], generator: Generator) -> bytes:
    option, _, text = pick(generator, seeds).partition(b" ")
    texts = [seed.partition(b" ")[2] for seed in seeds]
    return option + b" " + damaged(text, texts, generator)


def _parse_option(path: Path) -> None:
    from clml._commands._data import parse_labels
    from clml._commands._settings import parse_losses, parse_select, parse_settings

    option, _, text = path.read_bytes().partition(b" ")
    # The shell cannot pass zero bytes; others that are no text it passes as these.
    given = text.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    known = ["n_members", "search", "network", "max_epochs"]
    parsers: dict[bytes, Callable[[str], Any]] = {
        b"set": lambda text: parse_settings([text], known),
        b"losses": parse_losses,
        b"select": parse_select,
        b"labels": parse_labels,
    }
    parsers[option](given)


def _option_errors() -> tuple[type[BaseException], ...]:
    import click

    return ValueError, click.UsageError


def state_readers() -> list[Reader]:
    """Return the readers of states and of options."""
    return [
        Reader("checkpoints", ".clml", _checkpoints, _continue_fit, damaged_archive),
        Reader(
            "states of strategies",
            ".json",
            _strategies,
            _continue_strategy,
            parsable_json,
            names_file=False,
        ),
        Reader(
            "options",
            ".txt",
            lambda: _OPTIONS.encode().splitlines(),
            _parse_option,
            _damaged_option,
            refusals=_option_errors(),
            names_file=False,
        ),
    ]
