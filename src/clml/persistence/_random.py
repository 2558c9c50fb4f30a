"""The state of a ``RandomState`` as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

_KIND = "MT19937"
_KEY_LENGTH = 624
_FIELDS = {"key", "pos", "has_gauss", "gauss"}


def random_state_values(random: np.random.RandomState) -> dict[str, Any]:
    """Return what a twin needs to draw the same numbers."""
    state: Any = random.get_state(legacy=False)
    if state["bit_generator"] != _KIND:
        raise TypeError(
            f"a RandomState on {_KIND} can be saved, got one on "
            f"{state['bit_generator']}"
        )
    return {
        **state["state"],
        "has_gauss": state["has_gauss"],
        "gauss": state["gauss"],
    }


def check_position(random: Any) -> None:
    """Refuse a generator that would read beyond its key: numpy takes any position.

    Parameters
    ----------
    random : RandomState, Generator or BitGenerator
    """
    if isinstance(random, np.random.RandomState):
        state: Any = random.get_state(legacy=False)
    else:
        state = getattr(random, "bit_generator", random).state
    if state["bit_generator"] == _KIND:
        if not 0 <= state["state"]["pos"] <= _KEY_LENGTH:
            raise ValueError("the state of a RandomState is not one of its states")


def random_state_from(values: Any) -> np.random.RandomState:
    """Return the twin.

    numpy takes any position in the key, and then reads memory there.
    """
    if not isinstance(values, dict) or set(values) != _FIELDS:
        raise ValueError("the state of a RandomState is not complete")
    key, pos = values["key"], values["pos"]
    if not (
        isinstance(key, np.ndarray)
        and key.dtype == np.uint32
        and key.shape == (_KEY_LENGTH,)
        and type(pos) is int
        and 0 <= pos <= _KEY_LENGTH
        and values["has_gauss"] in (0, 1)
        and type(values["gauss"]) is float
    ):
        raise ValueError("the state of a RandomState is not one of its states")
    random = np.random.RandomState(0)
    random.set_state((_KIND, key, pos, int(values["has_gauss"]), values["gauss"]))
    return random
