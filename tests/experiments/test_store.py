import json
import os
import socket
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
def test_damaged_records_are_passed_over_and_told(tmp_path, line, message):
    path = tmp_path / "records.jsonl"
    good = [json.dumps(record(key)) + "\n" for key in "ac"]
    path.write_text(good[0] + line + "\n" + line + "\n" + good[1])
    with pytest.warns(UserWarning, match=message) as caught:
        records, end = read_lines(path)
    assert "line 2" in str(caught[0].message)
    assert "and 1 more" in str(caught[0].message)
    assert len(caught) == 1
    assert [r["key"] for r in records] == ["a", "c"]
    assert end == path.stat().st_size


def test_a_job_whose_record_is_damaged_is_run_again(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('{"key": "a", "da\x00\x00\n' + json.dumps(record("c")) + "\n")
    with pytest.warns(UserWarning, match="passed over"):
        store = Store(tmp_path)
    assert store.claim("c") == "finished"
    assert store.claim("a") == "mine"
    store.finish(record("a"))
    with pytest.warns(UserWarning, match="passed over"):
        assert keys(tmp_path) == ["c", "a"]


def claim_file(folder, silence=0, **changes):
    owner = {
        "pid": os.getpid(),
        "started": None,
        "host": socket.gethostname(),
        "token": "of another",
    }
    path = folder / "claims" / "a.json"
    path.write_text(json.dumps({**owner, **changes}))
    last = path.stat().st_mtime - silence
    os.utime(path, (last, last))
    return path


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, "taken"),
        ({"pid": 2**22 + 1}, "mine"),  # beyond the largest number of a process
        ({"started": "1"}, "mine"),  # the number went to another process
        ({"host": "elsewhere"}, "taken"),
        ({"host": "elsewhere", "silence": 100}, "taken"),
        ({"host": "elsewhere", "silence": 1000}, "mine"),
        ({"silence": 1000}, "taken"),  # alive, whatever it does
        ({"pid": "x"}, "taken"),
        ({"pid": 2**70}, "taken"),
    ],
)
def test_claims_of_the_dead_are_taken_over(tmp_path, changes, found):
    store = Store(tmp_path)
    claim_file(tmp_path, **changes)
    assert store.claim("a") == found


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "[" * 9000])
def test_claims_that_were_never_finished_are_taken_over(tmp_path, content):
    store = Store(tmp_path)
    (tmp_path / "claims" / "a.json").write_text(content)
    assert store.claim("a") == "mine"


@pytest.mark.parametrize(
    "content", ["[" * 9000, "{", "[]"], ids=["deep", "cut", "list"]
)
def test_a_claim_that_somebody_wrote_over_is_left_alone(tmp_path, content):
    store = Store(tmp_path)
    store.claim("a")
    (tmp_path / "claims" / "a.json").write_text(content)
    store.beat()
    store.release("a")
    assert (tmp_path / "claims" / "a.json").read_text() == content


def test_who_is_at_a_job_shows_it(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    store.claim("a")
    claim = tmp_path / "claims" / "a.json"
    owner = json.loads(claim.read_text())
    # As if it were on another machine, for a long time.
    claim_file(tmp_path, **{**owner, "host": "elsewhere"}, silence=1000)
    store.beat()
    assert other.claim("a") == "taken"
    claim_file(tmp_path, **{**owner, "host": "elsewhere"}, silence=1000)
    assert other.claim("a") == "mine"
    # Not for who took it over.
    os.utime(claim, (1.0, 1.0))
    store.beat()
    assert claim.stat().st_mtime == 1.0
    other.beat()
    assert claim.stat().st_mtime > 1.0


@pytest.mark.parametrize("late", ["release", "failed", "done"])
def test_who_lost_a_job_leaves_the_claim_of_who_took_it_over(tmp_path, late):
    first, second = Store(tmp_path), Store(tmp_path)
    first.claim("a")
    path = claim_file(tmp_path, pid=2**22 + 1)
    assert second.claim("a") == "mine"
    if late == "release":
        first.release("a")
    else:
        first.finish(record("a", late))
    assert path.exists()
    second.finish(record("a"))
    assert not path.exists()


def test_a_late_failure_does_not_undo_what_is_done(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    first.claim("a")
    claim_file(tmp_path, pid=2**22 + 1)
    second.claim("a")
    second.finish(record("a"))
    first.finish(record("a", "failed"))
    (kept,) = read_lines(tmp_path / "records.jsonl")[0]
    assert kept["status"] == "done"
    assert first.is_finished("a")


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
