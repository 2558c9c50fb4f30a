"""Which hidden units rows drop, on a device: the hash of the compiled kernels.

A unit is dropped by sixteen bits that are a function of a key and of its place
(``network._wide_kernels.dropout_factors``), so a device finds the same ones. Its
integers have a sign: sums and products wrap around all the same, and what a shift to
the right copies of the sign is cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.torch import import_torch
from ..network.wide_kernels import _BITS as BITS
from ..network.wide_kernels import _LOW as LOW
from ..network.wide_kernels import _MIX as MIX
from ..network.wide_kernels import _PER_WORD as PER_WORD
from ..network.wide_kernels import _SHIFTS as SHIFTS
from ..network.wide_kernels import _STEP as STEP

if TYPE_CHECKING:
    from torch import Tensor

# Units that are decided at once take some eight bytes each meanwhile.
_MOST_UNITS = 1 << 23


def _signed(number: Any) -> int:
    """Return a 64-bit number as one with a sign."""
    return int(np.uint64(number).astype(np.int64))


def _mixed_on_host(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> SHIFTS[0])) * MIX[0]
    words = (words ^ (words >> SHIFTS[1])) * MIX[1]
    return words ^ (words >> SHIFTS[2])


def _mixed(words: Tensor) -> Tensor:
    """Do the same on a device, in place."""
    for shift, factor in zip(SHIFTS, (*MIX, None), strict=True):
        high = words >> int(shift)
        high &= (1 << (64 - int(shift))) - 1
        words ^= high
        if factor is not None:
            words *= _signed(factor)
    return words


class DropoutMasks:
    """Decides which units of all hidden layers are kept, several steps at once.

    Parameters
    ----------
    hidden : sequence of int
        Units of each hidden layer.
    most_rows : int
        Rows of a batch.
    threshold : int
        Of 65,536: a unit is dropped if its sixteen bits are below.
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> from clml.engine._dropout import DropoutMasks
    >>> masks = DropoutMasks((4,), most_rows=2, threshold=2**15, device="cpu")
    >>> keys = np.array([[1, 2, 3]], dtype=np.uint64)  # of one step, three members
    >>> ((kept,),) = masks.of(masks.starts(keys))
    >>> kept.shape  # members, rows, units
    torch.Size([3, 2, 4])
    """

    def __init__(
        self, hidden: Sequence[int], most_rows: int, threshold: int, device: Any
    ):
        torch = import_torch()
        self._shapes = [(most_rows, units) for units in hidden]
        self._threshold = threshold
        words = [-(-most_rows * units // PER_WORD) for units in hidden]
        self._n_words = words
        places = np.concatenate(
            [np.arange(n, dtype=np.uint64) * np.uint64(PER_WORD) for n in words]
        )
        offsets = (places * STEP).view(np.int64)
        self._offsets = torch.as_tensor(offsets, device=device)
        layer = np.repeat(np.arange(len(words)), words)
        self._layer = torch.as_tensor(layer, device=device)
        shifts = np.arange(PER_WORD, dtype=np.int64) * int(BITS)
        self._shifts = torch.as_tensor(shifts, device=device)

    def starts(self, keys: NDArray[np.uint64]) -> Tensor:
        """Return what keys come to for each layer, (steps, members, layers).

        Parameters
        ----------
        keys : uint64 array (steps, members)
        """
        layers = np.arange(1, len(self._shapes) + 1, dtype=np.uint64)
        starts = _mixed_on_host(keys[..., None] + layers * STEP).view(np.int64)
        return import_torch().as_tensor(starts, device=self._offsets.device)

    def of(self, starts: Tensor) -> Iterator[list[Tensor]]:
        """Yield the units that are kept, bool (members, rows, units), layer by layer.

        Parameters
        ----------
        starts : int64 tensor (steps, members, layers)
        """
        n_units = PER_WORD * len(self._offsets) * starts.shape[1]
        at_once = max(1, _MOST_UNITS // n_units)
        for first in range(0, len(starts), at_once):
            yield from self._some(starts[first : first + at_once])

    def _some(self, starts: Tensor) -> Iterator[list[Tensor]]:
        words = _mixed(starts[..., self._layer] + self._offsets)
        bits = (words[..., None] >> self._shifts) & int(LOW)
        kept = (bits >= self._threshold).flatten(-2)
        by_layer = kept.split([PER_WORD * n for n in self._n_words], dim=-1)
        for step in range(len(starts)):
            yield [
                part[step, :, : rows * units].unflatten(1, (rows, units))
                for part, (rows, units) in zip(by_layer, self._shapes, strict=True)
            ]
