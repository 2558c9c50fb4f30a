"""What members say of rows: groups that are asked together, and one by one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from clml._training import holdout as _jury
from clml._training.holdout import HeldOutScorer
from clml._training.training_rows import WideRows
from clml.network import WideNetwork

N, D, K = 23, 5, 3


def rows_of(seed, sparse=False, strangers=False, hidden=(4,)):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N, D)).astype(np.float32)
    others = None
    if strangers:
        some = np.array([1, 4, 9, 17])
        others = some, generator.normal(size=(len(some), D)).astype(np.float32)
    layout = WideNetwork(hidden=hidden).build(D, K)
    return WideRows(sp.csr_array(X) if sparse else X, layout, others)


def twin(jury, networks):
    """Return sizes, logits that are followed, and that judge, row by row."""
    members, n = jury.held_out.shape
    followed = np.arange(n) if jury.followed is None else jury.followed
    said, sizes = np.empty((members, n, K)), np.empty(members)
    for m, rows in enumerate(jury.rows):
        said[m] = rows.logits(networks[m])
        sizes[m] = np.sqrt(np.mean(said[m, followed] ** 2))
        if rows.strangers is not None:
            for i, x in zip(*rows.strangers, strict=True):
                if jury.held_out[m, i]:
                    said[m, i] = rows.layout.logits(networks[m], x[None])[0]
        said[m] /= sizes[m]

    def average(heard):
        voices = [said[m][i] for m, i in heard]
        return np.mean(voices, axis=0) if voices else np.zeros(K)

    everyone = range(members)
    seen = [
        average([(m, i) for m in everyone if not jury.held_out[m, i]]) for i in followed
    ]
    unseen = [
        [
            average(
                [
                    (m, i)
                    for m in everyone
                    if jury.held_out[m, i] and jury.kind_of[m] == kind
                ]
            )
            for i in np.flatnonzero(jury.held_out.any(axis=0))
        ]
        for kind in range(jury.n_kinds)
    ]
    return sizes, np.array(seen), np.array(unseen)


def jury_and_networks(followed, sparse=False):
    kinds = [
        rows_of(0, sparse),
        rows_of(1, strangers=True, hidden=()),
        rows_of(2, sparse, hidden=(3, 2)),
    ]
    members = [kinds[k] for k in (0, 1, 1, 0, 2, 2, 1)]
    generator = np.random.default_rng(3)
    networks = [
        generator.normal(size=rows.layout.size).astype(np.float32) for rows in members
    ]
    part = np.arange(N) % 3
    held_out = np.array([part == p for p in (0, 0, 1, 1, 0, 2, 2)])
    held_out[[0, 5]] |= part == 2
    held_out[4] |= part == 1
    jury = HeldOutScorer(
        members, held_out, None, followed, np.array([0, 1, 1, 0, 2, 2, 1])
    )
    return jury, networks


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("followed", [None, np.array([0, 2, 3, 11, 22])])
def test_against_a_slow_twin(followed, sparse):
    jury, networks = jury_and_networks(followed, sparse)
    together = jury.score(networks, None)
    sizes, seen, unseen = twin(jury, networks)
    assert_allclose(together.sizes, sizes, 1e-6)
    assert_allclose(together.seen, seen, 1e-5, 1e-6)
    assert_allclose(together.by_kind, unseen, 1e-5, 1e-6)


def test_members_say_the_same_alone(monkeypatch):
    jury, networks = jury_and_networks(np.array([0, 2, 3, 11, 22]))
    together = jury.score(networks, None)
    monkeypatch.setattr(_jury, "_WORTH_A_CALL", 0)
    alone, _ = jury_and_networks(jury.followed)
    assert len(alone._questions) == 7 > len(jury._questions) == 3
    with ThreadPoolExecutor(2) as executor:
        one_by_one = alone.score(networks, executor)
    assert_array_equal(one_by_one.sizes, together.sizes)
    assert_array_equal(one_by_one.by_kind, together.by_kind)
    # An average over all of them takes those of a group one after another.
    assert_allclose(one_by_one.seen, together.seen, 1e-5, 1e-6)


def test_rows_of_validation():
    jury, networks = jury_and_networks(None)
    beyond = [rows_of(9, hidden=rows.layout.hidden) for rows in jury.rows]
    judged = HeldOutScorer(
        jury.rows, np.zeros_like(jury.held_out), beyond, None, jury.kinds
    )
    together = judged.score(networks, None)
    for kind in range(3):
        own = [
            beyond[m].logits(networks[m]) / together.sizes[m]
            for m in np.flatnonzero(jury.kinds == kind)
        ]
        assert_allclose(together.by_kind[kind], np.mean(own, axis=0), 1e-5, 1e-6)
