import gzip
import io
import re
import zipfile

import arff
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from clml.datasets._arff import read_arff


@pytest.fixture
def write(tmp_path):
    def written(text, name="data.arff"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


HEADER = """@relation 'r: -C -2'
@attribute number numeric
@attribute answer {YES,NO}
@attribute colour {red,green,blue}
@attribute first {0,1}
@attribute second {0,1}
@data
"""
NAMES = ["number", "answer", "colour=red", "colour=green", "colour=blue"]


def test_worked_example(write):
    data = read_arff(write(HEADER + "1.5,NO,green,0,1\n-2,YES,red,1,1\n"))
    assert data.feature_names == NAMES
    assert data.label_names == ["first", "second"]
    np.testing.assert_array_equal(data.X, [[1.5, 0, 0, 1, 0], [-2, 1, 1, 0, 0]])
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 1]])
    assert data.Y.dtype == np.int64
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.categorical, [False, True, True, True, True])
    assert (data.n_instances, data.n_features, data.n_labels) == (2, 3, 2)
    assert (data.cardinality, data.density, data.n_label_sets) == (1.5, 0.75, 2)
    np.testing.assert_array_equal(data.imbalance_ratios, [2, 1])
    assert data.mean_imbalance_ratio == 1.5
    assert data.notes == []
    assert data.source.endswith("data.arff")


def test_the_same_rows_sparse(write):
    """What is not listed is the number 0 or the first value declared, YES here."""
    data = read_arff(write(HEADER + "{0 1.5, 1 NO,2 green ,4 1}\n{0 -2,4 1,3 1}\n"))
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.has_sorted_indices
    np.testing.assert_array_equal(dense(data.X), [[1.5, 0, 0, 1, 0], [-2, 1, 1, 0, 0]])
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 1]])


def test_sparse_rows_without_entries(write):
    text = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x real\n@data\n"
    data = read_arff(write(text + "\n{}\n{ }\n{1 2}\n{0 1,1 0}\n"))
    np.testing.assert_array_equal(dense(data.X), [[0], [0], [2], [0]])
    np.testing.assert_array_equal(data.Y, [[0], [0], [0], [1]])
    assert data.X.nnz == 1


def test_codes_instead_of_columns(write):
    path = write(HEADER + "1.5,NO,green,0,1\n-2,YES,?,1,1\n")
    data = read_arff(path, nominals="codes")
    assert data.feature_names == ["number", "answer", "colour"]
    np.testing.assert_array_equal(data.X, [[1.5, 1, 1], [-2, 0, np.nan]])
    np.testing.assert_array_equal(data.categorical, [False, True, True])


@pytest.mark.parametrize("rows", ["?,?,?,0,1\n1,NO,red,1,1\n", "{0 ?,1 ?,2 ?,4 1}\n"])
def test_missing_values(write, rows):
    """A missing nominal of more than two values is none of them."""
    X = dense(read_arff(write(HEADER + rows)).X)
    np.testing.assert_array_equal(X[0], [np.nan, np.nan, 0, 0, 0])


@pytest.mark.parametrize("rows", ["1,NO,red,?,1\n", "{0 1,3 ?,4 1}\n"])
def test_missing_labels(write, rows):
    path = write(HEADER + rows)
    with pytest.raises(ValueError, match=r"line 8: .*'first' is missing; pass miss"):
        read_arff(path)
    data = read_arff(path, missing_labels="negative")
    np.testing.assert_array_equal(data.Y, [[0, 1]])


TWO = "@relation r\n@attribute x {a,b}\n@attribute y {%s}\n@data\n"


@pytest.mark.parametrize(
    ("values", "row", "positive"),
    [
        ("0,1", "a,1", 1),
        ("1,0", "a,1", 1),
        ("1,0", "a,0", 0),
        ("1,0", "{0 b}", 1),
        ("1,0", "{0 b, 1 0}", 0),
        ("0,1", "{0 b}", 0),
        ("NO,YES", "a,YES", 1),
        ("true, false", "a,false", 0),
        ("-1,1", "a,-1", 0),
        ("0.0,1.0", "a,1.0", 1),
        ("pos,neg", "a,pos", 1),
        ("1", "a,1", 1),
        ("1", "{}", 1),
        ("0", "{}", 0),
    ],
)
def test_labels_by_the_meaning_of_their_values(write, values, row, positive):
    data = read_arff(write(TWO % values + row + "\n"), labels=["y"])
    np.testing.assert_array_equal(data.Y, [[positive]])


def test_numeric_labels(write):
    text = "@relation r\n@attribute y numeric\n@attribute x numeric\n@data\n"
    np.testing.assert_array_equal(read_arff(write(text + "1,3\n"), ["y"]).Y, [[1]])
    with pytest.raises(
        ValueError, match=r"line 6: the label 'y' must be 0 or 1, got 2"
    ):
        read_arff(write(text + "1,3\n2,3\n"), ["y"])
    with pytest.raises(ValueError, match=r"line 5: .* got 1"):
        read_arff(write(text + "1.0000000000000002,3\n"), ["y"])


def test_two_values_without_a_meaning(write):
    data = read_arff(write(TWO % "0,1" + "b,1\na,0\n?,0\n"), labels=["y"])
    assert data.feature_names == ["x=b"]
    np.testing.assert_array_equal(data.X, [[1], [0], [np.nan]])


XML = "<labels>%s</labels>"


def test_labels_come_from_the_xml_file_by_name(write):
    path = write(
        "@relation r\n@attribute b {0,1}\n@attribute x real\n@attribute a {0,1}"
        "\n@data\n1,5,0\n"
    )
    xml = write(XML % '<label name="a"/><label name="b"/>', "data.xml")
    for labels in (None, xml, str(xml)):
        data = read_arff(path, labels)
        assert data.label_names == ["b", "a"]
        np.testing.assert_array_equal(data.Y, [[1, 0]])
        np.testing.assert_array_equal(data.X, [[5]])
        assert data.label_parents is None
    listed = read_arff(path, ["a", "b"])
    assert listed.label_names == ["a", "b"]
    np.testing.assert_array_equal(listed.Y, [[0, 1]])


def test_an_xml_file_serves_the_training_and_the_test_part(write):
    write(XML % '<label name="a"/>', "set.xml")
    text = "@relation r\n@attribute x real\n@attribute a {0,1}\n@data\n1,1\n"
    for name in (
        *("set-train.arff", "set-test.arff", "set.arff", "set_training.arff.gz"),
        *("setTrain-4.arff", "set-train-sparse.arff", "set.ARFF"),
        *("set_tra.arff", "set-test1.ARFF"),
    ):
        assert read_arff(write(text, name)).label_names == ["a"]


def test_hierarchy_of_labels(write):
    path = write(
        "@relation r\n@attribute x real\n@attribute a {0,1}\n"
        "@attribute 'b c' {0,1}\n@data\n1,1,1\n"
    )
    write(XML % "<label name='a'><label name='b c'/></label>", "data.xml")
    data = read_arff(path)
    assert data.label_names == ["a", "b c"]
    assert data.label_parents == {"a": None, "b c": "a"}


def test_names_that_the_xml_file_writes_with_quotes(write):
    path = write(
        "@relation r\n@attribute x real\n@attribute 'it\\'s' {0,1}\n@data\n1,1\n"
    )
    write(XML % r"""<label name="'it\'s'"/>""", "data.xml")
    assert read_arff(path).label_names == ["it's"]


@pytest.mark.parametrize(("count", "labels"), [(2, ["a", "b"]), (-1, ["c"])])
def test_meka(write, count, labels):
    text = f"@relation 'x: -C {count}'\n"
    text += "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
    data = read_arff(write(text + "@data\n0,1,1\n"))
    assert data.label_names == labels
    assert data.n_features == 3 - abs(count)


def test_meka_and_an_xml_file_beside(write):
    text = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc") + "@data\n0,1,1\n"
    write(XML % "<label name='a'/><label name='b'/>", "data.xml")
    agreeing = read_arff(write("@relation 'x: -C 2'\n" + text))
    assert agreeing.label_names == ["a", "b"]
    # The option of a filter, and none of MEKA's.
    filtered = read_arff(write("@relation 'x-weka.filters.F -C 1 -R'\n" + text))
    assert filtered.label_names == ["a", "b"]
    # MEKA's name for data without labels.
    none = read_arff(write("@relation 'x: -C 0'\n" + text))
    assert none.label_names == ["a", "b"]
    assert agreeing.notes == []
    # Names are followed where MEKA's count says otherwise.
    path = write("@relation 'x: -C 1'\n" + text)
    data = read_arff(path)
    assert data.label_names == ["a", "b"]
    assert data.notes == [
        "The labels are those that data.xml beside the file names; the relation "
        "'x: -C 1' counts others."
    ]
    for strange in ("no XML", XML % "<label name='z'/>"):
        write(strange, "data.xml")
        assert read_arff(path).label_names == ["a"]
    assert read_arff(path, ["c"]).label_names == ["c"]


@pytest.mark.parametrize("weight", ["1.2345678901234567E-7", "3.3e-11", "1e-30"])
@pytest.mark.parametrize("row", ["1,NO,red,0,1, {%s}", "{0 1}, {%s}"])
def test_weights_of_many_digits(write, weight, row):
    data = read_arff(write(HEADER + row % weight + "\n" + row % "2" + "\n"))
    np.testing.assert_array_equal(data.sample_weight, [float(weight), 2])


@pytest.mark.parametrize("options", [{}, {"drop_identifiers": False}])
@pytest.mark.parametrize("kind", ["{}", "string", "{a,b,c}", "numeric", "date"])
def test_sparse_attributes_that_no_row_lists(write, kind, options):
    text = f"@relation 'r: -C 1'\n@attribute l {{0,1}}\n@attribute s {kind}\n@data\n"
    data = read_arff(write(text + "{0 1}\n{}\n"), **options)
    assert data.n_instances == 2


def test_an_identifier_has_a_value_in_every_row(write):
    text = identifiers(20).replace("p19,0,1", "?,0,1")
    assert read_arff(write(text)).X.shape == (20, 21)


def test_comments_line_ends_weights_and_quotes(write):
    rows = (
        "% before\r\n\r\n 1 , 'NO', \"red\" ,0,1 % after\r\n"
        "2,NO,red,0,1, {2.5}\r\n%3,NO,red,0,1\r\n4,NO,blue,1,0"
    )
    data = read_arff(write((HEADER + rows).replace("\r\n", "\n").replace("\n", "\r\n")))
    np.testing.assert_array_equal(data.X[:, 0], [1, 2, 4])
    np.testing.assert_array_equal(data.sample_weight, [1, 2.5, 1])
    data = read_arff(write(HEADER + "{0 1}, {0.5}\n{0 2} {3}\n{} % end\n"))
    np.testing.assert_array_equal(data.sample_weight, [0.5, 3, 1])
    assert read_arff(write(HEADER + "{0 1}\n")).sample_weight is None


def test_line_ends_of_old_macs(write):
    data = read_arff(write((HEADER + "1,NO,red,0,1\n").replace("\n", "\r")))
    assert data.n_instances == 1


def test_rows_parted_by_white_space(write):
    data = read_arff(write(HEADER + "1\tNO  red 0 1\n"))
    np.testing.assert_array_equal(data.X, [[1, 0, 1, 0, 0]])


def test_odd_values(write):
    text = (
        "@relation 'r: -C 1'\n@attribute l {0,1}\n"
        "@attribute 'a b' {'x, y', 'it\\'s', New York}\n@data\n"
        "0,'x, y'\n1,'it\\'s'\n1,New York\n0,\"New York\"\n"
    )
    data = read_arff(write(text))
    assert data.feature_names == ["a b=x, y", "a b=it's", "a b=New York"]
    np.testing.assert_array_equal(data.X.argmax(axis=1), [0, 1, 2, 2])


def test_other_encodings(write):
    text = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x {ä,ö,ü}\n@data\n1,ö\n"
    for encoding in ("utf-8", "latin-1", "utf-8-sig"):
        data = read_arff(write(text.encode(encoding)))
        assert data.feature_names == ["x=ä", "x=ö", "x=ü"]
        np.testing.assert_array_equal(data.X, [[0, 1, 0]])


def test_dates_are_seconds(write):
    text = (
        "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x date yyyy-MM-dd\n@data\n"
    )
    data = read_arff(write(text + '1,1970-01-02\n0,"1969-12-31"\n0,?\n'))
    np.testing.assert_array_equal(data.X[:, 0], [86400, -86400, np.nan])
    data = read_arff(write(text + "{1 1970-01-02}\n{}\n"))
    np.testing.assert_array_equal(dense(data.X)[:, 0], [86400, 0])
    with pytest.raises(ValueError, match=r"line 6: .* expects dates as 'yyyy-MM-dd'"):
        read_arff(write(text + "1,1970-01-02\n0,monday\n"))


TEXT = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute t string\n@data\n"


@pytest.mark.parametrize(
    "rows",
    ["0,two words\n1,?\n1,'two words'\n", "{1 'two words'}\n{}\n{1 two words}\n"],
)
def test_text_is_left_out_and_kept_aside(write, rows):
    path = write(TEXT + rows)
    data = read_arff(path)
    assert data.X.shape == (3, 0)
    assert data.n_features == 1
    assert data.notes == ["'t' was left out: it is text."]
    assert list(data.dropped["t"]) == ["two words", "", "two words"]
    kept = read_arff(path, drop_identifiers=False)
    assert kept.X.shape == (3, 1)


def identifiers(n_rows):
    names = [f"p{n}" for n in range(n_rows)]
    text = "@relation 'r: -C -1'\n@attribute protein {" + ", ".join(names) + "}\n"
    text += "@attribute x real\n@attribute l {0,1}\n@data\n"
    return text + "".join(f"{name},{n},1\n" for n, name in enumerate(names[::-1]))


def test_identifiers_are_left_out_with_a_note(write):
    path = write(identifiers(20))
    data = read_arff(path)
    assert data.feature_names == ["x"]
    assert data.n_features == 2
    assert "'protein' was left out" in data.notes[0]
    assert list(data.dropped["protein"][:2]) == ["p19", "p18"]
    kept = read_arff(path, drop_identifiers=False)
    assert kept.X.shape == (20, 21)
    assert kept.notes == []
    codes = read_arff(path, drop_identifiers=False, nominals="codes")
    np.testing.assert_array_equal(codes.X[:, 0], np.arange(20)[::-1])


def test_a_few_rows_do_not_make_an_identifier(write):
    assert read_arff(write(identifiers(4))).X.shape == (4, 5)


def test_a_value_that_repeats_makes_no_identifier(write):
    text = identifiers(20).replace("p19,0,1", "p18,0,1")
    assert read_arff(write(text)).X.shape == (20, 21)


def test_many_numbers_of_many_digits(write):
    """More than the scanner can note at once."""
    numbers = np.random.default_rng(0).random((30_000, 3))
    text = "@relation 'r: -C -1'\n" + "".join(
        f"@attribute x{n} real\n" for n in range(3)
    )
    rows = "".join(f"{a!r},{b!r},{c!r},1\n" for a, b, c in numbers.tolist())
    data = read_arff(write(text + "@attribute l {0,1}\n@data\n" + rows))
    np.testing.assert_array_equal(data.X, numbers)
    rows = "".join(f"{{0 {a!r},1 {b!r},2 {c!r}}}\n" for a, b, c in numbers.tolist())
    data = read_arff(write(text + "@attribute l {0,1}\n@data\n" + rows))
    np.testing.assert_array_equal(dense(data.X), numbers)


def test_an_archive_with_both_files(write):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(
            "x/r.arff",
            "@relation r\n@attribute a {0,1}\n@attribute x real\n@data\n1,2\n",
        )
        archive.writestr("x/r.xml", XML % '<label name="a"/>')
    assert read_arff(write(stream.getvalue(), "r.zip")).label_names == ["a"]


GOOD = "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute x real\n@data\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "no rows follow @data"),
        ("% nothing\n", "no rows"),
        ("1,2\n0\n", "line 6: expected 2 values, got 1"),
        ("1,2\n0,\n", "line 6: expected 2 values, got 1"),
        ("1,2,3\n", "line 5: expected 2 values, but ',3' follows"),
        (",2\n", "line 5: the value of attribute 'l' is empty"),
        ("2,2\n", "line 5: attribute 'l' does not declare the value at '2,2'"),
        (r"'\2',2" + "\n", "line 5: attribute 'l' does not declare"),
        ("1,two\n", "line 5: attribute 'x' is numeric, got 'two'"),
        ("1,'2\n", "line 5: the quote at .* is not closed"),
        ("1,'2' 3\n", "line 5: expected 2 values, but '3' follows"),
        ("'1' 0,3\n", "line 5: a separator must follow"),
        ("1,2\n{0 1}\n", "line 6: a sparse row stands among dense ones"),
        ("{0 1}\n1,2\n", "line 6: expected a sparse row in braces, got '1,2'"),
        ("{0 1\n", "line 5: the brace of the row is not closed"),
        ("{0 1,\n", "line 5: the brace of the row is not closed"),
        ("{0\n", "line 5: the brace of the row is not closed"),
        ("{0 1,,1 2}\n", "line 5: expected an index and a value"),
        ("{a 1}\n", "line 5: expected an index and a value, got 'a 1}'"),
        ("{0,1}\n", "line 5: expected an index and a value"),
        ("{-1 1}\n", "expected an index"),
        ("{2 1}\n", "line 5: the index at '2 1}' is not below 2"),
        ("{99999999999999999999 1}\n", "is not below 2"),
        ("{1 1,1 2}\n", "line 5: the index 1 stands twice"),
        ("{0 1 1 2}\n", "does not declare"),
        ("{1 }\n", "line 5: the value of attribute 'x' is empty"),
        ("{1 '2' 3}\n", "line 5: a separator must follow"),
        ("{1 2} 3\n", "line 5: '3' follows the row"),
        ("1,2,{x}\n", "line 5: expected the weight"),
        ("{1 2},{-1}\n", "line 5: expected the weight"),
    ],
)
def test_bad_rows(write, rows, message):
    path = write(GOOD + rows)
    with pytest.raises(ValueError, match=message) as caught:
        read_arff(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, r"labels is None, the relation has no -C of MEKA, .* data\.xml"),
        (["z"], "there is no attribute for the label 'z'"),
        (["a", "a"], r"data\.arff: labels must name each attribute once"),
        ([], "labels must name at least one attribute, got none"),
        (["c"], r"the label 'c' .* it is nominal with the values \['x', 'y', 'z'\]"),
        (["t"], "it is string"),
    ],
)
def test_bad_labels(write, labels, message):
    text = (
        "@relation r\n@attribute a {0,1}\n@attribute c {x,y,z}\n@attribute t string\n"
    )
    with pytest.raises(ValueError, match=message):
        read_arff(write(text + "@data\n1,x,t\n"), labels)


@pytest.mark.parametrize("labels", [1, 2.5])
def test_labels_that_are_no_names(write, labels):
    with pytest.raises(TypeError, match="labels must be the path of an XML file"):
        read_arff(write(GOOD + "1,2\n"), labels)


def test_labels_that_are_no_file(write):
    with pytest.raises(FileNotFoundError, match="or a list of names; there is no file"):
        read_arff(write(GOOD + "1,2\n"), "rain")


def test_labels_may_come_from_a_generator(write, tmp_path):
    path = write(GOOD + "1,2\n")
    for _ in range(2):
        data = read_arff(path, (name for name in ["l"]), cache=tmp_path / "cache")
        assert data.label_names == ["l"]


@pytest.mark.parametrize("count", [3, -3])
def test_bad_counts_of_meka(write, count):
    path = write(GOOD.replace("-C 1", f"-C {count}") + "1,2\n")
    with pytest.raises(
        ValueError, match=f"says -C {count}, but there are 2 attributes"
    ):
        read_arff(path)


@pytest.mark.parametrize(
    ("options", "exception", "message"),
    [
        ({"nominals": "dummy"}, ValueError, "nominals must be one of"),
        ({"missing_labels": 0}, ValueError, "missing_labels must be one of"),
        ({"drop_identifiers": 1}, TypeError, "drop_identifiers must be a bool"),
    ],
)
def test_bad_options(write, options, exception, message):
    with pytest.raises(exception, match=message):
        read_arff(write(GOOD + "1,2\n"), **options)


def test_what_would_grow_too_large_is_refused(write):
    """Each row is three bytes of the file, and would be 20,000 labels in memory."""
    names = "".join(f"@attribute a{n} {{0,1}}\n" for n in range(20_000))
    text = f"@relation 'r: -C 20000'\n{names}@data\n"
    with pytest.raises(ValueError, match="The dense indicator of 50,000 rows"):
        read_arff(write(text + "{}\n" * 50_000))
    few = (
        text.replace("-C 20000", "-C 1")
        .replace("{0,1}", "{b,c,d}")
        .replace("a0 {b,c,d}", "a0 {0,1}")
    )
    with pytest.raises(ValueError, match='Pass nominals="codes"'):
        read_arff(write(few + "{}\n" * 50_000))
    assert read_arff(write(few + "{}\n" * 50_000), nominals="codes").X.nnz == 0
    values = ",".join(f"v{n}" for n in range(20_000))
    wide = f"@relation 'r: -C 1'\n@attribute l {{0,1}}\n@attribute n {{{values}}}\n"
    with pytest.raises(ValueError, match="20,000 columns of the coded features"):
        read_arff(write(wide + "@data\n" + "0,v1\n" * 10_000))
    long = wide.replace("attribute n", "attribute " + "n" * 20_000)
    with pytest.raises(ValueError, match="names of the coded features"):
        read_arff(write(long + "@data\n0,v1\n"))


# --- against another reader ----------------------------------------------------

nasty_words = st.text("abcXYZ01 '\"\\,{}%?-", min_size=1, max_size=6)
tame_words = st.text("abcXYZ01 ,-", min_size=1, max_size=6)
numbers = st.one_of(
    st.integers(-1000, 1000).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def contents(draw, words):
    """Return the attributes and rows of a file, in the terms of liac-arff."""
    n_features = draw(st.integers(0, 4))
    attributes, columns = [], []
    for number in range(n_features):
        if draw(st.booleans()):
            kind, cell = "REAL", st.one_of(st.none(), numbers)
        else:
            kind = draw(st.lists(words, min_size=1, max_size=4, unique=True))
            cell = st.one_of(st.none(), st.sampled_from(kind))
        attributes.append((f"{number} {draw(words)}", kind))
        columns.append(cell)
    for number in range(draw(st.integers(1, 3))):
        values = draw(st.permutations(["0", "1"]))
        attributes.append((f"l{number}", list(values)))
        columns.append(st.sampled_from(values))
    rows = draw(st.lists(st.tuples(*columns).map(list), min_size=1, max_size=6))
    return attributes, rows


def quoted(word):
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def written(attributes, rows, is_sparse):
    lines = ["@relation r"]
    for name, kind in attributes:
        shown = kind if kind == "REAL" else "{" + ",".join(map(quoted, kind)) + "}"
        lines.append(f"@attribute {quoted(name)} {shown}")
    lines.append("@data")
    for row in rows:
        cells = []
        for number, ((_, kind), value) in enumerate(zip(attributes, row, strict=True)):
            shown = repr(value) if kind == "REAL" else quoted(str(value))
            shown = "?" if value is None else shown
            if not is_sparse:
                cells.append(shown)
            elif value != (0 if kind == "REAL" else kind[0]):
                cells.append(f"{number} {shown}")
        lines.append("{" + ", ".join(cells) + "}" if is_sparse else ", ".join(cells))
    return "\n".join(lines)


def said(value):
    """Return what a word of these alphabets means: they have the digits 0 and 1."""
    word = value.strip()
    if not re.fullmatch("-?0*[01]", word):
        return None
    return float(word.endswith("1") and not word.startswith("-"))


def says_yes_or_no(values):
    found = [said(value) for value in values]
    return None not in found and len(set(found)) == len(values)


def expected(attributes, rows):
    """Return the coded features and labels: the plain way, cell by cell."""
    X, Y = [], []
    for row in rows:
        features, labels = [], []
        for (name, kind), value in zip(attributes, row, strict=True):
            if name.startswith("l"):
                labels.append(int(value))
            elif kind == "REAL":
                features.append(np.nan if value is None else value)
            elif says_yes_or_no(kind):
                features.append(np.nan if value is None else said(value))
            elif len(kind) <= 2:
                features.append(np.nan if value is None else float(value == kind[-1]))
            else:
                features.extend(float(value == v) for v in kind)
        X.append(features)
        Y.append(labels)
    return np.array(X).reshape(len(rows), -1), np.array(Y)


@settings(max_examples=100)
@given(contents(nasty_words), st.booleans())
@example(
    ([("a", ["00"]), ("b", ["-01", "001"]), ("l0", ["0", "1"])], [["00", "001", "0"]]),
    False,
)
def test_any_content_is_read(tmp_path_factory, content, is_sparse):
    attributes, rows = content
    labels = [name for name, _ in attributes if name.startswith("l")]
    X, Y = expected(attributes, rows)
    path = tmp_path_factory.mktemp("contents") / "x.arff.gz"
    path.write_bytes(gzip.compress(written(attributes, rows, is_sparse).encode()))
    data = read_arff(path, labels)
    np.testing.assert_array_equal(dense(data.X), X)
    np.testing.assert_array_equal(data.Y, Y)


@settings(max_examples=50)
@given(contents(tame_words))
def test_files_of_liac_arff_are_read(tmp_path_factory, content):
    attributes, rows = content
    labels = [name for name, _ in attributes if name.startswith("l")]
    text = arff.dumps({"relation": "r", "attributes": attributes, "data": rows})
    path = tmp_path_factory.mktemp("contents") / "x.arff"
    path.write_text(text)
    data = read_arff(path, labels)
    X, Y = expected(attributes, arff.loads(text)["data"])
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
