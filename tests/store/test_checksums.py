# SPDX-License-Identifier: BSD-3-Clause
"""Every record of a run has a checksum: what was changed after it was written is refused by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import store_run, without_checksums
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.model.errors import StoreError
from planebench.model.header import Finished
from planebench.model.plan import Skipped
from planebench.store import RunWriter, read_run
from planebench.store.codec import from_json, sealed, unsealed

GOLDEN = Path(__file__).parents[1] / "golden" / "run"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden run, a few trials of it, stored anew: it has every file, and its records have checksums."""
    golden = read_run(GOLDEN)
    with RunWriter.create(tmp_path_factory.mktemp("runs"), golden.header) as writer:
        for trial in golden.trials[:6]:
            writer.append(trial)
        writer.observe(golden.conditions[0])
        writer.skip(Skipped("vpp", "not installed"))
        writer.finish()
    return writer.path


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_refused_or_changes_nothing(stored: Path, data: st.DataObject) -> None:
    whole = read_run(stored)
    file = data.draw(st.sampled_from(sorted(stored.glob("*.json*"))), "file")
    before = file.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(before) - 1), "bit")
    after = bytearray(before)
    after[bit // 8] ^= 1 << bit % 8
    file.write_bytes(after)
    try:
        assert read_run(stored) == whole
    except StoreError as error:
        assert file.name in str(error) or stored.name in str(error)
    finally:
        file.write_bytes(before)


@pytest.mark.parametrize("name", ["trials.jsonl", "skipped.jsonl", "conditions.jsonl", "run.json", "finished.json"])
def test_the_last_byte_that_is_lost_or_changed_is_found(stored: Path, name: str) -> None:
    file, whole = stored / name, read_run(stored)
    before = file.read_bytes()
    for damaged in (before[:-1], before[:-1] + b"J", before[:-3] + b'x"}\n'):
        file.write_bytes(damaged)
        try:
            assert read_run(stored) == whole and ".jsonl" not in name
        except StoreError as error:
            assert name in str(error)
    file.write_bytes(before)


def test_a_line_is_named(stored: Path) -> None:
    file = stored / "trials.jsonl"
    before = file.read_bytes()
    lines = before.splitlines(keepends=True)
    for third, words in ((lines[2].replace(b"1", b"2", 1), "its checksum is wrong"), (b"{}\n", "it has no checksum")):
        file.write_bytes(b"".join([*lines[:2], third, *lines[3:]]))
        with pytest.raises(StoreError, match=rf"trials\.jsonl, line 3: {words}"):
            read_run(stored)
    file.write_bytes(before)


def test_whole_lines_that_a_finished_run_has_lost_are_missed(stored: Path) -> None:
    file = stored / "trials.jsonl"
    before = file.read_bytes()
    file.write_bytes(b"".join(before.splitlines(keepends=True)[:-1]))
    with pytest.raises(StoreError, match=r"trials\.jsonl: it ended with 6 trials, 5 are here"):
        read_run(stored)
    file.write_bytes(before)


def test_a_run_without_checksums_is_read_and_resumed(tmp_path: Path) -> None:
    golden = read_run(GOLDEN)
    assert not golden.header.checksums and golden.trials
    folder = tmp_path / store_run(tmp_path, golden, finish=False).header.run_id
    without_checksums(folder)
    with RunWriter.reopen(folder) as writer:  # what is added has checksums, and they are looked at
        writer.append(golden.trials[0])
    assert read_run(folder).trials == (*golden.trials, golden.trials[0])
    file = folder / "trials.jsonl"
    file.write_bytes(file.read_bytes()[:-40] + b"0" + file.read_bytes()[-39:])
    with pytest.raises(StoreError, match=rf"line {len(golden.trials) + 1}: its checksum is wrong"):
        read_run(folder)


def test_a_record_with_a_checksum_is_a_json_object_that_anybody_reads() -> None:
    finished = b'{"status": "complete", "finished_at": "2026-11-21T12:40:00Z"}'
    assert sealed(finished) == finished[:-1] + b', "crc32": "dc60ff73"}'
    assert unsealed(sealed(finished), "here", required=True) == finished
    assert sealed(b'{\n  "a": 1\n}\n').startswith(b'{\n  "a": 1, "crc32": ')
    with pytest.raises(StoreError, match="unknown key crc32"):  # a checksum is the last key
        from_json(Finished, unsealed(sealed(finished)[:-1] + b', "note": ""}', "here"), "here")
