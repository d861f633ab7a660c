# SPDX-License-Identifier: BSD-3-Clause
"""Snabb's adapter without Snabb: what it refuses, and its counters in shared memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from planebench.host.programs import Found, NotFound
from planebench.model.errors import UsageError
from planebench.switches import snabb
from planebench.switches.adapter import Situation
from planebench.testbed.request import SwitchPort

LINK = "v0.tx -> v1.rx"


def write_link(state: Path, **counts: int) -> Path:
    folder = state / "7" / "links" / LINK
    folder.mkdir(parents=True)
    for name, count in counts.items():
        (folder / f"{name}.counter").write_bytes(struct.pack("<Q", count))
    return folder


def test_counters_of_a_link(tmp_path: Path) -> None:
    write_link(tmp_path, txpackets=692711, rxpackets=691688, txdrop=24153)
    assert snabb.read_link(tmp_path, 7, LINK) == {"txpackets": 692711, "rxpackets": 691688, "txdrop": 24153}


@pytest.mark.parametrize("name", ["txpackets", "rxpackets", "txdrop"])
def test_a_counter_that_is_not_whole_is_no_number(tmp_path: Path, name: str) -> None:
    folder = write_link(tmp_path, txpackets=1, rxpackets=1, txdrop=0)
    for size in range(8):
        (folder / f"{name}.counter").write_bytes(bytes(size))
        assert snabb.read_link(tmp_path, 7, LINK) is None
    (folder / f"{name}.counter").unlink()
    assert snabb.read_link(tmp_path, 7, LINK) is None


def test_it_has_no_driver_for_an_emulated_nic() -> None:
    assert snabb.ADAPTER.refusal(Situation("v2v", "virtio")) == ""
    assert {snabb.ADAPTER.refusal(Situation("p2p", wire)) for wire in ("vhost", "veth")} == {""}
    assert "--wire vhost" in snabb.ADAPTER.refusal(Situation("p2v", "virtio"))
    assert "up to 1518" in snabb.ADAPTER.refusal(Situation("v2v", "virtio", max_frame_bytes=9018))
    with pytest.raises(UsageError, match=r"port n0 \(virtio-user\)"):
        snabb._app(SwitchPort("n0", "virtio-user", path=Path("/x")))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("snabb 2022.07 (396-gf32729274-dirty)", "2022.07 (396-gf32729274-dirty)"),
        ("snabb 2024.08", "2024.08"),
        ("vpp v26.06", None),
        ("", None),
    ],
)
def test_version(said: str, version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "snabb"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_SNABB", str(program))
    found = snabb.ADAPTER.find()
    assert found == Found(version, program) if version else isinstance(found, NotFound)
