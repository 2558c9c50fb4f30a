"""The nodes of a rule that decides whole rows, see ``clml._maps.row_rules``.

Logits that are different by less than the precision tells may be equal once a row is
shifted; signs are what the rule says in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._maps.row_rules import (
    AT_LEAST_ONE,
    BEST_PREFIX,
    LEAST_ABOVE,
    NEAR,
    expectation_nodes,
    top_of,
)
from ._onnx_model import Graph

_BEFORE = "logits_before_rule"


def rule_logits(
    graph: Graph, rule: str | None, temperature: float, n_labels: int, kind: Any
) -> None:
    """Add what a rule makes of ``logits``, which has that name afterwards.

    Parameters
    ----------
    graph : Graph
        One of its nodes gives ``logits``.
    rule, temperature, n_labels, kind
        See :func:`add_rule`.
    """
    if rule is None:
        return
    for node in graph.nodes:
        if "logits" in node.output:
            node.name, node.output[:] = _BEFORE, [_BEFORE]
    shifted = add_rule(graph, rule, _BEFORE, temperature, n_labels, kind)
    graph.node("Identity", shifted, output="logits")


def add_rule(
    graph: Graph,
    rule: str | None,
    logits: str,
    temperature: float,
    n_labels: int,
    kind: Any,
) -> str:
    """Add logits that are positive for the labels that a rule gives to a row.

    Parameters
    ----------
    graph : Graph
    rule : str or None
    logits : str
        Of shape (N, K), divided by the temperature.
    temperature : float
    n_labels : int
        K.
    kind : type
        Of the logits.
    """
    if rule is None:
        return logits
    add = graph.node

    def table(values: Any, dtype: Any = kind) -> str:
        return graph.constant(graph.new_name("of_rule"), values, dtype)

    ones = table(np.ones((n_labels, 1)))
    falling, order = f"{logits}_falling", f"{logits}_order"
    # One row more: onnxruntime up to 1.23 at least crashes on the TopK of none.
    logits = add("Concat", logits, table(np.zeros((1, n_labels))), axis=0)
    # Of equal logits the one of the first column comes first.
    graph.several(
        "TopK", logits, table([n_labels], np.int64), outputs=[falling, order], axis=1
    )
    if rule == AT_LEAST_ONE:
        positive = graph.cast(add("Greater", logits, table(0)), kind)
        size = add("Max", add("MatMul", positive, ones), table([[1]]))
    elif rule == BEST_PREFIX:
        size = graph.cast(_add_best(graph, falling, temperature, n_labels), kind)
    else:
        size = table([[top_of(rule)]])
    places = np.arange(1, n_labels + 1)[None]

    def at(place: str) -> str:
        there = add("Equal", table(places), place)
        return add("MatMul", add("Where", there, falling, table(0)), ones)

    one = table(1)
    high, all_of_them = at(size), add("Equal", size, table([[n_labels]]))
    low = at(add("Add", size, one))
    low = add("Where", all_of_them, add("Sub", high, one), low)
    half = table(0.5)
    middle = add("Add", add("Mul", high, half), add("Mul", low, half))
    between = add("And", add("LessOrEqual", low, middle), add("Less", middle, high))
    cut = add("Where", between, middle, low)
    right = add("Or", all_of_them, add("LessOrEqual", low, table(0)))
    right = add("And", right, add("Greater", high, table(0)))
    # The place of each label in its row's ranking.
    nothing = add("Mul", order, table(0, np.int64))
    counted = add("Add", nothing, table(places, np.int64))
    place = add("ScatterElements", nothing, order, counted, axis=1)
    chosen = add("LessOrEqual", graph.cast(place, kind), size)
    shifted = add("Sub", logits, cut)
    above = add("Max", shifted, table(LEAST_ABOVE))
    below = add("Min", shifted, table(0))
    decided = add("Where", chosen, above, below)
    as_it_is = add("Or", right, add("IsNaN", logits))
    with_one_more = add("Where", as_it_is, logits, decided)
    first, last = table([0], np.int64), table([-1], np.int64)
    return add("Slice", with_one_more, first, last, first)


def _add_best(graph: Graph, falling: str, temperature: float, n_labels: int) -> str:
    """Add how many labels (N, 1) have the largest expected F1, as int64."""
    add = graph.node

    def table(values: Any, dtype: Any = np.float64) -> str:
        return graph.constant(graph.new_name("of_prefix"), values, dtype)

    exact = graph.cast(falling, np.float64)
    p = add("Sigmoid", add("Mul", exact, table(temperature)))
    one, ones = table(1), table(np.ones((n_labels, 1)))
    axis = table([1], np.int64)
    last_axis = table(1, np.int64)
    sums = []
    powers = np.arange(1, n_labels + 1)
    for node, weight in zip(*expectation_nodes(n_labels), strict=True):
        factors = add("Sub", one, add("Mul", p, table(1 - node)))
        product = add("Exp", add("MatMul", add("Log", factors), ones))
        terms = add("CumSum", add("Div", p, factors), last_axis)
        weighted = add("Mul", terms, table(weight * node ** powers[None]))
        sums.append(add("Mul", weighted, product))
    value = sums[0]
    for other in sums[1:]:
        value = add("Add", value, other)
    best = add("ReduceMax", value, axis, keepdims=1)
    near = add("GreaterOrEqual", value, add("Mul", best, table(1 - NEAR)))
    first = add("ArgMax", graph.cast(near, np.float32), axis=1, keepdims=1)
    return add("Add", first, axis)
