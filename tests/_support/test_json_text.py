"""What JSON takes in memory is known before it is parsed."""

import json
import tracemalloc

import pytest

from clml._support.json_text import check_json_size, json_size

N = 20_000
TEXTS = {
    "lists": "[" + "[]," * N + "0]",
    "lists of one": "[" + "[0.5]," * N + "0]",
    "deep lists": "[" + ("[" * 40 + "]" * 40 + ",") * (N // 40) + "0]",
    "dicts": "[" + "{}," * N + "0]",
    "dicts of one": "[" + '{"a":1},' * N + "0]",
    "dicts of lists": "[" + '{"a":[]},' * N + "0]",
    "deep dicts": "[" + '{"a":{"b":{}}},' * N + "0]",
    "one dict": "{" + ",".join(f'"{i:x}":1' for i in range(N)) + "}",
    "one dict of floats": "{" + ",".join(f'"{i:x}":0.5' for i in range(N)) + "}",
    "integers": "[" + ",".join(map(str, range(1000, 1000 + N))) + "]",
    "floats": "[" + "0.5," * N + "1]",
    "letters": "[" + '"a",' * N + "1]",
    "names": "[" + ",".join(f'"label{i}"' for i in range(N)) + "]",
    "wide characters": "[" + '"\\ud83d\\ude00",' * N + "1]",
    "one wide character": '"\\ud83d\\ude00' + "a" * (20 * N) + '"',
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("hook", [None, dict], ids=["plain", "pairs"])
def test_no_text_takes_more_than_is_said(name, hook):
    content = TEXTS[name].encode("ascii")
    tracemalloc.start()
    try:
        json.loads(content.decode("ascii"), object_pairs_hook=hook)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 1.1 * json_size(content)


def test_a_text_may_take_a_multiple_of_its_file():
    names = ",".join(f'"label{i}"' for i in range(10**6)).encode()
    check_json_size(b"[" + names + b"]", len(names) + 2)
    brackets = b"[" + b"[]," * 10**6 + b"0]"
    with pytest.raises(ValueError, match=r"would take 158,\d+,\d+ bytes, more than"):
        check_json_size(brackets, len(brackets))
    # They are little beside the arrays of a large file.
    check_json_size(brackets, 10 * len(brackets))


def test_small_texts_and_large_ones():
    check_json_size(b"[" * 1000, 1000)
    with pytest.raises(ValueError, match="more than 16,000"):
        check_json_size(b"[" * 1000, 1000, least=100)
    with pytest.raises(ValueError, match="more than 1,073,741,824"):
        check_json_size(b"[" * 13 * 10**6, 10**12)
