"""Damage to JSON that stays JSON: other types, other lengths, other numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from _fuzz_bytes import Generator, pick

# Values of every type, those of this library's own files among them.
CURIOUS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 255, 2**31, -(2**31) - 1, 2**63, 2**70, 10**300,
    0.0, -0.5, 1.5, 1e308, 5e-324, "", "a", "predict", "\ud800", "\x00", "é" * 300,
    "artifacts/../../x.npz", "/dev/zero", "final", "mean", [], [[]], [None], [0, 0], {},
    {"": {}}, {"name": "a"}, {"type": "array", "value": 0},
    {"type": "array", "value": -1}, {"type": "float", "value": "nan"},
    {"type": "float", "value": "inf"}, {"type": "tuple", "value": [1, 2]},
    {"type": "dict", "value": []}, {"type": "dict", "value": [["a", 1]]},
    {"type": "classes", "value": []}, {"type": "scalar", "value": ["<f8", "00" * 8]},
    {"type": "str_array", "value": {"shape": [1], "values": ["a"]}},
    {"type": "str_array", "value": {"shape": [2**40, 0], "values": []}},
    {"type": "dataclass", "value": {"class": "Layout", "fields": []}},
    {"type": "estimator",
     "value": {"class": "GaussianNB", "parameters": [], "attributes": []}},
    {"type": "estimator",
     "value": {"class": "MLkNNClassifier", "parameters": [], "attributes": []}},
]  # fmt: skip
# Text that JSON's writer does not write. Some of it is JSON all the same.
_RAW = [
    "NaN", "-Infinity", "1e400", "-0", "01", "9" * 5000, "1" + "0" * 400, "0.1e-9999",
    "[" * 60 + "]" * 60, "[" * 50_000 + "]" * 50_000, '{"a":' * 60 + "1" + "}" * 60,
    '{"a":' * 50_000 + "1" + "}" * 50_000, '{"type":1,"type":2}', '"\\ud83d"', '"\t"',
    "'a'", "", "nul", "[1,]", '{"type":"tuple","value":[' * 60 + "]}" * 60,
]  # fmt: skip
_HOLE = "\x1bhole\x1b"


class _Place:
    """Where a value is within a tree of lists and dicts."""

    def __init__(self, parent: Any, key: Any) -> None:
        self.parent, self.key = parent, key

    @property
    def value(self) -> Any:
        return self.parent[self.key]

    @value.setter
    def value(self, value: Any) -> None:
        self.parent[self.key] = value


def _places(tree: Any) -> Iterator[_Place]:
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield _Place(tree, key)
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _swap_type(place: _Place, all_places: list[_Place], generator: Generator) -> None:
    place.value = _copied(pick(generator, CURIOUS))


def _put_other(place: _Place, all_places: list[_Place], generator: Generator) -> None:
    """Put there what stands elsewhere: mostly the type fits, the meaning does not."""
    alike = [p for p in all_places if type(p.value) is type(place.value)]
    places = alike if generator.random() < 0.8 else all_places
    place.value = _copied(pick(generator, places).value)


def _put_value(place: _Place, all_places: list[_Place], generator: Generator) -> None:
    """Put another value where a value stands that is written as type and value."""
    typed = [p for p in all_places if isinstance(p.value, dict) and "type" in p.value]
    if typed:
        values = [p.value for p in typed] + CURIOUS
        pick(generator, typed).value = _copied(pick(generator, values))


def _remove(place: _Place, all_places: list[_Place], generator: Generator) -> None:
    del place.parent[place.key]


def _exchange(place: _Place, all_places: list[_Place], generator: Generator) -> None:
    """Exchange two neighbours."""
    keys = list(place.parent) if isinstance(place.parent, dict) else None
    other = (
        pick(generator, keys) if keys else int(generator.integers(len(place.parent)))
    )
    parent = place.parent
    parent[place.key], parent[other] = parent[other], parent[place.key]


def _change_length(
    place: _Place, all_places: list[_Place], generator: Generator
) -> None:
    parent = place.parent
    if isinstance(parent, list):
        times = int(pick(generator, [1, 1, 2, 100]))
        parent[place.key : place.key] = [place.value] * times
        return
    parent[str(pick(generator, ["more", "", "value", "name", "a b", "é"]))] = _copied(
        place.value
    )


def _change_value(
    place: _Place, all_places: list[_Place], generator: Generator
) -> None:
    value = place.value
    if isinstance(value, bool) or value is None:
        place.value = pick(generator, [True, False, None, 0, 1])
    elif isinstance(value, int | float):
        place.value = pick(
            generator,
            [value + 1, value - 1, -value, 2 * value, value * 10**12, 0, 1, 2, -1,
             2**31, 2**63 - 1, float(value), 10**12, str(value)],
        )  # fmt: skip
    elif isinstance(value, str):
        texts = [p.value for p in all_places if isinstance(p.value, str)]
        place.value = pick(
            generator,
            [pick(generator, texts), value[:-1], value * 2, value.upper(), value + ".",
             value[::-1], "", value + "\u0301", value * 3000],
        )  # fmt: skip
    elif isinstance(value, list):
        place.value = pick(
            generator, [value[::-1], value[:-1], value[1:], value * 2, [value], []]
        )
    else:
        place.value = pick(
            generator, [list(map(list, value.items())), [value], list(value)]
        )


_CHANGES: list[Callable[[_Place, list[_Place], Generator], None]] = [
    _swap_type,
    _put_other,
    _put_other,
    _put_value,
    _remove,
    _exchange,
    _change_length,
    _change_value,
    _change_value,
    _change_value,
]


def damaged_json(text: bytes | str, generator: Generator) -> bytes:
    """Return a JSON document after one change of its tree or a few.

    Parameters
    ----------
    text : bytes or str
        A document. Numbers come out as Python writes them.
    generator : Generator
    """
    tree = [json.loads(text)]
    for _ in range(int(generator.geometric(0.6))):
        places = list(_places(tree))
        if not places:
            break
        # Half of the time near the root, where few values are that decide much.
        if generator.random() < 0.5:
            places = places[: max(40, len(places) // 20)]
        pick(generator, _CHANGES)(pick(generator, places), places, generator)
    raw = None
    if generator.random() < 0.08 and (places := list(_places(tree))):
        pick(generator, places).value = _HOLE
        raw = str(pick(generator, _RAW))
    written = json.dumps(tree[0] if tree else None)
    if raw is not None:
        written = written.replace(json.dumps(_HOLE), raw, 1)
    if generator.random() < 0.03:
        # The first key of an object a second time.
        written = written.replace('{"', '{"type": 0, "', 1)
    return written.encode("ascii")


def parsable_json(seeds: Sequence[bytes], generator: Generator) -> bytes:
    """Return one of the documents, damaged such that it can still be parsed.

    For readers of values: the file is only how these get there.
    """
    while True:
        text = damaged_json(pick(generator, seeds), generator)
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            continue
        return text
