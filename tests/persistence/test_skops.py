"""What skops wrote is not trusted: what it may hold, and what is refused."""

import io
import json
import sys
import tracemalloc
import types
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml import CLMLClassifier, LebesgueTunedClassifier
from clml.baselines import GaussianNBRelevance, MLkNNClassifier
from clml.persistence import load
from clml.persistence import skops as _skops
from clml.persistence.skops import (
    UntrustedTypesError,
    count_ways,
    dump_foreign,
    is_acceptable,
    is_foreign,
    load_foreign,
    strangers_within,
)

skops = pytest.importorskip("skops.io", reason="other learners are kept by skops")


@pytest.fixture
def stranger():
    """A class of a module that is none of the packages."""
    module = types.ModuleType("stranger")
    kind = type("Mine", (KNeighborsClassifier,), {"__module__": "stranger"})
    module.Mine = kind
    sys.modules["stranger"] = module
    yield kind
    del sys.modules["stranger"]


def archive_of(members, compression=zipfile.ZIP_STORED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, value in members.items():
            archive.writestr(name, value)
    return content.getvalue()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_worked_example(small_data):
    X, Y = small_data
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    content = dump_foreign(forest)
    found = load_foreign(content)
    assert np.array_equal(found.predict(X), forest.predict(X))
    assert strangers_within(content) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (LogisticRegression(), True),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), True),
        (KFold(2), True),
        (LogisticRegression, False),
        ("text", False),  # which has a method split
        (len, False),
        (None, False),
    ],
    ids=str,
)
def test_what_skops_writes(value, expected):
    assert is_foreign(value) is expected


def test_what_skops_cannot_write():
    with pytest.raises(TypeError, match=r"LogisticRegression cannot be saved by skops"):
        dump_foreign(LogisticRegression(C=(i for i in range(3))))


def test_other_types_must_be_named(small_data, tmp_path, stranger):
    X, Y = small_data
    settings = {"max_epochs": 2, "shrinkage": 0.5, "cv": 2, "random_state": 0}
    model = LebesgueTunedClassifier(stranger(), **settings).fit(X, Y)
    path = tmp_path / "model.clml"
    model.save(path)
    message = r"model\.clml: .*\['stranger\.Mine'\], which .* trusted=\['stranger.Mine"
    for trusted in ((), ["stranger.Other"]):
        with pytest.raises(ValueError, match=message) as found:
            load(path, trusted)
        assert isinstance(found.value.__cause__, UntrustedTypesError)
    loaded = load(path, trusted=["stranger.Mine"])
    assert isinstance(loaded.estimator_, stranger)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_nothing_is_built_of_what_is_not_trusted(stranger):
    content = dump_foreign(stranger())
    stranger.__setstate__ = lambda self, state: pytest.fail("it was built")
    with pytest.raises(UntrustedTypesError):
        load_foreign(content)


@pytest.mark.parametrize(
    ("name", "acceptable"),
    [
        ("clml._tuned.LebesgueTunedClassifier", True),
        ("sklearn.tree._tree.Tree", True),
        ("os.system", False),
        ("builtins.eval", False),
        ("sklearnish.Tree", False),
        ("numpy.testing.TestCase", False),
        ("numpy.load", False),  # a function
        ("clml.cli.Path", False),  # a class from elsewhere
        ("clml.__main__.main", False),  # importing it would run the command
        ("sklearn.absent.Thing", False),
        ("numpy", False),
        ("", False),
    ],
)
def test_what_a_file_may_hold(name, acceptable):
    assert is_acceptable(name) is acceptable


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"text",
        archive_of({}),
        archive_of({"schema.json": ""}),
        archive_of({"schema.json": "{}"}),
        archive_of({"schema.json": "[]"}),
        archive_of({"schema.json": '{"__loader__": 1}'}),
        archive_of({"schema.json": "[" * 100_000}),
    ],
    ids=range(9),
)
def test_damaged(content):
    with pytest.raises(ValueError, match="what skops wrote is damaged"):
        load_foreign(content)


def test_every_flipped_byte_is_refused_or_a_learner(small_data):
    X, Y = small_data
    content = dump_foreign(LogisticRegression().fit(X, Y[:, 0]))
    for place in np.random.default_rng(0).integers(len(content), size=150):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        try:
            load_foreign(bytes(damaged))
        except ValueError as error:  # UntrustedTypesError is one
            assert str(error)


def huge_array(shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def spaces():
    return b" " * (65 << 20)


def deflated(members):
    return archive_of(members, zipfile.ZIP_DEFLATED)


def one_array_often():
    file = io.BytesIO()
    np.save(file, np.zeros(100_000))
    schema = [{"type": "numpy", "file": "a.npy"}] * 1000
    return archive_of({"schema.json": json.dumps(schema), "a.npy": file.getvalue()})


def many_nested_members():
    """Twenty arrays of 4 MB, of which each alone would do."""
    array = huge_array((2**19,)) + bytes(2**22)
    members = {f"{i}.npz": deflated({"a.npy": array}) for i in range(20)}
    return archive_of({"schema.json": "{}", **members})


def with_member(name, content):
    return archive_of({"schema.json": "{}", name: content})


HUGE = huge_array((10**12,))
OBJECTS = huge_array("(1,)").replace(b"<f8", b"|O8") + bytes(8)
BOMBS = {
    "schema": (
        lambda: deflated({"schema.json": spaces()}),
        "it would take 68,157,440 bytes, more than 67,108,864",
    ),
    "member": (
        lambda: deflated({"schema.json": "{}", "a": spaces()}),
        "it would take 68,157,442 bytes, more than 67,108,864",
    ),
    "nested member": (
        lambda: with_member("a.npz", deflated({"data.npy": spaces()})),
        "it would take 68,157,440 bytes",
    ),
    "many nested members": (many_nested_members, "it would take 83,"),
    "shape": (
        lambda: with_member("a.npy", HUGE),
        r"array of shape \(1000000000000,\) .* does not take the 0 bytes",
    ),
    "nested shape": (
        lambda: with_member("a.npz", archive_of({"a.npy": HUGE})),
        r"array of shape \(1000000000000,\) .* does not take the 0 bytes",
    ),
    "mentioned often": (one_array_often, "it would take 800,128,000 bytes"),
    "objects": (lambda: with_member("a.npy", OBJECTS), "type object does not take"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_take_little_memory(name):
    make, message = BOMBS[name]
    content = make()
    assert len(content) < 1e6
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"damaged: .*{message}"):
            load_foreign(content)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_sparse_members_come_back(small_data):
    """They are archives within the archive, compressed."""
    X, Y = small_data
    near = KNeighborsClassifier(3, algorithm="brute").fit(sp.csr_matrix(X), Y)
    content = dump_foreign(near)
    assert any(name.endswith(".npz") for name in members_of(content))
    assert np.array_equal(load_foreign(content).predict(X), near.predict(X))


def test_estimators_of_this_library_are_checked_wherever_they_are(small_data):
    X, Y = small_data
    inner = MLkNNClassifier(n_neighbors=3).fit(X, Y)
    pipeline = make_pipeline(KNeighborsClassifier(), inner)
    assert load_foreign(dump_foreign(pipeline)).steps[-1][1].n_labels_ == 4
    inner.log_odds_ = inner.log_odds_[:, :1]
    with pytest.raises(ValueError, match="has shape"):
        load_foreign(dump_foreign(pipeline))


def test_without_skops(small_data, tmp_path, monkeypatch):
    """Only learners of other libraries need it, in files and out of them."""
    X, Y = small_data
    settings = {"max_epochs": 2, "shrinkage": 0.5, "cv": 2, "random_state": 0}
    model = LebesgueTunedClassifier(KNeighborsClassifier(), **settings).fit(X, Y)
    ours = LebesgueTunedClassifier(GaussianNBRelevance(), **settings).fit(X, Y)
    model.save(tmp_path / "before")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'clml\[persist\]'"):
        model.save(tmp_path / "model")
    with pytest.raises(ImportError, match=r"pip install 'clml\[persist\]'"):
        load(tmp_path / "before")
    ours.save(tmp_path / "ours")
    assert np.array_equal(load(tmp_path / "ours").predict(X), ours.predict(X))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "ours"]


@pytest.mark.parametrize(
    "name",
    [
        "numpy.lib.npyio.DataSource",
        "numpy.lib._datasource.DataSource",
        "numpy.lib.npyio.NpzFile",
        "numpy.memmap",
        "scipy.io.netcdf_file",
        "sklearn.utils._testing.TempMemmap",
    ],
)
def test_classes_that_open_or_remove_files(name):
    """Thrown away, a DataSource removes whatever folder a file has named."""
    assert not is_acceptable(name)


def test_nothing_that_is_accepted_does_anything_when_it_is_thrown_away():
    found = 0
    for module in list(sys.modules.values()):
        name = getattr(module, "__name__", "")
        if name.partition(".")[0] not in ("clml", "numpy", "scipy", "sklearn"):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, type) and is_acceptable(f"{name}.{attribute}"):
                found += 1
                assert not hasattr(value, "__del__"), value
                assert not hasattr(value, "__exit__"), value
    assert found > 100


# --- what would run, or run for ever ---------------------------------------------


def object_node(number, content, kind=KNeighborsClassifier, **entries):
    return {
        "__class__": kind.__name__,
        "__module__": kind.__module__,
        "__loader__": "ObjectNode",
        "__id__": number,
        "content": {
            "__class__": "dict",
            "__module__": "builtins",
            "__loader__": "DictNode",
            "key_types": {
                "__class__": "list",
                "__module__": "builtins",
                "__loader__": "ListNode",
                "content": [],
            },
            "content": content,
        },
        **entries,
    }


def schema_of(node):
    return archive_of({"schema.json": json.dumps({**node, "protocol": 2})})


def towers(depth, width, mention):
    """Return an object that holds another one often, and so on."""
    node = object_node(depth + 1, {})
    for number in range(depth, 0, -1):
        again = [mention(number + 1) for _ in range(width - 1)]
        held = {str(place): each for place, each in enumerate([node, *again])}
        node = object_node(number, held)
    return schema_of(node)


MENTIONS = {
    "number": lambda number: {"__id__": number},
    "cached": lambda number: {
        "__class__": None,
        "__module__": None,
        "__loader__": "CachedNode",
        "__id__": number,
    },
    "stub": lambda number: object_node(number, {}),
}


@pytest.mark.parametrize("mention", MENTIONS)
def test_an_object_that_is_held_without_number(mention):
    """What predicts, and skops itself, would go every way to it."""
    content = towers(22, 8, MENTIONS[mention])
    assert len(content) < 500_000
    with pytest.raises(ValueError, match=r"objects are held [\d,]{20,} times"):
        load_foreign(content)
    with pytest.raises(ValueError, match="objects are held"):
        strangers_within(content)


def test_definitions_may_come_after_mentions():
    """skops goes another way through a file than its text does."""
    inner = object_node(7, {str(i): {"__id__": 8} for i in range(400)})
    inner["content"]["content"]["0"] = object_node(8, {})
    content = {str(i): {"__id__": 7} for i in range(400)}
    outer = object_node(1, content)
    outer["content"]["key_types"]["content"] = [inner]
    assert count_ways(outer)[1] > 400 * 400


def test_objects_that_hold_themselves():
    content = schema_of(object_node(1, {"a": {"__id__": 1}}))
    with pytest.raises(ValueError, match="what skops wrote is damaged"):
        load_foreign(content)


def test_learners_that_are_held_a_few_times(small_data):
    X, Y = small_data
    near = KNeighborsClassifier(3).fit(X, Y[:, 0])
    deep = VotingClassifier([(f"n{i}", near) for i in range(8)]).fit(X, Y[:, 0])
    deep.estimators_ = [near] * 8
    deep.more_ = [near] * 20
    found = load_foreign(dump_foreign(deep))
    assert found.estimators_[0] is found.estimators_[7]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("clml.persistence.checkpoint.Checkpoint", ["FOLDER", 0, {}]),
        ("clml.experiments._store.Store", ["FOLDER"]),
        ("sklearn.tree.DecisionTreeClassifier", []),
    ],
)
def test_no_class_is_called(name, arguments, tmp_path):
    """One of ours would make a folder."""
    folder = tmp_path / "made"
    module, _, kind = name.rpartition(".")
    values = [
        {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": json.dumps(str(folder) if value == "FOLDER" else value),
        }
        for value in arguments
    ]
    listed = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    for node in (
        {
            "__loader__": "ConstructorFromReduceNode",
            "content": {**listed, "content": values},
        },
        {"__loader__": "ListNode", "content": values},
        {"__loader__": "SetNode", "content": values},
    ):
        node |= {"__class__": kind, "__module__": module}
        with pytest.raises(UntrustedTypesError, match=kind):
            load_foreign(schema_of(node))
    assert not folder.exists()


def test_too_many_types():
    held = {
        str(i): object_node(i + 2, {}, __class__=f"Kind{i}", __module__="sklearn.tree")
        for i in range(201)
    }
    with pytest.raises(ValueError, match="it is made of 201 types"):
        load_foreign(schema_of(object_node(1, held)))


def test_what_could_not_be_read_is_not_written(monkeypatch):
    monkeypatch.setattr(_skops, "_LONGEST_SCHEMA", 100)
    with pytest.raises(ValueError, match=r"schema\.json has more than 100 bytes"):
        dump_foreign(LogisticRegression())


def test_the_places_of_learners_do_not_travel():
    inner = CLMLClassifier(checkpoint="/somewhere", client="tcp://127.0.0.1:1")
    pipeline = make_pipeline(StandardScaler(), inner, memory="/somewhere")
    found = load_foreign(dump_foreign(pipeline))
    assert found[-1].checkpoint is found[-1].client is found.memory is None
