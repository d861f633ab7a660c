# SPDX-License-Identifier: BSD-3-Clause
"""A calibration is found again under its own conditions only, and anything doubtful counts as none."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planebench.host.files import default_folder
from planebench.model.errors import StoreError
from planebench.model.header import Calibration, Ceiling, LatencyFloor
from planebench.store.calibration import CalibrationCondition, condition_of, load, save, version_of
from planebench.store.codec import to_json

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MADE = Calibration(
    measured_at="2026-11-21T11:00:00Z",
    planed_version="planed 0.1.0",
    cpu_model="a CPU",
    kernel="6.1",
    wire="virtio",
    ring_size=256,
    hugepages=False,
    tester_cpus=1,
    duration_s=0.2,
    ceilings=tuple(Ceiling(size, "wire", "vnf", 1.25e7, measured=True) for size in (64, 1024)),
    floors=tuple(LatencyFloor(size, 1e6, 400, 399, 119.0, 339.0, "HIST") for size in (64, 1024)),
)
CONDITION = condition_of(MADE)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = save(MADE, tmp_path / "new" / "folder")
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert load(CONDITION, [64], folder=path.parent, now=NOW) == MADE
    assert load(CONDITION, [1024, 64], folder=path.parent, now=NOW) == MADE


@pytest.mark.parametrize(
    "change",
    [
        {"planed_version": "planed 0.2.0"},
        {"cpu_model": "another CPU"},
        {"kernel": "6.2"},
        {"wire": "veth"},
        {"ring_size": 512},
        {"hugepages": True},
        {"tester_cpus": 2},
        {"core_kinds": "IntelAtom"},
    ],
)
def test_other_conditions_have_a_file_of_their_own(tmp_path: Path, change: dict[str, Any]) -> None:
    other = replace(MADE, **change)
    save(MADE, tmp_path)
    assert load(condition_of(other), [64], folder=tmp_path, now=NOW) is None
    save(other, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert load(CONDITION, [64], folder=tmp_path, now=NOW) == MADE


def test_a_newer_one_replaces_the_older(tmp_path: Path) -> None:
    newer = replace(MADE, measured_at="2026-11-21T11:30:00Z")
    assert save(MADE, tmp_path) == save(newer, tmp_path)
    assert load(CONDITION, [64], folder=tmp_path, now=NOW) == newer


@pytest.mark.parametrize(
    ("age", "found"),
    [
        (timedelta(hours=24), True),
        (timedelta(hours=24, seconds=1), False),
        (timedelta(seconds=-30), True),
        (timedelta(hours=-1), False),
    ],
)
def test_it_holds_for_a_day(tmp_path: Path, age: timedelta, found: bool) -> None:
    made = replace(MADE, measured_at=(NOW - age).isoformat())
    save(made, tmp_path)
    assert (load(CONDITION, [64], folder=tmp_path, now=NOW) == made) is found


def test_a_frame_size_that_is_missing_is_none(tmp_path: Path) -> None:
    save(MADE, tmp_path)
    assert load(CONDITION, [64, 256], folder=tmp_path, now=NOW) is None
    save(replace(MADE, floors=MADE.floors[:1]), tmp_path)
    assert load(CONDITION, [1024], folder=tmp_path, now=NOW) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        to_json(MADE)[:-20],
        to_json(MADE).replace(b'"wire": "virtio"', b'"wire": "veth"'),
        to_json(MADE).replace(b'"ring_size"', b'"ring_sizes"'),
        to_json(MADE).replace(b"2026-11-21T11:00:00Z", b"yesterday"),
        to_json(MADE).replace(b"2026-11-21T11:00:00Z", b"2026-11-21T11:00:00"),
        b"\xff\xfe",
    ],
    ids=["empty", "torn", "another condition", "another schema", "no date", "no zone", "no text"],
)
def test_a_damaged_file_is_none(tmp_path: Path, data: bytes) -> None:
    path = save(MADE, tmp_path)
    path.write_bytes(data)
    assert load(CONDITION, [64], folder=tmp_path, now=NOW) is None


def test_none_where_there_is_no_folder(tmp_path: Path) -> None:
    assert load(CONDITION, [64], folder=tmp_path / "absent", now=NOW) is None


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="XDG_CACHE_HOME"):
        save(MADE, tmp_path / "file" / "folder")


@pytest.mark.parametrize(
    ("cache", "folder"),
    [("/x/cache", "/x/cache/planebench"), ("", "~/.cache/planebench"), ("rel", "~/.cache/planebench")],
)
def test_the_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, cache: str, folder: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert default_folder() == Path(folder).expanduser()


def test_the_key_depends_on_every_part() -> None:
    other = {"ring_size": 1, "hugepages": True, "tester_cpus": 7}
    keys = {replace(CONDITION, **{name: other.get(name, "other")}).key for name in CalibrationCondition.__slots__}
    assert len(keys | {CONDITION.key}) == len(CalibrationCondition.__slots__) + 1


def test_the_version_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "planed"
    assert version_of(program) == "unknown"
    program.write_text("#!/bin/sh\necho planed 9.9.9\n")
    program.chmod(0o755)
    first = version_of(program)
    assert re.fullmatch(r"planed 9\.9\.9 \([0-9a-f]{12}\)", first)
    program.write_text("#!/bin/sh\necho planed 9.9.9  # built anew\n")
    assert version_of(program) != first
