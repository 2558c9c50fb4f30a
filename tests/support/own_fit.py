"""A fit with code of one's own in it, and what may and may not change about it."""

import sys
from types import ModuleType

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

HELPERS = """
OFFSET = 0.25
UNUSED = 1


def add(x):
    return x + OFFSET


def unused(x):
    return x
"""
OWN = '''
"""What one writes oneself."""

import functools

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import own_helpers
from own_helpers import add

FACTOR = 2.0
NAMES = set("abcd")
DRAWS = np.random.RandomState(0)
LONGEST = functools.partial(max, key=len)
TABLE = {"a": [1.0, 2.0], "b": {"c": 3.0}}


def helper(x):
    return x * FACTOR


def twice(function):
    @functools.wraps(function)
    def wrapper(*given, **named):
        return function(*given, **named) * 2.0
    return wrapper


@twice
def decorated(x):
    return x + 0.125


@functools.lru_cache
def cached(x):
    return x + 0.5


def recursive(n):
    return n if n < 1 else again(n - 1)


def again(n):
    return recursive(n) + 1.0


class Callable:
    """It has a state."""

    def __init__(self, by):
        self.by = by

    def __call__(self, X):
        return X + self.by

    def method(self, X):
        return X - self.by


def shift(X, by=1.0, *, times=3.0):
    """Move all columns."""
    try:
        small = [x for x in (0.0, 1.0) if x < by]
    except ValueError:
        small = []
    moved = helper(X) + by * times + add(0.0) + own_helpers.add(1.0)
    moved = moved + decorated(1.0) + cached(2.0) + TABLE["a"][0]
    if "e" in NAMES or by in {"k", "l", "m"}:
        moved = DRAWS.normal() + LONGEST(NAMES)
    return moved + recursive(2) + len(small)


def made(threshold):
    def own_loss(Y, scores):
        from own_helpers import add as plus
        return float((Y != (scores > threshold)).mean()) + 0.0 * plus(0.0)
    return own_loss


class Base:
    rate = 1.0

    @property
    def doubled(self):
        return self.rate * 2.0

    @staticmethod
    def fixed():
        return 5.0


class Learner(Base, KNeighborsClassifier):
    """Neighbours, some of them moved."""

    weights_of = {"a": 1.0}

    def __init__(self, n_neighbors=3, power=1):
        super().__init__(n_neighbors)
        self.power = power

    def predict_proba(self, X):
        """Ask the neighbours."""
        return super().predict_proba(X + 0.0 * self.doubled)


TRANSFORM = Callable(0.5)
'''
#: Other code, in each of which one thing was changed: (module, before, after).
EDITS = {
    "body of a function": ("own_fit", "by * times", "by + times"),
    "constant in a function": (
        "own_fit",
        "own_helpers.add(1.0)",
        "own_helpers.add(2.0)",
    ),
    "caught error": ("own_fit", "except ValueError", "except TypeError"),
    "inner function": ("own_fit", "if x < by", "if x > by"),
    "default": ("own_fit", "by=1.0", "by=1.5"),
    "keyword default": ("own_fit", "times=3.0", "times=4.0"),
    "global": ("own_fit", "FACTOR = 2.0", "FACTOR = 2.5"),
    "entry of a global": ("own_fit", '"b": {"c": 3.0}', '"b": {"c": 4.0}'),
    "set": ("own_fit", 'set("abcd")', 'set("abce")'),
    "generator": ("own_fit", "RandomState(0)", "RandomState(1)"),
    "partial": ("own_fit", "partial(max, key=len)", "partial(min, key=len)"),
    "helper": ("own_fit", "return x * FACTOR", "return x / FACTOR"),
    "decorator": ("own_fit", "**named) * 2.0", "**named) * 3.0"),
    "what is decorated": ("own_fit", "x + 0.125", "x + 0.25"),
    "what is cached": ("own_fit", "x + 0.5", "x + 0.75"),
    "function that calls itself": ("own_fit", "recursive(n) + 1.0", "recursive(n) + 2"),
    "other module": ("own_helpers", "return x + OFFSET", "return x - OFFSET"),
    "global of another module": ("own_helpers", "OFFSET = 0.25", "OFFSET = 0.5"),
    "closure": ("own_fit", "scores > threshold", "scores >= threshold"),
    "class attribute": ("own_fit", "rate = 1.0", "rate = 1.5"),
    "entry of a class attribute": ("own_fit", '{"a": 1.0}', '{"a": 2.0}'),
    "method of a class": ("own_fit", "X + 0.0 * self", "X - 0.0 * self"),
    "property of a base class": ("own_fit", "self.rate * 2.0", "self.rate * 3.0"),
    "static method": ("own_fit", "return 5.0", "return 6.0"),
    "base class": ("own_fit", "Learner(Base, K", "Learner(K"),
    "default of a class": ("own_fit", "power=1)", "power=2)"),
    "state of a callable": ("own_fit", "Callable(0.5)", "Callable(0.75)"),
    "class of a callable": ("own_fit", "return X + self.by", "return X * self.by"),
}
#: Other texts of the same code.
NO_EDITS = {
    "comments": ("own_fit", "FACTOR = 2.0", "# as measured\n\n\nFACTOR = 2.0  # ours"),
    "docstring": ("own_fit", "Move all columns.", "Move every column by so much."),
    "no docstring": ("own_fit", '    """Move all columns."""\n', ""),
    "docstring of a class": ("own_fit", "Neighbours, some of", "Neighbours of"),
    "line breaks": (
        "own_fit",
        "    moved = helper(X) + by * times + add(0.0) + own_helpers.add(1.0)\n",
        "    moved = (\n        helper(X)\n        + (by * times)  # far\n\n"
        "        + add(\n            0.0\n        )\n        + own_helpers.add(1.0)\n"
        "    )\n",
    ),
    "names of types": ("own_fit", "def helper(x):", "def helper(x: float) -> float:"),
    "order of a dict": (
        "own_fit",
        '{"a": [1.0, 2.0], "b": {"c": 3.0}}',
        '{"b": {"c": 3.0}, "a": [1.0, 2.0]}',
    ),
    "another function": (
        "own_fit",
        "TABLE =",
        "def new(x):\n    return x\n\n\nTABLE =",
    ),
    "what is not used": ("own_helpers", "UNUSED = 1", "UNUSED = 2"),
    "function that is not used": ("own_helpers", "    return x\n", "    return -x\n"),
}


def imported(monkeypatch, edit=None):
    """Return the module of one's own, with what was changed in its text."""
    texts = {"own_helpers": HELPERS, "own_fit": OWN}
    if edit is not None:
        name, before, after = edit
        assert texts[name].count(before) == 1
        texts[name] = texts[name].replace(before, after)
    for name, text in texts.items():
        module = ModuleType(name)
        module.__file__ = f"/somewhere/{name}.py"
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def rows():
    """Return X and Y."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4))
    return X, (X[:, :3] + rng.normal(size=(24, 3)) > 0).astype(int)


def learner(own, scale=1.0):
    """Return a learner of everything that the module has."""
    X, _ = rows()
    return Pipeline(
        [
            ("frozen", FrozenEstimator(StandardScaler().fit(X * scale))),
            ("shift", FunctionTransformer(own.shift)),
            ("state", FunctionTransformer(own.TRANSFORM)),
            ("method", FunctionTransformer(own.TRANSFORM.method)),
            ("learner", own.Learner()),
        ]
    )
