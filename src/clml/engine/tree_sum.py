"""Sums over partitions in an order that depends on their number alone.

Floating-point sums depend on their order. Partitions are therefore added along one
binary tree over their indices: whoever holds whichever of them adds up what the tree
adds there, and hands the rest on. The bits are the same for any workers, and a worker
with neighbouring partitions hands on a few sums, not one a partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Node:
    """The sum of the partitions ``first`` to ``last``, ``last`` not included.

    Attributes
    ----------
    first, last : int
    value : object with ``+``, or None
        None is the sum of nothing.
    """

    first: int
    last: int
    value: Any


def add_along_tree(nodes: Iterable[Node], n_partitions: int) -> list[Node]:
    """Add up neighbours that the tree of so many partitions adds; return the rest.

    Parameters
    ----------
    nodes : iterable of Node
        Disjoint nodes of the tree, in ascending order.
    n_partitions : int

    Returns
    -------
    list of Node
        One node if all partitions are there.

    Examples
    --------
    >>> from clml.engine.tree_sum import Node, add_along_tree
    >>> leaves = [Node(i, i + 1, 10**i) for i in range(5)]
    >>> [(s.first, s.last, s.value) for s in add_along_tree(leaves[1:], 5)]
    [(1, 2, 10), (2, 4, 1100), (4, 5, 10000)]
    >>> add_along_tree(leaves, 5)
    [Node(first=0, last=5, value=11111)]
    """
    left: list[Node] = []
    for node in nodes:
        left.append(node)
        while len(left) > 1 and _are_siblings(left[-2], left[-1], n_partitions):
            second = left.pop()
            first = left.pop()
            value = _sum(first.value, second.value)
            left.append(Node(first.first, second.last, value))
    return left


def _are_siblings(first: Node, second: Node, n_partitions: int) -> bool:
    """Whether the tree adds two nodes: blocks of 2^j, the last one cut at the end."""
    size = first.last - first.first
    return (
        first.last == second.first
        and size & (size - 1) == 0
        and first.first % (2 * size) == 0
        and second.last == min(second.first + size, n_partitions)
    )


def _sum(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second
