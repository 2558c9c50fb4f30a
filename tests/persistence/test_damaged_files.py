"""Files that are damaged, of another kind, or made to harm."""

import copy
import hashlib
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from clml.baselines._mlknn import MLkNNClassifier
from clml.baselines._naive_bayes import GaussianNBChain
from clml.persistence import load, save

MESSAGE = r"made\.clml: no model could be read: "


def refused(path):
    with pytest.raises(ValueError, match="no model could be read") as found:
        load(path)
    assert str(path) in str(found.value)


def outcome(path, X):
    """The scores of the model in a file, or None if the file is refused."""
    try:
        return load(path).decision_function(X)
    except ValueError as error:
        assert str(path) in str(error)
        return None


def flipped(content, places, path):
    """Write a file once for each place, where one bit of it is another."""
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        yield path


def test_every_bit_of_the_content_counts(saved, tmp_path):
    content = saved.read_bytes()
    random = np.random.default_rng(0)
    places = []
    with zipfile.ZipFile(saved) as archive:
        for info in archive.infolist():
            start = content.index(info.filename.encode()) + len(info.filename)
            places.extend(start + random.integers(info.file_size, size=8))
        n_comment = len(archive.comment)
    places.extend(range(len(content) - n_comment, len(content), 7))
    for path in flipped(content, places, tmp_path / "flipped.clml"):
        refused(path)


def test_every_other_bit_is_refused_or_says_nothing(
    saved, fitted, small_data, tmp_path
):
    """Such as dates, in the directory, where the sizes and names are."""
    X = small_data[0][:3]
    expected = fitted.decision_function(X)
    content = saved.read_bytes()
    directory = range(content.index(b"PK\x01\x02"), len(content))
    places = np.random.default_rng(0).choice(directory, size=250, replace=False)
    n_refused = 0
    for path in flipped(content, places, tmp_path / "flipped.clml"):
        found = outcome(path, X)
        if found is None:
            n_refused += 1
        else:
            np.testing.assert_array_equal(found, expected)
    assert n_refused > len(places) / 2


def test_checksums(members, saved, write_zip):
    """What zip's own checksums agree with is refused too."""
    with zipfile.ZipFile(saved) as archive:
        comment = archive.comment
    state = json.loads(members["state.json"])
    changed = bytearray(members["array1.npy"])
    changed[-1] ^= 1
    cases = [
        ({"array1.npy": bytes(changed)}, comment, "checksum of array1.npy is wrong"),
        ({"state.json": json.dumps(state, indent=1)}, comment, "checksum of state.jso"),
        ({}, comment[:-4] + b"0000", "checksum of state.json is wrong"),
        ({}, comment[:-1], "the comment of the archive is not a checksum"),
        ({}, comment.upper(), "the comment of the archive is not a checksum"),
        ({}, b"", "it has other entries|lacks checksums, which version 3 does not"),
    ]
    assert load(write_zip(members, comment=comment))
    for change, comment, message in cases:
        with pytest.raises(ValueError, match=MESSAGE + f".*({message})"):
            load(write_zip({**members, **change}, comment=comment))


@pytest.mark.parametrize("digests", [None, 3, [], ["0"], [None], ["0" * 64] * 99])
def test_lists_of_checksums(digests, members, write_zip):
    text = json.dumps({**json.loads(members["state.json"]), "sha256": digests})
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = write_zip(
        {**members, "state.json": text},
        comment=f"sha256 of state.json: {digest}".encode(),
    )
    with pytest.raises(ValueError, match="does not list a checksum for each array"):
        load(path)


def test_shortened_files(saved, tmp_path):
    content = saved.read_bytes()
    path = tmp_path / "short.clml"
    for length in np.unique(np.linspace(0, len(content) - 1, 150).astype(int)):
        path.write_bytes(content[:length])
        refused(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"PK\x05\x06" + b"\0" * 18, b"\x80\x04N.", b"x" * 1000, b"\0" * 22],
    ids=["empty", "start", "no members", "pickle", "text", "zeros"],
)
def test_other_files(content, tmp_path):
    path = tmp_path / "made.clml"
    path.write_bytes(content)
    refused(path)


def test_file_of_numpy(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.zeros(3), b=np.array([{}], dtype=object))
    refused(path)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["top_9"], "front_.rules holds 'top_9'"),
        (["top_0"], "rules must be a tuple"),
        (["best_prefix; rm"], "rules must be a tuple"),
        ([1], "rules must be a tuple"),
        ([[]], "rules must be a tuple"),
        ([None] * 200, "rules must be one for each"),
    ],
)
def test_rules_of_a_front_that_are_none(rules, message, members, write_sealed):
    text = json.dumps(json.loads(members["state.json"]))
    before, found, after = text.partition('["rules", {"type": "tuple", "value": [null')
    assert found and '"rules"' not in after
    own = json.dumps(rules)[1:-1]
    text = before + found.removesuffix("null") + own + after
    with pytest.raises(ValueError, match=message):
        load(write_sealed({**members, "state.json": text}))


def nodes(tree, path=()):
    """Return the paths of everything within some JSON."""
    yield path
    pairs = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in pairs:
        yield from nodes(value, (*path, key))


def replaced(tree, path, value):
    if not path:
        return value
    tree = copy.deepcopy(tree)
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return tree


def name_of(tree, path):
    """Return what a pair calls its second part, of which this is the path."""
    if path[-1:] != (1,):
        return None
    for key in path[:-1]:
        tree = tree[key]
    return tree[0]


CURIOUS = [
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "predict",
    [],
    [[]],
    {},
    {"type": "array", "value": 0},
    {"type": "float", "value": "nan"},
    {"type": "tuple", "value": [1, 2]},
    {"type": "dict", "value": []},
    {"type": "str_array", "value": {"shape": [1], "values": ["a"]}},
    {"type": "dataclass", "value": {"class": "Layout", "fields": []}},
    {
        "type": "estimator",
        "value": {"class": "GaussianNB", "parameters": [], "attributes": []},
    },
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "kind", ["CLMLClassifier", "members", "MLkNN", "GaussianNBChain"]
)
def test_any_other_value_anywhere(
    kind, fitted, fitted_members, small_data, tmp_path, write_sealed
):
    """Checksums are right, content is not: refused, or a model that still predicts."""
    X, Y = small_data
    model = {
        "CLMLClassifier": fitted,
        "members": fitted_members,
        "MLkNN": MLkNNClassifier(n_neighbors=2).fit(X[:9], Y[:9]),
        "GaussianNBChain": GaussianNBChain(random_state=3).fit(X[:, :2], Y[:, :2]),
    }[kind]
    save(model, tmp_path / "whole.clml")
    with zipfile.ZipFile(tmp_path / "whole.clml") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    state = json.loads(members["state.json"])
    random = np.random.default_rng(0)
    changes = [
        (path, value)
        for path in nodes(state)
        for value in CURIOUS
        # Any number of threads is one that a parameter may have.
        if (value, name_of(state, path)) != (2**70, "n_jobs")
    ]
    n_loaded = 0
    chosen = random.choice(len(changes), size=300, replace=False)
    for path, value in [changes[i] for i in chosen]:
        text = json.dumps(replaced(state, path, value))
        try:
            found = load(write_sealed({**members, "state.json": text}))
        except ValueError as error:
            assert "no model could be read" in str(error)
            continue
        n_loaded += 1
        if hasattr(found, "n_features_in_"):
            scores = found.decision_function(X[:2, : found.n_features_in_])
            assert len(scores) == 2
    assert 0 < n_loaded < 150


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "its format is not 'clml model' but 'other'"),
        ({"format": "clml checkpoint"}, "not 'clml model' but 'clml checkpoint'"),
        ({"version": 4, "more": 1}, "version 4 of the format, and this clml"),
        ({"version": 2}, "version 2 of the format is no longer read"),
        ({"version": 1}, "it has checksums, which version 1 does not"),
        ({"version": 0}, "its version is 0"),
        ({"version": True}, "its version is True"),
        ({"version": "1"}, "its version is '1'"),
        ({"more": 1}, "other entries"),
        ({"content": 3}, "array 0 belongs to nothing"),
    ],
    ids=range(10),
)
def test_bad_headers(changes, message, edited):
    path = edited(lambda state: state.update(changes))
    with pytest.raises(ValueError, match=MESSAGE + f".*{message}"):
        load(path)


def test_header_that_is_no_object(write_zip, write_sealed):
    path = write_zip({"state.json": "[]"})
    with pytest.raises(ValueError, match="its format is not"):
        load(path)
    path = write_sealed({"state.json": "[]"})
    with pytest.raises(ValueError, match="does not list a checksum"):
        load(path)


@pytest.mark.parametrize(
    "model",
    [
        None,
        {"type": "dict", "value": []},
        {
            "type": "estimator",
            "value": {"class": "GaussianNB", "parameters": [], "attributes": []},
        },
    ],
    ids=["none", "dict", "of scikit-learn"],
)
def test_files_of_something_else(model, write_sealed):
    state = {"format": "clml model", "version": 3, "clml": "0"}
    state |= {"content": model, "sha256": []}
    path = write_sealed({"state.json": json.dumps(state)})
    with pytest.raises(ValueError, match="it holds no estimator of this library"):
        load(path)


@pytest.mark.parametrize("bracket", ["[", '{"a":'], ids=["arrays", "objects"])
@pytest.mark.parametrize("depth", [60, 100_000])
def test_deep_json(bracket, depth, write_zip):
    state = {"format": "clml model", "version": 3, "clml": "0", "sha256": []}
    state["content"] = None
    deep = bracket * depth + "1" + {"[": "]"}.get(bracket, "}") * depth
    text = json.dumps(state).replace("null", deep)
    digest = hashlib.sha256(text.encode()).hexdigest()
    comment = f"sha256 of state.json: {digest}".encode()
    refused(write_zip({"state.json": text}, comment=comment))


def test_class_names_are_never_imported(edited, tmp_path, monkeypatch):
    """A module that would leave a trace stands ready to be imported."""
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("trap", "trap.Trap", "os.system"):

        def edit(state, name=name):
            state["content"]["value"]["class"] = name

        with pytest.raises(ValueError, match=f"the class '{name}' is not one"):
            load(edited(edit))
    assert not (tmp_path / "sprung").exists()


def test_array_of_objects(members, write_sealed):
    """Such a member holds a pickle, which must not be opened."""

    class Trap:
        def __reduce__(self):
            return pytest.fail, ("the pickle was opened",)

    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    path = write_sealed({**members, "array0.npy": file.getvalue()})
    with pytest.raises(ValueError, match=r"'\|O' is not a type of numbers"):
        load(path)


def test_small_files_take_little_memory(members, write_sealed, edited):
    """Numbers in a file that ask for much get nothing."""
    huge = 10**12
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({huge},), }}\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")

    def many_layers(state):
        text = json.dumps(state).replace('["n_layers", 1]', f'["n_layers", {huge}]')
        state.update(json.loads(text))

    def many_features(state):
        text = json.dumps(state)
        text = text.replace('["n_features_in_", 8]', f'["n_features_in_", {huge}]')
        state.update(json.loads(text))

    def one_array_often(state):
        node = {"type": "array", "value": 0}
        state["content"] = [node] * 10_000

    writers = [
        lambda: write_sealed({**members, "array0.npy": start + header.encode()}),
        lambda: edited(many_layers),
        lambda: edited(many_features),
        lambda: edited(one_array_often),
    ]
    for write in writers:
        path = write()
        tracemalloc.start()
        try:
            refused(path)
            assert tracemalloc.get_traced_memory()[1] < 20e6
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("bit", [0x1, 0x20, 0x40], ids=hex)
def test_encrypted_members(bit, members, write_zip):
    path = write_zip(members)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= bit
    path.write_bytes(content)
    refused(path)
