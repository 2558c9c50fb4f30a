import builtins

import numpy as np
import pytest

from clml.evolution import CMAPackage, rank_by_fitness


def test_is_the_package_itself():
    cma = pytest.importorskip("cma")
    generator = np.random.Generator(np.random.PCG64(3))
    oracle = cma.CMAEvolutionStrategy(
        [1.0, 2.0, 3.0],
        0.5,
        {
            "popsize": 8,
            "seed": np.nan,
            "randn": lambda *shape: generator.standard_normal(shape),
            "verbose": -9,
            "CMA_active": False,
        },
    )
    strategy = CMAPackage([1, 2, 3], 0.5, 8, seed=3, options={"CMA_active": False})
    for _ in range(30):
        X, solutions = strategy.ask(), oracle.ask()
        assert np.array_equal(X, solutions)
        fitness = np.sum(X**2, axis=1)
        oracle.tell(solutions, fitness)
        strategy.tell(rank_by_fitness(fitness))
    np.testing.assert_array_equal(strategy.mean, oracle.mean)
    assert strategy.sigma == oracle.sigma


def test_is_silent_and_writes_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    strategy = CMAPackage(np.ones(4), 1.0, seed=0)
    for _ in range(20):
        strategy.tell(rank_by_fitness(np.sum(strategy.ask() ** 2, axis=1)))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["ask", "tell"])
def test_interrupted_inside_cma(monkeypatch, call):
    cma = pytest.importorskip("cma")
    whole = CMAPackage(np.ones(4), 1.0, seed=0)
    parts = CMAPackage(np.ones(4), 1.0, seed=0)
    original = getattr(cma.CMAEvolutionStrategy, call)

    def interrupted(*arguments, **keywords):
        original(*arguments, **keywords)
        raise KeyboardInterrupt

    order = np.arange(whole.population_size)
    for _ in range(5):
        whole.ask()
        whole.tell(order)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(cma.CMAEvolutionStrategy, call, interrupted)
            parts.ask()
            parts.tell(order)
        parts.ask()
        parts.tell(order)
    assert parts.epoch == 5
    assert np.array_equal(whole.ask(), parts.ask())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"popsize": 5}, "use the argument population_size"),
        ({"seed": 5}, "use the argument seed"),
        ({"randn": np.sin}, "use the argument seed"),
        ({"no_such_option": 5}, "cma does not know"),
        # cma would evaluate these.
        ({"CMA_rankmu": "__import__('os').getcwd()"}, "to be a number"),
        ({"bounds": ["1", None]}, "to be a number"),
        ({"CMA_sampler": object}, "to be a number"),
    ],
    ids=repr,
)
def test_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        CMAPackage([0.0, 0.0], 1.0, options=options)


def test_options_travel_with_the_state(through_files):
    options = {
        "CMA_diagonal": True,
        "CMA_stds": np.array([1.0, 2.0, 3.0]),
        "CSA_dampfac": np.float64(2.0),
    }
    strategy = CMAPackage(np.ones(3), 1.0, seed=0, options=options)
    strategy.ask()
    strategy.tell(np.arange(strategy.population_size))
    resumed = CMAPackage.from_state(through_files(strategy.state()))
    assert resumed.state()["options"] == {
        "CMA_diagonal": True,
        "CMA_stds": [1.0, 2.0, 3.0],
        "CSA_dampfac": 2.0,
    }
    assert np.array_equal(resumed.ask(), strategy.ask())


def test_refuses_one_parameter():
    with pytest.raises(ValueError, match="at least 2 parameters"):
        CMAPackage([0.0], 1.0)


def test_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def without_cma(name, *arguments, **keywords):
        if name == "cma":
            raise ImportError("no cma here")
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_cma)
    with pytest.raises(ImportError, match="pip install cma"):
        CMAPackage([0.0, 0.0], 1.0)


def test_a_state_that_cma_cannot_repeat_is_damaged():
    pytest.importorskip("cma")
    strategy = CMAPackage(np.ones(3), 0.5, seed=0)
    for _ in range(2):
        strategy.tell(np.arange(len(strategy.ask())))
    again = CMAPackage.from_state(strategy.state() | {"sigma": 5e-324})
    with pytest.raises(ValueError, match="cma cannot repeat the run"):
        again.ask()
