"""Where matrices with a row a candidate live: in memory, or on a device.

Vectors of one candidate's size stay on the host, in float64. What has a row for each
candidate or each path, and is hundreds of times larger, can live on a device: it is
drawn there, multiplied there, and only vectors cross.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.torch import find_device, import_torch
from .random import Seed, generator_from_state, generator_state, new_generator

__all__ = ["NUMPY", "ArrayBackend", "Host", "place_of", "read_device"]

_NAME = re.compile("auto|cpu|cuda(:[0-9]{1,4})?")


class Host:
    """The host's memory: matrices are arrays."""

    def put(self, array: NDArray) -> Any:
        """Return an array as it is where matrices are."""
        return array

    def get(self, array: Any) -> NDArray:
        """Return an array on the host."""
        return array

    def empty(self, shape: tuple[int, ...], dtype: type = np.float64) -> Any:
        """Return a matrix whose entries are yet to be written."""
        return np.empty(shape, dtype)

    def as_single(self, matrix: Any) -> Any:
        """Return a matrix in float32."""
        return matrix.astype(np.float32)

    def rows(self, matrix: Any, which: NDArray[np.integer]) -> Any:
        """Return some rows of a matrix."""
        return matrix[which]

    def new_generator(self, seed: Seed) -> Any:
        """Return a generator of normal numbers."""
        return new_generator(seed)

    def generator_state(self, generator: Any) -> dict[str, Any]:
        """Return a generator's state as strings and small integers."""
        return generator_state(generator)

    def generator_from_state(self, state: Mapping[str, Any]) -> Any:
        """Return a generator that continues from a state."""
        return generator_from_state(state)


class Device(Host):
    """A device's memory: matrices are tensors of PyTorch.

    The device is looked for when numbers are first drawn. A run that was stopped can
    so be read where there is none, to predict with or to be written again: what is
    put there then stays on the host. Only a run that goes on needs it.

    Parameters
    ----------
    name : str
        As PyTorch calls it: "cuda", "cuda:1", "cpu".
    """

    def __init__(self, name: str):
        self.name = check_device_name(name)
        self._found: Any = None

    @property
    def device(self) -> Any:
        """The device of PyTorch; ValueError or ImportError if there is none."""
        if self._found is None:
            self._found = find_device(self.name)
        return self._found

    @property
    def is_there(self) -> bool:
        """Whether matrices can be put there."""
        try:
            return self.device is not None
        except (ImportError, ValueError):
            return False

    def put(self, array: NDArray) -> Any:
        """Copy an array to the device."""
        if not self.is_there:
            return array
        torch = import_torch()
        return torch.as_tensor(np.ascontiguousarray(array), device=self.device)

    def get(self, array: Any) -> NDArray:
        """Copy a tensor to the host."""
        return array if isinstance(array, np.ndarray) else array.cpu().numpy()

    def empty(self, shape: tuple[int, ...], dtype: type = np.float64) -> Any:
        """Return a tensor whose entries are yet to be written."""
        if not self.is_there:
            return np.empty(shape, dtype)
        torch = import_torch()
        return torch.empty(shape, dtype=self._kind(dtype), device=self.device)

    def as_single(self, matrix: Any) -> Any:
        """Return a tensor in float32."""
        return matrix.float()

    def rows(self, matrix: Any, which: NDArray[np.integer]) -> Any:
        """Return some rows of a tensor."""
        return matrix[self.put(which)]

    def new_generator(self, seed: Seed) -> "DeviceGenerator":
        """Return a generator of the device."""
        return DeviceGenerator(self, new_generator(seed).bit_generator.random_raw(), 0)

    def generator_state(self, generator: Any) -> dict[str, Any]:
        """Return a generator's state as strings and small integers."""
        return {
            "bit_generator": "torch",
            "device": self.name,
            "seed": str(generator.seed),
            "n_draws": int(generator.n_draws),
        }

    def generator_from_state(self, state: Mapping[str, Any]) -> "DeviceGenerator":
        """Return a generator that continues from a state."""
        try:
            return DeviceGenerator(self, int(str(state["seed"])), int(state["n_draws"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"The state of the random generator is damaged: {error!r}."
            ) from error

    def _kind(self, dtype: type) -> Any:
        torch = import_torch()
        return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


class DeviceGenerator:
    """Draws normal numbers on a device; every draw has a seed of its own.

    So the state is a number that counts the draws, whatever the device keeps.
    """

    def __init__(self, place: Device, seed: int, n_draws: int):
        self._place, self.seed, self.n_draws = place, int(seed), n_draws

    def standard_normal(self, shape: tuple[int, ...], dtype: type = np.float64) -> Any:
        """Return a tensor of standard normal numbers."""
        device = self._place.device  # of what is missing, the first to be told
        torch = import_torch()
        words = np.random.SeedSequence([self.seed, self.n_draws]).generate_state(2)
        source = torch.Generator(device=device)
        source.manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)
        self.n_draws += 1
        return torch.randn(
            shape,
            generator=source,
            dtype=self._place._kind(dtype),
            device=device,
        )


def check_device_name(name: Any) -> str:
    """Return a name that a device can have, there or not.

    Examples
    --------
    >>> from clml.evolution._place import check_device_name
    >>> check_device_name("cuda:1")
    'cuda:1'
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {name!r}."
        )
    return name


ArrayBackend = Host

NUMPY = Host()


def place_of(device: str | None) -> ArrayBackend:
    """Return the place of a device's name; None is the host."""
    return NUMPY if device is None else Device(device)


def read_device(generator: Mapping[str, Any]) -> str | None:
    """Return the name of the device that a generator's state belongs to."""
    device = generator.get("device")
    return None if device is None else str(device)
