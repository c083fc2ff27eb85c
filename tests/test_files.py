"""Outputs appear whole or not at all."""

import os
from pathlib import Path

import pytest

from unseed import replaced
from unseed.errors import InvalidInputError


def write_folder(part, name="whole", *, fail=False):
    part.mkdir()
    (part / name).write_text(name)
    if fail:
        raise ZeroDivisionError


def write_half(part):
    part.write_text("half")
    raise ZeroDivisionError


def test_what_is_there_survives_a_failure(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("precious")
    with pytest.raises(ZeroDivisionError), replaced(path) as new:
        write_half(new)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]
    with replaced(path) as new:
        new.write_text("whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_half_written_file_is_taken_away(tmp_path):
    with pytest.raises(ZeroDivisionError), replaced(tmp_path / "out.csv") as new:
        write_half(new)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").write_text("old")
    with pytest.raises(ZeroDivisionError), replaced(path) as new:
        write_folder(new, "half", fail=True)
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(path) == ["old"]
    with replaced(path) as new:
        write_folder(new)
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(path) == ["whole"]


def test_a_folder_that_cannot_be_moved_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").write_text("old")
    move = os.rename

    def fail(source, target, **options):
        if str(target) == str(path) and not str(source).endswith(".old"):
            raise OSError(28, "No space left on device")
        return move(source, target, **options)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="No space left"), replaced(path) as new:
        write_folder(new)
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(path) == ["old"]


def test_the_rights_of_a_new_file_are_those_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    with replaced(tmp_path / "new") as new:
        new.write_text("text")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_error_of_the_disk_is_one_sentence(tmp_path):
    with pytest.raises(InvalidInputError, match="could not be written: No space left"), replaced(tmp_path / "x", "out"):
        raise OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left"), replaced(tmp_path / "x"):
        raise OSError(28, "No space left on device")
    with pytest.raises(InvalidInputError, match="out='/proc/x' could not be written"), replaced("/proc/x", "out") as new:
        new.write_text("text")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with (
        pytest.raises(InvalidInputError, match="could not be written: No space left"),
        replaced(tmp_path / "full", "out") as new,
    ):
        new.write_text("text")
    assert (tmp_path / "full").is_char_device()
    assert list(tmp_path.iterdir()) == [tmp_path / "full"]
