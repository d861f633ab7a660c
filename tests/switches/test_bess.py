# SPDX-License-Identifier: BSD-3-Clause
"""BESS's adapter without BESS: what it refuses, how it is found, how its counters are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from planebench.host.process import READY_DEADLINE_S
from planebench.host.programs import Found, NotFound
from planebench.switches import bess
from planebench.switches.adapter import Situation
from planebench.switches.bess import error_of


def test_memory_that_cannot_be_shared_is_refused_unless_it_takes_arguments() -> None:
    assert "use --wire memif" in bess.ADAPTER.refusal(Situation("p2p", "virtio"))
    assert bess.ADAPTER.refusal(Situation("v2v", "virtio")) == bess.ADAPTER.refusal(Situation("p2v", "memif")) == ""
    patched = bess.ADAPTER.with_options({"eal_env": "BESS_EAL_ARGS"})
    assert patched.refusal(Situation("p2p", "virtio")) == ""
    assert "up to 1518 bytes, not 9018" in patched.refusal(Situation("p2p", "memif", max_frame_bytes=9018))


def test_hugepages_without_a_file_system_of_them_are_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = Situation("p2p", "memif", hugepages=True)
    monkeypatch.setattr(bess, "hugetlbfs_mounted", lambda: False)
    assert "mount -t hugetlbfs" in bess.ADAPTER.refusal(huge)
    assert bess.ADAPTER.refusal(replace(huge, hugepages=False)) == ""
    monkeypatch.setattr(bess, "hugetlbfs_mounted", lambda: True)
    assert bess.ADAPTER.refusal(huge) == ""


def test_a_start_that_has_to_clear_free_hugepages_has_more_time() -> None:
    """A bessd that cleared 10 GiB for the first time was given up after 20 s, for all starts of a run."""
    assert bess._deadline_s(0) == READY_DEADLINE_S
    assert bess._deadline_s(10 * 2**30) > 3 * READY_DEADLINE_S


def test_bursts_are_the_polls_that_found_frames() -> None:
    ports = [SimpleNamespace(actual_hist=[93692559, *[0] * 31, 76284]), SimpleNamespace(actual_hist=[5, 2, 1])]
    assert bess.bursts(ports) == 76284 + 3
    assert bess.bursts([*ports, SimpleNamespace()]) is None
    assert bess.bursts([*ports, SimpleNamespace(actual_hist=[])]) is None


def test_an_error_comes_in_the_reply() -> None:
    fields = SimpleNamespace(fields_by_name={"error": None})
    assert error_of(SimpleNamespace(DESCRIPTOR=SimpleNamespace(fields_by_name={}))) == ""
    assert error_of(SimpleNamespace(DESCRIPTOR=fields, error=SimpleNamespace(code=0, errmsg=""))) == ""
    refused = SimpleNamespace(DESCRIPTOR=fields, error=SimpleNamespace(code=22, errmsg="Invalid ring"))
    assert error_of(refused) == "Invalid ring (code 22)"


def test_found_with_its_protos_and_grpc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "core" / "bessd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bessd version v0.4.0-233-g68e314fd'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_BESS", str(tmp_path))
    monkeypatch.setattr(bess.importlib.util, "find_spec", lambda _: None)
    found = bess.ADAPTER.find()
    assert isinstance(found, NotFound) and "folder protobuf" in found.remedy
    (tmp_path / "protobuf").mkdir()
    (tmp_path / "protobuf" / "service.proto").write_text("")
    found = bess.ADAPTER.find()
    assert isinstance(found, NotFound) and "planebench[bess]" in found.remedy
    monkeypatch.setattr(bess.importlib.util, "find_spec", lambda name: name)
    assert bess.ADAPTER.find() == Found("v0.4.0-233-g68e314fd", program)
