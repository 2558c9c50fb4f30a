"""The random generator as a value."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["Seed", "generator_from_state", "generator_state", "new_generator"]

Seed = int | np.random.SeedSequence | None


def new_generator(seed: Seed) -> np.random.Generator:
    """Make the generator of a fresh strategy."""
    plain = isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0
    if seed is not None and not plain and not isinstance(seed, np.random.SeedSequence):
        raise ValueError(
            "Expected seed to be None, a non-negative integer or a "
            f"numpy.random.SeedSequence. Got {seed!r}."
        )
    return np.random.Generator(np.random.PCG64(seed))


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """Return a PCG64 generator's state as strings and small integers.

    The two 128-bit integers become decimal strings: few file formats hold them as
    numbers.
    """
    state = generator.bit_generator.state
    return {
        "bit_generator": "PCG64",
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_from_state(state: Mapping[str, Any]) -> np.random.Generator:
    """Return a generator that continues from what `generator_state` returned."""
    try:
        if str(state["bit_generator"]) != "PCG64":
            raise ValueError(f"unknown bit generator {state['bit_generator']!r}")
        bit_generator = np.random.PCG64(0)
        bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {
                "state": int(str(state["state"])),
                "inc": int(str(state["inc"])),
            },
            "has_uint32": int(state["has_uint32"]),
            "uinteger": int(state["uinteger"]),
        }
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"The state of the random generator is damaged: {error!r}."
        ) from error
    return np.random.Generator(bit_generator)
