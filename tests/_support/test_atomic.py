"""What killed writes leave behind in the library's own folders."""

import os
import time

import pytest

from clml._support.atomic import atomic_path, sweep_unfinished

NAME = f".{'0f' * 8}.part"


@pytest.mark.parametrize(
    ("age", "older_than", "kept"),
    [(10, 0, False), (-1e6, 0, False), (10, 60, True), (100, 60, False)],
)
def test_what_is_old_enough_goes(tmp_path, age, older_than, kept):
    (tmp_path / NAME).touch()
    os.utime(tmp_path / NAME, (time.time() - age,) * 2)
    sweep_unfinished(tmp_path, older_than)
    assert (tmp_path / NAME).exists() == kept


def test_other_names_stay(tmp_path):
    for name in ("a.part", ".a.part", f"{NAME}.txt", "model.clml"):
        (tmp_path / name).touch()
    sweep_unfinished(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_names_of_writes_are_those_that_are_swept(tmp_path):
    with atomic_path(tmp_path / "file") as temporary:
        temporary.touch()
        sweep_unfinished(tmp_path)
        assert not temporary.exists()
        temporary.touch()
