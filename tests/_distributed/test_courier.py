"""Populations that are told by a letter: drawn elsewhere, the same bits."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clml._distributed import courier as _courier
from clml._distributed.courier import Courier, OrderLetter, StateLetter
from clml._training.archive import Archive
from clml._training.candidates import as_single
from clml._training.init import LastLayer, n_before_last
from clml._training.search import Fitness, Search
from clml.engine import NumpyEngine
from clml.engine.letters import Whole
from clml.evolution import (
    CMAPackage,
    FullCMA,
    RankGradient,
    RankOneCMA,
    SeparableCMA,
)
from clml.losses import RowTargets
from clml.network import Layout

LAYOUT = Layout(n_features=3, n_labels=2, embedding_dim=4)
BEFORE = np.linspace(-1, 1, n_before_last(LAYOUT), dtype=np.float32)


@pytest.fixture(autouse=True)
def copies():
    """Return the copies of this process, none at first."""
    _courier._copies.clear()
    yield _courier._copies
    _courier._copies.clear()


def make_search(kind=RankOneCMA, population=6, seed=0, expand=as_single, layout=LAYOUT):
    size = layout.size
    if expand is not as_single:
        size -= len(BEFORE)
    strategy = kind(np.zeros(size), 0.5, population, seed=seed)
    fitness = Fitness("depth", "exact", 1, (0,), False)
    return Search(strategy, fitness, Archive.empty(2, layout.size, 10), expand)


def rows(search, layout=LAYOUT):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, layout.n_features))
    Y = (generator.random((20, layout.n_labels)) < 0.5).astype(np.uint8)
    return NumpyEngine(layout, X, RowTargets.from_indicator(Y), ("hamming", "micro_f1"))


class Told:
    """An engine that hears of populations as somebody elsewhere does."""

    def __init__(self, search, engine, follows=True):
        self.search, self.engine = search, engine
        self.courier = Courier(search)
        self.follows = follows
        self.letters = []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def begin(self, thetas):
        follows = self.follows and bool(self.letters)
        letter = pickle.loads(pickle.dumps(self.courier.letter(thetas, follows)))
        self.letters.append(letter)
        assert_array_equal(letter.open(), thetas)
        return self.engine.begin(thetas)


def run(search, n_epochs=4, layout=LAYOUT, **settings):
    told = Told(search, rows(search, layout), **settings)
    search.attach(told, None)
    for _ in range(n_epochs):
        search.epoch()
    return told


@pytest.mark.parametrize(
    ("kind", "expand"),
    [
        (RankOneCMA, as_single),
        (SeparableCMA, as_single),
        (FullCMA, as_single),
        (RankGradient, as_single),
        (RankOneCMA, LastLayer(BEFORE)),
        (RankGradient, LastLayer(BEFORE)),
    ],
)
def test_letters_hold_the_population(kind, expand):
    told = run(make_search(kind, expand=expand))
    assert [type(letter) for letter in told.letters] == [StateLetter] + [
        OrderLetter
    ] * 3


@pytest.mark.parametrize("kind", [RankOneCMA, RankGradient])
def test_states_alone_will_do(kind):
    told = run(make_search(kind), follows=False)
    assert {type(letter) for letter in told.letters} == {StateLetter}


def test_the_package_is_sent_whole():
    """It draws as it likes: nobody can follow."""
    told = run(make_search(CMAPackage))
    assert {type(letter) for letter in told.letters} == {Whole}


def test_other_candidates_are_sent_whole():
    search = make_search()
    told = run(search)
    others = search.population.copy()
    letter = told.courier.letter(others, True)
    assert isinstance(letter, Whole)
    assert letter.open() is others


def test_letters_for_one_epoch_are_opened_by_many():
    """By tasks for several partitions, in any order, and again."""
    search = make_search()
    told = run(search, 3)
    thetas = search.population
    for _ in range(3):
        assert_array_equal(told.letters[-1].open(), thetas)
    state = told.courier.letter(thetas, False)
    # What was told belongs to the next population; this one's state is past.
    assert state.epoch == told.letters[-1].epoch + 1


def test_who_missed_an_epoch_does_not_know(copies):
    search = make_search()
    told = run(search, 4)
    copies.clear()
    assert told.letters[3].open() is None  # never heard of it
    assert told.letters[0].open() is not None
    assert told.letters[2].open() is None  # an epoch is missing
    assert not copies
    assert told.letters[0].open() is not None
    assert told.letters[1].open() is not None
    assert told.letters[0].open() is not None  # begins again
    assert_array_equal(told.letters[1].open(), told.letters[1].open())


@pytest.mark.parametrize("number", [0, 2])
def test_a_copy_that_went_astray_is_not_believed(copies, number):
    """As on a machine that rounds otherwise. A letter with the state sets it right."""
    told = run(make_search(), 3)
    copies.clear()
    for letter in told.letters[:number]:
        letter.open()
    letter = told.letters[number]
    wrong = type(letter)(**{**vars(letter), "checksum": letter.checksum ^ 1})
    assert wrong.open() is None
    assert not copies
    assert told.letters[0].open() is not None


def test_two_runs_at_once(copies):
    """In one process, in turns."""
    one, other = make_search(seed=0), make_search(RankGradient, seed=1)
    first, second = Told(one, rows(one)), Told(other, rows(other))
    one.attach(first, None)
    other.attach(second, None)
    for _ in range(3):
        one.epoch()
        other.epoch()
    assert len(copies) == 2
    assert all(isinstance(letter, OrderLetter) for letter in second.letters[1:])


def test_runs_that_are_over_are_forgotten(copies):
    told = [run(make_search(seed=seed), 2) for seed in range(6)]
    assert len(copies) == _courier._MOST_RUNS == 4
    runs = [one.letters[0].run for one in told]
    assert list(copies) == runs[2:]


@pytest.mark.parametrize("width", [4, 64])
def test_an_order_is_small_whatever_the_network(width):
    layout = Layout(n_features=3, n_labels=2, embedding_dim=width)
    search = make_search(population=20, layout=layout)
    told = run(search, 2, layout=layout)
    size = len(pickle.dumps(told.letters[-1]))
    assert size < 300
    if width == 64:
        assert size < search.population.nbytes / 1000


def test_orders_of_many_candidates_have_wide_indices():
    layout = Layout(n_features=1, n_labels=1, embedding_dim=2)
    search = make_search(SeparableCMA, layout=layout)
    courier = Courier(search)
    search.population = np.zeros((3, 2), dtype=np.float32)
    for size, wide in ((2**16, False), (2**16 + 1, True)):
        search.told = np.arange(size)[::-1]
        letter = courier.letter(search.population, True)
        kind = np.uint32 if wide else np.uint16
        assert letter.wide == wide
        assert_array_equal(np.frombuffer(letter.order, kind), search.told)


def test_a_letter_must_say_how_it_is_read():
    with pytest.raises(TypeError, match="must define _copy"):
        _courier._Announced("run", 0, 0).open()
