import bz2
import csv
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from clml.datasets._numerals import MISSING_WORDS, is_missing
from clml.datasets.csv import read_csv


@pytest.fixture
def written(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_worked_example(written):
    text = (
        "size,colour,sunny,big,label\r\n"
        '1,"red",yes,0,1\r\n'
        "-2.5e1,green,no,1,0\r\n"
        '?,"blue ""ish""",NO,,1\r\n'
        "inf,red,Yes,1,0\r\n"
    )
    data = read_csv(written(text), "label")
    assert data.label_names == ["label"]
    assert data.feature_names == [
        "size",
        'colour=blue "ish"',
        "colour=green",
        "colour=red",
        "sunny",
        "big",
    ]
    nan, inf = np.nan, np.inf
    assert_array_equal(
        data.X,
        [
            [1, 0, 0, 1, 1, 0],
            [-25, 0, 1, 0, 0, 1],
            [nan, 1, 0, 0, 0, nan],
            [inf, 0, 0, 1, 1, 1],
        ],
    )
    assert data.Y.dtype == np.int64
    assert_array_equal(data.Y, [[1], [0], [1], [0]])
    assert_array_equal(data.categorical, [False] + [True] * 4 + [False])
    assert (data.n_instances, data.n_features, data.n_labels) == (4, 4, 1)
    assert data.source.endswith("data.csv")


def test_labels_by_name_and_by_prefix(written):
    path = written("l_a,x,l_b\n1,5,no\n0,6,yes\n")
    by_prefix = read_csv(path, label_prefix="l_")
    assert by_prefix.label_names == ["l_a", "l_b"]
    assert_array_equal(by_prefix.Y, [[1, 0], [0, 1]])
    assert_array_equal(by_prefix.X, [[5], [6]])
    by_name = read_csv(path, ["l_b", "l_a"])
    assert by_name.label_names == ["l_b", "l_a"]
    assert_array_equal(by_name.Y, by_prefix.Y[:, ::-1])


def test_a_name_may_contain_anything(written):
    text = '"a,b","c\nd"," e ", f ,"g ""h"""\n1,2,3,4,1\n'
    data = read_csv(written(text), ['g "h"'])
    assert data.feature_names == ["a,b", "c\nd", " e ", "f"]


def test_yes_and_no_by_their_meaning(written):
    text = "f,b,l\nyes,red,TRUE\nno,blue,FALSE\nyes,,TRUE\n"
    data = read_csv(written(text), "l")
    assert data.feature_names == ["f", "b=red"]
    assert_array_equal(data.X, [[1, 1], [0, 0], [1, np.nan]])
    assert_array_equal(data.Y, [[1], [0], [1]])


def test_spellings_of_yes_and_no_are_one_value_and_letters_are_not(written):
    text = "f,g,l\nYes,f,True\nYES,n,TRUE\nno,t,false\nNo,y,FALSE\n,f,true\n"
    data = read_csv(written(text), "l")
    assert data.feature_names == ["f", "g=f", "g=n", "g=t", "g=y"]
    assert_array_equal(data.X[:, 0], [1, 1, 0, 0, np.nan])
    assert_array_equal(data.Y, [[1], [1], [0], [0], [1]])


def test_codes(written):
    data = read_csv(written("c,l\nz,1\na,0\n,1\nm,0\n"), "l", nominals="codes")
    assert data.feature_names == ["c"]
    assert_array_equal(data.X, [[2], [0], [np.nan], [1]])


def test_order_of_values_does_not_depend_on_the_order_of_rows(written):
    rows = ["green,1", "red,0", "blue,1", "red,1"]
    first = read_csv(written("\n".join(["c,l", *rows])), "l")
    other = read_csv(written("\n".join(["c,l", *rows[::-1]])), "l")
    assert first.feature_names == other.feature_names
    assert_array_equal(first.X, other.X[::-1])


@pytest.mark.parametrize("word", [*MISSING_WORDS, "NA", "NaN", "N/A", "None", "-NaN"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_missing_values(written, word, quote):
    field = f"{quote}{word}{quote}"
    data = read_csv(written(f"n,t,l\n1,a,1\n{field},{field},0\n3,b,0\n"), "l")
    assert data.feature_names == ["n", "t=b"]
    assert_array_equal(data.X, [[1, 0], [np.nan, np.nan], [3, 1]])


def test_words_for_no_value_are_those_of_pandas_and_a_question_mark():
    parsers = pytest.importorskip("pandas._libs.parsers")
    assert set(MISSING_WORDS) == {w.lower() for w in parsers.STR_NA_VALUES} | {"?"}


@given(st.one_of(st.sampled_from(MISSING_WORDS), st.text("#n/a<>-1.?\x03\x0e ")))
def test_compiled_and_plain_words_for_no_value_agree(word):
    for spelling in (word, word.upper(), word.title()):
        data = np.frombuffer(spelling.encode() + b"x", dtype=np.uint8)
        assert is_missing(data, 0, len(spelling)) == (word.lower() in MISSING_WORDS)


@pytest.mark.parametrize("words", ["unknown", ["-", "unknown"], ("unknown", -999)])
def test_further_words_for_no_value(written, words):
    path = written("n,t,l\n1,a,1\nunknown,unknown,0\n3,b,0\n")
    data = read_csv(path, "l", missing_values=words)
    assert data.feature_names == ["n", "t=b"] and data.notes == []
    assert_array_equal(data.X, [[1, 0], [np.nan, np.nan], [3, 1]])


@pytest.mark.parametrize("word", ["-999", -999, -999.0])
def test_numbers_that_stand_for_no_value(written, word):
    text = 'n,q,t,l\n1,"5",a,1\n-999.0,"-999",-999,0\n3,6,b,-999\n'
    options = {"missing_values": [str(word), "-999"], "missing_labels": "negative"}
    data = read_csv(written(text), "l", **options)
    nan = np.nan
    assert_array_equal(data.X, [[1, 5, 0], [nan, nan, nan], [3, 6, 1]])
    assert_array_equal(data.Y, [[1], [0], [0]])


# --- text that nearly is numbers ---------------------------------------------------


def stray(n_numbers, *others, header="x,l"):
    """Return a file of a column of different numbers, with others after the fifth."""
    rows = [f"{n}.5,{n % 2}" for n in range(n_numbers)]
    rows[5:5] = [f"{other},1" for other in others]
    return "\n".join([header, *rows])


def test_a_stray_word_among_numbers_draws_a_warning(written):
    path = written(stray(18, "unknown", "?", "so-so"))
    with pytest.warns(UserWarning) as caught:
        data = read_csv(path, "l")
    assert str(caught[0].message) == f"{path}: {data.notes[0]}"
    assert caught[0].filename == __file__
    assert data.notes == [
        "'x' is taken as text: 18 of its values are numbers, 2 not, first 'unknown' in "
        "line 7; pass missing_values=['unknown'] if that stands for no value; if the "
        "column is a category, there is nothing to do."
    ]
    # Every value is another, but it is no identifier.
    assert data.X.shape == (21, 20) and data.dropped == {}
    found = read_csv(path, "l", missing_values=["unknown", "so-so"])
    assert found.feature_names == ["x"] and found.notes == []
    assert np.isnan(found.X).sum() == 3


@pytest.mark.parametrize(
    "values",
    [
        [*range(17), "a", "b"],  # 89 %
        ["a"] * 20,
        ["1"] * 10 + ["no"],  # says yes and no
        [f"id{n}" for n in range(20)],
        [""] * 20,
    ],
    ids=["fewer", "none", "yes-no", "identifiers", "missing"],
)
def test_other_text_draws_none(written, values):
    text = "x,l\n" + "".join(f"{value},1\n" for value in values)
    notes = read_csv(written(text), "l").notes
    assert not any("taken as text" in note for note in notes)


def test_one_warning_for_many_columns(written):
    names = [f"x{n}" for n in range(20)]
    rows = [["oops"] * 20, *([str(n)] * 20 for n in range(30))]
    text = "\n".join(",".join([*row, "1"]) for row in [names, *rows])
    with pytest.warns(UserWarning, match="12 further columns") as caught:
        data = read_csv(written(text), "1", nominals="codes")
    assert len(caught) == 1 and len(data.notes) == 20


def test_the_warning_comes_before_what_it_explains(written):
    path = written("x,l\n" + "".join(f"1,{n % 2}\n" for n in range(20)) + "1,unsure\n")
    with (
        pytest.warns(UserWarning, match="'l' .* 1 not, first 'unsure' in line 22"),
        pytest.raises(ValueError, match="the label 'l' must be numeric or have"),
    ):
        read_csv(path, "l")


@pytest.mark.parametrize(
    "delimiter, quote", [(";", ""), ("\t", ""), (";", '"'), (",", '"')]
)
def test_decimal_commas(written, delimiter, quote):
    values = ["1,5", "-,25", "2,5e-1", "3", "", "n/a", *map(str, range(9))]
    rows = [f"{quote}{value}{quote}{delimiter}1" for value in values]
    path = written("\n".join([f"x{delimiter}l", *rows]))
    data = read_csv(path, "l", delimiter=delimiter, decimal=",")
    expected = [1.5, -0.25, 0.25, 3, np.nan, np.nan, *range(9)]
    assert data.feature_names == ["x"]
    assert_array_equal(data.X[:, 0], expected)
    hint = "13 of its 13 values are numbers if ',' is the decimal sign, first '1,5' in "
    with pytest.warns(UserWarning, match=f"{hint}line 2; pass decimal=','"):
        data = read_csv(path, "l", delimiter=delimiter)
    assert data.X.shape == (15, 12)


def test_a_decimal_point_where_a_comma_is_the_sign(written):
    text = "\n".join(["x;l", "1,5;1", *(f"{n}.5;1" for n in range(20))])
    with pytest.warns(UserWarning, match=r"'\.' is the decimal sign, first '0\.5' in"):
        read_csv(written(text), "l", delimiter=";", decimal=",")
    text = "\n".join(["x;l", *(f"{n},5;1" for n in range(30)), "1.5;1"])
    with pytest.warns(UserWarning, match=r"30 of its 31 values .* pass decimal=','"):
        read_csv(written(text), "l", delimiter=";")
    with pytest.warns(UserWarning, match=r"numbers, 1 not, first '1\.5' in line 32"):
        read_csv(written(text), "l", delimiter=";", decimal=",")


def test_numbers_in_quotes_are_numbers(written):
    text = '"a","b","l"\n"1","2.5","1"\n"","-3","0"\n'
    data = read_csv(written(text), "l")
    assert_array_equal(data.X, [[1, 2.5], [np.nan, -3]])
    assert not data.categorical.any()


def test_underscores_make_no_numbers(written):
    data = read_csv(written("a,l\n1_0,1\n2,0\n"), "l")
    assert data.feature_names == ["a=2"]


def test_identifiers_are_left_out_and_named(written):
    rows = "".join(f"row{n},{n},{n % 2}\n" for n in range(12))
    path = written("key,x,l\n" + rows)
    data = read_csv(path, "l")
    assert data.feature_names == ["x"] and data.n_features == 2
    assert_array_equal(data.dropped["key"], [f"row{n}" for n in range(12)])
    assert "'key' was left out" in data.notes[0]
    kept = read_csv(path, "l", drop_identifiers=False)
    assert kept.X.shape == (12, 13)


@pytest.mark.parametrize("names", [["0", "1", "2"], ["first", "second", "third"]])
def test_row_names_of_frames_are_left_out(written, names):
    path = written(",x,l\n" + "".join(f"{n},5,1\n" for n in names))
    data = read_csv(path, "l")
    assert data.feature_names == ["x"]
    assert_array_equal(data.dropped[""], names)
    assert data.notes == [
        "The first column, which has no name, was left out: it holds row names."
    ]
    assert "" in read_csv(path, "l", drop_identifiers=False).feature_names[0]


def test_frames_written_by_pandas(written):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"a b": [1.5, None], "t": ["x,y", 'q"\nr'], "l": [True, False]}
    )
    data = read_csv(written(frame.to_csv()), "l")
    assert data.feature_names == ["a b", "t=x,y"]
    assert_array_equal(data.X, [[1.5, 1], [np.nan, 0]])
    assert_array_equal(data.Y, [[1], [0]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", ":"])
def test_delimiters(written, delimiter):
    rows = [
        ["a", "b\tc", "t", "l"],
        ["", "1", 'x\t,;|:"', "1"],
        ["2", "", "", "0"],
        ["3", "4", "z", "0"],
    ]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    data = read_csv(written(stream.getvalue()), "l", delimiter=delimiter)
    assert data.feature_names == ["a", "b\tc", "t=z"]
    nan = np.nan
    assert_array_equal(data.X, [[nan, 1, 0], [2, nan, nan], [3, 4, 1]])


def test_tabs_inside_quotes(written):
    text = 'a\tl\n"x\ty"\t1\nz\t0\nw\t0\n'
    data = read_csv(written(text), "l", delimiter="\t")
    assert data.feature_names == ["a=w", "a=x\ty", "a=z"]


def test_tabs_where_a_control_character_is_in_use(written):
    data = read_csv(written("a\x1f\tl\n\t1\n2\t0\n"), "l", delimiter="\t")
    assert data.feature_names == ["a\x1f"]
    assert_array_equal(data.X, [[np.nan], [2]])


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ends_of_lines_and_marks(written, ending, last, mark):
    text = mark + ending.join(["a,l", "1,0", "", "2,1"]) + (ending if last else "")
    data = read_csv(written(text), "l")
    assert data.feature_names == ["a"]
    assert_array_equal(data.X, [[1], [2]])


def zipped(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data.csv", content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lzma.compress, zipped]
)
def test_compressed(written, compress):
    data = read_csv(written(compress(b"a,l\n1,1\n"), "data.csv.z"), "l")
    assert_array_equal(data.X, [[1]])


def test_latin_1(written):
    data = read_csv(written("größe,l\n1,1\n".encode("latin-1")), "l")
    assert data.feature_names == ["größe"]


def test_missing_labels(written):
    path = written("a,l\n1,1\n2,\n")
    with pytest.raises(ValueError, match="line 3: the value of the label 'l'"):
        read_csv(path, "l")
    assert_array_equal(read_csv(path, "l", missing_labels="negative").Y, [[1], [0]])


# --- against the standard library --------------------------------------------------

fields = st.text(st.sampled_from('ab ,"\n\r;é'), min_size=1, max_size=5).filter(
    lambda text: text == text.strip() and text
)


@settings(max_examples=60)
@given(st.lists(st.tuples(fields, fields), min_size=1, max_size=6))
def test_texts_are_those_of_the_csv_module(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["s", "t", "l"])
        writer.writerows([*row, 1] for row in rows)
    data = read_csv(path, "l", nominals="codes")
    for column in range(2):
        values = [row[column] for row in rows]
        places = {value: place for place, value in enumerate(sorted(set(values)))}
        assert_array_equal(data.X[:, column], [places[value] for value in values])


# --- refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("a,l\n", "no rows follow the names"),
        ("a,a,l\n1,2,1\n", "line 1: the columns 1 and 2 are both named 'a'"),
        ("\n\na,a,l\n1,2,1\n", "line 3: the columns 1 and 2 are both named 'a'"),
        ("a,,l\n1,2,1\n", "line 1: column 2 has no name"),
        ('"a,l\n1,1\n', "line 1: a quote in the line of names is not closed"),
        ('"a"b,l\n1,1\n', "line 1: a separator must follow the name 'a'"),
        ("a,l\n1,1\n2\n", "line 3: expected 2 values, got 1"),
        ("a,l\n1,1\n2,1,7\n", "line 3: expected 2 values, but ',7' follows"),
        ('a,l\n1,1\n"2,1\n3,1\n', "line 3: the quote at .* is not closed"),
        ('a,l\n1,1\n"2"x,1\n', "line 3: a separator must follow"),
        ('"a\nb",l\n"1\n2",1\n2\n', "line 5: expected 2 values"),
        ("a,l\n1,2\n", "line 2: the label 'l' must be 0 or 1, got 2"),
        ("a,l\n1,red\n", "the label 'l' must be numeric or have two values"),
        ("a,k\n1,1\n", "there is no column for the label 'l'"),
        ("a,l\n1,1\n".encode("utf-16"), "no UTF-8 text"),
        (b"a\0,l\n1,1\n", "no UTF-8 text"),
        (gzip.compress(b"a,l\n1,1\n")[:-4], "the gzip data end too early"),
    ],
    ids=range(19),
)
def test_bad_files(written, text, message):
    path = written(text)
    with pytest.raises(ValueError, match=message) as error:
        read_csv(path, "l")
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    "options, exception, message",
    [
        ({}, ValueError, "either labels .* or label_prefix .* got neither"),
        ({"labels": "l", "label_prefix": "l"}, ValueError, "got both"),
        ({"label_prefix": ""}, ValueError, "label_prefix must be text .* got ''"),
        ({"label_prefix": 3}, ValueError, "label_prefix must be text .* got 3"),
        (
            {"label_prefix": "z"},
            ValueError,
            r"no column begins with label_prefix='z'; the columns are \['a', 'l'\]",
        ),
        ({"labels": "z"}, ValueError, r"label 'z'; the columns are \['a', 'l'\]"),
        (
            {"label_prefix": "l", "delimiter": ";"},
            ValueError,
            "there is only one column, 'a,l': is delimiter=';' what parts the fields",
        ),
        ({"labels": "l", "decimal": ";"}, ValueError, "decimal must be one of"),
        ({"labels": "l", "missing_values": 3}, TypeError, "must be a sequence .* int"),
        ({"labels": "l", "missing_values": [None]}, TypeError, "hold words .* None"),
        ({"labels": "l", "unknown": "x"}, ValueError, "unknown must be one of"),
        ({"labels": []}, ValueError, "labels must name at least one column"),
        ({"labels": ["l", "l"]}, ValueError, "labels must name each column once"),
        ({"labels": 5}, TypeError, "labels must be a name or .* got int"),
        ({"labels": "l", "delimiter": "x"}, ValueError, "delimiter must be one of"),
        ({"labels": "l", "delimiter": '"'}, ValueError, "delimiter must be one of"),
        ({"labels": "l", "nominals": "no"}, ValueError, "nominals must be one of"),
        ({"labels": "l", "missing_labels": 0}, ValueError, "missing_labels must be"),
        ({"labels": "l", "drop_identifiers": 0}, TypeError, "must be a bool, got 0"),
    ],
)
def test_bad_arguments(written, options, exception, message):
    with pytest.raises(exception, match=message):
        read_csv(written("a,l\n1,1\n"), **options)


def test_many_names_are_not_all_shown(written):
    text = ",".join(f"x{n}" for n in range(20)) + "\n" + ",".join(["1"] * 20) + "\n"
    with pytest.raises(ValueError, match=r"'x6', 'x7', and 12 more\]"):
        read_csv(written(text), "l")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        read_csv(tmp_path / "none.csv", "l")


def test_bomb(written):
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        read_csv(written(gzip.compress(b"a,l\n" + b"1,1\n" * 99)), "l", max_bytes=100)


@pytest.mark.filterwarnings("ignore:.*is taken as text")
@given(st.text('a1,"\n \r?', max_size=40))
@settings(max_examples=200)
def test_any_text_is_read_or_refused(tmp_path_factory, body):
    path = tmp_path_factory.mktemp("text") / "data.csv"
    path.write_bytes(("x,l\n" + body).encode())
    try:
        data = read_csv(path, "l")
    except ValueError as error:
        assert str(error).startswith(str(path))
    else:
        assert data.X.shape[0] == data.Y.shape[0] > 0
