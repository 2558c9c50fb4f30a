"""Many threads that predict with one model: a server's day."""

import pickle
import threading

import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from clml import PAPER_SETTINGS, CLMLClassifier, LebesgueTunedClassifier
from clml.baselines import GaussianNBChain, MLkNNClassifier, MLPRelevanceClassifier
from clml.persistence import load, save

N_THREADS = 64
METHODS = ("predict", "predict_proba", "decision_function")
MODELS = {
    "members": CLMLClassifier(n_members=3, max_epochs=2, shrinkage=0.5, random_state=0),
    "single": CLMLClassifier(**PAPER_SETTINGS | {"max_epochs": 2}, random_state=0),
    "tuned": LebesgueTunedClassifier(
        KNeighborsClassifier(algorithm="brute"),
        max_epochs=2,
        shrinkage=0.5,
        cv=2,
        random_state=0,
    ),
    "naive Bayes": GaussianNBChain(),
    "neighbours": MLkNNClassifier(n_neighbors=3),
    "PyTorch": MLPRelevanceClassifier(max_epochs=2, random_state=0),
}


def together(work, n_threads=N_THREADS, seconds=60):
    """Call work(i) in threads that begin at the same moment; return the results.

    Threads that do not come back fail the test rather than holding it up.
    """
    results = [None] * n_threads
    start = threading.Barrier(n_threads)

    def call(i):
        start.wait()
        try:
            results[i] = work(i)
        except Exception as error:
            results[i] = error

    threads = [
        threading.Thread(target=call, args=(i,), daemon=True) for i in range(n_threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    assert not any(thread.is_alive() for thread in threads), "threads wait for ever"
    errors = [r for r in results if isinstance(r, Exception)]
    if errors:
        raise errors[0]
    return results


def answers(model, inputs):
    """Return what a model says of each input, by each method, as bytes."""
    return [getattr(model, name)(X).tobytes() for X in inputs for name in METHODS]


@pytest.fixture(scope="module")
def inputs(scaled_data):
    """One row, few and many rows, sparse rows: each takes another way through."""
    X, _ = scaled_data
    return [X[:1], X[:5], X, sp.csr_array(X)]


@pytest.fixture(scope="module", params=MODELS)
def model(request, scaled_data):
    return MODELS[request.param].fit(*scaled_data)


def test_a_thread_that_fails_or_never_ends_is_noticed():
    with pytest.raises(ZeroDivisionError):
        together(lambda i: 1 / (i - 3), 5)
    end = threading.Event()
    with pytest.raises(AssertionError, match="wait for ever"):
        together(lambda i: end.wait() if i == 1 else None, 3, seconds=0.05)
    end.set()


def test_the_same_bits_as_alone(model, inputs):
    alone = answers(model, inputs)
    # A copy has laid out nothing yet: all threads come to that at once.
    fresh = pickle.loads(pickle.dumps(model))
    for found in together(lambda _: answers(fresh, inputs)):
        assert found == alone


@pytest.mark.parametrize("name", ["members", "single", "neighbours", "PyTorch"])
def test_the_same_bits_of_a_loaded_model(name, scaled_data, inputs, tmp_path):
    model = MODELS[name].fit(*scaled_data)
    save(model, tmp_path / "model.clml")
    alone = answers(model, inputs)
    loaded = load(tmp_path / "model.clml")
    for found in together(lambda _: answers(loaded, inputs)):
        assert found == alone


def test_threads_choose_from_the_front_while_others_predict(scaled_data, inputs):
    model = MODELS["members"].fit(*scaled_data)
    rules = (*model.front_.loss_names, "knee", "final", "mean")
    alone = {rule: answers(model.select(rule), inputs[:2]) for rule in rules}
    usual = answers(model, inputs[:2])

    def choose(i):
        rule = rules[i % len(rules)]
        if i % 2:
            return answers(model, inputs[:2]) == usual
        return answers(model.select(rule), inputs[:2]) == alone[rule]

    assert all(together(choose))


def test_threads_that_fit_and_predict_do_not_disturb_each_other(scaled_data, inputs):
    """Each fit has threads of its own, and holds BLAS to one for all of them."""
    X, Y = scaled_data
    fitted = MODELS["members"].fit(X, Y)
    usual = answers(fitted, inputs[:3])

    def fresh(i):
        kinds = ({"n_members": 2, "shrinkage": 0.5}, {"n_members": 1, "search": "cma"})
        return CLMLClassifier(
            max_epochs=2, n_jobs=2, random_state=i % 4, **kinds[i % 2]
        )

    alone = [fresh(i).fit(X, Y).theta_.tobytes() for i in range(4)]

    def work(i):
        if i % 3 == 2:
            return answers(fitted, inputs[:3]) == usual
        return fresh(i).fit(X, Y).theta_.tobytes() == alone[i % 4]

    assert all(together(work, 12))


def test_threads_of_a_fit_end_with_it(scaled_data):
    before = threading.active_count()
    clone(MODELS["members"]).set_params(n_jobs=4).fit(*scaled_data)
    assert threading.active_count() == before
