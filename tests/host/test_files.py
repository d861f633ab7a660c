# SPDX-License-Identifier: BSD-3-Clause
"""Files in folders that come from a stranger: links, FIFOs and devices in the place of a file."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from planebench.host import files
from planebench.host.files import new_file, open_file, read_file, replace_file


def test_a_link_is_replaced_and_what_it_names_stays(tmp_path: Path) -> None:
    precious, target = tmp_path / "precious", tmp_path / "report.html"
    precious.write_text("precious")
    target.symlink_to(precious)
    replace_file(target, b"new", durable=True)
    assert precious.read_text() == "precious"
    assert target.read_text() == "new" and not target.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "report.html"]


def test_a_fifo_is_replaced_without_waiting_for_a_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report.html")
    replace_file(tmp_path / "report.html", b"new")
    assert (tmp_path / "report.html").read_bytes() == b"new"


def test_the_name_of_the_new_file_cannot_be_guessed(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with new_file(tmp_path / "a.json") as file:
            names.append(Path(file.name).name)
    assert names[0] != names[1]
    assert all(re.fullmatch(r"\.a\.json\.[0-9a-f]{16}\.tmp", name) for name in names)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_an_error_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "a.json"
    replace_file(target, b"old")
    with pytest.raises(type(error)), new_file(target) as file:
        file.write(b"new")
        raise error
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_has_the_mode_of_the_users_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.timeout(10)
def test_only_files_are_read_and_their_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    assert read_file(tmp_path / "file") == b"1234"
    for name, words in (("link", "it is a link"), ("fifo", "it is no regular file")):
        with pytest.raises(OSError, match=words):
            read_file(tmp_path / name)
        with pytest.raises(OSError, match=words + "|No such device"):  # a FIFO that nobody reads
            open_file(tmp_path / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with pytest.raises(OSError, match="no regular file"):
        read_file(Path("/dev/zero"))
    monkeypatch.setattr(files, "READ_MAX_BYTES", 3)
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_file(tmp_path / "file")
