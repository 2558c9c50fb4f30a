"""The engine of a device: PyTorch products, and Triton kernels where there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support.memory import BatchSize, ran_out
from .._support.torch import find_device, import_torch
from ..losses import RowTargets, Statistics, Totals
from ..losses.kernels import CROSS_ENTROPY as N_COUNTS
from ..network import Layout, Scaling
from ..network.kernels import TINY
from . import _row_statistics as plain
from ._device_rows import DeviceRows, DeviceWeights
from ._row_statistics import DeviceTargets, Wants
from .base import RowEngine
from .blocks import SHARD_ROWS

if TYPE_CHECKING:
    from torch import Tensor

# Candidates of one first product.
_BLOCK_CANDIDATES = 320
# What the arrays of one block of rows may take, and what one logit does while the plain
# path counts it.
_BLOCK_BYTES = 512 << 20
_BYTES_A_LOGIT = 64
# More would not fit the grid of a kernel.
_MOST_SHARDS = 1024


class TorchEngine(RowEngine):
    """Evaluates populations on rows held in a device's memory.

    Where Triton is installed and the device is a GPU, everything after the first
    product is one fused kernel; elsewhere plain PyTorch computes the same.

    Where the device's memory runs out, half as many rows are worked on at once from
    then on, then half as many candidates, and a warning says so. Products of other
    shapes may round differently: losses then agree with those of more memory up to
    decisions that rounding decides.

    Parameters
    ----------
    layout : Layout
    X : array or CSR matrix (rows, D)
    targets : RowTargets
        The labels and weights of the rows.
    losses : sequence of losses
    scaling : Scaling, default=None
    device : str or torch.device, default="auto"
        "auto" is a GPU where there is one.
    dtype : numpy dtype, default=float32
        Of the arithmetic; statistics are summed in float64.
    fused : bool, default=None
        Whether the fused kernels are used; None where they can be.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.engine import TorchEngine
    >>> from clml.losses import RowTargets
    >>> from clml.network import Layout
    >>> layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    >>> targets = RowTargets.from_indicator([[1, 0], [1, 1], [0, 1]])
    >>> engine = TorchEngine(layout, np.eye(3), targets, device="cpu")
    >>> engine.losses(np.zeros((5, layout.size), dtype=np.float32)).shape
    (5, 3)
    """

    def __init__(
        self,
        layout: Layout,
        X: Any,
        targets: RowTargets,
        losses: Any = ("hamming", "lrap", "micro_f1"),
        *,
        scaling: Scaling | None = None,
        device: Any = "auto",
        dtype: type = np.float32,
        fused: bool | None = None,
    ):
        super().__init__(layout, X, targets, losses)
        dtype = np.dtype(dtype).type
        self.device = find_device(str(device))
        self._dtype = dtype
        try:
            self._rows = DeviceRows.put(X, scaling, dtype, self.device)
        except Exception as error:
            if not ran_out(error):
                raise
            raise MemoryError(
                f"X must fit the memory of the device {str(self.device)!r}, got "
                f"{X.shape[0]} rows of {X.shape[1]} features. It was said: {error}"
            ) from error
        self._in_flight = BatchSize("candidates", exact=False, release=self._release)
        self._rows_at_once = BatchSize("rows", SHARD_ROWS, exact=False)
        self._kernels = self._ratios = None
        if fused or (fused is None and self.device.type == "cuda"):
            self._kernels = _kernels_for(layout, dtype, required=bool(fused))
        if self._kernels is not None:
            self._ratios = DeviceTargets.all_ratios(layout.n_labels, self.device)
        self._device_targets = DeviceTargets.put(targets, self.device, self._ratios)

    def with_targets(self, targets: RowTargets) -> Self:
        """Return an engine on the same rows with other labels or row weights."""
        other = super().with_targets(targets)
        other._device_targets = DeviceTargets.put(targets, self.device, self._ratios)
        return other

    def begin(self, thetas: Any) -> Callable[[], NDArray[np.float64]]:
        """Start to evaluate candidates; what is returned waits for their losses."""
        finish = self._begin(thetas)
        return lambda: self.loss_set.close(finish())

    def evaluate(self, thetas: Any) -> Statistics:
        """Return the statistics of candidates (population, n), a tensor or an array."""
        return self._begin(thetas)()

    def _begin(self, thetas: Any) -> Callable[[], Statistics]:
        """Hand all work of an evaluation to the device; return what waits for it."""
        with self._current_device():
            return self._begin_there(thetas)

    def _begin_there(self, thetas: Any) -> Callable[[], Statistics]:
        parts: list[tuple[slice, Callable[[], Totals]]] = []
        found: dict[str, list[NDArray]] = {x.name: [] for x in self._matrix_losses}

        def some(where: slice, weights: DeviceWeights) -> None:
            totals, values = self._begin_totals(weights), {}
            if found:
                logits = self._all_logits(weights)
                values = self.loss_set.evaluate_matrix_losses(logits, self.targets)
            # Nothing is kept of a block that runs out of memory.
            parts.append((where, totals))
            for name, value in values.items():
                found[name].append(value)

        self._work_through(thetas, some)

        def finish() -> Statistics:
            totals = self.loss_set.new_totals(len(thetas))
            for where, wait in parts:
                totals.put(where, wait())
            weight = float(self.targets.weight.sum())
            statistics = self.loss_set.statistics(totals, weight)
            statistics.matrix_losses = {
                name: np.concatenate([np.empty(0), *values])
                for name, values in found.items()
            }
            return statistics

        return finish

    def scores(self, thetas: Any) -> NDArray:
        """Return the logits (population, rows, K) of candidates (population, n)."""
        with self._current_device():
            shape = (len(thetas), self.n_rows, self.layout.n_labels)
            logits: NDArray = np.empty(shape, dtype=self._dtype)

            def some(where: slice, weights: DeviceWeights) -> None:
                logits[where] = self._all_logits(weights)

            self._work_through(thetas, some)
            return logits

    def _current_device(self) -> Any:
        """Return a context in which kernels are launched on this engine's device."""
        if self.device.type == "cpu":
            return nullcontext()
        return import_torch().cuda.device(self.device)

    @property
    def _matrix_losses(self) -> tuple[Any, ...]:
        return self.loss_set.matrix_losses

    def _put(self, thetas: Any) -> Tensor:
        torch = import_torch()
        kind = torch.float32 if self._dtype is np.float32 else torch.float64
        if isinstance(thetas, np.ndarray) and not thetas.flags.writeable:
            thetas = thetas.copy()  # PyTorch warns of arrays that it could not write to
        return torch.as_tensor(thetas, dtype=kind, device=self.device)

    def _release(self) -> None:
        """Give the device what PyTorch keeps of it for later."""
        if self.device.type == "cuda":
            import_torch().cuda.empty_cache()

    def _work_through(
        self, thetas: Any, work: Callable[[slice, DeviceWeights], None]
    ) -> None:
        """Call work with which candidates a block holds and with their weights."""
        most = _BLOCK_CANDIDATES
        if self._kernels is None or self._wants is None:  # logits are in memory
            entries = SHARD_ROWS * self.layout.n_labels
            most = max(1, min(most, _BLOCK_BYTES // (_BYTES_A_LOGIT * entries)))
        n_blocks = -(-len(thetas) // most)
        size = -(-len(thetas) // max(n_blocks, 1)) or 1

        def block(first: int, last: int) -> None:
            where = slice(first, last)
            some = self._put(thetas[where])
            work(where, self._rows.lay_out(some, self.layout))

        def cut_rows(n_candidates: int) -> bool:
            logits = self._kernels is None or self._wants is None
            step = self._step(n_candidates, logits or bool(self._matrix_losses))
            return self._rows_at_once.cut(min(step, self.n_rows))

        self._in_flight.for_each_batch(len(thetas), size, block, cut_rows)
        self._rows_at_once.tell()

    def _chunks(
        self, n_candidates: int, logits: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Yield rows from start to stop: whole shards, as many as fit the memory.

        How rows are cut depends on shapes alone while memory lasts, so that results
        do not depend on what else is in it.
        """
        step = self._step(n_candidates, logits)
        for start in range(0, self.n_rows, step):
            yield start, min(start + step, self.n_rows)

    def _step(self, n_candidates: int, logits: bool = False) -> int:
        """Return how many rows are worked on at once."""
        product = n_candidates * self.layout.embedding_dim * 8
        if logits:
            product += n_candidates * self.layout.n_labels * _BYTES_A_LOGIT
        features = self._rows.bytes_a_row(self._kernels)
        shards = _BLOCK_BYTES // (SHARD_ROWS * (product + features))
        return self._rows_at_once.size(min(max(1, shards), _MOST_SHARDS) * SHARD_ROWS)

    @property
    def _wants(self) -> Wants | None:
        """What the fused kernels count; None if that is not all that is asked for."""
        lanes = self.loss_set.lane_statistics
        if lanes is None or lanes[3]:
            return None
        lrap, order, example, _ = lanes
        return Wants(lrap=lrap, order=order, example=example)

    def _begin_totals(self, weights: DeviceWeights) -> Callable[[], Totals]:
        wants = self._wants
        if self._kernels is None or wants is None:
            return self._begin_plain_totals(weights)
        parts = []
        for start, stop in self._chunks(weights.n_candidates):
            product = self._rows.product(weights, start, stop, self._kernels)
            rows = self._kernels.count_rows(
                product,
                weights,
                self._device_targets,
                start,
                self.loss_set.threshold,
                wants,
            )
            parts.append(
                self._kernels.sum_shards(rows, self._device_targets, start, wants)
            )
        return self._closed(weights.n_candidates, parts)

    def _begin_plain_totals(self, weights: DeviceWeights) -> Callable[[], Totals]:
        """Sum the statistics of all rows from logits in memory, chunk by chunk."""
        torch = import_torch()
        needs = self.loss_set.needs
        wants = Wants(needs.lrap, needs.order, needs.example)
        parts, labels = [], []
        totals = self.loss_set.new_totals(weights.n_candidates)
        for start, stop in self._chunks(weights.n_candidates, logits=True):
            logits = self._logits(weights, start, stop)
            if needs.host:  # statistics that only the host knows
                self._accumulate_on_host(totals, logits.cpu().numpy(), start)
                continue
            targets = self._device_targets.between(start, stop)
            threshold = self.loss_set.threshold
            shape = (-(-(stop - start) // SHARD_ROWS), N_COUNTS, len(logits))
            sums = torch.zeros(shape, dtype=torch.float64, device=self.device)
            if needs.decisions:
                rows = plain.count_rows(logits, targets, threshold, wants)
                sums = plain.sum_shards(rows, targets, wants, self._add)
            if needs.probability:
                probability = plain.probability_sums(logits, targets, self._add)
                sums = torch.cat([sums, probability], dim=1)
            parts.append(sums)
            if needs.labels:
                labels.append(plain.label_sums(logits, targets, threshold, self._add))
        if needs.host:
            return lambda: totals
        return self._closed(weights.n_candidates, parts, labels)

    def _accumulate_on_host(self, totals: Totals, logits: NDArray, start: int) -> None:
        """Add what logits (candidates, rows, K) come to, shard by shard."""
        for first in range(0, logits.shape[1], SHARD_ROWS):
            shard = self.loss_set.new_totals(len(logits))
            scores = np.ascontiguousarray(logits[:, first : first + SHARD_ROWS])
            self.loss_set.accumulate(shard, scores, self.targets, start + first)
            totals.add(shard)

    def _closed(
        self,
        n_candidates: int,
        parts: Sequence[Tensor],
        labels: Sequence[Tensor] = (),
    ) -> Callable[[], Totals]:
        """Add shards (shards, columns, candidates) in their order."""
        columns_there = self._added(parts)
        labels_there = self._added(labels) if labels else None

        def wait() -> Totals:
            totals = self.loss_set.new_totals(n_candidates)
            columns = columns_there()
            totals.columns[:, : len(columns)] = columns.T
            if labels_there is not None:
                totals.labels[:] = labels_there().transpose(1, 0, 2)
            return totals

        return wait

    def _added(self, parts: Sequence[Tensor]) -> Callable[[], NDArray[np.float64]]:
        """Add along the first axis and send the sums; return what waits for them."""
        torch = import_torch()
        shards = torch.cat(list(parts)).movedim(0, -1)
        sums = self._add(shards, shards.shape[-1])[..., 0]
        if self.device.type == "cpu":
            return sums.numpy
        # Sent before anything that the device is asked for next.
        host = torch.empty(sums.shape, dtype=sums.dtype, pin_memory=True)
        host.copy_(sums, non_blocking=True)
        sent = torch.cuda.Event()
        sent.record(torch.cuda.current_stream(self.device))

        def wait() -> NDArray[np.float64]:
            sent.synchronize()
            return host.numpy()

        return wait

    @property
    def _add(self) -> plain.Add:
        kernels = self._kernels
        return plain.ordered_sums if kernels is None else kernels.ordered_sums

    def _logits(self, weights: DeviceWeights, start: int, stop: int) -> Tensor:
        """Return the logits (candidates, rows, K) of some rows."""
        torch = import_torch()
        product = self._rows.product(weights, start, stop, self._kernels)
        if self._kernels is not None:
            shape = (weights.n_candidates, stop - start, self.layout.n_labels)
            logits = torch.empty(shape, dtype=product.dtype, device=self.device)
            self._kernels.count_rows(
                product, weights, self._device_targets, start, 0.0, Wants(), logits
            )
            return logits
        hidden = _activated((product + weights.bias).transpose(0, 1))
        for layer in range(weights.hidden.shape[1]):
            matrix = weights.hidden[:, layer]
            hidden = _activated(torch.baddbmm(matrix[:, -1:], hidden, matrix[:, :-1]))
        return torch.baddbmm(weights.last[:, -1:], hidden, weights.last[:, :-1])

    def _all_logits(self, weights: DeviceWeights) -> NDArray:
        shape = (weights.n_candidates, self.n_rows, self.layout.n_labels)
        logits: NDArray = np.empty(shape, dtype=self._dtype)
        for start, stop in self._chunks(weights.n_candidates, logits=True):
            logits[:, start:stop] = self._logits(weights, start, stop).cpu().numpy()
        return logits


def _activated(values: Tensor) -> Tensor:
    """Standardise over the last axis and apply the sigmoid: ``network.activate``."""
    torch = import_torch()
    # From the first entry on, so that the mean of equal entries is exact.
    distance = values - values[..., :1]
    distance = distance - distance.mean(dim=-1, keepdim=True)
    square = distance.square().mean(dim=-1, keepdim=True)
    # NaN where squares overflow: entries over inf would all be 0.
    deviation = square.sqrt() + (square - square)
    return torch.sigmoid(distance / (deviation + TINY))


def _kernels_for(layout: Layout, dtype: type, required: bool) -> Any:
    """Return the module of fused kernels if they serve this layout, else None."""
    try:
        from . import _triton
    except ImportError:
        if required:
            raise
        return None
    if dtype is np.float32 and _triton.is_supported(
        layout.embedding_dim, layout.n_labels
    ):
        return _triton
    if required:
        raise ValueError(f"The fused kernels do not serve {layout} in {dtype}.")
    return None
