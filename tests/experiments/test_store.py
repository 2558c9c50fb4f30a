import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clml.experiments._store import Store, read_lines


def record(key, status="done", **more):
    return {
        "key": key,
        "dataset": "d",
        "method": "m",
        "split": 0,
        "seed": 0,
        "status": status,
        "losses": {"test": {"hamming": 0.25}} if status == "done" else None,
        **more,
    }


def keys(folder):
    return [r["key"] for r in read_lines(folder / "records.jsonl")[0]]


def test_a_job_is_claimed_once_and_finished_once(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    assert store.claim("a") == "mine"
    assert other.claim("a") == "taken"
    store.finish(record("a"), artifact=b"some bytes")
    assert other.claim("a") == "finished"
    assert keys(tmp_path) == ["a"]
    assert (tmp_path / "artifacts" / "a.npz").read_bytes() == b"some bytes"
    assert not list((tmp_path / "claims").iterdir())


def test_a_job_that_is_given_back_can_be_claimed(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    assert store.claim("a") == "mine"
    store.release("a")
    assert other.claim("a") == "mine"


def test_failed_jobs_are_run_again_if_asked_for_and_once(tmp_path):
    Store(tmp_path).finish(record("a", "failed"))
    assert Store(tmp_path).claim("a") == "finished"
    first, second = (Store(tmp_path, retry_failed=True) for _ in range(2))
    assert first.claim("a") == "mine"
    first.finish(record("a", "failed"))
    assert second.claim("a") == "finished"


@pytest.mark.parametrize("torn", [b'{"key": "b", "data', b"{", b'{"key": "b"}'])
def test_an_unfinished_line_is_ignored_and_cut_off(tmp_path, torn):
    store = Store(tmp_path)
    store.finish(record("a"))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert keys(tmp_path) == ["a"]
    Store(tmp_path).finish(record("c"))
    assert keys(tmp_path) == ["a", "c"]
    assert path.read_bytes().startswith(whole)
    # A store that knew the file before goes on as well.
    store.finish(record("e"))
    assert keys(tmp_path) == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "expected a JSON object"),
        ("nonsense", "expected a JSON object"),
        (json.dumps(record(3)), "key must be str"),
        (json.dumps(record("a", "running")), "status must be done or failed"),
        (json.dumps({**record("a"), "losses": None}), "must have losses"),
        ('{"key": NaN}', "NaN is no number"),
        ("[" * 100_000, "expected a JSON object"),
        ('"' + "a" * 2**20 + '"', "at most 1,048,576 bytes"),
    ],
)
def test_damaged_records_are_refused_with_their_line(tmp_path, line, message):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record("a")) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=message) as caught:
        read_lines(path)
    assert "line 2" in str(caught.value)


def claim_file(folder, **changes):
    owner = {
        "pid": os.getpid(),
        "started": None,
        "host": socket.gethostname(),
        "time": time.time(),
    }
    folder.joinpath("claims").mkdir(exist_ok=True)
    (folder / "claims" / "a.json").write_text(json.dumps({**owner, **changes}))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, "taken"),
        ({"pid": 2**22 + 1}, "mine"),  # beyond the largest number of a process
        ({"started": "1"}, "mine"),  # the number went to another process
        ({"host": "elsewhere"}, "taken"),
        ({"host": "elsewhere", "time": time.time() - 1000}, "mine"),
        ({"pid": "x"}, "taken"),
        ({"time": None}, "mine"),
    ],
)
def test_claims_of_the_dead_are_taken_over(tmp_path, changes, found):
    store = Store(tmp_path)
    claim_file(tmp_path, **changes)
    assert store.claim("a", limit_seconds=60) == found


def test_many_threads_share_the_jobs(tmp_path):
    stores = [Store(tmp_path) for _ in range(4)]

    def work(store):
        mine = []
        for n in range(12):
            if store.claim(f"k{n}") == "mine":
                store.finish(record(f"k{n}"))
                mine.append(n)
        return mine

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(work, stores))
    assert sorted(n for share in shares for n in share) == list(range(12))
    assert sorted(keys(tmp_path)) == sorted(f"k{n}" for n in range(12))
