# SPDX-License-Identifier: BSD-3-Clause
"""A run as RO-Crate, read by the library of that project."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.cli.output import export
from planebench.model.errors import UsageError
from planebench.model.header import Subject
from planebench.store import read_run

rocrate = pytest.importorskip("rocrate.rocrate")  # from the extra dev

SUBJECT = Subject("https://example.org/vpp.git", "a" * 40, "2026-11-20T10:00:00Z")


def test_a_crate_describes_every_file_and_can_be_read_as_a_run(tmp_path: Path, own_run_folder: Path, capsys) -> None:
    run = store_run(own_run_folder, make_run(("planed",), sizes=(64,), repetitions=1, subject=SUBJECT))
    out = tmp_path / "crate"
    export("latest", "ro-crate", None, out, None)
    assert capsys.readouterr().out == f"{out / 'ro-crate-metadata.json'}\n"
    crate = rocrate.ROCrate(out)
    files = {entity.id: entity for entity in crate.data_entities if entity.type == "File"}
    assert set(files) == {str(it.relative_to(out)) for it in out.rglob("*") if it.is_file()} - {
        "ro-crate-metadata.json"
    }
    for name, entity in files.items():
        assert entity["sha256"] == hashlib.sha256((out / name).read_bytes()).hexdigest()
    action = crate.dereference("#run")
    assert [it["name"] for it in action["instrument"][:2]] == ["planebench", "planed"]
    assert action["instrument"][2]["version"] == SUBJECT.commit
    assert read_run(out).trials == run.trials
    with pytest.raises(UsageError, match="give a new folder"):
        export("latest", "ro-crate", None, out, None)
