"""Sums along a tree: the order depends on the number of partitions alone."""

from hypothesis import given
from hypothesis import strategies as st

from clml.engine.tree_sum import Node, add_along_tree


class Words(str):
    """A sum that shows how it was taken."""

    def __add__(self, other):
        return Words(f"({self}{other})")


def leaves(n):
    return [Node(i, i + 1, Words(chr(97 + i))) for i in range(n)]


def test_by_hand():
    def whole(n):
        (node,) = add_along_tree(leaves(n), n)
        return node.value

    assert whole(1) == "a"
    assert whole(2) == "(ab)"
    assert whole(3) == "((ab)c)"
    assert whole(5) == "(((ab)(cd))e)"
    assert whole(7) == "(((ab)(cd))((ef)g))"


@given(st.integers(1, 40), st.integers(1, 6), st.randoms())
def test_whoever_holds_what_the_sum_is_taken_alike(n, n_workers, random):
    (expected,) = add_along_tree(leaves(n), n)
    groups = [[] for _ in range(n_workers)]
    for leaf in leaves(n):
        random.choice(groups).append(leaf)
    handed_on = [node for group in groups for node in add_along_tree(group, n)]
    (found,) = add_along_tree(sorted(handed_on, key=lambda node: node.first), n)
    assert (found.first, found.last) == (0, n)
    assert found.value == expected.value


@given(st.integers(1, 200), st.integers(1, 8))
def test_neighbours_hand_on_a_few_sums(n, n_workers):
    for worker in range(n_workers):
        own = [leaf for leaf in leaves(n) if leaf.first * n_workers // n == worker]
        assert len(add_along_tree(own, n)) <= 2 * n.bit_length()


def test_partitions_without_rows_add_nothing():
    nodes = [Node(0, 1, None), Node(1, 2, Words("b")), Node(2, 3, None)]
    (node,) = add_along_tree(nodes, 3)
    assert node.value == "b"
    (node,) = add_along_tree([Node(0, 1, None), Node(1, 2, None)], 2)
    assert node.value is None
